// Reconciliation of all subscriptions, at the provider and here. Afterwards every tier is correct, even if events were
// lost. It runs once an hour, and by hand with `npm run cli -- billing reconcile`.
import { z } from 'zod'
import { sql, transact } from '../db/pool.ts'
import { errorMessage } from '../errors.ts'
import { type Customer, listCustomers } from './customers.ts'
import { ENDED } from './entitlement.ts'
import { findOrInsertCustomer } from './events.ts'
import { type Provider, ProviderError, type ProviderName } from './provider.ts'
import { type TierChange, updateTier } from './subscriptions.ts'
import { type BillingContext, synchronize } from './synchronization.ts'

export interface Reconciliation {
  /** Customers whose tier was checked, those without a subscription included. */
  customers: number
  changes: TierChange[]
  /** Subscriptions at prices of this service that belong to no account. */
  unbound: string[]
  /** Accounts with more than one subscription that bills. */
  doubled: { handle: string; subscriptions: string[] }[]
  /** Customers that could not be synchronized, and why. */
  failed: { customerId: string; reason: string }[]
}

const PAGE = 500

/**
 * Throws ProviderError when the provider does not answer; corrections until then are kept.
 * @param signal stops between two customers
 */
export async function reconcile(
  billing: BillingContext,
  provider: Provider,
  signal?: AbortSignal,
): Promise<Reconciliation> {
  const result: Reconciliation = { customers: 0, changes: [], unbound: [], doubled: [], failed: [] }
  result.changes.push(...(await updateOtherProviders(billing, provider.name)))
  const subscribed = await findSubscribed(billing, provider, result)
  for await (const customer of eachCustomer(billing, provider.name)) {
    signal?.throwIfAborted()
    const change =
      customer.open || subscribed.has(customer.customer_id)
        ? await trySynchronize(billing, provider, customer, result)
        : await update(billing, provider.name, customer.account_id)
    if (change) result.changes.push(change)
    result.customers++
  }
  result.doubled = await findDoubled(billing, provider.name)
  const { customers, changes, unbound, doubled, failed } = result
  billing.log[isClean(result) ? 'info' : 'warn']({
    event: 'billing_reconciled',
    customers,
    changes: changes.length,
    unbound: unbound.length,
    doubled: doubled.length,
    failed: failed.length,
  })
  return result
}

/** Updates accounts with subscriptions at another provider: simulated subscriptions give no tier once Stripe bills. */
async function updateOtherProviders(billing: BillingContext, provider: ProviderName): Promise<TierChange[]> {
  const others = await billing.db.anyFirst(sql.type(z.object({ account_id: z.string() }))`
    select distinct account_id from billing_customers where provider <> ${provider}`)
  const changes: TierChange[] = []
  for (const accountId of others) {
    const change = await update(billing, provider, accountId)
    if (change) changes.push(change)
  }
  return changes
}

function update({ db, now }: BillingContext, provider: ProviderName, accountId: string): Promise<TierChange | null> {
  return transact(db, (tx) => updateTier(tx, provider, accountId, now()))
}

/** Customers with an open subscription at the provider. Those not recorded here yet are recorded. */
async function findSubscribed(
  billing: BillingContext,
  provider: Provider,
  result: Reconciliation,
): Promise<Set<string>> {
  const subscribed = new Set<string>()
  for await (const { subscriptionId, customerId } of provider.listOpenSubscriptions()) {
    if (subscribed.has(customerId)) continue
    if (await findOrInsertCustomer(billing, provider, customerId)) subscribed.add(customerId)
    else result.unbound.push(subscriptionId)
  }
  return subscribed
}

async function* eachCustomer({ db }: BillingContext, provider: ProviderName) {
  for (let after = ''; ; ) {
    const page = await listCustomers(db, { provider, after, limit: PAGE, ended: ENDED })
    yield* page
    const last = page.at(-1)
    if (!last) return
    after = last.customer_id
  }
}

/** A failure at one customer is noted and the others go on; a provider that does not answer stops the run. */
async function trySynchronize(
  billing: BillingContext,
  provider: Provider,
  customer: Customer,
  { failed }: Reconciliation,
) {
  try {
    return (await synchronize(billing, provider, customer)).change
  } catch (error) {
    if (error instanceof ProviderError && error.uncertain) throw error
    billing.log.error({ event: 'billing_out_of_step', customer: customer.customer_id, err: error })
    failed.push({ customerId: customer.customer_id, reason: errorMessage(error) })
    return null
  }
}

async function findDoubled({ db }: BillingContext, provider: ProviderName) {
  const row = z.object({ handle: z.string(), subscriptions: z.array(z.string()) })
  return [
    ...(await db.any(sql.type(row)`
      select a.handle, array_agg(s.subscription_id order by s.subscription_id) subscriptions
      from billing_subscriptions s
      join billing_customers c on c.customer_id = s.customer_id join accounts a on a.id = c.account_id
      where c.provider = ${provider} and s.status <> all (${sql.array(ENDED, 'text')})
      group by a.id having count(*) > 1 order by a.handle`)),
  ]
}

/** Whether nothing is left for an operator to do. */
export function isClean({ unbound, doubled, failed }: Reconciliation): boolean {
  return unbound.length + doubled.length + failed.length === 0
}
