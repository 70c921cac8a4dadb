// When a failed alert is tried again, and when it is given up.
import type { ClaimedAlert, Decision } from './claims.ts'
import type { Answer } from './post.ts'

/**
 * Seconds before each attempt, counted from the end of the one before; each wait is up to JITTER shorter or longer. An alert
 * loses its worth fast, so the first attempts follow closely; altogether it is tried for about a day.
 */
export const SCHEDULE_SECONDS = [0, 5, 20, 60, 180, 600, 1800, 3600, 7200, 14_400, 28_800, 28_800] as const
export const JITTER = 0.2

/** `Retry-After` of a 429 or 503 makes a wait longer than the schedule's, up to this. */
export const MAX_RETRY_AFTER_SECONDS = 3600

/**
 * An alert that fails when it is older than this is given up, whatever is left of its schedule. It has waited for failing
 * alerts before it; without this bound, a receiver that is away for days would hold up more and more alerts.
 */
export const GIVE_UP_SECONDS = 30 * 3600

/**
 * What an attempt means. 2xx is a delivery; everything else is a failure, redirects too. 410, and the header
 * `webhook-delivery: disable` with any status, say that the receiver wants no more.
 *
 * @param answer null: none came
 */
export function decide(alert: ClaimedAlert['alert'], answer: Answer | null, random = Math.random): Decision {
  if (answer && answer.status >= 200 && answer.status < 300) return { outcome: 'delivered', disable: answer.disable }
  if (answer && (answer.status === 410 || answer.disable)) return { outcome: 'unwanted' }
  const pause = SCHEDULE_SECONDS[alert.attempts + 1]
  if (!alert.pending || pause === undefined || alert.age_seconds > GIVE_UP_SECONDS) return { outcome: 'given up' }
  const jittered = pause * (1 + JITTER * (2 * random() - 1))
  return { outcome: 'retry', seconds: Math.max(jittered, waitAskedFor(answer)) }
}

function waitAskedFor(answer: Answer | null): number {
  if (answer?.status !== 429 && answer?.status !== 503) return 0
  return Math.min(answer.retryAfterSeconds ?? 0, MAX_RETRY_AFTER_SECONDS)
}
