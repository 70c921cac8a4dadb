// What a subscription is good for. Decided from what the provider says of it now and from nothing else, so the order in
// which news arrives does not matter.
import { TIERS, type Tier } from '../accounts/tiers.ts'
import type { ProviderSubscription } from './provider.ts'

/** How long a tier outlives a payment that fails, in milliseconds: as long as Stripe's retries last by default. */
export const GRACE_MS = 14 * 86_400_000

/**
 * `serves`: the tier of its price. `grace`: the same, while the provider retries a failed payment. `stopped`: no tier; it
 * may come back. `ended`: no tier, for good. Words that are not here are taken for `stopped`: nothing is given for what is
 * not understood to be paid.
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

export type Entitling = Pick<ProviderSubscription, 'status' | 'tier' | 'payment'> & { pastDueSince: Date | null }

/** The tier that a subscription gives. Money that went back, or is disputed, buys nothing until an invoice is paid again. */
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

/** Whether it may still cost money: as long as there is one, there must be no second. */
export function isLive({ status }: Pick<ProviderSubscription, 'status'>): boolean {
  return MEANING[status] !== 'ended'
}

/** Whether its plan can be changed as it is. Others have to be paid or ended first. */
export function isChangeable({ status }: Pick<ProviderSubscription, 'status'>): boolean {
  return MEANING[status] === 'serves' || MEANING[status] === 'grace'
}

/** The statuses that are over for good, for queries. */
export const ENDED = Object.keys(MEANING).filter((status) => MEANING[status] === 'ended')

export function bestTier(tiers: readonly Tier[]): Tier {
  return TIERS[Math.max(0, ...tiers.map((tier) => TIERS.indexOf(tier)))] ?? 'free'
}
