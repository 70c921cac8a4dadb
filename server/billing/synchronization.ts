// Brings what we know of one customer in step with the provider. Events, checkouts and reconciliation all come here, and
// none of them says what is true: each only gives a reason to look. So news may be lost, repeated, late or out of order,
// and the tier still ends where the provider's own record puts it.
import type { Database, Tx } from '../db/pool.ts'
import { nothing, sql, transact } from '../db/pool.ts'
import type { Logger } from '../telemetry.ts'
import { beginSync, type Customer, endSync } from './customers.ts'
import { CustomerGoneError, type Provider, type ProviderSubscription } from './provider.ts'
import {
  listSubscriptions,
  type Subscription,
  settleTier,
  type TierChange,
  writeSubscriptions,
} from './subscriptions.ts'

/** What billing needs of a process. */
export interface Billing {
  db: Database
  log: Logger
  /** Milliseconds since the epoch. */
  now: () => number
}

/** Why a look is taken, where it is an event. */
export interface Cause {
  id: string
  type: string
  createdAt: Date
}

export interface Synchronized {
  change: TierChange | null
  /** All of the account's, at this provider. */
  subscriptions: Subscription[]
  /** The customer was deleted at the provider. */
  gone: boolean
}

/**
 * Looks at the provider and writes what it says: subscriptions, the tier, and the event that gave the reason, in one
 * transaction. A crash before its end leaves no trace but a number that is skipped. Throws ProviderError.
 */
export async function synchronize(
  { db, log, now }: Billing,
  provider: Provider,
  customer: Customer,
  cause?: Cause,
): Promise<Synchronized> {
  // The number comes before the look: whoever is given a later one sees everything that gave the reason for this one.
  const look = await beginSync(db, customer.customer_id)
  const seen = await lookAt(provider, customer.customer_id)
  const written = await transact(db, async (tx) => {
    if (cause) await insertEvent(tx, customer.customer_id, cause)
    if (await endSync(tx, customer.customer_id, look, seen === null))
      await writeSubscriptions(tx, customer.customer_id, seen ?? [], now())
    const change = await settleTier(tx, provider.name, customer.account_id, now())
    return { change, subscriptions: await listSubscriptions(tx, provider.name, customer.account_id) }
  })
  if (written.change) log.info({ event: 'tier_changed', ...written.change, because: cause?.type ?? 'look' })
  return { ...written, gone: seen === null }
}

/** Null when the customer was deleted. */
async function lookAt(provider: Provider, customerId: string): Promise<ProviderSubscription[] | null> {
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
