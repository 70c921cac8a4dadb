// What each tier may have. The one table: registration, usage, the limits in force and the documentation all read it.
import { AppError } from '../errors.ts'

export const TIERS = ['free', 'dev', 'pro'] as const
export type Tier = (typeof TIERS)[number]

export interface TierLimits {
  /** At the same time. */
  active_leases: number
  /** Grants, renewals and revocations from one UTC midnight to the next: each makes a receipt, which is kept for good. */
  lease_acts_per_day: number
  /** From one UTC midnight to the next; receipts that the service makes by itself do not count. */
  receipts_per_day: number
  watchdogs: number
  /** From one UTC midnight to the next: alerts of `fail` heartbeats, test alerts, reminders. */
  watchdog_alerts_per_day: number
  citation_watches: number
  journal_slots: number
  /** What the slots hold together, each at most 64 KiB. It follows from the slots. */
  journal_bytes: number
  /** At the same time, those that are about to end included. */
  api_keys: number
  heartbeats_per_minute: number
  /** Calls that ask for a receipt. */
  receipts_per_minute: number
  /** Every other call. */
  calls_per_minute: number
  /** Pages of checkout and billing portal together: each asks the provider of billing. */
  checkouts_per_hour: number
}

/**
 * `lease_acts_per_day`: 4000 for each lease, which is one renewal every 22 seconds day and night (a lease has to be renewed
 * within 30). `heartbeats_per_minute`: twice what all watchdogs send at the shortest interval, 10 seconds.
 * `receipts_per_minute`: several times the daily number spread over the day.
 */
export const LIMITS: Readonly<Record<Tier, TierLimits>> = {
  free: {
    active_leases: 1,
    lease_acts_per_day: 4000,
    receipts_per_day: 10,
    watchdogs: 1,
    watchdog_alerts_per_day: 50,
    citation_watches: 1,
    journal_slots: 4,
    journal_bytes: 262_144,
    api_keys: 20,
    heartbeats_per_minute: 120,
    receipts_per_minute: 120,
    calls_per_minute: 600,
    checkouts_per_hour: 20,
  },
  dev: {
    active_leases: 50,
    lease_acts_per_day: 200_000,
    receipts_per_day: 10_000,
    watchdogs: 50,
    watchdog_alerts_per_day: 5000,
    citation_watches: 50,
    journal_slots: 200,
    journal_bytes: 13_107_200,
    api_keys: 20,
    heartbeats_per_minute: 600,
    receipts_per_minute: 600,
    calls_per_minute: 3000,
    checkouts_per_hour: 20,
  },
  pro: {
    active_leases: 1000,
    lease_acts_per_day: 4_000_000,
    receipts_per_day: 1_000_000,
    watchdogs: 1000,
    watchdog_alerts_per_day: 100_000,
    citation_watches: 1000,
    journal_slots: 5000,
    journal_bytes: 327_680_000,
    api_keys: 20,
    heartbeats_per_minute: 12_000,
    receipts_per_minute: 6000,
    calls_per_minute: 12_000,
    checkouts_per_hour: 20,
  },
}

/**
 * What is limited for callers without an account. All but the last two are off where RATE_LIMIT_PER_MINUTE is 0: addresses
 * say nothing there.
 */
export const CALLER_LIMITS = {
  /** API keys that are none, well-formed, per address: each costs a look into the database. */
  unknown_keys_per_minute: 60,
  /** Recoveries with the right token, per request. */
  recoveries_per_minute: 120,
  /** Accounts made per address, from one UTC midnight to the next. */
  registrations_per_day: 20,
  /** Accounts made by all callers together. */
  registrations_per_minute: 120,
  /** Calls that wait for a result, per account or else per address; the next one is answered at once. */
  waiting_calls: 128,
  /** Calls that wait for a result in one process. */
  waiting_calls_per_process: 1024,
} as const

/** An account is deleted when none of its keys was ever used for so long. */
export const UNUSED_ACCOUNT_DAYS = 90

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

type Held = 'active_leases' | 'watchdogs' | 'citation_watches' | 'journal_slots' | 'api_keys'
type Daily = 'receipts_per_day' | 'lease_acts_per_day'

/** The refusal of one more of what the account has all of already. */
export function tierLimit(name: Held, tier: Tier): AppError {
  return new AppError('tier_limit', `${name}: the ${tier} tier has ${LIMITS[tier][name]} at a time.`)
}

/** The refusal of one more on this day, with the seconds to the next UTC midnight in Retry-After. */
export function dailyLimit(name: Daily, tier: Tier): AppError {
  return refuseToday(`${name}: the ${tier} tier has ${LIMITS[tier][name]} a day (UTC).`)
}

/** As `dailyLimit`, for what no tier has. */
export function refuseToday(message: string): AppError {
  const seconds = String(secondsToMidnightUtc(new Date()))
  return new AppError('daily_limit', message, { headers: { 'retry-after': seconds } })
}
