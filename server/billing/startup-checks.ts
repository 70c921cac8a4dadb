// Checks of the billing setup, for `cli doctor`.
import Stripe from 'stripe'
import { MONTHLY_PRICE_USD, type PaidTier } from '../accounts/tiers.ts'
import type { Config, StripeSettings } from '../config.ts'
import { type Inspection, inspect } from '../payments/startup-checks.ts'
import { HANDLED_TYPES } from './events.ts'
import { buildStripeClient } from './stripe.ts'

const SUBJECT = 'subscriptions'
const UNREACHABLE =
  'check STRIPE_API_BASE and the outbound network; until Stripe answers, POST /v1/checkout answers 503'

export async function inspectBilling(config: Config): Promise<Inspection[]> {
  const { stripe: settings, stripeMissing, paymentMode } = config
  if (stripeMissing.length > 0)
    return [wrong(`half set up: ${stripeMissing.join(', ')} is not set, so POST /v1/checkout answers 503`, 'set it')]
  if (!settings) return [right(UNSET[paymentMode === 'offline' ? 'offline' : 'live'])]
  const stripe = buildStripeClient(settings)
  return [
    checkKey(settings, config),
    ...(await Promise.all((['dev', 'pro'] as const).map((tier) => checkPrice(stripe, tier, settings)))),
    await checkWebhook(stripe, config),
  ]
}

const UNSET = {
  offline: 'simulated: POST /v1/checkout answers with a page of this service, and nothing is paid',
  live: 'not set up: POST /v1/checkout answers 503 until STRIPE_SECRET_KEY and the settings beside it are set',
}

function right(detail: string): Inspection {
  return { verdict: 'right', subject: SUBJECT, detail }
}

function wrong(detail: string, cure: string): Inspection {
  return { verdict: 'wrong', subject: SUBJECT, detail, cure }
}

function checkKey({ secretKey }: StripeSettings, { paymentMode }: Config): Inspection {
  const test = /^[rs]k_test_/.test(secretKey)
  if (test && paymentMode === 'mainnet')
    return wrong(
      'STRIPE_SECRET_KEY is a test key: no card is charged',
      'set the live key, its prices and its webhook secret',
    )
  if (!test && paymentMode !== 'mainnet')
    return wrong(`STRIPE_SECRET_KEY is a live key, in ${paymentMode} mode: cards are charged`, 'set a test key')
  return right(`Stripe with a ${test ? 'test' : 'live'} key`)
}

function checkPrice(stripe: Stripe, tier: PaidTier, { prices }: StripeSettings): Promise<Inspection> {
  const [id] = prices[tier]
  return check(async () => {
    const price = await stripe.prices.retrieve(id)
    const amount = MONTHLY_PRICE_USD[tier]
    const { interval, interval_count: count } = price.recurring ?? { interval: 'payment', interval_count: 1 }
    const is = `${(price.unit_amount ?? 0) / 100} ${price.currency} per ${count === 1 ? interval : `${count} ${interval}s`}`
    const ok =
      price.active &&
      price.unit_amount === amount * 100 &&
      price.currency === 'usd' &&
      interval === 'month' &&
      count === 1
    return {
      ok,
      detail: `the price of the ${tier} tier is ${is}${price.active ? '' : ', and not active'}`,
      cure: `set STRIPE_PRICE_${tier.toUpperCase()} to an active price of ${amount} usd per month`,
    }
  })
}

/** Whether Stripe sends events here. Without them reconciliation finds every change, but up to an hour later. */
function checkWebhook(stripe: Stripe, { baseUrl }: Config): Promise<Inspection> {
  const url = `${baseUrl ?? ''}/v1/stripe/webhook`
  return check(async () => {
    const missing = new Set<string>(HANDLED_TYPES)
    for await (const endpoint of stripe.webhookEndpoints.list({ limit: 100 })) {
      if (endpoint.url !== url || endpoint.status !== 'enabled') continue
      if (endpoint.enabled_events.includes('*')) missing.clear()
      for (const type of endpoint.enabled_events) missing.delete(type)
    }
    return {
      ok: missing.size === 0,
      detail:
        missing.size === 0
          ? `Stripe sends its events to ${url}`
          : `Stripe does not send ${[...missing].join(', ')} to ${url}`,
      cure: 'add them to the webhook endpoint in the Stripe dashboard, and set its secret as STRIPE_WEBHOOK_SECRET',
    }
  })
}

/** A key without permission to read something is the operator's choice; a key that Stripe does not know is a mistake. */
function check(question: () => Promise<{ ok: boolean; detail: string; cure?: string }>): Promise<Inspection> {
  return inspect(SUBJECT, UNREACHABLE, async () => {
    try {
      return await question()
    } catch (error) {
      if (error instanceof Stripe.errors.StripePermissionError)
        return { ok: true, detail: 'not checked: the key may not read this' }
      if (error instanceof Stripe.errors.StripeAuthenticationError)
        return { ok: false, detail: 'Stripe does not know STRIPE_SECRET_KEY', cure: 'set a valid key' }
      if (error instanceof Stripe.errors.StripeInvalidRequestError)
        return {
          ok: false,
          detail: `Stripe refuses: ${error.message}`,
          cure: 'check STRIPE_PRICE_DEV and STRIPE_PRICE_PRO',
        }
      throw error
    }
  })
}
