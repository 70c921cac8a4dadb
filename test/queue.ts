// The queue, run by a test: one pass does every job, as if the waiting time of all of them had passed.
import { Logger, runOnce } from 'graphile-worker'
import { BOUNDS, openDeliveryLoop } from '../server/alerts/delivery-loop.ts'
import { endQueuePool, openQueuePool } from '../server/db/queue.ts'
import type { Work } from '../workers/context.ts'
import { buildTasks } from '../workers/tasks.ts'
import { until } from './until.ts'

export interface Queue extends AsyncDisposable {
  /**
   * Answers how many jobs there were. One that fails, or puts itself off, waits for the next pass. Alerts that are due are
   * sent, whether a job woke the delivery loop or not; retries of alerts come when the outbox says so.
   */
  pass(): Promise<number>
  /** Does the jobs that are due, and no others. */
  work(): Promise<void>
  /** Makes passes until no job is left that would be tried again. */
  drain(): Promise<void>
}

const CONCURRENCY = 4
/** On a machine under load no receiver may count as slow. */
export const PATIENT = { ...BOUNDS, slowMs: 60_000 }

export function openQueue(work: Work): Queue {
  const pool = openQueuePool(work.databaseUrl, CONCURRENCY + 2, () => {})
  const deliveries = openDeliveryLoop(work, PATIENT)
  const taskList = buildTasks(work, deliveries)
  const logger = new Logger(() => () => {})
  const runDue = async () => {
    await runOnce({ pgPool: pool, taskList, logger, concurrency: CONCURRENCY, noHandleSignals: true })
    // graphile-worker does not wait until the end of each job is stored, and until then a failed job looks as if it were
    // running.
    await until(() => pool.waitingCount === 0 && pool.idleCount === pool.totalCount)
  }
  const pass = async () => {
    const { rowCount } = await pool.query(`
      update graphile_worker._private_jobs set run_at = now() where locked_at is null and attempts < max_attempts`)
    if (rowCount) await runDue()
    deliveries.wake()
    await deliveries.idle()
    return rowCount ?? 0
  }
  return {
    pass,
    work: runDue,
    async drain() {
      while (await pass());
    },
    async [Symbol.asyncDispose]() {
      await deliveries[Symbol.asyncDispose]()
      await endQueuePool(pool)
    },
  }
}
