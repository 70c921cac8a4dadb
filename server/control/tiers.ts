// What each tier may have. The one table: registration, usage, limits and documentation all read it.
import { AppError } from '../errors.ts'

export const TIERS = ['free', 'dev', 'pro'] as const
export type Tier = (typeof TIERS)[number]

export interface TierLimits {
  /** At the same time. */
  active_leases: number
  /** From one UTC midnight to the next; receipts the service makes by itself do not count. */
  receipts_per_day: number
  watchdogs: number
  /** From one UTC midnight to the next: alerts of `fail` heartbeats, test alerts, reminders. */
  watchdog_alerts_per_day: number
  citation_watches: number
  journal_slots: number
}

export const LIMITS: Readonly<Record<Tier, TierLimits>> = {
  free: {
    active_leases: 1,
    receipts_per_day: 10,
    watchdogs: 1,
    watchdog_alerts_per_day: 50,
    citation_watches: 1,
    journal_slots: 4,
  },
  dev: {
    active_leases: 50,
    receipts_per_day: 10_000,
    watchdogs: 50,
    watchdog_alerts_per_day: 5000,
    citation_watches: 50,
    journal_slots: 200,
  },
  pro: {
    active_leases: 1000,
    receipts_per_day: 1_000_000,
    watchdogs: 1000,
    watchdog_alerts_per_day: 100_000,
    citation_watches: 1000,
    journal_slots: 5000,
  },
}

/** USD per month. */
export const MONTHLY_PRICE_USD: Readonly<Record<Exclude<Tier, 'free'>, number>> = { dev: 29, pro: 99 }

/** Seconds until the daily counts start again. */
export function secondsToMidnightUtc(now: Date): number {
  return 86_400 - Math.floor((now.getTime() % 86_400_000) / 1000)
}

/** The next UTC midnight. */
export function nextMidnightUtc(now: Date): Date {
  return new Date((Math.floor(now.getTime() / 86_400_000) + 1) * 86_400_000)
}

/** The refusal of one more of what the account has all of already. */
export function tierLimit(name: Exclude<keyof TierLimits, `${string}_per_day`>, tier: Tier): AppError {
  return new AppError('tier_limit', `${name}: the ${tier} tier has ${LIMITS[tier][name]} at a time.`)
}
