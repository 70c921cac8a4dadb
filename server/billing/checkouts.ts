// Checkouts: the page on which a person pays for a tier. Two things must hold under crashes, failures and concurrent calls: an
// account never has two checkouts that can be paid, and never has a checkout beside a subscription that bills.
import { z } from 'zod'
import { type PaidTier, TIERS, type Tier } from '../accounts/tiers.ts'
import { type Database, nothing, sql, transact } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { type Customer, findCustomerOf, insertCustomer } from './customers.ts'
import { isChangeable } from './entitlement.ts'
import { type BilledAccount, type Checkout, CustomerGoneError, type Provider, ProviderError } from './provider.ts'
import { findBillingStatus, pickCurrent, type Subscription, type TierChange } from './subscriptions.ts'
import { type BillingContext, synchronize } from './synchronization.ts'

/** Lifetime of a checkout. Stripe allows 30 minutes to 24 hours, by its own clock. */
const CHECKOUT_MS = 23 * 3_600_000
/** A checkout is given out again only while it has more than this left. */
const MIN_LEFT_MS = 3_600_000

export interface Offer {
  /** `change`: the page confirms another plan for the existing subscription. */
  kind: 'subscribe' | 'change'
  url: string
  expiresAt: Date | null
}

export interface Buyer {
  billing: BillingContext
  provider: Provider
  account: BilledAccount
  baseUrl: string
  /** Called when a synchronization changes the account's tier. */
  onChange(change: TierChange): void
}

/** Throws AppError `already_subscribed`, `checkout_superseded`, `provider_unavailable`. */
export async function offerTier(buyer: Buyer, tier: PaidTier): Promise<Offer> {
  return withCustomer(buyer, async (customer, subscription) => {
    await refuseGranted(buyer, tier)
    if (!subscription) return subscribe(buyer, customer, tier)
    if (subscription.tier === tier) throw alreadyHas(subscription)
    if (!isChangeable(subscription)) throw unsettled(subscription)
    const change = { subscriptionId: subscription.subscription_id, tier }
    const { url, expiresAt } = await buyer.provider.openPortal({
      customerId: subscription.customer_id,
      baseUrl: buyer.baseUrl,
      change,
    })
    return { kind: 'change', url, expiresAt }
  })
}

/** The page on which the customer manages the subscription. Throws AppError `not_found`, `provider_unavailable`. */
export async function offerPortal(buyer: Buyer): Promise<{ url: string; expiresAt: Date | null }> {
  const known = await findCustomerOf(buyer.billing.db, buyer.provider.name, buyer.account.accountId)
  if (!known) throw noSubscription()
  return withCustomer(buyer, (customer, subscription) =>
    buyer.provider.openPortal({
      customerId: subscription?.customer_id ?? customer.customer_id,
      baseUrl: buyer.baseUrl,
    }),
  )
}

function noSubscription() {
  return new AppError('not_found', 'This account has never begun a checkout, so there is nothing to manage.')
}

function alreadyHas({ status, tier, payment, cancel_at_period_end }: Subscription) {
  const ending = cancel_at_period_end ? ' and ends with the paid period' : ''
  const unpaid = payment === 'kept' ? '' : `, its last payment ${payment}`
  return new AppError(
    'already_subscribed',
    `There is a subscription to the ${tier} tier already; it is ${status}${unpaid}${ending}. ` +
      'POST /v1/billing-portal returns the page to change, renew or end it.',
  )
}

function unsettled({ status, tier }: Subscription) {
  return new AppError(
    'already_subscribed',
    `The subscription to the ${tier} tier is ${status}: pay or end it first, on the page that POST /v1/billing-portal returns.`,
  )
}

/** Refuses a tier that the operator has granted free of charge. */
async function refuseGranted({ billing, provider, account }: Buyer, tier: PaidTier) {
  const { granted_tier: granted } = await transact(
    billing.db,
    (tx) => findBillingStatus(tx, provider.name, account.accountId, billing.now()),
    { readOnly: true },
  )
  if (rank(granted) >= rank(tier))
    throw new AppError('already_subscribed', `This account has the ${granted} tier already, free of charge.`)
}

const rank = (tier: Tier) => TIERS.indexOf(tier)

/**
 * Runs `work` with the account's customer and its current subscription, both read at the provider now: the last event may be
 * old. A customer that was deleted at the provider is replaced, once.
 */
async function withCustomer<T>(
  buyer: Buyer,
  work: (customer: Customer, subscription: Subscription | null) => Promise<T>,
): Promise<T> {
  for (let replaced = 0; ; replaced++) {
    const customer = await openCustomer(buyer)
    const { change, subscriptions, gone } = await synchronize(buyer.billing, buyer.provider, customer)
    if (change) buyer.onChange(change)
    try {
      if (gone) throw new CustomerGoneError(`${customer.customer_id} was deleted at ${buyer.provider.name}`)
      return await work(customer, pickCurrent(subscriptions, buyer.billing.now()))
    } catch (error) {
      if (!(error instanceof CustomerGoneError)) throw error
      if (replaced > 0)
        throw new ProviderError('The provider does not know its own customer.', { uncertain: false, cause: error })
      await markGone(buyer.billing.db, customer.customer_id)
      await startNewAttempt(buyer.billing.db, buyer.account.accountId)
    }
  }
}

async function markGone(db: Database, customerId: string) {
  await db.query(sql.type(nothing)`
    update billing_customers set gone_at = coalesce(gone_at, now()) where customer_id = ${customerId}`)
}

/** After a crash between creation and record, the next call gets the same customer by the same idempotency key. */
async function openCustomer({ billing: { db }, provider, account }: Buyer): Promise<Customer> {
  const known = await findCustomerOf(db, provider.name, account.accountId)
  if (known) return known
  const { attempt } = await findState(db, account.accountId)
  const key = `customer:${account.accountId}:${attempt}`
  const customerId = await withAttempt(db, account.accountId, attempt, () => provider.createCustomer(account, key))
  const customer = await insertCustomer(db, provider.name, customerId, account.accountId)
  if (!customer) throw new Error('the account of the caller does not exist')
  return customer
}

const checkoutState = z.object({
  attempt: z.number(),
  provider: z.string().nullable(),
  tier: z.enum(['dev', 'pro']).nullable(),
  checkout_id: z.string().nullable(),
  expires_at: z.date().nullable(),
})
type CheckoutState = z.output<typeof checkoutState>

const MAX_ROUNDS = 5

async function subscribe(buyer: Buyer, customer: Customer, tier: PaidTier): Promise<Offer> {
  const { billing, provider, account, baseUrl } = buyer
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const before = await findState(billing.db, account.accountId)
    const reusable = isReusable(before, provider, tier, billing.now())
    if (before.checkout_id !== null && before.provider === provider.name) {
      const open = reusable ? await provider.findOpenCheckout(before.checkout_id, baseUrl) : null
      if (open) return { kind: 'subscribe', url: open.url, expiresAt: open.expiresAt }
      // Closed before another one is made: in between there may be no checkout, but never two.
      if ((await provider.closeCheckout(before.checkout_id)) === 'completed' && (await isPaid(buyer, customer)))
        throw superseded('has just been paid')
    }
    const begun =
      reusable && before.checkout_id === null
        ? before
        : await beginCheckout(billing.db, account.accountId, before, provider.name, tier, billing.now())
    // A concurrent call has begun a checkout, perhaps of the same tier, so the state is read again.
    if (!begun?.expires_at) continue
    const { attempt, expires_at: expiresAt } = begun
    const key = `checkout:${account.accountId}:${attempt}`
    const order = { customerId: customer.customer_id, account, tier, expiresAt, baseUrl, key }
    const made = await withAttempt(billing.db, account.accountId, attempt, () => provider.openCheckout(order))
    if (await insertCheckout(billing.db, account.accountId, attempt, made))
      return { kind: 'subscribe', url: made.url, expiresAt: made.expiresAt }
    // A concurrent call has begun another checkout. The address of this one was never given out.
    await provider.closeCheckout(made.id)
    throw superseded('was replaced by another call')
  }
  throw superseded('is started by several calls at once')
}

function superseded(why: string) {
  return new AppError('checkout_superseded', `The checkout of this account ${why}. Ask again.`)
}

/** False for a completed checkout whose subscription has ended since: it does not prevent another one. */
async function isPaid({ billing, provider, onChange }: Buyer, customer: Customer): Promise<boolean> {
  const { change, subscriptions } = await synchronize(billing, provider, customer)
  if (change) onChange(change)
  return pickCurrent(subscriptions, billing.now()) !== null
}

function isReusable(
  { provider, tier, expires_at }: CheckoutState,
  wanted: Provider,
  wantedTier: PaidTier,
  nowMs: number,
) {
  return (
    provider === wanted.name && tier === wantedTier && expires_at !== null && expires_at.getTime() - nowMs > MIN_LEFT_MS
  )
}

/**
 * A call to the provider under the idempotency key of an attempt. After a call without an answer the key stays, so that the next
 * call repeats it. After a refusal the next call uses a new key.
 */
async function withAttempt<T>(db: Database, accountId: string, attempt: number, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ProviderError && !error.uncertain) await startNewAttempt(db, accountId, attempt)
    throw error
  }
}

const columns = sql.fragment`attempt, provider, tier, checkout_id, expires_at`

function findState(db: Database, accountId: string): Promise<CheckoutState> {
  return transact(db, async (tx) => {
    await tx.query(sql.type(nothing)`
      insert into billing_checkouts (account_id) values (${accountId}) on conflict (account_id) do nothing`)
    return tx.one(sql.type(checkoutState)`select ${columns} from billing_checkouts where account_id = ${accountId}`)
  })
}

/** Null when the state has changed since `before` was read: a checkout that was made in the meantime has to be closed first. */
function beginCheckout(
  db: Database,
  accountId: string,
  before: CheckoutState,
  provider: string,
  tier: PaidTier,
  nowMs: number,
): Promise<CheckoutState | null> {
  // Whole seconds, as they are stored: every request under one idempotency key must be the same.
  const expiresAt = new Date(Math.floor((nowMs + CHECKOUT_MS) / 1000) * 1000).toISOString()
  return db.maybeOne(sql.type(checkoutState)`
    update billing_checkouts
    set attempt = attempt + 1, provider = ${provider}, tier = ${tier}, checkout_id = null, expires_at = ${expiresAt}
    where account_id = ${accountId} and attempt = ${before.attempt}
      and checkout_id is not distinct from ${before.checkout_id} returning ${columns}`)
}

/** False when another attempt has begun. */
async function insertCheckout(db: Database, accountId: string, attempt: number, { id }: Checkout): Promise<boolean> {
  const kept = await db.query(sql.type(nothing)`
    update billing_checkouts set checkout_id = ${id}
    where account_id = ${accountId} and attempt = ${attempt} and coalesce(checkout_id, ${id}) = ${id}`)
  return kept.rowCount === 1
}

/** Gives up the present attempt, or `attempt` if that is still the present one: the next call uses another idempotency key. */
async function startNewAttempt(db: Database, accountId: string, attempt?: number) {
  await db.query(sql.type(nothing)`
    update billing_checkouts
    set attempt = attempt + 1, provider = null, tier = null, checkout_id = null, expires_at = null
    where account_id = ${accountId} and attempt = ${attempt ?? sql.fragment`attempt`}`)
}
