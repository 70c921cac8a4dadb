// Requests as an operator sees them: the list of the command line; and for the dashboard too, one request with its job and payments,
// a new job, and a cancellation. The secrets of a request (its key, its token, its payment authorization) are never read.
import { z } from 'zod'
import { enqueue, removeJob } from '../db/jobs.ts'
import { type Database, sql, type Tx, transact } from '../db/pool.ts'
import { type LedgerEntry, listEntries } from '../payments/ledger.ts'
import { cancelByOperator, isWorking, type State, states } from '../verification/request.ts'
import { jobKeyOf, jobOf } from '../verification/stages/job.ts'
import { attestationOf, sourceHost } from './stored-json.ts'

export interface RequestFilter {
  state?: State
  /** Error code of failed requests. */
  code?: string
  /** Host of the source URL. */
  host?: string
  /** Only requests that must have a job and have been in their state for so many seconds. */
  stuckSeconds?: number
  limit: number
}

const summary = z.object({
  id: z.string(),
  state: z.enum(states),
  code: z.string().nullable(),
  host: z.string().nullable(),
  created_at: z.date(),
  changed_at: z.date(),
  /** Seconds in its state. */
  seconds: z.number(),
  job: z.enum(['none', 'waiting', 'running', 'dead']),
})
export type RequestSummary = z.output<typeof summary>

const host = sourceHost(sql.fragment`r.body`)

const summaryColumns = sql.fragment`
  r.id, r.state, r.error ->> 'code' code, ${host} host, r.created_at, r.changed_at,
  round(extract(epoch from now() - r.changed_at))::float8 seconds,
  case when j.id is null then 'none' when j.locked_at is not null then 'running'
       when j.attempts >= j.max_attempts then 'dead' else 'waiting' end job`

/** The job of a request. */
const joined = sql.fragment`verification_requests r left join graphile_worker.jobs j on j.key = 'verify:' || r.id`

/** Requests that match; those that changed last come first, stuck ones longest first. */
export function listRequests(db: Database, filter: RequestFilter): Promise<readonly RequestSummary[]> {
  const { state = null, code = null, host: wanted = null, stuckSeconds = null, limit } = filter
  if (stuckSeconds !== null)
    return db.any(sql.type(summary)`
      select ${summaryColumns} from ${joined}
      where r.state in ('accepted', 'observed', 'assessed', 'settling', 'settled')
        and r.changed_at <= now() - ${stuckSeconds} * interval '1 second'
        and (${state}::text is null or r.state = ${state}) and (${wanted}::text is null or ${host} = ${wanted})
      order by r.changed_at limit ${limit}`)
  return db.any(sql.type(summary)`
    select ${summaryColumns} from ${joined}
    where (${state}::text is null or r.state = ${state}) and (${code}::text is null or r.error ->> 'code' = ${code})
      and (${wanted}::text is null or ${host} = ${wanted})
    order by r.changed_at desc limit ${limit}`)
}

const jobRow = z.object({
  id: z.string(),
  attempts: z.number(),
  max_attempts: z.number(),
  run_at: z.date(),
  locked_by: z.string().nullable(),
  locked_at: z.date().nullable(),
  last_error: z.string().nullable(),
})

/** A state that the request entered. `by` names the process, as HOST:PID. */
const moment = z.object({ state: z.enum(states), at: z.iso.datetime({ offset: true }), by: z.string() })

const detail = summary.extend({
  body: z.unknown(),
  error: z.unknown(),
  waiting: z.unknown(),
  quote_expires_at: z.date(),
  accepted_at: z.date().nullable(),
  priority: z.number(),
  receipt_serial: z.number().nullable(),
  history: z.array(moment).nullable(),
})

export type RequestDetail = z.output<typeof detail> & {
  job_row: z.output<typeof jobRow> | null
  payments: readonly LedgerEntry[]
}

/** One request with its job and the entries of the ledger; null if there is none. */
export function showRequest(db: Database, id: string): Promise<RequestDetail | null> {
  return transact(
    db,
    async (tx) => {
      const row = await tx.maybeOne(sql.type(detail)`
        select ${summaryColumns}, r.body, r.error, r.waiting, r.quote_expires_at, r.accepted_at, r.priority, r.history,
               case when r.result is not null
                    then (${attestationOf(sql.fragment`r.result`)} ->> 'serial')::bigint end receipt_serial
        from ${joined} where r.id = ${id}`)
      if (!row) return null
      const job = await tx.maybeOne(sql.type(jobRow)`
        select id::text, attempts, max_attempts, run_at, locked_by, locked_at, last_error
        from graphile_worker.jobs where key = ${jobKeyOf(id)}`)
      return { ...row, job_row: job, payments: await listEntries(tx, id) }
    },
    { readOnly: true },
  )
}

export type RetryOutcome = 'retried' | 'not_found' | 'running' | 'not_working'

/**
 * Gives a request in progress a new job, which runs at once. A failed request is not in progress: its payment is free, and
 * only its caller can pay again.
 */
export function retryRequest(db: Database, id: string): Promise<RetryOutcome> {
  return transact(db, async (tx) => {
    const row = await lockRequest(tx, id)
    if (!row) return 'not_found'
    if (!isWorking(row.state)) return 'not_working'
    const job = await tx.maybeOne(sql.type(z.object({ id: z.string(), running: z.boolean() }))`
      select id::text, locked_at is not null running from graphile_worker.jobs where key = ${jobKeyOf(id)}`)
    if (job?.running) return 'running'
    // The queue would add to a job that used up its attempts, and never run it.
    if (job) await removeJob(tx, job.id)
    await enqueue(tx, [{ name: 'verify_request', payload: { request_id: id }, ...jobOf(row) }])
    return 'retried'
  })
}

/** Whether its payment may be charged: such a request is not cancelled. */
export function isChargeable(state: State): boolean {
  return state === 'settling' || state === 'settled'
}

export type CancelOutcome = 'cancelled' | 'not_found' | 'chargeable' | 'not_working'

/**
 * Fails a request that cannot have been charged, as `cancelled`, and frees its payment. From `settling` on its payment may
 * be charged already, so it is not changed.
 * @param maxInFlightPerPayer MAX_IN_FLIGHT_PER_PAYER
 */
export function cancelAsOperator(db: Database, id: string, maxInFlightPerPayer: number): Promise<CancelOutcome> {
  return transact(db, async (tx) => {
    const row = await lockRequest(tx, id)
    if (!row) return 'not_found'
    if (isChargeable(row.state)) return 'chargeable'
    return (await cancelByOperator(tx, id, maxInFlightPerPayer)) ? 'cancelled' : 'not_working'
  })
}

function lockRequest(tx: Tx, id: string) {
  return tx.maybeOne(sql.type(z.object({ id: z.string(), state: z.enum(states), priority: z.number() }))`
    select id, state, priority from verification_requests where id = ${id} for update`)
}
