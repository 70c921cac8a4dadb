// Limits on the calls to facilitators and nodes that callers cause. Anyone can send a payment of the right form, so each
// address may cause only some failing calls, and a process makes only so many calls in all.
import { addressKey } from '../accounts/address-key.ts'
import { type CallCount, CallCounts } from '../accounts/call-counts.ts'
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
  const ofAddress = new CallCounts({ seconds: 60 })
  const ofProcess = new CallCounts({ seconds: 1 })
  return {
    async attempt(address, calls) {
      const caller = addressKey(address)
      const failed = ofAddress.add(caller)
      if (failed.calls > limits.failedPerMinute) throw refused(failed)
      const all = ofProcess.add('all')
      if (all.calls > limits.perSecond) {
        ofAddress.takeBack(caller)
        throw refused(all)
      }
      const answer = await calls()
      ofAddress.takeBack(caller)
      return answer
    },
  }
}

function refused({ msLeft }: CallCount): AppError {
  const seconds = String(Math.max(1, Math.ceil(msLeft / 1000)))
  const message = `Too many payments needed a check by another service. Try again in ${seconds} s. Nothing was charged.`
  return new AppError('rate_limited', message, { headers: { 'retry-after': seconds } })
}
