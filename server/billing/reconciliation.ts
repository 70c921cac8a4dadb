// Every subscription there is, at the provider and here, looked at once more. Whatever events were lost, every tier is right
// after this; run once an hour, and by hand with `npm run cli -- billing reconcile`.
import { z } from 'zod'
import { sql, transact } from '../db/pool.ts'
import { errorMessage } from '../errors.ts'
import { type Customer, listCustomers } from './customers.ts'
import { ENDED } from './entitlement.ts'
import { findOrAdopt } from './events.ts'
import { type Provider, ProviderError, type ProviderName } from './provider.ts'
import { settleTier, type TierChange } from './subscriptions.ts'
import { type Billing, synchronize } from './synchronization.ts'

export interface Reconciliation {
  /** Customers whose tier was settled, those without anything at the provider included. */
  customers: number
  changes: TierChange[]
  /** Subscriptions at our prices that are paid for no account of ours. */
  unbound: string[]
  /** Accounts with more than one subscription that bills. */
  doubled: { handle: string; subscriptions: string[] }[]
  /** Customers that could not be brought in step, and why. */
  failed: { customerId: string; reason: string }[]
}

const PAGE = 500

/**
 * Throws ProviderError when the provider does not answer; what was corrected until then stays corrected.
 * @param signal ends it between two customers
 */
export async function reconcile(billing: Billing, provider: Provider, signal?: AbortSignal): Promise<Reconciliation> {
  const result: Reconciliation = { customers: 0, changes: [], unbound: [], doubled: [], failed: [] }
  result.changes.push(...(await settleOthers(billing, provider.name)))
  const sold = await findSold(billing, provider, result)
  for await (const customer of walk(billing, provider.name)) {
    signal?.throwIfAborted()
    const change =
      customer.open || sold.has(customer.customer_id)
        ? await bringInStep(billing, provider, customer, result)
        : await settle(billing, provider.name, customer.account_id)
    if (change) result.changes.push(change)
    result.customers++
  }
  result.doubled = await findDoubled(billing, provider.name)
  const { customers, changes, unbound, doubled, failed } = result
  billing.log[isSound(result) ? 'info' : 'warn']({
    event: 'billing_reconciled',
    customers,
    changes: changes.length,
    unbound: unbound.length,
    doubled: doubled.length,
    failed: failed.length,
  })
  return result
}

/** Accounts whose subscriptions are another provider's: simulated ones give nothing once Stripe bills. */
async function settleOthers(billing: Billing, provider: ProviderName): Promise<TierChange[]> {
  const others = await billing.db.anyFirst(sql.type(z.object({ account_id: z.string() }))`
    select distinct account_id from billing_customers where provider <> ${provider}`)
  const changes: TierChange[] = []
  for (const accountId of others) {
    const change = await settle(billing, provider, accountId)
    if (change) changes.push(change)
  }
  return changes
}

function settle({ db, now }: Billing, provider: ProviderName, accountId: string): Promise<TierChange | null> {
  return transact(db, (tx) => settleTier(tx, provider, accountId, now()))
}

/** Customers with a subscription at the provider; those we never heard of are known from here on. */
async function findSold(billing: Billing, provider: Provider, result: Reconciliation): Promise<Set<string>> {
  const sold = new Set<string>()
  for await (const { subscriptionId, customerId } of provider.listSold()) {
    if (sold.has(customerId)) continue
    if (await findOrAdopt(billing, provider, customerId)) sold.add(customerId)
    else result.unbound.push(subscriptionId)
  }
  return sold
}

async function* walk({ db }: Billing, provider: ProviderName) {
  for (let after = ''; ; ) {
    const page = await listCustomers(db, { provider, after, limit: PAGE, ended: ENDED })
    yield* page
    const last = page.at(-1)
    if (!last) return
    after = last.customer_id
  }
}

/** One customer that cannot be read does not keep the others waiting; a provider that is away does. */
async function bringInStep(billing: Billing, provider: Provider, customer: Customer, { failed }: Reconciliation) {
  try {
    return (await synchronize(billing, provider, customer)).change
  } catch (error) {
    if (error instanceof ProviderError && error.uncertain) throw error
    billing.log.error({ event: 'billing_out_of_step', customer: customer.customer_id, err: error })
    failed.push({ customerId: customer.customer_id, reason: errorMessage(error) })
    return null
  }
}

async function findDoubled({ db }: Billing, provider: ProviderName) {
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

/** Whether everything is as it should be, in the end. */
export function isSound({ unbound, doubled, failed }: Reconciliation): boolean {
  return unbound.length + doubled.length + failed.length === 0
}
