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
import type { Lane } from '../../server/threads/lanes.ts'

export interface Line {
  /** The origin, or `url:` and the digest of one URL. */
  name: string
  /** Null: the line has no turns, and all of its jobs are woken. */
  turns: {
    /** At the same time. */
    all: number
    /** At the same time for work that no purchase pays for. */
    free: number
    /** A visit that has lasted longer has given its turn up. */
    longSeconds: number
  } | null
  /** Seconds for which a turn is kept for a woken job. */
  keep: number
}

/**
 * Puts a job into a line, behind those that arrived before it; a job that the origin refused goes behind jobs that were not
 * tried yet.
 * @param since when the request or check of the job arrived
 */
export async function joinLine(
  tx: Tx,
  { line, tried, since, lane }: { line: string; tried: boolean; since: Date; lane?: Lane | undefined },
  job: JobSpec & { key: string },
): Promise<void> {
  const { key, runAt: _later, ...again } = job
  await tx.query(sql.type(nothing)`
    insert into origin_waits (job_key, origin, job, tried, since, payer, is_free)
    values (${key}, ${line}, ${JSON.stringify(again)}::json, ${tried}, ${since.toISOString()}::timestamptz,
            ${payerOf(lane)}, ${lane?.isFree === true})
    on conflict (job_key) do update set origin = excluded.origin, job = excluded.job,
      tried = excluded.tried or (origin_waits.tried and origin_waits.origin = excluded.origin)`)
}

/** A payer and an account may have the same name. */
export const payerOf = (lane: Lane | undefined): string | null =>
  lane ? `${lane.isFree ? 'account' : 'payer'}:${lane.payer}` : null

const stateRow = z.object({ blocked_until: z.date().nullable(), quick: z.int(), long: z.int(), free: z.int() })
const waitRow = z.object({
  job_key: z.string(),
  job: z.looseObject({}),
  payer: z.string().nullable(),
  is_free: z.boolean(),
})

/**
 * Gives the free turns of a line to its first jobs. While the origin is blocked, one job of the queue is scheduled to do
 * this when the block ends.
 */
export async function wakeLine(tx: Tx, line: Line): Promise<void> {
  const state = await tx.maybeOne(sql.type(stateRow)`
    select case when blocked_until > now() then blocked_until end blocked_until, quick, long, free
    from origins o, count_origin_visits(o.origin, ${line.turns?.longSeconds ?? 0}::float8)
    where origin = ${line.name} for update of o`)
  if (state?.blocked_until)
    return enqueue(tx, [
      {
        name: 'wake_origin',
        payload: { line: line.name },
        key: `origin:${createHash('sha256').update(line.name).digest('base64url')}`,
        runAt: state.blocked_until,
      },
    ])
  const woken = line.turns
    ? await takeNext(tx, line.name, line.turns, state ?? { quick: 0, long: 0, free: 0 })
    : await tx.any(sql.type(waitRow)`
        delete from origin_waits where job_key in (
          select job_key from origin_waits where origin = ${line.name} order by tried, since, job_key limit ${MAX_WOKEN} for update)
        returning job_key, job, payer, is_free`)
  if (woken.length === 0) return
  if (line.keep > 0)
    await tx.query(sql.type(nothing)`
      insert into origin_visits (id, origin, until, job_key, payer, is_free)
      select gen_random_uuid(), ${line.name}, now() + ${line.keep} * interval '1 second', job_key, payer, is_free
      from unnest(${column(woken, 'text', (row) => row.job_key)}, ${column(woken, 'text', (row) => row.payer)},
                  ${column(woken, 'bool', (row) => row.is_free)}) as t (job_key, payer, is_free)`)
  await enqueue(
    tx,
    woken.map(({ job_key, job }) => ({ ...(job as unknown as JobSpec<JobName>), key: job_key })),
  )
}

/** Each earlier job of one payer, in the line or at the origin, delays a job by so many seconds. */
const PAYER_SECONDS = 2

/**
 * Takes the first jobs that may have a turn out of the line. The row of the origin is locked. Where so many visits are long that no turn
 * is left, the turns of those that are not long go to paid work of payers who have no visit there: so no payer's slow pages close a host
 * to others.
 */
async function takeNext(
  tx: Tx,
  name: string,
  turns: NonNullable<Line['turns']>,
  visits: Pick<z.output<typeof stateRow>, 'quick' | 'long' | 'free'>,
): Promise<readonly z.output<typeof waitRow>[]> {
  const notLong = turns.all - visits.quick
  const left = notLong - Math.max(0, visits.long - turns.all)
  const isCrowded = left <= 0
  const most = Math.min(isCrowded ? notLong : left, MAX_WOKEN)
  if (most <= 0) return []
  return tx.any(sql.type(waitRow)`
    with held as (
      select payer, count(*) n from origin_visits where origin = ${name} and until > now() group by payer
    ), ranked as (
      select w.job_key, w.tried, w.since, w.is_free,
             coalesce(h.n, 0) + row_number() over (partition by coalesce(w.payer, w.job_key) order by w.tried, w.since, w.job_key) nth
      from origin_waits w left join held h on h.payer = w.payer
      where w.origin = ${name}
    ), allowed as (
      select job_key, tried, since, is_free, place_in_line(since, is_free) + (nth - 1) * ${PAYER_SECONDS} * interval '1 second' place,
             row_number() over (partition by is_free order by tried, since, job_key) nth_of_kind
      from ranked where nth <= ${turns.all} and not (${isCrowded} and (is_free or nth > 1))
    )
    delete from origin_waits where job_key in (
      select job_key from allowed where not is_free or nth_of_kind <= ${turns.free - visits.free}
      order by tried, place, job_key limit ${most})
    returning job_key, job, payer, is_free`)
}

const MAX_WOKEN = 1000
