// Every job with its payload; workers/tasks.ts runs each of them. Only this file writes to the queue, and only inside a
// transaction: a job is stored together with the rows it is about, or not at all.
import { z } from 'zod'
import { sql, type Tx } from './pool.ts'

export const jobs = {
  /** Takes one verification from its present state to its end. */
  verify_request: z.object({ request_id: z.uuid() }),
  /** Gives an origin's free slots to the jobs that wait for it. */
  wake_origin: z.object({ line: z.string() }),
  /** Deletes expired rows, such as results past retention and unpaid quotes. */
  prune_requests: z.object({}),
  /** Stores the hashes at half height of the tiles of the chain that have become full. */
  fill_tiles: z.object({}),
  /** Finds requests whose job is missing or exhausted. */
  sweep_requests: z.object({}),
  /** Wakes the delivery of one webhook's alerts. The outbox holds what is due. */
  deliver_alerts: z.object({ webhook_id: z.uuid() }),
  /** Checks whether a watched quote is still on its page. */
  check_citation: z.object({ watch_id: z.uuid() }),
  /** Enqueues the checks of citation watches that are due. */
  wake_citations: z.object({}),
  /** Looks for the quotes of one quote check in its page. */
  check_quotes: z.object({ check_id: z.uuid() }),
  /** Reads and judges the page of one free look. */
  take_look: z.object({ look_id: z.uuid() }),
  /** Compares every subscription with Stripe. */
  reconcile_billing: z.object({}),
} as const

export type JobName = keyof typeof jobs
export type Payload<N extends JobName> = z.output<(typeof jobs)[N]>

export interface JobSpec<N extends JobName = JobName> {
  name: N
  payload: Payload<N>
  /** Replaces a waiting job with the same key. Keys are shared by all job names. */
  key?: string
  runAt?: Date
  maxAttempts?: number
  /** Lower ones run first; the default is 0. */
  priority?: number
}

/** Stores jobs in the caller's transaction. The keys of one call must differ. */
export async function enqueue<N extends JobName>(tx: Tx, specs: readonly JobSpec<N>[]): Promise<void> {
  if (specs.length === 0) return
  const rows = specs.map((spec) => ({
    identifier: spec.name,
    payload: jobs[spec.name].parse(spec.payload),
    job_key: spec.key,
    run_at: spec.runAt?.toISOString(),
    max_attempts: spec.maxAttempts,
    priority: spec.priority,
  }))
  await tx.query(sql.type(z.object({ added: z.number() }))`
    select count(*) added from graphile_worker.add_jobs(
      array(select json_populate_recordset(null::graphile_worker.job_spec, ${JSON.stringify(rows)}::json)))`)
}

type Fragment = ReturnType<typeof sql.fragment>

/**
 * A query for a `with` clause: stores a job of this name for each row of a relation, in the same round trip. It yields one row.
 * @param specs name of a relation with the columns `payload` (json, as `jobs` has it), `key`, `max_attempts` and `priority`
 */
export function enqueueEach(name: JobName, specs: Fragment): Fragment {
  return sql.fragment`
    select count(*) jobs from graphile_worker.add_jobs(array(
      select row(${name}, payload, null, null, max_attempts, key, priority, null)::graphile_worker.job_spec from ${specs}))`
}

/**
 * Lets jobs that used up their attempts run again, now and with all their attempts.
 * @param id of one such job; null for all
 * @returns how many there were
 */
export async function revive(tx: Tx, id: string | null): Promise<number> {
  return tx.oneFirst(sql.type(z.object({ revived: z.number() }))`
    select count(*) revived from graphile_worker.reschedule_jobs(
      array(select id from graphile_worker.jobs
            where attempts >= max_attempts and locked_at is null and (${id}::bigint is null or id = ${id}::bigint)),
      run_at => now(), attempts => 0)`)
}

/** Deletes one job of the queue that is not running. */
export async function removeJob(tx: Tx, id: string): Promise<void> {
  await tx.query(sql.type(z.object({ removed: z.number() }))`
    select count(*) removed from graphile_worker.complete_jobs(array[${id}::bigint])`)
}

/** Deletes jobs without attempts left: the queue keeps them, and would not replace them by their key. */
export async function forgetExhaustedJobs(tx: Tx): Promise<void> {
  await tx.query(sql.type(z.object({ forgotten: z.number() }))`
    select count(*) forgotten from graphile_worker.complete_jobs(
      array(select id from graphile_worker.jobs where attempts >= max_attempts and locked_at is null))`)
}
