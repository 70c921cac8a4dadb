// Limits on the calls to facilitators and nodes that callers cause. Anyone can send a payment of the right form, so each
// address may cause only some failing calls, and a process makes only so many calls in all.
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { addressKey } from '../accounts/address-key.ts'
import { AppError } from '../errors.ts'

export interface UpstreamCalls {
  /**
   * Makes the calls for this address. Successful calls do not count against the address. Throws what they throw, and
   * AppError `rate_limited` with Retry-After before any call is made.
   */
  attempt<T>(address: string, calls: () => Promise<T>): Promise<T>
}

export interface UpstreamLimits {
  /** Attempts that may fail, per address and minute. */
  failedPerMinute: number
  /** Attempts of all addresses together, per second. */
  perSecond: number
}

/** A buyer with valid payments meets only the limit of the process; a facilitator accepts about this many. */
const DEFAULT_LIMITS: UpstreamLimits = { failedPerMinute: 60, perSecond: 50 }

export function buildUpstreamCalls(limits: UpstreamLimits = DEFAULT_LIMITS): UpstreamCalls {
  const ofAddress = new RateLimiterMemory({ points: limits.failedPerMinute, duration: 60 })
  const ofProcess = new RateLimiterMemory({ points: limits.perSecond, duration: 1 })
  return {
    async attempt(address, calls) {
      const caller = addressKey(address)
      await ofAddress.consume(caller).catch(refuse)
      try {
        await ofProcess.consume('all')
      } catch (refusal) {
        await ofAddress.reward(caller)
        return refuse(refusal)
      }
      const answer = await calls()
      await ofAddress.reward(caller)
      return answer
    },
  }
}

function refuse(refusal: unknown): never {
  if (!(refusal instanceof RateLimiterRes)) throw refusal
  const seconds = Math.max(1, Math.ceil(refusal.msBeforeNext / 1000))
  const message = `Too many payments needed a check by another service. Try again in ${seconds} s. Nothing was charged.`
  throw new AppError('rate_limited', message, { headers: { 'retry-after': String(seconds) } })
}
