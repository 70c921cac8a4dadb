// Parser of the variables STRIPE_*.
import type { PaidTier } from '../accounts/tiers.ts'

type PriceIds = readonly [string, ...string[]]

export interface StripeSettings {
  secretKey: string
  webhookSecret: string
  /** New subscriptions get the first price of a tier. The other prices were sold before and still count as that tier. */
  prices: Readonly<Record<PaidTier, PriceIds>>
  /** Replaces Stripe's own address. */
  apiBase: string | undefined
}

const NAMES = ['STRIPE_SECRET_KEY', 'STRIPE_WEBHOOK_SECRET', 'STRIPE_PRICE_DEV', 'STRIPE_PRICE_PRO'] as const
type Values = { [N in (typeof NAMES)[number] | 'STRIPE_API_BASE']?: string | undefined }

/** A partial setup is a mistake: without the webhook, for example, a tier would start up to an hour after the payment. */
export function missingStripe(values: Values): string[] {
  return NAMES.some((name) => values[name]) ? NAMES.filter((name) => !values[name]) : []
}

/** Undefined unless all variables but STRIPE_API_BASE are set. */
export function readStripe(values: Values): StripeSettings | undefined {
  const { STRIPE_SECRET_KEY: secretKey, STRIPE_WEBHOOK_SECRET: webhookSecret, STRIPE_API_BASE: apiBase } = values
  const { STRIPE_PRICE_DEV: dev, STRIPE_PRICE_PRO: pro } = values
  if (!secretKey || !webhookSecret || !dev || !pro) return undefined
  return { secretKey, webhookSecret, prices: { dev: readPriceIds(dev), pro: readPriceIds(pro) }, apiBase }
}

function readPriceIds(ids: string): PriceIds {
  const [first = '', ...rest] = ids.split(',')
  return [first, ...rest]
}

/** The tier of a subscription follows from its price, so no price may belong to both tiers. */
export function pricesOfTwoTiers({ STRIPE_PRICE_DEV: dev = '', STRIPE_PRICE_PRO: pro = '' }: Values): string[] {
  return dev.split(',').filter((id) => id !== '' && pro.split(',').includes(id))
}
