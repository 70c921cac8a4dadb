// Whether somebody can assess what is sold. Workers say so in their beats; nobody is asked to pay while all of them are
// waiting for a model that does not answer.
import { z } from 'zod'
import { type Database, sql } from '../db/pool.ts'
import { AppError } from '../errors.ts'

export interface Assessors {
  /** Throws `provider_unavailable`, with Retry-After, while every live worker's assessor takes no work. */
  requireOne(): Promise<void>
}

/**
 * Asks the database at most every `keepMs`. With no worker alive nothing is known, and nothing refused.
 * @param now milliseconds since the epoch
 */
export function buildAssessors(db: Database, now: () => number, keepMs = 1000): Assessors {
  let known: Promise<number | null> = Promise.resolve(null)
  let askedAt = Number.NEGATIVE_INFINITY
  return {
    async requireOne() {
      if (now() - askedAt >= keepMs) {
        askedAt = now()
        known = findPause(db)
        // Asked again next time; this call gets the failure below.
        known.catch(() => (askedAt = Number.NEGATIVE_INFINITY))
      }
      const seconds = await known
      if (seconds === null) return
      throw new AppError('provider_unavailable', 'The model that assesses does not answer. Nothing was charged.', {
        headers: { 'retry-after': String(Math.max(1, Math.ceil(seconds))) },
      })
    },
  }
}

/** Seconds until the first of the paused workers goes on; null when one is not paused, or none is alive. */
function findPause(db: Database): Promise<number | null> {
  return db.maybeOneFirst(sql.prepared('find_assessor_pause', z.object({ seconds: z.number() }))`
    select extract(epoch from min(assessor_paused_until) - now())::float8 seconds
    from worker_beats where beat_at > now() - ${ALIVE_SECONDS} * interval '1 second'
    having bool_and(coalesce(assessor_paused_until > now(), false))`)
}

const ALIVE_SECONDS = 30
