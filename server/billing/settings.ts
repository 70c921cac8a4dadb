// What Stripe is set up with, out of the variables that name it.
import type { PaidTier } from './provider.ts'

export interface StripeSettings {
  secretKey: string
  webhookSecret: string
  /** The first price of a tier is sold; those after it were, and still count. */
  prices: Readonly<Record<PaidTier, readonly [string, ...string[]]>>
  /** Another address than Stripe's own. */
  apiBase: string | undefined
}

const NAMES = ['STRIPE_SECRET_KEY', 'STRIPE_WEBHOOK_SECRET', 'STRIPE_PRICE_DEV', 'STRIPE_PRICE_PRO'] as const
type Values = { [N in (typeof NAMES)[number] | 'STRIPE_API_BASE']?: string | undefined }

/** Half a setup is a mistake: without the webhook, say, people would pay and get nothing for a while. */
export function missingStripe(values: Values): string[] {
  return NAMES.some((name) => values[name]) ? NAMES.filter((name) => !values[name]) : []
}

/** Undefined unless all of it is there. */
export function readStripe(values: Values): StripeSettings | undefined {
  const { STRIPE_SECRET_KEY: secretKey, STRIPE_WEBHOOK_SECRET: webhookSecret, STRIPE_API_BASE: apiBase } = values
  const { STRIPE_PRICE_DEV: dev, STRIPE_PRICE_PRO: pro } = values
  if (!secretKey || !webhookSecret || !dev || !pro) return undefined
  const list = (ids: string) => ids.split(',') as [string, ...string[]]
  return { secretKey, webhookSecret, prices: { dev: list(dev), pro: list(pro) }, apiBase }
}

/** A price tells which tier is paid for, so it cannot be that of both. */
export function pricesOfTwoTiers({ STRIPE_PRICE_DEV: dev = '', STRIPE_PRICE_PRO: pro = '' }: Values): string[] {
  return dev.split(',').filter((id) => id !== '' && pro.split(',').includes(id))
}
