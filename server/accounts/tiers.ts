// The limits of every tier and of callers without an account. Registration, usage, enforcement and the documentation read these
// tables.
import { z } from 'zod'
import { AppError } from '../errors.ts'

export const TIERS = ['free', 'dev', 'pro'] as const
export type Tier = (typeof TIERS)[number]
export type PaidTier = Exclude<Tier, 'free'>

/** Days last from one UTC midnight to the next. */
export const tierLimits = z.strictObject({
  active_leases: z.int().describe('At a time.'),
  lease_acts_per_day: z.int().describe('Grants, renewals and revocations; a revocation is never refused.'),
  /** Receipts that the service makes by itself do not count. */
  receipts_per_day: z.int(),
  watchdogs: z.int(),
  /** Alerts of `fail` heartbeats, test alerts, reminders. */
  watchdog_alerts_per_day: z.int(),
  citation_watches: z.int(),
  /** Pages of failed checks count too, unless the page's host was never asked. */
  quote_check_pages_per_day: z.int(),
  quote_checks_in_flight: z.int().describe('At a time.'),
  journal_slots: z.int(),
  journal_bytes: z.int().describe('For all slots together; 64 KiB for each slot.'),
  api_keys: z.int().describe('At a time.'),
  heartbeats_per_minute: z.int(),
  /** Calls that ask for a receipt. */
  receipts_per_minute: z.int(),
  calls_per_minute: z.int().describe('All other calls.'),
  checkouts_per_hour: z.int().describe('Pages of checkout and billing portal.'),
})
export type TierLimits = z.output<typeof tierLimits>

/**
 * `lease_acts_per_day`: 4000 for each lease, which is one renewal every 22 seconds, all day (a lease has to be renewed
 * within 30 seconds). `heartbeats_per_minute`: twice what all watchdogs send at the shortest interval, 10 seconds.
 * `receipts_per_minute`: several times the daily number spread over the day. `journal_bytes`: 64 KiB for each slot.
 * `checkouts_per_hour`: each of these calls makes a call to the billing provider.
 */
export const LIMITS: Readonly<Record<Tier, TierLimits>> = {
  free: {
    active_leases: 1,
    lease_acts_per_day: 4000,
    receipts_per_day: 10,
    watchdogs: 1,
    watchdog_alerts_per_day: 50,
    citation_watches: 1,
    quote_check_pages_per_day: 25,
    quote_checks_in_flight: 4,
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
    quote_check_pages_per_day: 2500,
    quote_checks_in_flight: 16,
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
    quote_check_pages_per_day: 50_000,
    quote_checks_in_flight: 64,
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
 * Limits of callers without an account. If RATE_LIMIT_PER_MINUTE is 0, all but the last three are off, because the
 * addresses of callers are then not known.
 */
export const CALLER_LIMITS = {
  /** Well-formed API keys that do not exist, per address: each costs a query. */
  unknown_keys_per_minute: 60,
  /** Recoveries with a valid token, per request. */
  recoveries_per_minute: 120,
  /** Registrations per address and UTC day. */
  registrations_per_day: 20,
  /** Registrations per IPv6 /48 and UTC day. */
  registrations_per_network_per_day: 100,
  /** Registrations by all callers together; a quarter is kept for networks that made none in the last hour. */
  registrations_per_minute: 120,
  /** The same for a UTC day; a quarter is kept for networks that made none on this day. */
  registrations_in_all_per_day: 10_000,
  /** New quotes per IPv6 /48 in a quarter of an hour, which is how long a quote stays open by default. */
  quotes_per_network: 2000,
  /** New quotes by all callers together in a quarter of an hour; a quarter is kept for networks that asked for none lately. */
  quotes_in_all: 60_000,
  /**
   * Calls that wait for a result, per account, or per address for callers without an account. A further call is
   * answered at once.
   */
  waiting_calls: 128,
  /** Calls that wait for a result in one process. */
  waiting_calls_per_process: 1024,
  /** Attempts to sign in to the operator's dashboard, per address. Never switched off. */
  operator_sign_ins_per_minute: 10,
} as const

/** Days after which an account is deleted when none of its keys was ever used. */
export const UNUSED_ACCOUNT_DAYS = 90

/** Limits of paying callers, in every payment mode. */
export const PUBLIC_LIMITS = {
  /** Verifications of a new payer between payment and result; the default of MAX_IN_FLIGHT_PER_PAYER. */
  first_in_flight_per_payer: 8,
  /** The highest limit of a payer: each settlement adds one, up to this. */
  most_in_flight_per_payer: 256,
  /** The lowest limit of a payer: each request that ends uncharged takes one away, down to this. */
  least_in_flight_per_payer: 2,
  /** Verifications paid for from one address; an IPv6 address counts with its /64. */
  in_flight_per_address: 256,
  /** Verifications of pages under one registrable domain, for all payers together. */
  in_flight_per_domain: 64,
  /** Quotes for one address that are neither paid nor expired. */
  open_quotes_per_address: 500,
} as const

/** Quote checks and free looks of callers without an account, per address; an IPv6 address counts with its /64. */
export const ADDRESS_LIMITS = {
  quote_check_pages_per_day: 25,
  /** Of a network, which is the /48 of an IPv6 address. */
  quote_check_pages_per_network_per_day: 125,
  quote_checks_in_flight: 4,
  /** Free looks at a time; how many a day, TRY_PER_ADDRESS_PER_DAY says. */
  looks_in_flight: 4,
  /** Reports and results of /mcp/check that are being read, in one process. */
  readings_in_flight: 4,
  /** Of a network: a quarter of those that may wait. */
  readings_in_flight_per_network: 16,
  /** Reports whose check is a task. */
  reports: 20,
  /** Of a network, in a day. */
  reports_per_network: 100,
  /** Pages a day for all addresses together, and reports that are kept. A quarter is for networks that had at most two today. */
  all_quote_check_pages_per_day: 20_000,
  all_reports: 2000,
} as const

/** USD per month. */
export const MONTHLY_PRICE_USD: Readonly<Record<PaidTier, number>> = { dev: 29, pro: 99 }

/** Seconds until the daily counts start again. */
export function secondsToMidnightUtc(now: Date): number {
  return 86_400 - Math.floor((now.getTime() % 86_400_000) / 1000)
}

type Held = 'active_leases' | 'watchdogs' | 'citation_watches' | 'journal_slots' | 'api_keys'
type Daily = 'receipts_per_day' | 'lease_acts_per_day' | 'quote_check_pages_per_day'

/** The error when the account already has the maximum of its tier. */
export function tierLimit(name: Held, tier: Tier): AppError {
  return new AppError('tier_limit', `${name}: the ${tier} tier has ${LIMITS[tier][name]} at a time.`)
}

/** The error when the limit of this UTC day is reached; Retry-After holds the seconds until the next UTC midnight. */
export function dailyLimit(name: Daily, tier: Tier): AppError {
  return refuseToday(`${name}: the ${tier} tier has ${LIMITS[tier][name]} a day (UTC).`)
}

/** As `dailyLimit`, for a limit that is not a tier's. */
export function refuseToday(message: string): AppError {
  const seconds = String(secondsToMidnightUtc(new Date()))
  return new AppError('daily_limit', message, { headers: { 'retry-after': seconds } })
}
