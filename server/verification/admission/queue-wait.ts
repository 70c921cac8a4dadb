// Estimates how long a new request would wait for a worker. While that is too long, no caller is asked to pay. So accepted
// work ends within a bounded time, and other callers learn at once when to try again.
//
// The age of the oldest job is how long the jobs waited that are served now. A new request is behind all jobs that arrived
// since. If jobs arrive faster than the workers end them, it waits longer: the number of jobs ahead of it, divided by the
// rate at which the workers end requests.
import { z } from 'zod'
import { type Database, sql } from '../../db/pool.ts'
import { singleFlight } from '../../db/single-flight.ts'
import { AppError, sayUncharged } from '../../errors.ts'
import { MAX_RETRY_AFTER_SECONDS } from './in-flight-limits.ts'

export interface QueueWait {
  /**
   * Throws `capacity_exceeded`, with Retry-After, while the request of a caller with nothing in flight would wait
   * longer than the limit.
   */
  requireShort(): Promise<void>
  /** Seconds that the request of a caller with nothing in flight would wait for a worker. */
  forecast(): Promise<number>
}

export interface QueueWaitOptions {
  /** Called at each reading. */
  db: () => Database
  /** MAX_QUEUE_SECONDS; 0: no limit. */
  maxSeconds: number
  quoteTtlSeconds: number
  /** Whether a worker is alive. Without one, paid requests wait and nothing is refused. */
  hasWorker: () => Promise<boolean>
  /** Milliseconds for which a reading is reused. */
  keepMs?: number
  /** Milliseconds of a monotonic clock. */
  now?: () => number
}

export function buildQueueWait({
  db,
  maxSeconds,
  quoteTtlSeconds,
  hasWorker,
  keepMs = 1000,
  now = () => performance.now(),
}: QueueWaitOptions): QueueWait {
  /** Requests per second that the workers ended, at the latest readings. */
  let rates: { at: number; rate: number }[] = []
  const measure = async () => {
    const { oldest, ahead, quoted, ended } = await readQueue(db(), quoteTtlSeconds)
    if (oldest >= MIN_OLDEST_SECONDS && ended > 0)
      rates.push({ at: now(), rate: ended / Math.min(oldest, MAX_COUNTED_SECONDS) })
    rates = rates.filter(({ at }) => at > now() - RATE_MS)
    // A worker that restarts ends no requests for some seconds, but its jobs do not take longer than before.
    const rate = Math.max(0, ...rates.map((one) => one.rate))
    if (oldest < MIN_OLDEST_SECONDS || rate === 0) return oldest
    // Quotes cost nothing, so they count at most as much as paid requests.
    return Math.max(oldest, (ahead + Math.min(ahead, quoted)) / rate)
  }
  const forecast = singleFlight(measure, keepMs, now)
  return {
    forecast,
    async requireShort() {
      if (maxSeconds === 0) return
      const seconds = await forecast()
      if (seconds <= maxSeconds || !(await hasWorker())) return
      throw new AppError(
        'capacity_exceeded',
        sayUncharged(`Too much work is waiting: a new verification would wait for about ${Math.ceil(seconds)} s.`),
        { headers: { 'retry-after': String(Math.min(MAX_RETRY_AFTER_SECONDS, Math.ceil(seconds))) } },
      )
    },
  }
}

/**
 * The measured rate counts once the oldest job has waited for so many seconds. While a job waits, all workers are busy, but
 * workers that were idle before end nothing in their first moments.
 */
const MIN_OLDEST_SECONDS = 1
/** Seconds before now in which ended requests are counted at most. */
const MAX_COUNTED_SECONDS = 10
/** Milliseconds for which the best rate counts. */
const RATE_MS = 10_000

/** Quotes up to this age in seconds count: their callers are about to pay, and offers that were made are served. */
const ABOUT_TO_PAY_SECONDS = 5

const queueRow = z.object({ oldest: z.number(), ahead: z.number(), quoted: z.number(), ended: z.number() })

/**
 * All figures count the jobs that workers take first: those of callers with nothing else in flight. Other jobs come later,
 * so a caller with many requests does not make the service refuse anyone else. `oldest`: seconds for which the oldest of
 * these jobs has waited. `ahead`: how many of them wait, including jobs that workers have fetched and not begun, which is
 * half of what they hold (`localQueue` in workers/runner.ts). `quoted`: new quotes that are not paid yet. `ended`: requests
 * that ended meanwhile.
 */
function readQueue(db: Database, quoteTtlSeconds: number) {
  return db.one(sql.prepared('find_queue_wait', queueRow)`
    with queue as (
      select coalesce(extract(epoch from now() - min(run_at) filter (where locked_at is null)), 0)::float8 oldest,
             count(*) filter (where locked_at is null) + count(locked_at) / 2 ahead
      from graphile_worker.jobs
      where task_identifier = 'verify_request'
        and (locked_at is not null or priority = 0 and attempts < max_attempts and run_at <= now())
    )
    select oldest, ahead, (
      select count(*) from verification_requests
      where state = 'quoted' and body is not null
        and quote_expires_at > now() + ${quoteTtlSeconds - ABOUT_TO_PAY_SECONDS} * interval '1 second'
    ) quoted, (
      select count(*) from verification_requests
      where state in ('completed', 'failed') and body is not null
        and changed_at > now() - least(oldest, ${MAX_COUNTED_SECONDS}) * interval '1 second'
    ) ended
    from queue`)
}
