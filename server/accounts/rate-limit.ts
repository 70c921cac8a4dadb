// Limits of calls per minute, or hour: of an address, of an account by its tier, of a request that is recovered. With Redis all
// web processes share one count. While Redis does not answer, each process counts by itself and lets no call pass uncounted.
import { AppError } from '../errors.ts'
import { addressKey, networkKey } from './address-key.ts'
import { type CallCount, CallCounts } from './call-counts.ts'
import { buildSharedBudget, partsOf } from './shared-budget.ts'
import { CALLER_LIMITS, LIMITS, type Tier, type TierLimits } from './tiers.ts'

/** The kinds of calls that an account has a limited number of in a minute or an hour. */
export type Budget = 'calls' | 'heartbeats' | 'receipts' | 'checkouts'

const BUDGETS: Readonly<Record<Budget, { limit: keyof TierLimits; seconds: number }>> = {
  calls: { limit: 'calls_per_minute', seconds: 60 },
  heartbeats: { limit: 'heartbeats_per_minute', seconds: 60 },
  receipts: { limit: 'receipts_per_minute', seconds: 60 },
  checkouts: { limit: 'checkouts_per_hour', seconds: 3600 },
}

/** A call that was counted against its address. */
export interface Counted {
  /** The error `rate_limited`, with Retry-After, when the address has no call left. */
  refusal: AppError | null
  /** The address is so far over its limit that request bodies are not read. */
  flooding: boolean
}

/** Every `spend` method throws AppError `rate_limited` when nothing is left; Retry-After says when there is again. */
export interface RateLimits {
  /** Counts one call against its address. */
  spend(address: string): Promise<void>
  /** As `spend`, for a call that may still turn out to have a key or a token: `giveBack` then uncounts it. Throws nothing. */
  count(address: string): Promise<Counted>
  giveBack(address: string): Promise<void>
  /** Counts one call of an account. */
  spendAccount(account: { accountId: string; tier: Tier }, budget: Budget): Promise<void>
  /** Counts one recovery of a request by its token. */
  spendRecovery(requestId: string): Promise<void>
  /** Counts a key that needs a query; `giveBackLookUp` uncounts one that exists. */
  spendLookUp(address: string): Promise<void>
  giveBackLookUp(address: string): Promise<void>
  /** Counts one registration of all callers together; the function returned uncounts one that failed. */
  spendRegistration(address: string): Promise<() => Promise<void>>
  /** Counts one new quote, of the caller's network and of all callers together. */
  spendQuote(address: string): Promise<void>
  /** Counts one attempt to sign in to the operator's dashboard. */
  spendSignIn(address: string): Promise<void>
}

/** The time of the limits on quotes. */
const QUOTE_SECONDS = 900

/** An address with more calls than this many times its limit is flooding. */
const FLOOD_FACTOR = 10

/**
 * @param perMinute calls of an address; 0 turns off every limit but those of accounts
 * @param shared counts of all web processes; without it this process counts alone
 */
export function buildRateLimits(perMinute: number, shared: SharedCounts | undefined): RateLimits {
  const build = (name: string, points: number, seconds = 60) => buildLimiter(shared, { name, points, seconds })
  const limiterOf = buildAccountLimiters(build)
  const spendAccount: RateLimits['spendAccount'] = async ({ accountId, tier }, budget) => {
    const refusal = await consume(limiterOf(tier, budget), accountId)
    if (refusal) throw refusedAccount(tier, budget, refusal)
  }
  const signIns = build('operator', CALLER_LIMITS.operator_sign_ins_per_minute)
  const spendSignIn: RateLimits['spendSignIn'] = async (address) => {
    const refusal = await consume(signIns, addressKey(address))
    if (refusal) throw refused(`More than ${signIns.points} attempts to sign in within a minute`, refusal)
  }
  if (perMinute === 0) return { ...UNLIMITED, spendAccount, spendSignIn }
  const addresses = build('address', perMinute)
  const lookUps = build('look-up', CALLER_LIMITS.unknown_keys_per_minute)
  const recoveries = build('recovery', CALLER_LIMITS.recoveries_per_minute)
  const share = (name: string, points: number, seconds: number, recentSeconds: number) => {
    const { common, reserve } = partsOf(points)
    return buildSharedBudget({
      common: build(name, common, seconds),
      reserve: build(`${name}-reserve`, reserve, seconds),
      recent: build(`${name}-recent`, Number.MAX_SAFE_INTEGER, recentSeconds),
    })
  }
  const registrations = share('registration', CALLER_LIMITS.registrations_per_minute, 60, 3600)
  const quotes = share('quote', CALLER_LIMITS.quotes_in_all, QUOTE_SECONDS, QUOTE_SECONDS)
  const quotesOfNetwork = build('quote-network', CALLER_LIMITS.quotes_per_network, QUOTE_SECONDS)
  const spendOn = async (limiter: Limiter, key: string, what: string) => {
    const refusal = await consume(limiter, key)
    if (refusal) throw refused(`More than ${limiter.points} ${what} in a minute`, refusal)
  }
  const count: RateLimits['count'] = async (address) => {
    const refusal = await consume(addresses, addressKey(address))
    if (!refusal) return { refusal: null, flooding: false }
    const flooding = refusal.calls > FLOOD_FACTOR * perMinute
    return { refusal: refused(`More than ${perMinute} requests in a minute`, refusal), flooding }
  }
  return {
    count,
    spendAccount,
    spendSignIn,
    async spend(address) {
      const { refusal } = await count(address)
      if (refusal) throw refusal
    },
    giveBack: (address) => addresses.takeBack(addressKey(address)),
    spendRecovery: (requestId) => spendOn(recoveries, requestId, 'recoveries of one request'),
    spendLookUp: (address) => spendOn(lookUps, addressKey(address), 'unknown API keys from one address'),
    giveBackLookUp: (address) => lookUps.takeBack(addressKey(address)),
    async spendRegistration(address) {
      const { refusal, giveBack } = await registrations.spend(networkKey(address))
      if (refusal)
        throw refused(
          `More than ${CALLER_LIMITS.registrations_per_minute} registrations by all callers in a minute`,
          refusal,
        )
      return giveBack
    },
    async spendQuote(address) {
      const network = networkKey(address)
      const own = await consume(quotesOfNetwork, network)
      if (own) throw refused(`More than ${CALLER_LIMITS.quotes_per_network} quotes from one network in 15 minutes`, own)
      const { refusal } = await quotes.spend(network)
      if (refusal)
        throw refused(`More than ${CALLER_LIMITS.quotes_in_all} quotes by all callers in 15 minutes`, refusal)
    },
  }
}

const UNLIMITED = {
  spend: async () => {},
  count: async () => ({ refusal: null, flooding: false }),
  giveBack: async () => {},
  spendRecovery: async () => {},
  spendLookUp: async () => {},
  giveBackLookUp: async () => {},
  spendRegistration: async () => async () => {},
  spendQuote: async () => {},
}

interface Limiter {
  /** Calls that a key has in one window. */
  readonly points: number
  /** Counts one call. */
  add(key: string): Promise<CallCount>
  takeBack(key: string): Promise<void>
}

interface Limit {
  name: string
  points: number
  seconds: number
}

/** Makes the count of one limit that several processes share. */
export type SharedCounts = (limit: Limit) => {
  /** Counts one call. Null when the count cannot be reached. */
  add(key: string): Promise<CallCount | null>
  /** Rejects when the count cannot be reached. */
  takeBack(key: string): Promise<void>
}

function buildLimiter(counts: SharedCounts | undefined, limit: Limit): Limiter {
  const { points, seconds } = limit
  const own = new CallCounts({ seconds })
  if (!counts) return { points, add: async (key) => own.add(key), takeBack: async (key) => own.takeBack(key) }
  const shared = counts(limit)
  return {
    points,
    add: async (key) => (await shared.add(key)) ?? own.add(key),
    takeBack: (key) => shared.takeBack(key).catch(() => own.takeBack(key)),
  }
}

/** A limiter for each budget and tier, made at its first use. After a change of tier the count starts again. */
function buildAccountLimiters(build: (name: string, points: number, seconds: number) => Limiter) {
  const limiters = new Map<string, Limiter>()
  return (tier: Tier, budget: Budget): Limiter => {
    const name = `${budget}:${tier}`
    const known = limiters.get(name)
    if (known) return known
    const { limit, seconds } = BUDGETS[budget]
    const built = build(name, LIMITS[tier][limit], seconds)
    limiters.set(name, built)
    return built
  }
}

/** Null while something is left. */
async function consume(limiter: Limiter, key: string): Promise<CallCount | null> {
  const count = await limiter.add(key)
  return count.calls > limiter.points ? count : null
}

function refusedAccount(tier: Tier, budget: Budget, refusal: CallCount): AppError {
  const { limit } = BUDGETS[budget]
  return refused(`${limit}: the ${tier} tier has ${LIMITS[tier][limit]}`, refusal)
}

function refused(why: string, { msLeft }: CallCount): AppError {
  const seconds = String(Math.max(1, Math.ceil(msLeft / 1000)))
  return new AppError('rate_limited', `${why}. Try again in ${seconds} s.`, { headers: { 'retry-after': seconds } })
}
