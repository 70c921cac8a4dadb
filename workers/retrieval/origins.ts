// Manners towards the sites that are read. All workers together have at most a few requests under way at one origin, never
// two in the same instant, and none at all while the origin has asked to be left alone.
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { type Database, nothing, sql, transact } from '../../server/db/pool.ts'
import type { AppError } from '../../server/errors.ts'
import { RetryLater } from './response.ts'

/** It is not this request's turn for a while: hand the work back and try again then. */
export class OriginBusy extends Error {
  override name = 'OriginBusy'
  readonly retryAfterSeconds: number
  /** `cause` is the source's own answer, if it was that which asked for patience. */
  constructor(origin: string, retryAfterSeconds: number, cause?: AppError) {
    super(`${origin} is not to be asked for another ${retryAfterSeconds} s`, { cause })
    this.retryAfterSeconds = retryAfterSeconds
  }
}

export interface Manners {
  /** Requests under way at one origin. */
  concurrency: number
  /** Between the starts of two requests. */
  spacingMs: number
}

const MANNERS: Manners = { concurrency: 4, spacingMs: 50 }
/** Waiting longer than this in a worker would keep others' requests waiting too; the queue can wait better. */
const MAX_WAIT_MS = 2000
/** A visit counts this long after its last sign of life; one under way gives a sign every third of it. */
const VISIT_SECONDS = 15
const BUSY_SECONDS = 1

export interface Origins {
  /** Runs `work` when it is its turn at the origin. Throws OriginBusy when that is too far off, or `work` RetryLater. */
  visit<T>(origin: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>
}

export function buildOrigins(db: Database, manners: Manners = MANNERS): Origins {
  return {
    async visit(origin, signal, work) {
      const visit = randomUUID()
      const waitMs = await reserve(db, origin, visit, manners)
      const sign = setInterval(() => void prolong(db, visit), (VISIT_SECONDS * 1000) / 3)
      try {
        if (waitMs > 0) await pause(waitMs, undefined, { signal })
        return await work()
      } catch (error) {
        if (!(error instanceof RetryLater)) throw error
        await avoid(db, origin, error.retryAfterSeconds)
        throw new OriginBusy(origin, error.retryAfterSeconds, error)
      } finally {
        clearInterval(sign)
        await db.query(sql.prepared('end_visit', nothing)`delete from origin_visits where id = ${visit}`)
      }
    },
  }
}

/** A sign that is lost lets one visit too many begin, which is no harm worth failing for. */
async function prolong(db: Database, visit: string) {
  await db
    .query(sql.prepared('prolong_visit', nothing)`
      update origin_visits set until = now() + ${VISIT_SECONDS} * interval '1 second' where id = ${visit}`)
    .catch(() => {})
}

/** The origin asked not to be asked again for so long. */
async function avoid(db: Database, origin: string, seconds: number) {
  await db.query(sql.type(nothing)`
    insert into origins (origin, next_at) values (${origin}, now() + ${seconds} * interval '1 second')
    on conflict (origin) do update set next_at = greatest(origins.next_at, excluded.next_at)`)
}

const place = z.object({ wait_ms: z.number() })

/** Takes the next place in line and answers how long it is until then. The origin's row is the lock for its visits. */
async function reserve(db: Database, origin: string, visit: string, manners: Manners): Promise<number> {
  return transact(db, async (tx) => {
    const { wait_ms } = await tx.one(sql.prepared('next_place', place)`
      insert into origins (origin, next_at) values (${origin}, now())
      on conflict (origin) do update set next_at = greatest(origins.next_at, now())
      returning (extract(epoch from next_at - now()) * 1000)::float8 wait_ms`)
    if (wait_ms > MAX_WAIT_MS) throw new OriginBusy(origin, Math.ceil(wait_ms / 1000))
    const taken = await tx.query(sql.prepared('begin_visit', nothing)`
      insert into origin_visits (id, origin, until)
      select ${visit}, ${origin}, now() + ${VISIT_SECONDS} * interval '1 second'
      where (select count(*) from origin_visits where origin = ${origin} and until > now()) < ${manners.concurrency}`)
    if (taken.rowCount === 0) throw new OriginBusy(origin, BUSY_SECONDS)
    await tx.query(sql.prepared('move_next_place', nothing)`
      update origins set next_at = next_at + ${manners.spacingMs} * interval '1 millisecond' where origin = ${origin}`)
    return wait_ms
  })
}

/** Forgets origins that have been quiet and visits that ended without saying so. */
export async function forgetOrigins(db: Database): Promise<void> {
  await db.query(sql.type(nothing)`delete from origin_visits where until < now()`)
  await db.query(sql.type(nothing)`delete from origins where next_at < now() - interval '1 hour'`)
}
