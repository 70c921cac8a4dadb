// Operations of subscriptions: usage beside the tier's limits, checkout, billing portal.
import { z } from 'zod'
import { accountHandle } from '../accounts/account.ts'
import { LIMITS, MONTHLY_PRICE_USD, TIERS, tierLimits } from '../accounts/tiers.ts'
import { type AccountCall, defineAccountExchange, defineAccountOperation, Reply } from '../operation.ts'
import { type Buyer, offerPortal, offerTier } from './checkouts.ts'
import { requireProvider } from './configured-provider.ts'
import { PROVIDERS } from './provider.ts'
import { findBillingStatus, type Subscription } from './subscriptions.ts'
import { findUsage, usage } from './usage.ts'

const subscriptionOutput = z.strictObject({
  status: z.string().describe('As Stripe names it: active, past_due, unpaid, ...'),
  tier: z.enum(TIERS).describe('The tier of its price. The account may have a lower one: see status and payment.'),
  payment: z.enum(['kept', 'refunded', 'disputed']).describe('The state of the latest payment.'),
  current_period_end: z.string().nullable(),
  cancel_at_period_end: z.boolean().describe('It ends with its period.'),
  provider: z.enum(PROVIDERS),
})

export const getUsage = defineAccountOperation({
  name: 'get_usage',
  summary: 'The tier, its limits, and how much of them is used',
  description:
    'Days are UTC days: receipts_today and lease_acts_today start again at resets_at. What the service signs by itself ' +
    'does not count.',
  method: 'GET',
  path: '/v1/usage',
  family: 'control',
  access: 'account',
  scope: 'account:read',
  kind: 'transaction',
  input: z.strictObject({}),
  output: z.strictObject({
    handle: accountHandle,
    tier: z.enum(TIERS),
    limits: tierLimits,
    used: usage,
    resets_at: z.string().describe('The next UTC midnight.'),
    subscription: subscriptionOutput.nullable().describe('The subscription that has not ended, if there is one.'),
  }),
  async run(_input, { tx, caller, api }) {
    const { used, resetsAt } = await findUsage(tx, caller.accountId, api.now())
    // The tier is read here and not taken from the caller, which is cached: it has to agree with the subscription beside it.
    const status = await findBillingStatus(tx, api.billing?.name, caller.accountId, api.now())
    const { handle, tier, subscription } = status
    const shown = subscription && describeSubscription(subscription)
    return fresh({ handle, tier, limits: LIMITS[tier], used, resets_at: resetsAt, subscription: shown })
  },
})

function describeSubscription(subscription: Subscription): z.output<typeof subscriptionOutput> {
  const { status, tier, payment, current_period_end, cancel_at_period_end, provider } = subscription
  return {
    status,
    tier,
    payment,
    current_period_end: current_period_end?.toISOString() ?? null,
    cancel_at_period_end,
    provider,
  }
}

const MODES = { stripe: 'stripe', simulation: 'simulated' } as const
const mode = z.enum(['stripe', 'simulated']).describe('simulated: the page is one of this service and nothing is paid.')
const tier = z.enum(['dev', 'pro'])
const expiresAt = z.iso.datetime().nullable().describe('Until when the page can be used; null if Stripe does not say.')

export const createCheckout = defineAccountExchange({
  name: 'create_checkout',
  summary: 'Get the page on which a person buys a tier',
  description:
    'Charges nothing by itself. The page is bound to this account and tier; while it is open, another call gets the same ' +
    'page. For an account that is already subscribed to the other tier, it confirms the change of that subscription.',
  method: 'POST',
  path: '/v1/checkout',
  family: 'control',
  access: 'account',
  scope: 'account:write',
  errors: ['already_subscribed', 'checkout_superseded', 'provider_unavailable'],
  kind: 'exchange',
  input: z.strictObject({ tier }),
  output: z.strictObject({
    checkout_url: z.url(),
    tier,
    price_usd: z
      .string()
      .regex(/^(0|[1-9]\d*)(\.\d{1,6})?$/)
      .describe('Per month.'),
    mode,
    kind: z.enum(['subscribe', 'change']).describe('change: confirms another plan for the existing subscription.'),
    expires_at: expiresAt,
  }),
  async run(input, call) {
    const buyer = await buyerOf(call)
    const offer = await offerTier(buyer, input.tier)
    return fresh({
      checkout_url: offer.url,
      tier: input.tier,
      price_usd: String(MONTHLY_PRICE_USD[input.tier]),
      mode: MODES[buyer.provider.name],
      kind: offer.kind,
      expires_at: offer.expiresAt?.toISOString() ?? null,
    })
  },
})

export const openBillingPortal = defineAccountExchange({
  name: 'open_billing_portal',
  summary: 'Get the page on which a person manages the subscription: change, end, cards, invoices',
  method: 'POST',
  path: '/v1/billing-portal',
  family: 'control',
  access: 'account',
  scope: 'account:write',
  errors: ['not_found', 'provider_unavailable'],
  kind: 'exchange',
  input: z.strictObject({}),
  output: z.strictObject({ portal_url: z.url(), mode, expires_at: expiresAt }),
  async run(_input, call) {
    const buyer = await buyerOf(call)
    const { url, expiresAt } = await offerPortal(buyer)
    return fresh({
      portal_url: url,
      mode: MODES[buyer.provider.name],
      expires_at: expiresAt?.toISOString() ?? null,
    })
  },
})

/** An answer that no cache may store: usage changes, and the address of a page is all that its use needs. */
function fresh<T>(body: T): Reply<T> {
  return new Reply(body, { headers: { 'cache-control': 'no-store' } })
}

/** Counts the call before the provider is called. Throws AppError `provider_unavailable`, `rate_limited`. */
async function buyerOf({ api, caller }: AccountCall): Promise<Buyer> {
  const provider = requireProvider(api)
  await api.limits.spendAccount(caller, 'checkouts')
  return {
    billing: api,
    provider,
    account: { accountId: caller.accountId, handle: caller.handle },
    baseUrl: api.baseUrl,
    onChange: () => api.callers.clear(),
  }
}
