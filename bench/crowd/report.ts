// What the crowd run prints, and which of its numbers are faults: honest buyers that wait too long or get nothing, and tables
// that stay larger.

import { figure, printNote, printRows, quantile } from '../table.ts'
import { bought, type Purchase } from './buyers.ts'
import type { AttackReport, Tally } from './messages.ts'

export interface CrowdReport {
  empty: Purchase[]
  crowd: Purchase[]
  attack: AttackReport
  /** Requests that were settled: of the hostile payer, and of the buyers of costly pages. */
  charged: { payer: number; costly: number }
  /** Milliseconds from a failed heartbeat to its alert at a receiver that answers. */
  alerts: { empty: number[]; crowd: number[] }
  tables: TableReport[]
  /** Bytes the worker process had resident at most; NaN where it cannot be read. */
  workerBytes: number
  /** Where the time went: a sentence each. */
  heldBack: { empty: string; crowd: string }
}

export interface TableReport {
  name: string
  before: number
  peak: number
  after: number
  /** What may be left: what was there before, what purchases that were charged leave, and receipts within the accounts' daily limits. */
  allowed: number
}

/** The highest allowed ratio of the p99 under hostile load to the p99 without load. */
const MAX_RATIO = 3

/** Prints all that was measured and answers what did not hold. */
export function printReport(report: CrowdReport): string[] {
  const faults = [...printBuyers(report), ...printTables(report.tables)]
  printAttack(report)
  printNote(`the worker had ${figure(report.workerBytes / 1024 / 1024)} MB resident at most`)
  printNote(`empty house ${report.heldBack.empty}`)
  printNote(`crowd ${report.heldBack.crowd}`)
  return faults
}

function printBuyers({ empty, crowd, alerts }: CrowdReport): string[] {
  const times = { empty: latencies(empty), crowd: latencies(crowd) }
  const row = (what: string, of: (times: number[]) => number) => {
    const [alone, beside] = [of(times.empty), of(times.crowd)]
    return [what, `${figure(alone)} ms`, `${figure(beside)} ms`, `${figure(beside / alone)} times`] as const
  }
  const problems = crowd.concat(empty).flatMap(({ problem }) => problem ?? [])
  const count = (purchases: Purchase[]) => String(purchases.length - bought(purchases))
  printRows([
    ['honest buyers', 'empty house', 'crowd', 'ratio'],
    ['purchases', String(empty.length), String(crowd.length), ''],
    row('from request to result, p50', (all) => quantile(all, 0.5)),
    row('from request to result, p99', (all) => quantile(all, 0.99)),
    row('from request to result, longest', (all) => quantile(all, 1)),
    ['refused, failed or without a result', count(empty), count(crowd), ''],
    ['alert of a watchdog whose receiver answers, longest', ...longest(alerts), ''],
  ])
  printNote(`the slowest hundredth in the crowd began ${describeStarts(crowd)} s after it`)
  for (const [problem, times] of Object.entries(tallyOf(problems))) printNote(`honest, ${times} times: ${problem}`)
  const ratio = quantile(times.crowd, 0.99) / quantile(times.empty, 0.99)
  return [
    ...(ratio <= MAX_RATIO ? [] : [`the p99 of honest buyers is ${figure(ratio)} times that of the empty house`]),
    ...(problems.length === 0 ? [] : [`${problems.length} honest purchases came to nothing`]),
  ]
}

function describeStarts(purchases: Purchase[]): string {
  const slowest = purchases.toSorted((a, b) => b.ms - a.ms).slice(0, Math.ceil(purchases.length / 100))
  return slowest.map(({ at }) => at.toFixed(1)).join(', ')
}

function longest({ empty, crowd }: CrowdReport['alerts']): [string, string] {
  const text = (delays: number[]) => {
    const worst = Math.max(...delays)
    return Number.isFinite(worst) ? `${figure(worst)} ms` : 'not arrived'
  }
  return [text(empty), text(crowd)]
}

function printTables(tables: TableReport[]): string[] {
  const moved = tables.filter(({ before, peak, after }) => peak > 0 && !(before === peak && peak === after))
  const text = ({ name, before, peak, after, allowed }: TableReport) =>
    [
      name,
      ...[before, peak, after, allowed].map(String),
      after <= allowed ? 'back' : `${after - allowed} TOO MANY`,
    ] as const
  printRows([['rows', 'before', 'peak', 'after pruning', 'allowed', ''], ...moved.map(text)])
  return tables
    .filter(({ after, allowed }) => after > allowed)
    .map(({ name, after, allowed }) => `${name} kept ${after - allowed} rows`)
}

function printAttack({ attack, charged }: CrowdReport) {
  const { requests, accepted, answers } = attack.payments
  printNote(
    `hostile payer: ${requests} requests, ${accepted} accepted, ${requests - accepted} not, ${charged.payer} charged; ` +
      `answers: ${describe(answers)}`,
  )
  printNote(`alternating heartbeats: ${describe(attack.heartbeats)}`)
  printNote(
    `costly pages: ${describe(attack.costly.answers)}, ${charged.costly} charged; free checks of pages that never end: ${describe(attack.quoteChecks)}`,
  )
  printNote(`unpaid quotes: IPv4 ${describe(attack.quotes.ipv4)}; IPv6 ${describe(attack.quotes.ipv6)}`)
}

const describe = (tally: Tally) =>
  Object.entries(tally)
    .map(([name, times]) => `${name} × ${times}`)
    .join(', ') || 'none'

function tallyOf(names: string[]): Tally {
  const tally: Tally = {}
  for (const name of names) tally[name] = (tally[name] ?? 0) + 1
  return tally
}

/** A purchase that came to nothing counts with the time that was waited for it. */
const latencies = (purchases: Purchase[]) => purchases.map(({ ms }) => ms).sort((a, b) => a - b)
