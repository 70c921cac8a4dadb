// What an account may ask about its subscription.
import { z } from 'zod'
import { MONTHLY_PRICE_USD } from '../accounts/tiers.ts'
import { type AccountCall, defineAccountExchange, Reply } from '../operation.ts'
import { type Buyer, offerPortal, offerTier } from './checkouts.ts'
import { requireProvider } from './choice.ts'

const MODES = { stripe: 'stripe', simulation: 'simulated' } as const
const mode = z.enum(['stripe', 'simulated']).describe('simulated: the page is our own and nothing is paid.')
const tier = z.enum(['dev', 'pro'])
const expiresAt = z.iso
  .datetime()
  .nullable()
  .describe('Until when the page can be used; null where Stripe does not say.')

export const createCheckout = defineAccountExchange({
  name: 'create_checkout',
  summary: 'Get the page on which a person buys a tier',
  description:
    'Charges nothing by itself. The page is bound to this account and tier; asked again while it is open, the answer is ' +
    'the same page. For an account that subscribes to the other tier, it confirms the change of that subscription.',
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
    kind: z.enum(['subscribe', 'change']).describe('change: confirms another plan for the subscription there is.'),
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

/** Whoever has the address may use the page. */
function fresh<T>(body: T): Reply<T> {
  return new Reply(body, { headers: { 'cache-control': 'no-store' } })
}

/** Counted before the provider is asked anything. Throws AppError `provider_unavailable`, `rate_limited`. */
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
