// Synchronization of one customer with the provider. Events, checkouts and reconciliation all call it. None of them is
// trusted: each is only a reason to read the provider's record. So events may be lost, repeated, late or out of order, and
// the tier still follows that record.
import type { Database, Tx } from '../db/pool.ts'
import { nothing, sql, transact } from '../db/pool.ts'
import type { Logger } from '../telemetry.ts'
import { beginSync, type Customer, endSync } from './customers.ts'
import { CustomerGoneError, type Provider, type ProviderSubscription } from './provider.ts'
import {
  listSubscriptions,
  type Subscription,
  type TierChange,
  updateTier,
  writeSubscriptions,
} from './subscriptions.ts'

/** The parts of a process that billing needs. */
export interface BillingContext {
  db: Database
  log: Logger
  /** Milliseconds since the epoch. */
  now: () => number
}

/** The event that caused a synchronization. */
export interface Cause {
  id: string
  type: string
  createdAt: Date
}

export interface Synchronized {
  change: TierChange | null
  /** All subscriptions of the account at this provider. */
  subscriptions: Subscription[]
  /** The customer was deleted at the provider. */
  gone: boolean
}

/**
 * Reads the customer at the provider and writes subscriptions, tier and causing event in one transaction. A crash before its
 * commit leaves only a number that is never used. Throws ProviderError.
 */
export async function synchronize(
  { db, log, now }: BillingContext,
  provider: Provider,
  customer: Customer,
  cause?: Cause,
): Promise<Synchronized> {
  // The number is taken before the read: a synchronization with a later number also reads what caused this one.
  const sync = await beginSync(db, customer.customer_id)
  const listed = await readSubscriptions(provider, customer.customer_id)
  const written = await transact(db, async (tx) => {
    if (cause) await insertEvent(tx, customer.customer_id, cause)
    if (await endSync(tx, customer.customer_id, sync, listed === null))
      await writeSubscriptions(tx, customer.customer_id, listed ?? [], now())
    const change = await updateTier(tx, provider.name, customer.account_id, now())
    return { change, subscriptions: await listSubscriptions(tx, provider.name, customer.account_id) }
  })
  if (written.change) log.info({ event: 'tier_changed', ...written.change, because: cause?.type ?? 'look' })
  return { ...written, gone: listed === null }
}

/** Null when the customer was deleted. */
async function readSubscriptions(provider: Provider, customerId: string): Promise<ProviderSubscription[] | null> {
  try {
    return await provider.listSubscriptions(customerId)
  } catch (error) {
    if (error instanceof CustomerGoneError) return null
    throw error
  }
}

async function insertEvent(tx: Tx, customerId: string, { id, type, createdAt }: Cause) {
  await tx.query(sql.type(nothing)`
    insert into billing_events (event_id, type, customer_id, created_at)
    values (${id}, ${type}, ${customerId}, ${createdAt.toISOString()}) on conflict (event_id) do nothing`)
}
