// Calls per minute: of an address, of an account by its tier, of a request that is recovered. With Redis all web processes
// share one count; when Redis does not answer, each falls back to counting for itself rather than letting everything through.
import { isIP } from 'node:net'
import type { Redis } from 'ioredis'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import { AppError } from '../errors.ts'
import { canonicalAddress, ipv6Groups } from '../outbound/addresses.ts'
import { CALLER_LIMITS, LIMITS, TIERS, type Tier, type TierLimits } from './tiers.ts'

/** What an account has a number of in a minute, or an hour. */
export type Budget = 'calls' | 'heartbeats' | 'receipts' | 'checkouts'

const BUDGETS: Readonly<Record<Budget, { limit: keyof TierLimits; seconds: number }>> = {
  calls: { limit: 'calls_per_minute', seconds: 60 },
  heartbeats: { limit: 'heartbeats_per_minute', seconds: 60 },
  receipts: { limit: 'receipts_per_minute', seconds: 60 },
  checkouts: { limit: 'checkouts_per_hour', seconds: 3600 },
}

/** A call that was counted against its address. */
export interface Counted {
  /** The answer to it when the address has no call left: `rate_limited` with Retry-After. */
  refusal: AppError | null
  /** The address is so far over its limit that its bodies are not read. */
  flooding: boolean
}

/** Every method that spends throws AppError `rate_limited`, with an honest Retry-After, when nothing is left. */
export interface RateLimits {
  /** Counts one call against its address. */
  spend(address: string): Promise<void>
  /** The same, for a call that may still show a key or a token: `giveBack` then takes it from the count. */
  count(address: string): Promise<Counted>
  giveBack(address: string): Promise<void>
  /** Counts one call of an account. */
  spendAccount(account: { accountId: string; tier: Tier }, budget: Budget): Promise<void>
  /** Counts one recovery of a request by its token. */
  spendRecovery(requestId: string): Promise<void>
  /** Counts a key that has to be looked for in the database; `giveBackLookUp` when it was there. */
  spendLookUp(address: string): Promise<void>
  giveBackLookUp(address: string): Promise<void>
  /** Counts one registration of all callers; `giveBackRegistration` when no account was made. */
  spendRegistration(): Promise<void>
  giveBackRegistration(): Promise<void>
}

/** An address that is over its limit so many times is flooding. */
const FLOOD_FACTOR = 10

/** @param perMinute calls of an address; 0 switches off what is counted per address, per request and for all callers together */
export function buildRateLimits(perMinute: number, redis: Redis | undefined): RateLimits {
  const build = (name: string, points: number, seconds = 60) => buildLimiter(redis, { name, points, seconds })
  const accounts = buildAccountLimiters(build)
  const spendAccount: RateLimits['spendAccount'] = async ({ accountId, tier }, budget) => {
    const refusal = await consume(accounts[tier][budget], accountId)
    if (refusal) throw refusedAccount(tier, budget, refusal)
  }
  if (perMinute === 0) return { ...UNLIMITED, spendAccount }
  const addresses = build('address', perMinute)
  const lookUps = build('look-up', CALLER_LIMITS.unknown_keys_per_minute)
  const recoveries = build('recovery', CALLER_LIMITS.recoveries_per_minute)
  const registrations = build('registration', CALLER_LIMITS.registrations_per_minute)
  const spendOn = async (limiter: Limiter, key: string, what: string) => {
    const refusal = await consume(limiter, key)
    if (refusal) throw refused(`More than ${limiter.points} ${what} in a minute`, refusal)
  }
  const count: RateLimits['count'] = async (address) => {
    const refusal = await consume(addresses, addressKey(address))
    if (!refusal) return { refusal: null, flooding: false }
    const flooding = refusal.consumedPoints > FLOOD_FACTOR * perMinute
    return { refusal: refused(`More than ${perMinute} requests in a minute`, refusal), flooding }
  }
  return {
    count,
    spendAccount,
    async spend(address) {
      const { refusal } = await count(address)
      if (refusal) throw refusal
    },
    giveBack: async (address) => void (await addresses.reward(addressKey(address))),
    spendRecovery: (requestId) => spendOn(recoveries, requestId, 'recoveries of one request'),
    spendLookUp: (address) => spendOn(lookUps, addressKey(address), 'unknown API keys from one address'),
    giveBackLookUp: async (address) => void (await lookUps.reward(addressKey(address))),
    spendRegistration: () => spendOn(registrations, 'all', 'registrations by all callers together'),
    giveBackRegistration: async () => void (await registrations.reward('all')),
  }
}

const UNLIMITED = {
  spend: async () => {},
  count: async () => ({ refusal: null, flooding: false }),
  giveBack: async () => {},
  spendRecovery: async () => {},
  spendLookUp: async () => {},
  giveBackLookUp: async () => {},
  spendRegistration: async () => {},
  giveBackRegistration: async () => {},
}

type Limiter = RateLimiterMemory | RateLimiterRedis

function buildLimiter(redis: Redis | undefined, limit: { name: string; points: number; seconds: number }): Limiter {
  const options = { points: limit.points, duration: limit.seconds, keyPrefix: `countersign:${limit.name}` }
  const memory = new RateLimiterMemory(options)
  return redis ? new RateLimiterRedis({ ...options, storeClient: redis, insuranceLimiter: memory }) : memory
}

/** Of each tier its own: after a change of tier the count begins anew. */
function buildAccountLimiters(build: (name: string, points: number, seconds: number) => Limiter) {
  const ofTier = (tier: Tier) => {
    const budgets = Object.entries(BUDGETS).map(([budget, { limit, seconds }]) => [
      budget,
      build(`${budget}:${tier}`, LIMITS[tier][limit], seconds),
    ])
    return Object.fromEntries(budgets) as Record<Budget, Limiter>
  }
  return Object.fromEntries(TIERS.map((tier) => [tier, ofTier(tier)])) as Record<Tier, Record<Budget, Limiter>>
}

/** Null while there is something left. */
async function consume(limiter: Limiter, key: string): Promise<RateLimiterRes | null> {
  try {
    await limiter.consume(key)
    return null
  } catch (refusal) {
    if (!(refusal instanceof RateLimiterRes)) throw refusal
    return refusal
  }
}

function refusedAccount(tier: Tier, budget: Budget, refusal: RateLimiterRes): AppError {
  const { limit } = BUDGETS[budget]
  return refused(`${limit}: the ${tier} tier has ${LIMITS[tier][limit]}`, refusal)
}

function refused(why: string, { msBeforeNext }: RateLimiterRes): AppError {
  const seconds = String(Math.max(1, Math.ceil(msBeforeNext / 1000)))
  return new AppError('rate_limited', `${why}. Try again in ${seconds} s.`, { headers: { 'retry-after': seconds } })
}

/**
 * What an address is counted as: an IPv4 address as itself, in whatever form it comes; an IPv6 address as its /64, which is
 * the least that a network gives a subscriber. A port and a zone are left out. Text that
 * is no address is counted as `unknown`, all of it together.
 */
export function addressKey(address: string): string {
  const bare = address
    .trim()
    .replace(/^\[(.*)\](:\d+)?$/, '$1')
    .replace(/^([\d.]+):\d+$/, '$1')
    .replace(/%.*$/, '')
  if (isIP(bare) === 4) return bare
  if (isIP(bare) !== 6) return 'unknown'
  const groups = ipv6Groups(canonicalAddress(bare))
  const mapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff
  if (mapped)
    return groups
      .slice(6)
      .flatMap((group) => [group >> 8, group & 255])
      .join('.')
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`
}
