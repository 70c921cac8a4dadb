// The message and the Retry-After of the answer 202: what a pending request waits for.
import type { RequestView } from './request.ts'

export interface PendingAnswer {
  code: 'processing' | 'settlement_unknown'
  message: string
  /** Seconds after which asking again is worth it. */
  retryAfterSeconds: number
}

const SOON = 1
/** Retry-After while the request waits in an origin's line and the host asked for no pause: turns come one after another. */
const LINE_SECONDS = 5
const SETTLEMENT_SECONDS = 3
const NO_WORKER_SECONDS = 10

/** @param context `now` in milliseconds since the epoch; `hasWorker`: whether any worker has a fresh beat */
export function describePending(
  { state, waiting }: Pick<RequestView, 'state' | 'waiting'>,
  { now, hasWorker }: { now: number; hasWorker: boolean },
): PendingAnswer {
  const left = waiting ? Math.ceil((Date.parse(waiting.until) - now) / 1000) : 0
  if (state === 'settling') {
    const retryAfterSeconds = waiting?.for === 'settlement' && left > 0 ? left : SETTLEMENT_SECONDS
    const message =
      'The payment is being settled. Repeat this call, with the same payment if any; never pay anew. ' +
      `Ask again in ${retryAfterSeconds} s.`
    return { code: 'settlement_unknown', message, retryAfterSeconds }
  }
  const processing = (reason: string, retryAfterSeconds: number): PendingAnswer => ({
    code: 'processing',
    message: `${reason} Repeat this call or the recovery URL in ${retryAfterSeconds} s.`,
    retryAfterSeconds,
  })
  if (!hasWorker)
    return processing('No worker is running right now; the request is kept until one is.', NO_WORKER_SECONDS)
  if (waiting?.for === 'model' && left > 0)
    return processing('The model that assesses does not answer right now.', left)
  if (waiting?.for !== 'origin') return processing('The work is under way.', SOON)
  const { host, asked_seconds } = waiting
  if (asked_seconds === undefined)
    return processing(
      `The request waits for its turn at "${host}", which is sent only a few requests at once.`,
      LINE_SECONDS,
    )
  if (left <= 0) return processing('The work is under way.', SOON)
  return processing(`"${host}" asked not to be asked again for ${asked_seconds} s; the request waits for it.`, left)
}
