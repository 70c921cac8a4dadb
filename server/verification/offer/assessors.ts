// The assessors of the live workers. Each worker writes in its beat how it assesses and whether it waits for a model. No
// caller is asked to pay while no worker takes work, or while a worker assesses in another way than the offer says.
import { z } from 'zod'
import { type Database, sql } from '../../db/pool.ts'
import { singleFlight } from '../../db/single-flight.ts'
import { AppError } from '../../errors.ts'
import type { AssessmentKind } from '../../interface/assessment.ts'
import { type Logger, openOutage } from '../../telemetry.ts'

export interface Assessors {
  /**
   * Throws `provider_unavailable`, with Retry-After, while no live worker's assessor takes work, or a live worker assesses in
   * another way than the offer says. With no live worker nothing is refused.
   */
  requireOne(): Promise<void>
  /** Seconds until an assessor takes work, and for the operator why none does; null if one does, or no worker is alive. */
  pause(): Promise<{ seconds: number; reason: string } | null>
  /** What is wrong with the assessors of live workers, in words for the operator; also while others or fallbacks take the work. */
  problems(): Promise<string[]>
  /** Whether any worker has a fresh beat; true if the beats cannot be read. */
  hasWorker(): Promise<boolean>
  /** The methodologies of the live workers, the latest beat first; empty if no worker is alive. */
  methodologies(): Promise<string[]>
}

export interface AssessorsOptions {
  /** Called at each reading. */
  db: () => Database
  log: Logger
  /** The assessment that this process offers. */
  offered: AssessmentKind
  /** Milliseconds for which a reading of the beats is reused. */
  keepMs?: number
  /** Milliseconds of a monotonic clock. */
  now?: () => number
}

export function buildAssessors({ db, log, offered, keepMs = 1000, now }: AssessorsOptions): Assessors {
  const outage = openOutage(log, 'workers', now)
  const readAlive = async () => {
    const beats = await readBeats(db())
    if (beats.length > 0) outage.worked()
    else outage.failed('none is alive: what is paid waits for one')
    return beats
  }
  const read = singleFlight(readAlive, keepMs, now)
  let reported = ''
  return {
    async requireOne() {
      const beats = await read()
      const other = beats.find(({ methodology }) => ![null, offered].includes(kindOf(methodology)))
      if ((other?.methodology ?? '') !== reported) {
        reported = other?.methodology ?? ''
        if (other) log.error({ event: 'assessment_mismatch', offered, worker: other.methodology })
      }
      if (other)
        throw unavailable(
          'The workers do not assess in the way that is offered here. Nothing was charged.',
          ALIVE_SECONDS,
        )
      const seconds = pauseOf(beats)
      if (seconds > 0) throw unavailable(`${PAUSED[offered]} Nothing was charged.`, seconds)
    },
    async pause() {
      const beats = await read()
      const seconds = pauseOf(beats)
      return seconds > 0 ? { seconds, reason: problemsOf(beats).join('; ') || PAUSED[offered] } : null
    },
    problems: async () => problemsOf(await read()),
    hasWorker: () =>
      read().then(
        (beats) => beats.length > 0,
        () => true,
      ),
    methodologies: async () => [...new Set((await read()).map(({ methodology }) => methodology))],
  }
}

/** For callers, who learn that nothing is sold, and not why. */
const PAUSED: Record<AssessmentKind, string> = {
  literal: 'The workers do not assess at present.',
  local: 'The verifier that assesses is being loaded.',
  semantic: 'The model that assesses does not answer.',
}

/** Seconds until the first of these workers assesses; 0 if one does, or there is none. */
function pauseOf(beats: readonly { paused: number }[]): number {
  return beats.length === 0 ? 0 : Math.min(...beats.map(({ paused }) => paused))
}

/** The different problems of these workers. */
export function problemsOf(beats: readonly { problem: string | null }[]): string[] {
  return [...new Set(beats.flatMap(({ problem }) => problem ?? []))]
}

function unavailable(message: string, seconds: number) {
  const headers = { 'retry-after': String(Math.max(1, Math.ceil(seconds))) }
  return new AppError('provider_unavailable', message, { headers })
}

/** The kind of assessment in a methodology; null if it names none. */
export function kindOf(methodology: string): AssessmentKind | null {
  if (methodology.includes(' literal-')) return 'literal'
  if (methodology.includes(' local-')) return 'local'
  return methodology.includes(' semantic-') ? 'semantic' : null
}

/** What the local verifier of a worker says of itself until its weights are there. */
export const LOADING = 'the verifier is being loaded'

const beatRow = z.object({
  methodology: z.string(),
  paused: z.number(),
  problem: z.string().nullable(),
  booted_seconds: z.number(),
})
export type Beat = z.output<typeof beatRow>

/** The beats of live workers, the latest first. `paused`: seconds until the worker's assessor takes work again, or 0. `booted_seconds`: since its first beat. */
export async function readBeats(db: Database) {
  return db.any(sql.prepared('find_live_beats', beatRow)`
    select methodology, greatest(0, coalesce(extract(epoch from assessor_paused_until - now()), 0))::float8 paused,
           assessor_problem problem, extract(epoch from now() - booted_at)::float8 booted_seconds
    from worker_beats where beat_at > now() - ${ALIVE_SECONDS} * interval '1 second'
    order by beat_at desc`)
}

/**
 * Seconds after its last beat in which a worker counts as able to assess. It is longer than STALE_SECONDS of workers/beat.ts, so
 * that a slow worker does not close the sale; its jobs are rescued meanwhile.
 */
const ALIVE_SECONDS = 30
