// Roll-ups: figures between two times, as a series of equal periods, and the available minutes of each day. They are read
// from the rows that minutes.ts writes, so they cover the last week, and the last 90 days.
import { z } from 'zod'
import { type Database, sql } from '../db/pool.ts'
import { type Counters, counters, differenceOf, findCounters, type Histogram, paymentsOf, timeOf } from './minutes.ts'

export interface Range {
  /** The first period begins at this minute. */
  from: Date
  /** No period begins at or after it. */
  to: Date
  /** Length of a period in minutes; default 1. */
  minutes?: number
}

/** Times in seconds, estimated within the bounds of a histogram. All are 0 where nothing was observed. */
export interface Latency {
  count: number
  mean: number
  p50: number
  p95: number
  p99: number
}

export interface Revenue {
  mode: string
  network: string
  /** Settled payments. */
  payments: number
  /** USDC; what offline mode simulates too. */
  usd: number
}

/** Calls to the assessing model, with tokens and cost. */
export interface ModelUse {
  /** Calls by outcome: `ok`, or why there was no answer. */
  calls: Record<string, number>
  /** By kind: input, output, cache_write, cache_read. */
  tokens: Record<string, number>
  /** The cost, for calls of processes that knew ANTHROPIC_PRICES. */
  usd: number
}

export const NO_MODEL_USE: ModelUse = { calls: {}, tokens: {}, usd: 0 }

/** One period. Counts are 0 where nothing was recorded. */
export interface Period {
  at: Date
  /** Minutes of it for which there is a row. 0: no process could reach the database, or the period is not over. */
  recorded: number
  /** Of those, the minutes in which every readiness probe succeeded. */
  well: number
  /** Payments that were bound to a request. */
  admitted: number
  /** Completed verifications by verdict. */
  completed: Record<string, number>
  /** Failed verifications by error code. */
  failed: Record<string, number>
  /** The most due jobs, and the longest time in seconds that one had been due, at the end of any of its minutes. */
  queue_depth: number
  oldest_seconds: number
  /** By stage: observe, assess, intend, settle, complete. */
  stages: Record<string, Latency>
  /** From a paid call to its 202. */
  admission: Latency
  /** From the acceptance of a payment to the result. */
  result: Latency
  /** Payments by outcome: settled, failed, unpaid. */
  payments: Record<string, number>
  revenue: Revenue[]
  /** Attempts to deliver an alert: delivered, retry, given_up, unwanted. */
  alerts: Record<string, number>
  model: ModelUse
}

const entries = z.array(
  z.object({
    outcome: z.string(),
    mode: z.string().nullable(),
    network: z.string(),
    count: z.number(),
    amount_atomic: z.string(),
  }),
)

const periodRow = z.object({
  at: z.date(),
  recorded: z.number(),
  well: z.number(),
  queue_depth: z.number(),
  oldest_seconds: z.number(),
  counters,
  payments: z.array(entries),
})
type PeriodRow = z.output<typeof periodRow>

/**
 * Every period from `from` until `to`, in order, those without a row included. A minute appears a few seconds after its end.
 * Choose `minutes` so that there are at most some hundred periods: 1 for an hour, 10 for a day, 60 for a week.
 */
export async function readPeriods(db: Database, { from, to, minutes = 1 }: Range): Promise<Period[]> {
  const start = new Date(Math.floor(from.getTime() / 60_000) * 60_000)
  const rows = await db.any(sql.type(periodRow)`
    with chosen as (
      select minute, well, queue_depth, oldest_seconds, payments,
             date_bin(${minutes} * interval '1 minute', minute, ${sql.timestamp(start)}) at from minute_figures
      where minute >= ${sql.timestamp(start)} and minute < ${sql.timestamp(to)}
    ), period as (
      select at, max(minute) last, count(*) recorded, count(*) filter (where well) well, max(queue_depth) queue_depth,
             max(oldest_seconds)::float8 oldest_seconds, jsonb_agg(coalesce(payments, ${paymentsOf(sql.fragment`minute`)})) payments
      from chosen group by at
    )
    select p.at, p.recorded, p.well, p.queue_depth, p.oldest_seconds, m.counters, p.payments
    from period p join minute_figures m on m.minute = p.last order by p.at`)
  const byTime = new Map(rows.map((row) => [row.at.getTime(), row]))
  // Before the first row of all, every counter was 0. The first that is left after pruning has nothing to be compared with.
  const first = await db.oneFirst(sql.type(z.object({ first: z.date().nullable() }))`
    select min(first_minute) first from day_figures`)
  const isFirst = first !== null && first >= start
  let earlier = isFirst ? undefined : ((await findCounters(db, start)) ?? rows[0]?.counters)
  const periods: Period[] = []
  for (let at = start.getTime(); at < to.getTime(); at += minutes * 60_000) {
    const row = byTime.get(at)
    periods.push(
      row
        ? periodOf(row, differenceOf(row.counters, comparable(earlier, row.counters)))
        : { ...NOTHING, at: new Date(at) },
    )
    earlier = row?.counters ?? earlier
  }
  return periods
}

/**
 * The earlier counters, for a difference. Counters that an earlier release did not keep are unknown, so their
 * difference is 0.
 */
export function comparable(earlier: Counters | undefined, now: Counters): Counters | undefined {
  return earlier && { ...earlier, model: earlier.model ?? now.model, watched: earlier.watched ?? now.watched }
}

function periodOf({ counters: _, payments, ...row }: PeriodRow, counted: Counters): Period {
  const { probes: __, watched: ___, stages, admission, result, model = NO_MODEL_USE, ...counts } = counted
  const settled = payments.flat().filter(({ outcome }) => outcome === 'settled')
  const places = new Set(settled.map(({ mode, network }) => `${mode} ${network}`))
  return {
    ...row,
    ...counts,
    model,
    stages: Object.fromEntries(Object.entries(stages).map(([stage, times]) => [stage, latencyOf(times)])),
    admission: latencyOf(admission),
    result: latencyOf(result),
    payments: Object.fromEntries(
      [...new Set(payments.flat().map(({ outcome }) => outcome))].map((outcome) => [
        outcome,
        sum(
          payments.flat().filter((entry) => entry.outcome === outcome),
          ({ count }) => count,
        ),
      ]),
    ),
    revenue: [...places].sort().map((place) => {
      const here = settled.filter(({ mode, network }) => `${mode} ${network}` === place)
      const [mode = '', network = ''] = place.split(' ')
      // Six decimals; sums of a period stay far below 2^53.
      return {
        mode,
        network,
        payments: sum(here, ({ count }) => count),
        usd: sum(here, (e) => Number(e.amount_atomic)) / 1e6,
      }
    }),
  }
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0)
}

const NO_LATENCY: Latency = { count: 0, mean: 0, p50: 0, p95: 0, p99: 0 }
const NOTHING: Omit<Period, 'at'> = {
  recorded: 0,
  well: 0,
  admitted: 0,
  completed: {},
  failed: {},
  queue_depth: 0,
  oldest_seconds: 0,
  stages: {},
  admission: NO_LATENCY,
  result: NO_LATENCY,
  payments: {},
  revenue: [],
  alerts: {},
  model: NO_MODEL_USE,
}

function latencyOf(times: Histogram): Latency {
  const { count, sum: seconds } = times
  if (count === 0) return NO_LATENCY
  const at = (share: number) => quantile(times, share)
  return { count, mean: seconds / count, p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

/** As histogram_quantile of Prometheus: linear within a bucket, and the highest bound for what is beyond it. */
export function quantile({ buckets, count }: Histogram, share: number): number {
  const bounds = Object.keys(buckets)
    .filter((bound) => bound !== '+Inf')
    .map(Number)
    .sort((a, b) => a - b)
  const rank = share * count
  let below = { bound: 0, seen: 0 }
  for (const bound of bounds) {
    const seen = buckets[String(bound)] ?? 0
    if (seen >= rank && seen > below.seen)
      return below.bound + (bound - below.bound) * ((rank - below.seen) / (seen - below.seen))
    below = { bound, seen }
  }
  return below.bound
}

/** One day, in UTC. */
export interface Day {
  /** As 2026-11-22. */
  day: string
  /** Minutes of the day on which the service should run: all, except on the first day and today. */
  minutes: number
  /** Minutes in which every readiness probe succeeded. A minute without a probe does not count. */
  well: number
  /** `well` of `minutes`, from 0 to 1; null where there are no minutes yet. */
  share: number | null
}

/**
 * The last days, at most 90, the oldest first and today last; days before the first recorded minute are left out.
 * @param now by default the time of the database
 */
export async function readDays(db: Database, count = 90, now?: Date): Promise<readonly Day[]> {
  const days = await db.any(sql.type(z.object({ day: z.string(), minutes: z.number(), well: z.number() }))`
    with span as (
      -- The minute that ended just now has no row for some seconds.
      select min(first_minute) first, coalesce((select max(minute) + interval '1 minute' from minute_figures
                                                where minute > ${timeOf(now)} - interval '2 minutes 30 seconds'),
                                               date_trunc('minute', ${timeOf(now)})) last
      from day_figures
    ), days as (
      select day, greatest(day, first at time zone 'utc') begin, least(day + interval '1 day', last at time zone 'utc') ended
      from span, generate_series(
        greatest(date_trunc('day', first at time zone 'utc'),
                 date_trunc('day', last at time zone 'utc') - ${count - 1} * interval '1 day'),
        last at time zone 'utc', interval '1 day') day
      where first is not null
    )
    select to_char(d.day, 'YYYY-MM-DD') as day, greatest(0, extract(epoch from ended - begin) / 60)::float8 minutes,
           coalesce(f.well, 0) well
    from days d left join day_figures f on f.day = d.day::date order by d.day`)
  return days.map(({ day, minutes, well }) => ({
    day,
    minutes,
    well,
    share: minutes > 0 ? Math.min(1, well / minutes) : null,
  }))
}
