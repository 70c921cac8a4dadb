// How often callers can make this process ask a facilitator or a node about a payment. Anyone can send a payment that has
// the right form, so each address may cause so many calls that come to nothing, and a process makes only so many in all.
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { addressKey } from '../accounts/rate-limit.ts'
import { AppError } from '../errors.ts'

export interface OutsideCalls {
  /**
   * Makes the calls for this address. When they succeed, they do not count against the address. Throws what they throw,
   * or AppError `rate_limited` with Retry-After before any call is made.
   */
  attempt<T>(address: string, calls: () => Promise<T>): Promise<T>
}

export interface OutsideLimits {
  /** Attempts that may fail, per address and minute. */
  failedPerMinute: number
  /** Attempts of all addresses together, per second. */
  perSecond: number
}

/** A buyer whose payments are good meets the limit of the process only; a facilitator takes about this many. */
const DEFAULT_LIMITS: OutsideLimits = { failedPerMinute: 60, perSecond: 50 }

export function buildOutsideCalls(limits: OutsideLimits = DEFAULT_LIMITS): OutsideCalls {
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
  const message = `Too many payments were brought that had to be checked elsewhere. Try again in ${seconds} s. Nothing was charged.`
  throw new AppError('rate_limited', message, { headers: { 'retry-after': String(seconds) } })
}
