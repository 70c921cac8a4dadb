// The retry schedule of alerts: when a failed alert is tried again, and when it is given up.
import type { ClaimedAlert, Decision } from './claims.ts'
import type { Answer } from './post.ts'

/**
 * Seconds before each attempt, counted from the end of the one before; each wait is up to JITTER shorter or longer. Alerts are
 * urgent, so the first attempts follow closely. All attempts together take about a day.
 */
export const SCHEDULE_SECONDS = [0, 5, 20, 60, 180, 600, 1800, 3600, 7200, 14_400, 28_800, 28_800] as const
export const JITTER = 0.2

/** A `Retry-After` of a 429 or 503 makes a wait longer than the schedule's, up to this. */
export const MAX_RETRY_AFTER_SECONDS = 3600

/**
 * An alert that fails at a greater age is given up, even if its schedule is not over: it has waited behind failing alerts.
 * Without this bound, the backlog for a receiver that fails for days would grow without limit.
 */
export const GIVE_UP_SECONDS = 30 * 3600

/**
 * The consequence of an attempt. 2xx is a delivery; every other status is a failure, redirects included. With 410, or with the
 * header `webhook-delivery: disable` and any status, the receiver asks for no more alerts.
 *
 * @param answer null when none came
 */
export function decide(alert: ClaimedAlert['alert'], answer: Answer | null, random = Math.random): Decision {
  if (answer && answer.status >= 200 && answer.status < 300) return { outcome: 'delivered', disable: answer.disable }
  if (answer && (answer.status === 410 || answer.disable)) return { outcome: 'unwanted' }
  const pause = SCHEDULE_SECONDS[alert.attempts + 1]
  if (!alert.pending || pause === undefined || alert.age_seconds > GIVE_UP_SECONDS) return { outcome: 'given up' }
  const jittered = pause * (1 + JITTER * (2 * random() - 1))
  return { outcome: 'retry', seconds: Math.max(jittered, requestedWait(answer)) }
}

function requestedWait(answer: Answer | null): number {
  if (answer?.status !== 429 && answer?.status !== 503) return 0
  return Math.min(answer.retryAfterSeconds ?? 0, MAX_RETRY_AFTER_SECONDS)
}
