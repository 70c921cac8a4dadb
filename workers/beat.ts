// Signs of life, and the rescue of those who give none. graphile-worker by itself frees a dead worker's jobs after four
// hours; here every pool writes a beat, and every worker frees the jobs of pools that have none.
//
// Freeing cannot stop a worker that was only slow: that is what the attempt token of a request is for.
import { z } from 'zod'
import { nothing, sql, transact } from '../server/db/pool.ts'
import type { Work } from './context.ts'

/** A killed worker's jobs run again STALE_SECONDS + BEAT_SECONDS after its last beat at the latest. */
export const BEAT_SECONDS = 3
export const STALE_SECONDS = 12
/** Any constant of our own: one worker at a time looks for the dead. */
const RESCUE_LOCK = 8_402_002

export async function beat({ db, methodology, assessor }: Work, poolId: string): Promise<void> {
  const pausedUntil = assessor.pausedUntil?.toISOString() ?? null
  await db.query(sql.type(nothing)`
    insert into worker_beats (pool_id, methodology, assessor_paused_until)
    values (${poolId}, ${methodology}, ${pausedUntil}::timestamptz)
    on conflict (pool_id) do update set beat_at = now(), assessor_paused_until = excluded.assessor_paused_until`)
}

/** Last of all when a worker stops: until then its jobs are its own. */
export async function endBeat({ db }: Work, poolId: string): Promise<void> {
  await db.query(sql.type(nothing)`delete from worker_beats where pool_id = ${poolId}`)
}

/** Frees the jobs of pools without a fresh beat; answers those pools. `locked_at` spares one that has just begun. */
export async function rescue({ db, log, metrics }: Work, staleSeconds = STALE_SECONDS): Promise<string[]> {
  const dead = await transact(db, async (tx) => {
    const mine = await tx.oneFirst(sql.type(z.object({ locked: z.boolean() }))`
      select pg_try_advisory_xact_lock(${RESCUE_LOCK}) locked`)
    if (!mine) return []
    const pools = await tx.anyFirst(sql.type(z.object({ pool: z.string() }))`
      select distinct j.locked_by pool
      from graphile_worker.jobs j left join worker_beats b on b.pool_id = j.locked_by
      where j.locked_by is not null
        and j.locked_at < now() - ${staleSeconds} * interval '1 second'
        and (b.pool_id is null or b.beat_at < now() - ${staleSeconds} * interval '1 second')`)
    if (pools.length > 0)
      await tx.query(sql.type(z.object({}).loose())`
        select graphile_worker.force_unlock_workers(${sql.array(pools, 'text')})`)
    await tx.query(sql.type(nothing)`
      delete from worker_beats where beat_at < now() - ${staleSeconds * 4} * interval '1 second'`)
    return pools
  })
  if (dead.length > 0) {
    log.warn({ event: 'rescued', pools: dead })
    metrics.rescued.inc(dead.length)
  }
  return [...dead]
}
