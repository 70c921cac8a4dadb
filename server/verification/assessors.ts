// Whether what is offered can be had. Workers say in their beats what they assess by and whether they are waiting for a
// model; no caller is asked to pay while none of them takes work, or one of them does something else than is offered.
import { z } from 'zod'
import { type Database, sql } from '../db/pool.ts'
import { shareReading } from '../db/single-flight.ts'
import { AppError } from '../errors.ts'
import type { AssessmentKind } from '../interface/assessment.ts'
import type { Logger } from '../telemetry.ts'

export interface Assessors {
  /**
   * Throws `provider_unavailable`, with Retry-After, while every live worker's assessor takes no work, or a live worker
   * assesses in another way than the offer says. With no worker alive nothing is known, and nothing refused.
   */
  requireOne(): Promise<void>
  /** Whether any worker gave a sign of life lately; true where that cannot be read. */
  hasWorker(): Promise<boolean>
  /** What the live workers work by, the latest beat first; empty where none is alive. */
  methodologies(): Promise<string[]>
}

export interface AssessorsOptions {
  /** Asked for at each reading. */
  db: () => Database
  log: Logger
  /** What this process offers. */
  offered: AssessmentKind
  /** Milliseconds for which a reading of the beats is good. */
  keepMs?: number
  /** Milliseconds of a clock that does not go back. */
  now?: () => number
}

export function buildAssessors({ db, log, offered, keepMs = 1000, now }: AssessorsOptions): Assessors {
  const read = shareReading(async () => readBeats(db()), keepMs, now)
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
      if (beats.length === 0 || beats.some(({ paused }) => paused <= 0)) return
      const seconds = Math.min(...beats.map(({ paused }) => paused))
      throw unavailable('The model that assesses does not answer. Nothing was charged.', seconds)
    },
    hasWorker: () =>
      read().then(
        (beats) => beats.length > 0,
        () => true,
      ),
    methodologies: async () => [...new Set((await read()).map(({ methodology }) => methodology))],
  }
}

function unavailable(message: string, seconds: number) {
  const headers = { 'retry-after': String(Math.max(1, Math.ceil(seconds))) }
  return new AppError('provider_unavailable', message, { headers })
}

/** Null for a procedure that is of neither kind. */
export function kindOf(methodology: string): AssessmentKind | null {
  return (methodology.match(/ (literal|semantic)-/)?.[1] as AssessmentKind | undefined) ?? null
}

const beatRow = z.object({ methodology: z.string(), paused: z.number() })

/** Of live workers, the latest first. `paused`: seconds until the worker's assessor takes work again; 0 where it does. */
export async function readBeats(db: Database) {
  return db.any(sql.prepared('find_live_beats', beatRow)`
    select methodology, greatest(0, coalesce(extract(epoch from assessor_paused_until - now()), 0))::float8 paused
    from worker_beats where beat_at > now() - ${ALIVE_SECONDS} * interval '1 second'
    order by beat_at desc`)
}

const ALIVE_SECONDS = 30
