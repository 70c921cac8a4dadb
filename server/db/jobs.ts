// Every job there is, with the payload it carries; workers/tasks.ts must run each of them. Only this file writes to the
// queue, and only inside a transaction: a job is stored together with the rows it is about, or not at all.
import { z } from 'zod'
import { sql, type Tx } from './pool.ts'

export const jobs = {
  /** Takes one verification from wherever it stands to its end. */
  verify_request: z.object({ request_id: z.uuid() }),
  /** Gives the free turns of an origin's line to the jobs that wait in it. */
  wake_origin: z.object({ line: z.string() }),
  /** Deletes what is over: results past retention, unpaid quotes, and more of the kind. */
  prune_requests: z.object({}),
  /** Finds requests whose job is gone or exhausted. */
  sweep_requests: z.object({}),
  /** Sends what waits at one webhook, in order. The outbox says what is due; the job is only what wakes it. */
  deliver_alerts: z.object({ webhook_id: z.uuid() }),
  /** Looks whether a watched quote still stands on its page. */
  check_citation: z.object({ watch_id: z.uuid() }),
  /** Gives the citation watches that are due their jobs. */
  wake_citations: z.object({}),
  /** Looks at every subscription at Stripe once more. */
  reconcile_billing: z.object({}),
} as const

export type JobName = keyof typeof jobs
export type Payload<N extends JobName> = z.output<(typeof jobs)[N]>

export interface JobSpec<N extends JobName = JobName> {
  name: N
  payload: Payload<N>
  /** A waiting job with the same key is replaced; unique over all job names. */
  key?: string
  runAt?: Date
  maxAttempts?: number
  /** Lower ones go first; 0 without. */
  priority?: number
}

/** Stores jobs in the caller's transaction. Specs of one call must differ in their keys. */
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
 * For a `with`: stores a job of this name for each row of a relation, without a round trip of its own. One row comes of it.
 * @param specs name of a relation with the columns `payload` (json, as `jobs` has it), `key`, `max_attempts` and `priority`
 */
export function enqueueEach(name: JobName, specs: Fragment): Fragment {
  return sql.fragment`
    select count(*) jobs from graphile_worker.add_jobs(array(
      select row(${name}, payload, null, null, max_attempts, key, priority, null)::graphile_worker.job_spec from ${specs}))`
}

/** Deletes jobs that are offered no more: the queue keeps them for ever, and would not replace them by their key. */
export async function forgetExhaustedJobs(tx: Tx): Promise<void> {
  await tx.query(sql.type(z.object({ forgotten: z.number() }))`
    select count(*) forgotten from graphile_worker.complete_jobs(
      array(select id from graphile_worker.jobs where attempts >= max_attempts and locked_at is null))`)
}
