// Whether somebody can assess what is sold. Workers say so in their beats; nobody is asked to pay while all of them are
// waiting for a model that does not answer.
import { z } from 'zod'
import { type Database, sql } from '../db/pool.ts'
import { AppError } from '../errors.ts'

export interface Assessors {
  /** Throws `provider_unavailable`, with Retry-After, while every live worker's assessor takes no work. */
  requireOne(): Promise<void>
  /** Whether any worker gave a sign of life lately; true where that cannot be read. */
  hasWorker(): Promise<boolean>
}

/**
 * Asks the database at most every `keepMs`. With no worker alive nothing is known, and nothing refused.
 * @param now milliseconds since the epoch
 */
export function buildAssessors(db: Database, now: () => number, keepMs = 1000): Assessors {
  let known: Promise<Known> | undefined
  let askedAt = Number.NEGATIVE_INFINITY
  const find = () => {
    if (!known || now() - askedAt >= keepMs) {
      askedAt = now()
      known = findKnown(db)
      // Asked again next time; this call gets the failure.
      known.catch(() => (askedAt = Number.NEGATIVE_INFINITY))
    }
    return known
  }
  return {
    async requireOne() {
      const { seconds } = await find()
      if (seconds === null) return
      throw new AppError('provider_unavailable', 'The model that assesses does not answer. Nothing was charged.', {
        headers: { 'retry-after': String(Math.max(1, Math.ceil(seconds))) },
      })
    },
    hasWorker: () =>
      find().then(
        ({ workers }) => workers > 0,
        () => true,
      ),
  }
}

const knownRow = z.object({ workers: z.number(), seconds: z.number().nullable() })
type Known = z.output<typeof knownRow>

/** `seconds` until the first of the paused workers goes on; null when one is not paused, or none is alive. */
function findKnown(db: Database): Promise<Known> {
  return db.one(sql.prepared('find_assessor_pause', knownRow)`
    select count(*) workers,
           case when bool_and(coalesce(assessor_paused_until > now(), false))
                then extract(epoch from min(assessor_paused_until) - now())::float8 end seconds
    from worker_beats where beat_at > now() - ${ALIVE_SECONDS} * interval '1 second'`)
}

const ALIVE_SECONDS = 30
