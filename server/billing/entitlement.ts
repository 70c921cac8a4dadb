// The tier that a subscription gives. It follows from the provider's present record alone, so the order in which events arrive
// does not matter.
import { TIERS, type Tier } from '../accounts/tiers.ts'
import type { ProviderSubscription } from './provider.ts'

/** Milliseconds for which a tier continues after a failed payment: as long as Stripe retries the payment by default. */
export const GRACE_MS = 14 * 86_400_000

/**
 * `serves`: gives the tier of its price. `grace`: the same, while the provider retries a failed payment. `stopped`: gives no
 * tier, and may serve again. `ended`: gives no tier and never will. An unknown status counts as `stopped`: a tier is given
 * only for a status that this service knows.
 */
const MEANING: Readonly<Record<string, 'serves' | 'grace' | 'stopped' | 'ended'>> = {
  active: 'serves',
  trialing: 'serves',
  past_due: 'grace',
  unpaid: 'stopped',
  incomplete: 'stopped',
  paused: 'stopped',
  incomplete_expired: 'ended',
  canceled: 'ended',
}

type Entitling = Pick<ProviderSubscription, 'status' | 'tier' | 'payment'> & { pastDueSince: Date | null }

/** A refunded or disputed payment gives no tier until another invoice is paid. */
export function tierOf({ status, tier, payment, pastDueSince }: Entitling, nowMs: number): Tier {
  if (payment !== 'kept') return 'free'
  switch (MEANING[status]) {
    case 'serves':
      return tier
    case 'grace':
      return pastDueSince && nowMs - pastDueSince.getTime() < GRACE_MS ? tier : 'free'
    default:
      return 'free'
  }
}

/**
 * Whether the subscription may still cost money. While an account has such a subscription, it must not get a second
 * one.
 */
export function isLive({ status }: Pick<ProviderSubscription, 'status'>): boolean {
  return MEANING[status] !== 'ended'
}

/** Whether the plan can be changed. A subscription that is stopped has to be paid or ended first. */
export function isChangeable({ status }: Pick<ProviderSubscription, 'status'>): boolean {
  return MEANING[status] === 'serves' || MEANING[status] === 'grace'
}

/** The statuses of subscriptions that have ended, for queries. */
export const ENDED = Object.keys(MEANING).filter((status) => MEANING[status] === 'ended')

export function bestTier(tiers: readonly Tier[]): Tier {
  return TIERS[Math.max(0, ...tiers.map((tier) => TIERS.indexOf(tier)))] ?? 'free'
}
