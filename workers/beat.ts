// Detects dead worker pools, and frees what they held. graphile-worker frees a dead worker's jobs only after four hours.
// Here every pool has two signs of life, and every worker watches those of the others:
//
//   a lock on a connection of its own    ends with the process: a killed worker's jobs run again within 3 seconds
//   a beat, written every 3 seconds      also tells of a process that is frozen, and serves alone behind poolers
//
// A worker that lost its lock but is alive has GRACE_SECONDS to report that. A worker that was taken for dead may only have
// been slow: the attempt token of a request prevents its commits, and it aborts its work as soon as it knows.
import { z } from 'zod'
import { nothing, sql, type Tx, transact } from '../server/db/pool.ts'
import { WORKER_LOCKS } from '../server/db/session-lock.ts'
import { idsOf, type Work } from './context.ts'

/** Seconds between beats. A frozen worker's jobs run again at most STALE_SECONDS after its last beat, and a second more. */
export const BEAT_SECONDS = 3
/** Seconds without a beat after which other workers free a pool's jobs. ALIVE_SECONDS of assessors.ts is longer. */
export const STALE_SECONDS = 12
/**
 * Seconds from the detection of a lost lock to the rescue. In this time a living worker renews its lock, or reports
 * that it is alive.
 */
export const GRACE_SECONDS = 1.5
/**
 * Milliseconds between two checks for lost locks of other workers; every `beatsEvery`-th check also looks for old
 * beats.
 */
export const WATCH = { ms: 250, beatsEvery: 4 }
/** Key of the advisory lock by which one worker at a time rescues. */
const RESCUE_LOCK = 8_402_002

/**
 * Writes that the pool is alive. Answers whether its row was missing, because it is new or was taken for dead.
 * @param lockKey see `lock_key` in sql/0022_rescue.sql; null: only the beat counts
 */
export async function beat(
  { db, methodology, assessor, id }: Work,
  poolId: string,
  lockKey: number | null = null,
): Promise<boolean> {
  const pausedUntil = assessor.pausedUntil?.toISOString() ?? null
  const problem = assessor.problem ?? null
  return db.oneFirst(sql.type(z.object({ unknown: z.boolean() }))`
    insert into worker_beats (pool_id, methodology, assessor_paused_until, assessor_problem, lock_key, worker)
    values (${poolId}, ${methodology}, ${pausedUntil}::timestamptz, ${problem}, ${lockKey}, ${id.prefix})
    on conflict (pool_id) do update set beat_at = now(), assessor_paused_until = excluded.assessor_paused_until,
      assessor_problem = excluded.assessor_problem, lock_key = excluded.lock_key, lost_at = case when worker_beats.lock_key = excluded.lock_key then worker_beats.lost_at end
    returning xmax = 0 as unknown`)
}

/** The statement for a worker that has taken its lock again. If it changes no row, the worker was taken for dead. */
export const RENEW = 'update worker_beats set lock_key = $1, lost_at = null, beat_at = now() where pool_id = $2'

/** Records that the pool is alive without its lock. */
export async function renounceLock({ db }: Pick<Work, 'db'>, poolId: string): Promise<void> {
  await db.query(sql.type(nothing)`
    update worker_beats set lock_key = null, lost_at = null, beat_at = now() where pool_id = ${poolId}`)
}

/** Deletes the beat. It is the last step when a worker stops: from then on other workers free its jobs. */
export async function endBeat({ db }: Work, poolId: string): Promise<void> {
  await db.query(sql.type(nothing)`delete from worker_beats where pool_id = ${poolId}`)
}

/**
 * Whether the lock of a pool is free. The statement takes the lock and releases it at once; the pool takes a new key if it
 * needs one. A restart of the database ends every lock, so a lock counts again when its pool has written a beat after the
 * restart.
 */
const isFree = sql.fragment`
  lock_key is not null and pg_try_advisory_xact_lock_shared(${WORKER_LOCKS}, lock_key)
  and beat_at > pg_postmaster_start_time()`

/** Whether any pool has lost its lock, so that its row must be updated or its jobs rescued. One small query. */
export function seesLostLock({ db }: Pick<Work, 'db'>): Promise<boolean> {
  return db.exists(sql.prepared('find_lost_locks', z.object({ lost: z.number() }))`
    select 1 lost from worker_beats
    where (lost_at is null or lost_at < now() - ${GRACE_SECONDS} * interval '1 second') and ${isFree}`)
}

interface Dead {
  pool_id: string
  worker: string | null
}

/**
 * Frees what dead pools held, and answers those pools: pools that lost their lock and did not report that they are alive,
 * and pools without a recent beat. The check of the beat ignores jobs that began just now (`locked_at`).
 */
export async function rescue(work: RescueTools, staleSeconds = STALE_SECONDS): Promise<string[]> {
  const { db, log, metrics } = work
  const { dead, origins } = await transact(db, async (tx) => {
    const mine = await tx.oneFirst(sql.type(z.object({ locked: z.boolean() }))`
      select pg_try_advisory_xact_lock(${RESCUE_LOCK}) locked`)
    if (!mine) return { dead: [], origins: [] }
    const dead = [...(await buryLost(tx)), ...(await findSilent(tx, staleSeconds))]
    const origins = dead.length > 0 ? await free(tx, dead) : []
    await tx.query(sql.type(nothing)`
      delete from worker_beats where beat_at < now() - ${staleSeconds * 4} * interval '1 second'`)
    return { dead, origins }
  })
  if (dead.length === 0) return []
  const pools = dead.map(({ pool_id }) => pool_id)
  log.warn({ event: 'rescued', pools })
  metrics.rescued.inc(pools.length)
  for (const { worker } of dead) if (worker) await work.cache.release(idsOf(worker))
  for (const origin of origins) await work.origins.wake(origin)
  return pools
}

type RescueTools = Pick<Work, 'db' | 'log' | 'metrics' | 'cache' | 'origins'>

const deadRow = z.object({ pool_id: z.string(), worker: z.string().nullable() })

/** Deletes the pools whose grace is over, and marks other pools that have lost their lock. */
async function buryLost(tx: Tx): Promise<readonly Dead[]> {
  // A pool that renews its lock meanwhile changes its row, and Postgres then checks the condition again on the new row.
  const dead = await tx.any(sql.type(deadRow)`
    delete from worker_beats where lost_at < now() - ${GRACE_SECONDS} * interval '1 second' and ${isFree}
    returning pool_id, worker`)
  await tx.query(sql.type(nothing)`update worker_beats set lost_at = now() where lost_at is null and ${isFree}`)
  return dead
}

function findSilent(tx: Tx, staleSeconds: number): Promise<readonly Dead[]> {
  return tx.any(sql.type(deadRow)`
    select distinct j.locked_by pool_id, b.worker
    from graphile_worker.jobs j left join worker_beats b on b.pool_id = j.locked_by
    where j.locked_by is not null
      and j.locked_at < now() - ${staleSeconds} * interval '1 second'
      and (b.pool_id is null or b.beat_at < now() - ${staleSeconds} * interval '1 second')`)
}

/** Frees jobs, slow fetches and visits. Answers the origins where a turn became free. */
async function free(tx: Tx, dead: readonly Dead[]): Promise<readonly string[]> {
  const pools = dead.map(({ pool_id }) => pool_id)
  // A worker that is alive after all learns from its missing row that it was taken for dead.
  await tx.query(sql.type(nothing)`delete from worker_beats where pool_id = any(${sql.array(pools, 'text')})`)
  await tx.query(sql.type(z.object({}).loose())`
    select graphile_worker.force_unlock_workers(${sql.array(pools, 'text')})`)
  const origins = new Set<string>()
  for (const { worker } of dead) {
    if (!worker) continue
    const { from, to } = idsOf(worker)
    // The job of a slow fetch is due later and not locked. A request that waits for something continues to wait.
    await tx.query(sql.type(z.object({}).loose())`
      select count(*) from graphile_worker.reschedule_jobs(array(
        select j.id from graphile_worker.jobs j join (
          select 'verify:' || id as key from verification_requests
          where state in ('accepted', 'observed', 'assessed', 'settling', 'settled')
            and attempt between ${from} and ${to} and waiting is null
        ) held on held.key = j.key
        where j.locked_at is null and j.run_at > now()), run_at => now())`)
    for (const origin of await tx.anyFirst(sql.type(z.object({ origin: z.string() }))`
      delete from origin_visits where id between ${from} and ${to} returning origin`))
      origins.add(origin)
  }
  // The channel on which workers are notified of new jobs.
  await tx.query(sql.type(z.object({}).loose())`
    select pg_notify('jobs:insert', json_build_object('r', random(), 'count', -1)::text)`)
  return [...origins]
}
