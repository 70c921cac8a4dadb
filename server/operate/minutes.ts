// The figures of each minute: one row per minute, written by the first process that sees the next minute begin. A row holds
// the counters of all processes since the beginning, so a missed minute is contained in the difference to the next one.
import { z } from 'zod'
import { nothing, sql, type Tx } from '../db/pool.ts'
import { endProcesses, type Figures, readFigures } from './figures.ts'
import { countJobs } from './jobs.ts'

/** Key of the advisory lock under which one process at a time closes a minute. */
const MINUTE_LOCK = 8_402_005
const KEEP_DAYS = { minutes: 7, days: 90 }

const byLabel = z.record(z.string(), z.number())
/** Observations up to each bound in seconds, `+Inf` for all; their sum, and how many. */
const histogram = z.object({ buckets: byLabel, sum: z.number(), count: z.number() })
export type Histogram = z.output<typeof histogram>

/** Counters of all processes since the beginning. */
export const counters = z.object({
  admitted: z.number(),
  completed: byLabel,
  failed: byLabel,
  stages: z.record(z.string(), histogram),
  admission: histogram,
  result: histogram,
  alerts: byLabel,
  probes: byLabel,
  /** Calls to the assessing model by outcome, tokens by kind, and USD. A row of an earlier release has none. */
  model: z.object({ calls: byLabel, tokens: byLabel, usd: z.number() }).optional(),
  /** Further counters that the warnings of the status need (see recent.ts). A row of an earlier release has none. */
  watched: z
    .object({
      /** Answers over HTTP by the first digit of their status. */
      answers: byLabel,
      settlements: byLabel,
      rescued: z.number(),
      /** Failed calls about payments by facilitator or node. */
      payment_calls: byLabel.default({}),
      /** From the deadline of a watchdog to its detection. */
      detection: histogram,
    })
    .optional(),
})
export type Counters = z.output<typeof counters>

/**
 * Writes the row of the minute that ended last, unless it is there; counts the minutes of its day; deletes processes that died
 * and rows that are too old. Does nothing while another process writes the row.
 * @param options `dead`: a condition on the rows of processes that died; `now`: by default the time of the database
 */
export async function closeMinute(
  tx: Tx,
  { dead, now: time }: { dead: ReturnType<typeof sql.fragment>; now?: Date },
): Promise<void> {
  const minute = await tx.maybeOneFirst(sql.type(z.object({ minute: z.date() }))`
    select minute from (select date_trunc('minute', ${timeOf(time)}) - interval '1 minute' as minute) ended
    where pg_try_advisory_xact_lock(${MINUTE_LOCK})
      and not exists (select from minute_figures m where m.minute = ended.minute)`)
  if (!minute) return
  await endProcesses(tx, dead)
  const at = sql.timestamp(minute)
  const now = countersOf(await readFigures(tx))
  const previous = await findCounters(tx, minute)
  const { due, oldest_seconds } = await countJobs(tx)
  await tx.query(sql.type(nothing)`
    insert into minute_figures (minute, well, queue_depth, oldest_seconds, counters)
    values (${at}, ${wasWell(now, previous)}, ${due}, ${oldest_seconds}, ${JSON.stringify(now)}::jsonb)`)
  await tx.query(sql.type(nothing)`
    update minute_figures set payments = ${paymentsOf(sql.fragment`minute_figures.minute`)}
    where payments is null and minute < ${at}`)
  await tx.query(sql.type(nothing)`
    insert into day_figures (day, first_minute, recorded, well)
    select (${at} at time zone 'utc')::date, min(minute), count(*), count(*) filter (where well)
    from minute_figures where minute between date_trunc('day', ${at}, 'utc') and ${at}
    on conflict (day) do update set recorded = excluded.recorded, well = excluded.well`)
  await tx.query(sql.type(nothing)`
    delete from minute_figures where minute < ${at} - ${KEEP_DAYS.minutes} * interval '1 day'`)
  await tx.query(sql.type(nothing)`
    delete from day_figures where day <= (${at} at time zone 'utc')::date - ${KEEP_DAYS.days}::int`)
}

/** The time of the database, or another. */
export function timeOf(time: Date | undefined) {
  return time ? sql.fragment`${sql.timestamp(time)}` : sql.fragment`now()`
}

/** The counters of the last row before a time; null if there is none. */
export function findCounters(db: Pick<Tx, 'maybeOneFirst'>, before: Date): Promise<Counters | null> {
  return db.maybeOneFirst(sql.type(z.object({ counters }))`
    select counters from minute_figures where minute < ${sql.timestamp(before)} order by minute desc limit 1`)
}

/** The entries of the ledger of one minute, as a JSON array. @param minute its beginning */
export function paymentsOf(minute: ReturnType<typeof sql.fragment>) {
  return sql.fragment`(
    select coalesce(jsonb_agg(entry), '[]') from (
      select outcome, reason, mode, network, count(*) count, sum(amount_atomic)::text amount_atomic
      from payment_ledger where entered_at >= ${minute} and entered_at < ${minute} + interval '1 minute'
      group by outcome, reason, mode, network) entry)`
}

/** What was counted between two rows. A counter that is smaller than before was reset. */
export function differenceOf<T extends object>(now: T, earlier: T | undefined): T {
  // The cast is safe: the difference has the members of `now`, and a number for each number.
  return subtract(now, earlier) as T
}

function subtract(now: unknown, earlier: unknown): unknown {
  if (typeof now === 'number') {
    const difference = now - (typeof earlier === 'number' ? earlier : 0)
    return difference < 0 ? now : difference
  }
  const before = isTable(earlier) ? earlier : {}
  return Object.fromEntries(Object.entries(now ?? {}).map(([name, value]) => [name, subtract(value, before[name])]))
}

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function wasWell(now: Counters, previous: Counters | null): boolean {
  const { ready = 0, not_ready = 0 } = differenceOf(now.probes, previous?.probes)
  return ready > 0 && not_ready === 0
}

/** The counters that are kept, from the figures of all processes. */
export function countersOf(figures: Figures): Counters {
  const values = (name: string): Sample[] =>
    figures.find((metric) => metric.name === `countersign_${name}`)?.values ?? []
  const sums = (name: string, label: string) =>
    Object.fromEntries(
      values(name).flatMap(({ labels, value }) => (value === 0 ? [] : [[String(labels[label]), value]])),
    )
  const stages = values('stage_seconds')
  return {
    admitted: sums('verification_moves_total', 'state').accepted ?? 0,
    completed: sums('verifications_completed_total', 'verdict'),
    failed: sums('verification_failures_total', 'code'),
    stages: Object.fromEntries(
      [...new Set(stages.map(({ labels }) => String(labels.stage)))].map((stage) => [
        stage,
        histogramOf(stages.filter(({ labels }) => labels.stage === stage)),
      ]),
    ),
    admission: histogramOf(values('admission_seconds')),
    result: histogramOf(values('result_seconds')),
    alerts: sums('alert_attempts_total', 'outcome'),
    probes: sums('readiness_probes_total', 'outcome'),
    model: {
      calls: sums('model_calls_total', 'outcome'),
      tokens: sums('model_tokens_total', 'kind'),
      usd: values('model_usd_total')[0]?.value ?? 0,
    },
    watched: {
      answers: countByClass(values('requests_total')),
      settlements: sums('settlements_total', 'outcome'),
      rescued: values('rescued_workers_total')[0]?.value ?? 0,
      payment_calls: sums('payment_call_failures_total', 'dependency'),
      detection: histogramOf(values('watchdog_delay_seconds')),
    },
  }
}

/** Without `/readyz`, which answers 503 to say that this process is starting or ending: that is no failure. */
function countByClass(answers: Sample[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { labels, value } of answers) {
    if (labels.operation === 'readyz') continue
    const digit = String(labels.status).slice(0, 1)
    counts[digit] = (counts[digit] ?? 0) + value
  }
  return counts
}

type Sample = Figures[number]['values'][number] & { metricName?: string }

function histogramOf(samples: Sample[]): Histogram {
  const part = (end: string) => samples.filter(({ metricName }) => metricName?.endsWith(end))
  return {
    buckets: Object.fromEntries(part('_bucket').map(({ labels, value }) => [String(labels.le), value])),
    sum: part('_sum')[0]?.value ?? 0,
    count: part('_count')[0]?.value ?? 0,
  }
}
