// The record of subscriptions, and the tier that they give their account.
import { z } from 'zod'
import { TIERS, type Tier } from '../accounts/tiers.ts'
import { column, nothing, sql, type Tx } from '../db/pool.ts'
import { bestTier, ENDED, isLive, tierOf } from './entitlement.ts'
import { PROVIDERS, type ProviderName, type ProviderSubscription } from './provider.ts'

const tier = z.enum(TIERS)
const row = z.object({
  subscription_id: z.string(),
  customer_id: z.string(),
  provider: z.enum(PROVIDERS),
  status: z.string(),
  tier,
  payment: z.enum(['kept', 'refunded', 'disputed']),
  current_period_end: z.date().nullable(),
  cancel_at_period_end: z.boolean(),
  past_due_since: z.date().nullable(),
})
export type Subscription = z.output<typeof row>

/** All subscriptions of an account at a provider, those that have not ended first. */
export async function listSubscriptions(tx: Tx, provider: ProviderName, accountId: string): Promise<Subscription[]> {
  const found = await tx.any(sql.type(row)`
    select s.subscription_id, s.customer_id, c.provider, s.status, s.tier, s.payment, s.current_period_end,
           s.cancel_at_period_end, s.past_due_since
    from billing_subscriptions s join billing_customers c on c.customer_id = s.customer_id
    where c.account_id = ${accountId} and c.provider = ${provider}
    order by s.status = any(${sql.array(ENDED, 'text')}), s.subscription_id`)
  return [...found]
}

/** Of the subscriptions that have not ended, the one that gives the best tier; null without any. */
export function pickCurrent(subscriptions: readonly Subscription[], nowMs: number): Subscription | null {
  const live = subscriptions.filter(isLive)
  const worth = (subscription: Subscription) => TIERS.indexOf(tierOf(entitling(subscription), nowMs))
  return live.reduce<Subscription | null>((best, next) => (!best || worth(next) > worth(best) ? next : best), null)
}

function entitling(subscription: Subscription) {
  return { ...subscription, pastDueSince: subscription.past_due_since }
}

/** Writes the subscriptions that the provider lists for a customer. A known one that is not listed has ended. */
export async function writeSubscriptions(
  tx: Tx,
  customerId: string,
  listed: readonly ProviderSubscription[],
  nowMs: number,
): Promise<void> {
  const now = new Date(nowMs).toISOString()
  await tx.query(sql.type(nothing)`
    insert into billing_subscriptions as known
      (subscription_id, customer_id, status, tier, payment, current_period_end, cancel_at_period_end, past_due_since)
    select subscription_id, ${customerId}, status, tier, payment, current_period_end::timestamptz, cancel_at_period_end,
           case when status = 'past_due' then ${now}::timestamptz end
    from unnest(${column(listed, 'text', (s) => s.subscriptionId)}, ${column(listed, 'text', (s) => s.status)},
                ${column(listed, 'text', (s) => s.tier)}, ${column(listed, 'text', (s) => s.payment)},
                ${column(listed, 'text', (s) => s.currentPeriodEnd?.toISOString() ?? null)},
                ${column(listed, 'bool', (s) => s.cancelAtPeriodEnd)})
         as t (subscription_id, status, tier, payment, current_period_end, cancel_at_period_end)
    on conflict (subscription_id) do update set
      customer_id = excluded.customer_id, status = excluded.status, tier = excluded.tier, payment = excluded.payment,
      current_period_end = excluded.current_period_end, cancel_at_period_end = excluded.cancel_at_period_end,
      past_due_since = case when excluded.status = 'past_due'
                            then coalesce(known.past_due_since, excluded.past_due_since) end`)
  await tx.query(sql.type(nothing)`
    update billing_subscriptions set status = 'canceled', past_due_since = null
    where customer_id = ${customerId}
      and subscription_id <> all (${sql.array(
        listed.map((s) => s.subscriptionId),
        'text',
      )})`)
}

const accountRow = z.object({ handle: z.string(), tier, granted_tier: tier })

/** A change of an account's tier. */
export interface TierChange {
  handle: string
  from: Tier
  to: Tier
}

/**
 * Gives the account the best of the tier that the operator granted and the tiers of its subscriptions. Null when it has that
 * tier already. Locks the account, so that concurrent updates come one after the other.
 */
export async function updateTier(
  tx: Tx,
  provider: ProviderName,
  accountId: string,
  nowMs: number,
): Promise<TierChange | null> {
  const account = await tx.one(sql.type(accountRow)`
    select handle, tier, granted_tier from accounts where id = ${accountId} for no key update`)
  const subscriptions = await listSubscriptions(tx, provider, accountId)
  const paid = subscriptions.map((subscription) => tierOf(entitling(subscription), nowMs))
  const due = bestTier([account.granted_tier, ...paid])
  if (due === account.tier) return null
  await tx.query(sql.type(nothing)`update accounts set tier = ${due} where id = ${accountId}`)
  return { handle: account.handle, from: account.tier, to: due }
}

/** An account's tier, and the grant and the subscription that give it. */
export type BillingStatus = z.output<typeof accountRow> & { subscription: Subscription | null }

/** @param provider undefined where no provider bills: the status then has no subscription */
export async function findBillingStatus(
  tx: Tx,
  provider: ProviderName | undefined,
  accountId: string,
  nowMs: number,
): Promise<BillingStatus> {
  const account = await tx.one(sql.type(accountRow)`
    select handle, tier, granted_tier from accounts where id = ${accountId}`)
  const subscriptions = provider ? await listSubscriptions(tx, provider, accountId) : []
  return { ...account, subscription: pickCurrent(subscriptions, nowMs) }
}
