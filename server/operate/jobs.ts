// The jobs of the queue: how many there are, and the dead ones, which used up their attempts and never run again.
import { z } from 'zod'
import { revive } from '../db/jobs.ts'
import { type Database, sql, type Tx, transact } from '../db/pool.ts'

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

/** `dead`: used up its attempts, and never runs again by itself. `oldest_seconds`: of the job that is due for longest. */
export function countJobs(db: Database | Tx) {
  return db.one(sql.type(
    z.object({
      due: z.number(),
      running: z.number(),
      later: z.number(),
      dead: z.number(),
      oldest_seconds: z.number(),
    }),
  )`
    select count(*) filter (where locked_at is null and attempts < max_attempts and run_at <= now()) due,
           count(*) filter (where locked_at is not null) running,
           count(*) filter (where locked_at is null and attempts < max_attempts and run_at > now()) later,
           count(*) filter (where locked_at is null and attempts >= max_attempts) dead,
           round(coalesce(extract(epoch from now() - min(run_at) filter (
             where locked_at is null and attempts < max_attempts and run_at <= now())), 0))::float8 oldest_seconds
    from graphile_worker.jobs`)
}
