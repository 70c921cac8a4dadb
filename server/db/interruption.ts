// What becomes of a job whose database was away while it ran: it runs again where it is, as the same attempt.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Job } from 'graphile-worker'
import { z } from 'zod'
import { isConnectionLoss } from './connection-loss.ts'
import { type Database, sql } from './pool.ts'

/** Milliseconds before the first repetition. Each later pause is twice as long, so that a slow database does not make a job fetch its page or ask the model every second. */
const FIRST_PAUSE_MS = 500

/** The row of a job as the queue gives it to a worker. */
export type HeldJob = Pick<Job, 'id' | 'locked_by' | 'attempts'>

/**
 * Runs a job, and again as often as the loss of the connection interrupts it. Throws the error of the loss when the signal aborts, when
 * the job is no longer held because others took this worker for dead, and when the job is older than ten minutes: then the attempt
 * counts, so that a job that itself breaks the connection is not repeated for ever.
 * @param pause between two runs, and between two questions to a database that is away; tests replace it
 */
export async function throughOutages(
  run: () => Promise<void>,
  { db, job, signal, pause = sleepFor }: { db: Database; job: HeldJob; signal: AbortSignal; pause?: typeof sleepFor },
): Promise<void> {
  for (let ms = FIRST_PAUSE_MS; ; ms *= 2) {
    try {
      return await run()
    } catch (error) {
      if (!isConnectionLoss(error)) throw error
      await pause(ms, signal)
      if (signal.aborted || !(await mayRunAgain(error))) throw error
    }
  }

  /** Waits until the database answers. */
  async function mayRunAgain(lost: unknown): Promise<boolean> {
    while (!signal.aborted) {
      try {
        return await isHeld(db, job)
      } catch (error) {
        if (!isConnectionLoss(error)) throw lost
        await pause(FIRST_PAUSE_MS, signal)
      }
    }
    return false
  }
}

/** Whether the attempt still has the job, which is not older than ten minutes. */
async function isHeld(db: Database, { id, locked_by, attempts }: HeldJob): Promise<boolean> {
  return db.exists(sql.type(z.unknown())`
    select from graphile_worker.jobs
    where id = ${id}::bigint and locked_by = ${locked_by} and attempts = ${attempts} and created_at > now() - interval '10 minutes'`)
}

/** Resolves early when the signal aborts. */
async function sleepFor(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {})
}
