// Limits on the calls to facilitators and nodes that callers cause. Anyone can send a payment of the right form, so each
// address may cause only some failing calls, and a process makes only so many calls in all. A part of these is kept for networks
// with few failed calls lately, so that false payments from many addresses cannot stop those of other payers.
import { addressKey, networkKey } from '../../accounts/address-key.ts'
import { type CallCount, CallCounts } from '../../accounts/call-counts.ts'
import { buildSharedBudget, type Counter, partsOf } from '../../accounts/shared-budget.ts'
import { AppError } from '../../errors.ts'

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
  const parts = partsOf(limits.perSecond)
  /** Calls that failed or are under way. */
  const recent = counterOf(Number.POSITIVE_INFINITY, 60)
  const ofProcess = buildSharedBudget({
    common: counterOf(parts.common, 1),
    reserve: counterOf(parts.reserve, 1),
    recent,
  })
  return {
    async attempt(address, calls) {
      const caller = addressKey(address)
      const failed = ofAddress.add(caller)
      if (failed.calls > limits.failedPerMinute) throw refused(failed)
      const network = networkKey(address)
      const { refusal } = await ofProcess.spend(network)
      if (refusal) {
        ofAddress.takeBack(caller)
        throw refused(refusal)
      }
      const answer = await calls()
      ofAddress.takeBack(caller)
      await recent.takeBack(network)
      return answer
    },
  }
}

function counterOf(points: number, seconds: number): Counter {
  const counts = new CallCounts({ seconds })
  return { points, add: async (key) => counts.add(key), takeBack: async (key) => counts.takeBack(key) }
}

function refused({ msLeft }: CallCount): AppError {
  const seconds = String(Math.max(1, Math.ceil(msLeft / 1000)))
  const message = `Too many payments needed a check by another service. Try again in ${seconds} s. Nothing was charged.`
  return new AppError('rate_limited', message, { headers: { 'retry-after': seconds } })
}
