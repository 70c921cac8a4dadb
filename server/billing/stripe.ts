// Stripe as billing provider, through its SDK.
import Stripe from 'stripe'
import type { Tier } from '../accounts/tiers.ts'
import type { StripeSettings } from '../config.ts'
import { AppError } from '../errors.ts'
import type { Logger } from '../telemetry.ts'
import {
  type Checkout,
  type CheckoutOrder,
  CustomerGoneError,
  type PortalOrder,
  ProviderError,
  type ProviderSubscription,
  type StripeProvider,
} from './provider.ts'
import { findPaymentState } from './stripe-payment.ts'
import { findPortalConfiguration } from './stripe-portal.ts'

/** The longest call, retries included, ends before a router gives up on the request. */
const TIMEOUT_MS = 5000
const MAX_RETRIES = 2
/** Greatest age of a webhook's signature, and how far ahead of this clock its time may be, in seconds. */
export const TOLERANCE_SECONDS = 300
const PAGE = 100
/** Marks the objects of this service in a Stripe account that may have other business. */
const SERVICE = 'countersign'

export function buildStripeClient({ secretKey, apiBase }: Pick<StripeSettings, 'secretKey' | 'apiBase'>): Stripe {
  const base = apiBase ? new URL(apiBase) : undefined
  return new Stripe(secretKey, {
    timeout: TIMEOUT_MS,
    maxNetworkRetries: MAX_RETRIES,
    telemetry: false,
    ...(base && {
      protocol: base.protocol === 'http:' ? 'http' : 'https',
      host: base.hostname,
      port: base.port || (base.protocol === 'http:' ? 80 : 443),
    }),
  })
}

export function openStripe(settings: StripeSettings, log: Logger): StripeProvider {
  const stripe = buildStripeClient(settings)
  const tiers = new Map(
    (['dev', 'pro'] as const).flatMap((tier) => settings.prices[tier].map((price): [string, Tier] => [price, tier])),
  )
  const call = <T>(work: () => Promise<T>) => work().catch((error) => Promise.reject(toProviderError(error, log)))
  /** Throws if this Stripe account does not know the prices, because then it is not the account of the customers. */
  const checkPrices = () => Promise.all([...tiers.keys()].map((price) => stripe.prices.retrieve(price)))
  /** Throws CustomerGoneError for a missing customer, but only once the account of the key is known to be the right one. */
  const orGone = async (error: unknown): Promise<never> => {
    if (!isMissingCustomer(error)) throw error
    await call(checkPrices)
    throw new CustomerGoneError('Stripe has no such customer', { cause: error })
  }

  return {
    name: 'stripe',

    createCustomer: ({ accountId, handle }, key) =>
      call(async () => {
        const metadata = { service: SERVICE, account_id: accountId, handle }
        const description = `Countersign account ${handle}`
        return (await stripe.customers.create({ description, metadata }, { idempotencyKey: key })).id
      }),

    findAccountId: (customerId) =>
      call(async () => {
        const customer = await stripe.customers.retrieve(customerId)
        const own = customer.deleted ? undefined : accountOf(customer.metadata)
        if (own) return own
        for await (const { metadata } of stripe.subscriptions.list({
          customer: customerId,
          status: 'all',
          limit: PAGE,
        })) {
          const account = accountOf(metadata)
          if (account) return account
        }
        return null
      }),

    findCustomerOfCharge: (chargeId) => call(async () => idOf((await stripe.charges.retrieve(chargeId)).customer)),

    listSubscriptions: (customerId) =>
      call(async () => {
        const listed: ProviderSubscription[] = []
        const pages = stripe.subscriptions.list({ customer: customerId, status: 'all', limit: PAGE })
        for await (const subscription of pages) listed.push(await describeSubscription(stripe, subscription, tiers))
        return listed
      }).catch(orGone),

    async *listOpenSubscriptions() {
      try {
        // One list after the other: the SDK sends a request as soon as a list is made, and an unhandled rejection ends the process.
        for (const price of tiers.keys())
          for await (const { id, customer } of stripe.subscriptions.list({ price, limit: PAGE }))
            yield { subscriptionId: id, customerId: idOf(customer) ?? '' }
      } catch (error) {
        throw toProviderError(error, log)
      }
    },

    openCheckout: (order) =>
      call(async () => {
        const terms = termsOf(order, settings.prices[order.tier][0])
        return describeCheckout(
          await stripe.checkout.sessions.create(terms, { idempotencyKey: order.key }),
          order.expiresAt,
        )
      }).catch(orGone),

    findOpenCheckout: (id) =>
      call(async () => {
        const session = await stripe.checkout.sessions.retrieve(id, { expand: ['customer'] })
        if (typeof session.customer === 'object' && session.customer?.deleted)
          throw new CustomerGoneError('the customer of the checkout was deleted at Stripe')
        return session.status === 'open' && session.url ? describeCheckout(session) : null
      }),

    closeCheckout: (id) =>
      call(async () => {
        const { status } = await stripe.checkout.sessions.retrieve(id)
        if (status === 'open') await closeOpen(stripe, id)
        const ended = status === 'open' ? await stripe.checkout.sessions.retrieve(id) : { status }
        return ended.status === 'complete' ? ('completed' as const) : ('closed' as const)
      }),

    openPortal: (order) =>
      call(async () => {
        const configuration = await findPortalConfiguration(stripe, settings.prices)
        const terms = await portalTermsOf(stripe, order, settings.prices)
        return { url: (await stripe.billingPortal.sessions.create({ ...terms, configuration })).url, expiresAt: null }
      }).catch(orGone),

    readEvent(body, signature, nowMs) {
      try {
        // Stripe's package refuses what is too old, and takes every time to come.
        for (const [, seconds] of signature.matchAll(/(?:^|,)\s*t=(\d+)/g))
          if (Number(seconds) > nowMs / 1000 + TOLERANCE_SECONDS) throw new Error('the signature is of a time to come')
        return stripe.webhooks.constructEvent(
          body,
          signature,
          settings.webhookSecret,
          TOLERANCE_SECONDS,
          undefined,
          nowMs,
        )
      } catch (error) {
        throw new AppError('invalid_request', 'Stripe-Signature does not verify.', { cause: error })
      }
    },
  }
}

function accountOf(metadata: Stripe.Metadata): string | undefined {
  return metadata.service === SERVICE ? metadata.account_id : undefined
}

function idOf(reference: string | { id: string } | null): string | null {
  return typeof reference === 'object' ? (reference?.id ?? null) : reference
}

async function describeSubscription(
  stripe: Stripe,
  subscription: Stripe.Subscription,
  tiers: Map<string, Tier>,
): Promise<ProviderSubscription> {
  const items = subscription.items.data
  const sold = items.map(({ price }) => tiers.get(price.id) ?? 'free')
  const tier = sold.includes('pro') ? 'pro' : sold.includes('dev') ? 'dev' : 'free'
  const periodEnd = Math.max(0, ...items.map((item) => item.current_period_end ?? 0))
  return {
    subscriptionId: subscription.id,
    status: subscription.status,
    tier,
    payment: await findPaymentState(stripe, subscription),
    currentPeriodEnd: periodEnd > 0 ? new Date(periodEnd * 1000) : null,
    // Stripe has two ways to say that no period follows.
    cancelAtPeriodEnd: subscription.cancel_at_period_end || subscription.cancel_at !== null,
  }
}

function termsOf({ customerId, account, tier, expiresAt, baseUrl }: CheckoutOrder, price: string) {
  const metadata = { service: SERVICE, account_id: account.accountId, handle: account.handle, tier }
  return {
    mode: 'subscription',
    customer: customerId,
    client_reference_id: account.accountId,
    line_items: [{ price, quantity: 1 }],
    success_url: `${baseUrl}/checkout/success`,
    cancel_url: `${baseUrl}/checkout/cancel`,
    expires_at: expiresAt.getTime() / 1000,
    metadata,
    subscription_data: { metadata },
  } satisfies Stripe.Checkout.SessionCreateParams
}

function describeCheckout({ id, url, expires_at }: Stripe.Checkout.Session, fallback?: Date): Checkout {
  if (!url) throw new ProviderError('Stripe made a checkout without an address.', { uncertain: false })
  return { id, url, expiresAt: expires_at ? new Date(expires_at * 1000) : (fallback ?? new Date(0)) }
}

/** Stripe refuses to close a checkout that was just paid or has expired; the caller reads its status afterwards. */
async function closeOpen(stripe: Stripe, id: string) {
  try {
    await stripe.checkout.sessions.expire(id)
  } catch (error) {
    if (!(error instanceof Stripe.errors.StripeInvalidRequestError)) throw error
  }
}

async function portalTermsOf(
  stripe: Stripe,
  { customerId, baseUrl, change }: PortalOrder,
  prices: StripeSettings['prices'],
): Promise<Stripe.BillingPortal.SessionCreateParams> {
  const home = `${baseUrl}/checkout/success`
  if (!change) return { customer: customerId, return_url: home }
  const { items } = await stripe.subscriptions.retrieve(change.subscriptionId)
  const known = Object.values(prices).flat()
  const item = items.data.find(({ price }) => known.includes(price.id)) ?? items.data[0]
  if (!item) throw new ProviderError('The subscription at Stripe has no plan to change.', { uncertain: false })
  return {
    customer: customerId,
    return_url: `${baseUrl}/checkout/cancel`,
    flow_data: {
      type: 'subscription_update_confirm',
      after_completion: { type: 'redirect', redirect: { return_url: home } },
      subscription_update_confirm: {
        subscription: change.subscriptionId,
        items: [{ id: item.id, price: prices[change.tier][0], quantity: 1 }],
      },
    },
  }
}

function isMissingCustomer(error: unknown): boolean {
  const cause = error instanceof ProviderError ? error.cause : error
  return (
    cause instanceof Stripe.errors.StripeInvalidRequestError &&
    cause.code === 'resource_missing' &&
    (cause.param === 'customer' || /^No such customer/.test(cause.message))
  )
}

/** The error for the caller. The details, which only the operator can act on, are logged. */
function toProviderError(error: unknown, log: Logger): unknown {
  if (!(error instanceof Stripe.errors.StripeError)) return error
  if (error instanceof Stripe.errors.StripeConnectionError) {
    log.warn({ event: 'stripe_away', err: error })
    return new ProviderError('Stripe does not answer. Try again in a moment.', { uncertain: true, cause: error })
  }
  const { type, code, statusCode, requestId } = error
  log.warn({ event: 'stripe_refused', type, code, status: statusCode, stripe_request: requestId })
  return new ProviderError('Stripe refused the call. Try again later.', { uncertain: false, cause: error })
}
