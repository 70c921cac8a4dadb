// Dead jobs: those that used up their attempts, which the queue keeps and never runs again.
import { z } from 'zod'
import { revive } from '../db/jobs.ts'
import { type Database, sql, transact } from '../db/pool.ts'

const deadJob = z.object({
  id: z.string(),
  task: z.string(),
  key: z.string().nullable(),
  attempts: z.number(),
  created_at: z.date(),
  updated_at: z.date(),
  last_error: z.string().nullable(),
})
export type DeadJob = z.output<typeof deadJob>

/** The longest dead first. */
export function listDeadJobs(db: Database, limit: number): Promise<readonly DeadJob[]> {
  return db.any(sql.type(deadJob)`
    select id::text, task_identifier task, key, attempts, created_at, updated_at, last_error
    from graphile_worker.jobs where locked_at is null and attempts >= max_attempts
    order by updated_at, id limit ${limit}`)
}

/** Lets dead jobs run again, with all their attempts. @param id one of them; null for all. Returns how many there were. */
export function redrive(db: Database, id: string | null): Promise<number> {
  return transact(db, (tx) => revive(tx, id))
}
