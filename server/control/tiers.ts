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
  citation_watches: number
  journal_slots: number
}

export const LIMITS: Readonly<Record<Tier, TierLimits>> = {
  free: { active_leases: 1, receipts_per_day: 10, watchdogs: 1, citation_watches: 1, journal_slots: 4 },
  dev: { active_leases: 50, receipts_per_day: 10_000, watchdogs: 50, citation_watches: 50, journal_slots: 200 },
  pro: {
    active_leases: 1000,
    receipts_per_day: 1_000_000,
    watchdogs: 1000,
    citation_watches: 1000,
    journal_slots: 5000,
  },
}

/** What callers may have who show no account, in every payment mode. */
export const PUBLIC_LIMITS = {
  /** Verifications of a new payer from payment to result; the default of MAX_IN_FLIGHT_PER_PAYER. */
  first_in_flight_per_payer: 8,
  /** The same of a payer who has settled often enough: each settlement adds one. */
  most_in_flight_per_payer: 256,
  /** The same of a payer whose requests end uncharged: each one takes one away, down to this. */
  least_in_flight_per_payer: 2,
  /** Verifications paid for from one address; an IPv6 address counts with its /64. */
  in_flight_per_address: 256,
  /** Verifications of pages under one registrable domain, whoever pays. */
  in_flight_per_domain: 64,
  /** Quotes that one address asked for and that are neither paid nor expired. */
  open_quotes_per_address: 500,
} as const

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
export function tierLimit(name: Exclude<keyof TierLimits, 'receipts_per_day'>, tier: Tier): AppError {
  return new AppError('tier_limit', `${name}: the ${tier} tier has ${LIMITS[tier][name]} at a time.`)
}
