// Requests per address and minute, counted before anything else is done for a caller. With Redis all web processes share
// one count; when Redis does not answer, each falls back to counting for itself rather than letting everything through.
import type { Redis } from 'ioredis'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import { AppError } from './errors.ts'

export interface RateLimit {
  /** Counts one request. Throws AppError `rate_limited` with Retry-After when the address has none left. */
  spend(address: string): Promise<void>
}

/** @param perMinute 0 switches the limit off */
export function buildRateLimit(perMinute: number, redis: Redis | undefined): RateLimit {
  if (perMinute === 0) return { spend: async () => {} }
  const options = { points: perMinute, duration: 60, keyPrefix: 'countersign:address' }
  const memory = new RateLimiterMemory(options)
  const limiter = redis ? new RateLimiterRedis({ ...options, storeClient: redis, insuranceLimiter: memory }) : memory
  return {
    async spend(address) {
      try {
        await limiter.consume(address)
      } catch (refusal) {
        if (!(refusal instanceof RateLimiterRes)) throw refusal
        const seconds = Math.max(1, Math.ceil(refusal.msBeforeNext / 1000))
        throw new AppError('rate_limited', `More than ${perMinute} requests in a minute. Try again in ${seconds} s.`, {
          headers: { 'retry-after': String(seconds) },
        })
      }
    },
  }
}
