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
/** Longest Retry-After of a request that waits for a worker, because the forecast is not exact. */
const QUEUE_SECONDS = 5
const SETTLEMENT_SECONDS = 3
const NO_WORKER_SECONDS = 10

/**
 * @param context `now` in milliseconds since the epoch; `hasWorker`: whether any worker has a fresh beat; `queueSeconds`: for how long a
 *   new request would wait for a worker
 */
export function describePending(
  { state, waiting, changed_at }: Pick<RequestView, 'state' | 'waiting' | 'changed_at'>,
  { now, hasWorker, queueSeconds }: { now: number; hasWorker: boolean; queueSeconds: number },
): PendingAnswer {
  const left = secondsLeft(waiting, now)
  if (state === 'settling') {
    const retryAfterSeconds = waiting?.for === 'settlement' && left > 0 ? left : SETTLEMENT_SECONDS
    const message =
      'The payment is being settled. Repeat this call, with the same payment if any; never make a new payment. ' +
      `Ask again in ${retryAfterSeconds} s.`
    return { code: 'settlement_unknown', message, retryAfterSeconds }
  }
  const work = describeWork(waiting, { now, hasWorker })
  // Requests before it are served first, so an earlier call would be useless.
  const inQueue = state === 'accepted' ? queueSeconds - (now - changed_at.getTime()) / 1000 : 0
  const { reason } = work
  const retryAfterSeconds = Math.max(work.retryAfterSeconds, Math.min(QUEUE_SECONDS, Math.ceil(inQueue)))
  const message = `${reason} Repeat this call or the recovery URL in ${retryAfterSeconds} s.`
  return { code: 'processing', message, retryAfterSeconds }
}

interface WorkDescription {
  reason: string
  retryAfterSeconds: number
}

/** What a request waits for that is not in settlement. @param context as for `describePending` */
export function describeWork(
  waiting: RequestView['waiting'],
  { now, hasWorker }: { now: number; hasWorker: boolean },
): WorkDescription {
  const left = secondsLeft(waiting, now)
  const work = (reason: string, retryAfterSeconds: number) => ({ reason, retryAfterSeconds })
  if (!hasWorker) return work('No worker is running right now; the request is kept until one is.', NO_WORKER_SECONDS)
  if (waiting?.for === 'model' && left > 0) return work('The model that assesses does not answer right now.', left)
  if (waiting?.for !== 'origin') return work('The work is under way.', SOON)
  const { host, asked_seconds } = waiting
  if (asked_seconds === undefined)
    return work(
      `The request waits for its turn: the service sends only a few requests at a time to "${host}".`,
      LINE_SECONDS,
    )
  if (left <= 0) return work('The work is under way.', SOON)
  return work(`"${host}" asked for a pause of ${asked_seconds} s; the request waits for it to end.`, left)
}

function secondsLeft(waiting: RequestView['waiting'], now: number): number {
  return waiting ? Math.ceil((Date.parse(waiting.until) - now) / 1000) : 0
}
