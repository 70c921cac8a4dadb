// Heartbeats of worker pools, and the rescue of jobs whose pool died. graphile-worker frees a dead worker's jobs only after four
// hours. Here every pool writes a beat, and every worker frees the jobs of pools without a fresh one.
//
// A worker whose jobs were freed may only have been slow; then the attempt token of a request keeps it from committing.
import { z } from 'zod'
import { nothing, sql, transact } from '../server/db/pool.ts'
import type { Work } from './context.ts'

/** Seconds between beats. A killed worker's jobs run again at most STALE_SECONDS + BEAT_SECONDS after its last beat. */
export const BEAT_SECONDS = 3
/** Seconds without a beat after which other workers free a pool's jobs. ALIVE_SECONDS of assessors.ts is longer. */
export const STALE_SECONDS = 12
/** Key of the advisory lock by which one worker at a time rescues. */
const RESCUE_LOCK = 8_402_002

export async function beat({ db, methodology, assessor }: Work, poolId: string): Promise<void> {
  const pausedUntil = assessor.pausedUntil?.toISOString() ?? null
  await db.query(sql.type(nothing)`
    insert into worker_beats (pool_id, methodology, assessor_paused_until)
    values (${poolId}, ${methodology}, ${pausedUntil}::timestamptz)
    on conflict (pool_id) do update set beat_at = now(), assessor_paused_until = excluded.assessor_paused_until`)
}

/** Deletes the beat. It is the last step of a worker's stop: from then on its jobs are freed. */
export async function endBeat({ db }: Work, poolId: string): Promise<void> {
  await db.query(sql.type(nothing)`delete from worker_beats where pool_id = ${poolId}`)
}

/** Frees the jobs of pools without a fresh beat and answers those pools. A job that began just now is spared by `locked_at`. */
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
