// The line of jobs that wait for a turn at one origin, or for one URL. A turn that becomes free is kept for the first
// job of the line, and that job is put back into the queue. Jobs that the origin has refused go behind jobs that were not
// tried yet.
//
// Every job in a line is also in the queue with a later time. So a lost row, a lost wake-up or a killed worker delays a job
// and never loses it.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { enqueue, type JobName, type JobSpec } from '../../server/db/jobs.ts'
import { column, nothing, sql, type Tx } from '../../server/db/pool.ts'

export interface Line {
  /** The origin, or `url:` and the digest of one URL. */
  name: string
  /** Turns at the same time. */
  turns: number
  /** Seconds for which a turn is kept for a woken job; 0: the line has no turns, and all of its jobs are woken. */
  keep: number
}

/**
 * Puts a job into a line, behind those that arrived before it; a job that the origin refused goes behind jobs that were not
 * tried yet.
 * @param since when the request or check of the job arrived
 */
export async function joinLine(
  tx: Tx,
  { line, tried, since }: { line: string; tried: boolean; since: Date },
  job: JobSpec & { key: string },
): Promise<void> {
  const { key, runAt: _later, ...again } = job
  await tx.query(sql.type(nothing)`
    insert into origin_waits (job_key, origin, job, tried, since)
    values (${key}, ${line}, ${JSON.stringify(again)}::json, ${tried}, ${since.toISOString()}::timestamptz)
    on conflict (job_key) do update set origin = excluded.origin, job = excluded.job,
      tried = excluded.tried or (origin_waits.tried and origin_waits.origin = excluded.origin)`)
}

const stateRow = z.object({ blocked_until: z.date().nullable(), busy: z.number() })
const waitRow = z.object({ job_key: z.string(), job: z.looseObject({}) })

/**
 * Gives the free turns of a line to its first jobs. While the origin is blocked, one job of the queue is scheduled to do
 * this when the block ends.
 */
export async function wakeLine(tx: Tx, line: Line): Promise<void> {
  const state = await tx.maybeOne(sql.type(stateRow)`
    select case when blocked_until > now() then blocked_until end blocked_until,
           (select count(*) from origin_visits v where v.origin = o.origin and until > now()) busy
    from origins o where origin = ${line.name} for update of o`)
  if (state?.blocked_until)
    return enqueue(tx, [
      {
        name: 'wake_origin',
        payload: { line: line.name },
        key: `origin:${createHash('sha256').update(line.name).digest('base64url')}`,
        runAt: state.blocked_until,
      },
    ])
  const free = Math.min(line.turns - (state?.busy ?? 0), MAX_WOKEN)
  if (free <= 0) return
  const woken = await tx.any(sql.type(waitRow)`
    delete from origin_waits where job_key in (
      select job_key from origin_waits where origin = ${line.name} order by tried, since, job_key limit ${free} for update)
    returning job_key, job`)
  if (woken.length === 0) return
  if (line.keep > 0)
    await tx.query(sql.type(nothing)`
      insert into origin_visits (id, origin, until, job_key)
      select gen_random_uuid(), ${line.name}, now() + ${line.keep} * interval '1 second', job_key
      from unnest(${column(woken, 'text', (row) => row.job_key)}) as t (job_key)`)
  await enqueue(
    tx,
    woken.map(({ job_key, job }) => ({ ...(job as unknown as JobSpec<JobName>), key: job_key })),
  )
}

const MAX_WOKEN = 1000
