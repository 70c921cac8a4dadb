// How a job waits for its turn at an origin: for how long, what its caller is told meanwhile, and when the wait has been too long.
import { AppError } from '../../server/errors.ts'
import type { Lane } from '../../server/threads/lanes.ts'

/** The longest pause that a host may ask for. A payment is not valid for longer. */
export const MAX_PAUSE_SECONDS = 300

/** The pause that a host asked for in its answer. */
export interface Asked {
  host: string
  status: number
  /** The seconds from the host; the service waits for at most MAX_PAUSE_SECONDS. */
  seconds: number
}

/** The origin has no turn for this job. The caller puts the job into the line named `line`. */
export class OriginBusyError extends Error {
  override name = 'OriginBusyError'
  /** The line to join: the name of an origin, or of one URL. */
  readonly line: string
  /** Seconds until the next request to the host is allowed; an estimate if only the service's own limits delay it. */
  readonly retryAfterSeconds: number
  /** Null if the host did not ask for a pause and only the service's own limits delay the request. */
  readonly asked: Asked | null
  /** Whether the host refused this job itself. */
  readonly tried: boolean
  /** For whom the job is. */
  readonly lane: Lane | undefined

  constructor(
    line: string,
    retryAfterSeconds: number,
    asked: Asked | null,
    { tried = false, lane }: { tried?: boolean; lane?: Lane | undefined } = {},
  ) {
    super(
      asked
        ? `${asked.host} asked to be left alone for another ${retryAfterSeconds} s`
        : `${line} has no turn free for this job`,
    )
    this.line = line
    this.retryAfterSeconds = retryAfterSeconds
    this.asked = asked
    this.tried = tried
    this.lane = lane
  }
}

/** The message for callers. It names the seconds from the host, even if the service waits for fewer. */
export function describeAsked({ host, status, seconds }: Asked): string {
  const cap = seconds > MAX_PAUSE_SECONDS ? `, of which the service waits for ${MAX_PAUSE_SECONDS}` : ''
  return `"${host}" answered with status ${status} and asked for a pause of ${seconds} seconds${cap}.`
}

/** A job in a line is woken when its turn is free. If the wake-up is lost, the job runs by itself after so many seconds. */
const RECHECK_SECONDS = 60

export interface OriginWait {
  /** The job runs by itself after so many seconds. */
  seconds: number
  /** For the answer to the caller, as `waiting` of server/verification/request.ts has it. */
  waiting: { for: 'origin'; until: string; host: string; asked_seconds?: number }
}

/**
 * The wait of a job that got no turn, or the error with which it ends. A host that asked for a longer pause than is left is the
 * source's own refusal; where only the limits of this service left no turn, the service lacked capacity.
 * @param url the page
 * @param secondsLeft for which the job may still wait
 */
export function planWait(busy: OriginBusyError, url: string, secondsLeft: number): OriginWait | AppError {
  const { asked, retryAfterSeconds } = busy
  if (secondsLeft <= (asked ? retryAfterSeconds : 0))
    return asked
      ? new AppError('source_rate_limited', `${describeAsked(asked)} The request cannot wait for that long.`)
      : new AppError('capacity_exceeded', 'Too many requests wait for this host, and this one got no turn in time.')
  return {
    seconds: Math.min(secondsLeft, asked ? Math.max(retryAfterSeconds, RECHECK_SECONDS) : RECHECK_SECONDS),
    waiting: {
      for: 'origin',
      until: new Date(Date.now() + retryAfterSeconds * 1000).toISOString(),
      host: asked?.host ?? new URL(url).hostname,
      ...(asked && { asked_seconds: asked.seconds }),
    },
  }
}
