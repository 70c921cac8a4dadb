// The figures of the last quarter of an hour that warnings need, from the figures that processes publish and the rows of
// earlier minutes.
import { z } from 'zod'
import { type Database, sql } from '../db/pool.ts'
import { type Figures, readFigures } from './figures.ts'
import { type Counters, countersOf, differenceOf, findCounters, type Histogram } from './minutes.ts'
import { comparable, quantile } from './roll-ups.ts'

const WINDOW_MS = 15 * 60_000

export interface Recent {
  /** Answers over HTTP, and those of them with a status from 500. */
  answers: number
  server_errors: number
  /** Verifications that were completed, and those that failed by error code. */
  completed: number
  failed: Record<string, number>
  /** Attempts to settle a payment by outcome. */
  settlements: Record<string, number>
  rescued_workers: number
  /** Calls about payments that failed although the facilitator or node answers; by its name. */
  payment_calls: Record<string, number>
  /** How many were timed: paid calls, results, detections of missed deadlines. */
  timed: { admissions: number; results: number; detections: number }
  /** Percentiles in seconds: the 99th of paid calls, the 95th of results, the 99th of detections; 0 if there was none. */
  admission_p99: number
  result_p95: number
  detection_p99: number
  /** Living processes and the 99th percentile of the delay of their event loop, in seconds. */
  event_loops: { process: string; seconds: number }[]
}

/** @param now milliseconds since the epoch */
export async function readRecent(db: Database, now: number): Promise<Recent> {
  const figures = await readFigures(db)
  const counted = countersOf(figures)
  const earlier = await findEarlier(db, new Date(now - WINDOW_MS), counted)
  const { completed, failed, admission, result, watched } = differenceOf(counted, comparable(earlier, counted))
  const answers = watched?.answers ?? {}
  return {
    answers: sumOf(answers),
    server_errors: answers['5'] ?? 0,
    completed: sumOf(completed),
    failed,
    settlements: watched?.settlements ?? {},
    rescued_workers: watched?.rescued ?? 0,
    payment_calls: watched?.payment_calls ?? {},
    timed: { admissions: admission.count, results: result.count, detections: watched?.detection.count ?? 0 },
    admission_p99: within(admission, 0.99),
    result_p95: within(result, 0.95),
    detection_p99: watched ? within(watched.detection, 0.99) : 0,
    event_loops: eventLoopsOf(figures),
  }
}

/** The counters at the begin of the window; undefined where they began to count within it. */
async function findEarlier(db: Database, since: Date, now: Counters): Promise<Counters | undefined> {
  const before = await findCounters(db, since)
  if (before) return before
  const first = await db.oneFirst(sql.type(z.object({ first: z.date().nullable() }))`
    select min(first_minute) first from day_figures`)
  // No process ran for so long that the rows of minutes are deleted; earlier counts are not recent.
  return first && first < since ? now : undefined
}

function within(times: Histogram, share: number): number {
  return times.count === 0 ? 0 : quantile(times, share)
}

function sumOf(counts: Record<string, number>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

function eventLoopsOf(figures: Figures): Recent['event_loops'] {
  const values = figures.find(({ name }) => name === 'nodejs_eventloop_lag_p99_seconds')?.values ?? []
  return values.flatMap(({ labels, value }) =>
    labels.process === undefined ? [] : [{ process: String(labels.process), seconds: value }],
  )
}
