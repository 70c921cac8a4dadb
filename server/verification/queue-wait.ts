// How long a new request would wait for a worker. While that is too long no caller is asked to pay: work that was accepted ends
// within a bounded time, and the others know at once when to try again.
import { z } from 'zod'
import { type Database, sql } from '../db/pool.ts'
import { singleFlight } from '../db/single-flight.ts'
import { AppError, sayUncharged } from '../errors.ts'

export interface QueueWait {
  /** Throws `capacity_exceeded`, with Retry-After, while a newcomer's request would wait for longer than the limit. */
  requireShort(): Promise<void>
}

export interface QueueWaitOptions {
  /** Called at each reading. */
  db: () => Database
  /** MAX_QUEUE_SECONDS; 0: no limit. */
  maxSeconds: number
  /** Whether a worker is alive: without one what is paid waits, and nothing is refused. */
  hasWorker: () => Promise<boolean>
  /** Milliseconds for which a reading is reused. */
  keepMs?: number
  /** Milliseconds of a monotonic clock. */
  now?: () => number
}

export function buildQueueWait({ db, maxSeconds, hasWorker, keepMs = 1000, now }: QueueWaitOptions): QueueWait {
  const read = singleFlight(() => readWait(db()), keepMs, now)
  return {
    async requireShort() {
      if (maxSeconds === 0) return
      const seconds = await read()
      if (seconds <= maxSeconds || !(await hasWorker())) return
      throw new AppError(
        'capacity_exceeded',
        sayUncharged(`Too much work is waiting: a new verification would wait for ${Math.ceil(seconds)} s or longer.`),
        { headers: { 'retry-after': String(Math.min(MAX_RETRY_AFTER, Math.ceil(seconds))) } },
      )
    },
  }
}

/** Seconds; while all are refused, the queue may be done sooner than it has grown. */
const MAX_RETRY_AFTER = 60

const waitRow = z.object({ seconds: z.number() })

/**
 * Seconds for which the oldest of the jobs waits that are taken first: those of callers with nothing else in flight. The others
 * stand behind them, so a caller with many requests does not make the service refuse anyone else.
 */
async function readWait(db: Database): Promise<number> {
  const { seconds } = await db.one(sql.prepared('find_queue_wait', waitRow)`
    select coalesce(extract(epoch from now() - min(run_at)), 0)::float8 seconds
    from graphile_worker.jobs
    where task_identifier = 'verify_request' and priority = 0 and locked_at is null and attempts < max_attempts and run_at <= now()`)
  return seconds
}
