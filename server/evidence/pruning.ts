// Pruning of captures. One that a result refers to is deleted in the statement that prunes the result (server/verification/pruning.ts);
// here go those that are older than they may be, and those that no request refers to.
import { z } from 'zod'
import { type Database, sql } from '../db/pool.ts'

/**
 * Seconds after which a capture without a request is deleted: its observation has left the cache after 300, and a request that took it from
 * there, or made it, has committed its id long before or never will.
 */
export const ORPHAN_SECONDS = 900

/**
 * A condition on a row `c` of captures that must go, at any age of its results.
 * @param retentionSeconds null: as long as its results
 */
const isDue = (retentionSeconds: number | null) => sql.fragment`(
  c.created_at < now() - ${retentionSeconds}::float8 * interval '1 second'
  or c.created_at < now() - ${ORPHAN_SECONDS} * interval '1 second'
    and not exists (select from verification_requests r where r.capture_id = c.id))`

/** @param limit rows of one statement @returns rows deleted */
export async function dropCaptures(db: Database, retentionSeconds: number | null, limit: number): Promise<number> {
  const dropped = await db.query(sql.type(z.object({}))`
    delete from captures
    where id in (
      select id from captures c where ${isDue(retentionSeconds)}
      order by created_at limit ${limit} for update skip locked)`)
  return dropped.rowCount
}

/**
 * CTE `dropped`: deletes the captures of the rows of a CTE `due` (id, capture_id) of verification_requests, unless a request that is not
 * among them refers to the same one. Two such statements at the same time may each leave a capture to the other's request; it is
 * deleted with those that no request refers to.
 */
export const dropWithResults = sql.fragment`dropped as (
  delete from captures c using due
  where c.id = due.capture_id and not exists (
    select from verification_requests o where o.capture_id = c.id and o.id not in (select id from due)))`

/** Seconds for which the oldest capture has been due; 0 if none is. */
export function measureCaptureLag(db: Database, retentionSeconds: number | null): Promise<number> {
  return db.oneFirst(sql.type(z.object({ lag: z.number() }))`
    select coalesce(max(extract(epoch from now() - c.created_at)
                        - least(${ORPHAN_SECONDS}, ${retentionSeconds}::float8)), 0)::float8 lag
    from captures c where ${isDue(retentionSeconds)}`)
}
