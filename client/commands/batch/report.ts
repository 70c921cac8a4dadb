// The output of `countersign batch`: what it has read and the cost, its progress, and the outcome.
import { progressBar, visible } from '../../arguments.ts'
import type { Budget } from '../../batch/budget.ts'
import { affordable, costOf, groupByPage, type Item } from '../../batch/groups.ts'
import { formatUsd } from '../../batch/money.ts'
import type { OutputFiles } from '../../batch/output-files.ts'
import type { Row, Rows } from '../../batch/rows.ts'
import type { Run } from '../../batch/run.ts'
import type { Capabilities } from '../../operations/discovery.ts'
import type { ExitStatus } from '../command.ts'
import { json, note, print } from '../output.ts'
import { INTERRUPTED } from '../signals.ts'

interface Plan {
  /** The rows that are bought; the others ask the same as one of these. */
  firsts: readonly Row[]
  /** What one payment each buys of them. */
  items: readonly Item[]
  capabilities: Capabilities
  price: bigint
  budget: bigint | null
  options: { json?: boolean; 'dry-run'?: boolean; out?: string }
}

/** What was read, what it costs, and what buying by page saves. */
export function printPlan(
  { usable, unusable }: Rows,
  { firsts, items, capabilities, price, budget, options }: Plan,
): void {
  const bought = firsts.length
  const cost = costOf(items, price)
  if (options.json && options['dry-run']) {
    const rejected = unusable.map(({ id, line, reason }) => ({ id, line, reason }))
    const money = { price_usd: formatUsd(price), cost_usd: formatUsd(cost), budget_usd: budget && formatUsd(budget) }
    const saved = costOf(firsts, price) - costOf(groupByPage(firsts), price)
    const grouping = { purchases: items.length, grouping_saves_usd: formatUsd(saved) }
    const { payment_mode } = capabilities
    print(
      json({ rows: usable.length + unusable.length, bought, ...grouping, unusable: rejected, ...money, payment_mode }),
    )
    return
  }
  const all = usable.length + unusable.length
  const same = `${usable.length - bought} that ask the same as one of these and get its outcome for nothing`
  const parts = [`${bought} to buy`, same]
  if (unusable.length > 0) parts.push(`${unusable.length} that cannot be bought`)
  if (bought < usable.length) note(`${counted(all, 'row')}: ${parts.join(', ')}.\n`)
  tellCost('row', firsts, items, price)
  tellMode(capabilities)
  if (unusable.length > 0) note(`${counted(unusable.length, 'row')} cannot be bought:\n`)
  for (const { line, reason } of unusable.slice(0, MAX_LISTED)) note(`  line ${line}: ${visible(reason)}\n`)
  if (unusable.length > MAX_LISTED) note(`  and ${unusable.length - MAX_LISTED} more, all of them in errors.jsonl\n`)
  if (budget === null) return
  note(`Budget ${formatUsd(budget)} USDC`)
  note(
    cost > budget ? `: enough for ${counted(affordable(items, price, budget), 'row')}. The others are left.\n` : '.\n',
  )
}

/** Prints the cost, and what buying by page saves, or would save. */
export function tellCost(what: string, rows: readonly Row[], items: readonly Item[], price: bigint): void {
  const [cost, single] = [costOf(items, price), costOf(rows, price)]
  note(
    cost < single
      ? `${counted(rows.length, what)} in ${counted(items.length, 'purchase')} by page: ${formatUsd(cost)} USDC, ` +
          `${formatUsd(single - cost)} less than one by one.\n`
      : `${counted(rows.length, what)} at ${formatUsd(price)} USDC: ${formatUsd(cost)} USDC.\n`,
  )
  const groups = groupByPage(rows)
  const least = costOf(groups, price)
  if (least < cost)
    note(
      `--group buys those of one page together: ${counted(groups.length, 'purchase')}, ${formatUsd(least)} USDC, ` +
        `${formatUsd(cost - least)} less.\n`,
    )
}

/** @param cost of all of them */
export function questionOf(count: number, cost: bigint, { payment_mode }: Capabilities, what = 'verification'): string {
  const money = payment_mode === 'offline' ? '' : ` for ${formatUsd(cost)} USDC`
  return `Buy ${counted(count, what)}${money}?`
}

/** Prints what the payment mode of the service means. */
export function tellMode({ payment_mode }: Capabilities): void {
  if (payment_mode === 'offline') note('The service is in offline mode: no money moves.\n')
  if (payment_mode === 'testnet') note('The service is on a test network: its USDC is worth nothing.\n')
}

export function counted(number: number, what: string): string {
  return `${number.toLocaleString('en')} ${what}${number === 1 ? '' : 's'}`
}

interface Progress {
  /** Rows, with those that have an outcome already. */
  all: number
  /** Rows whose outcome is not counted: those of other runs. */
  apart: number
  files: OutputFiles
  budget: Budget
}

/** A progress bar on a terminal, else a line at intervals. */
export function openProgress({ all, apart, files, budget }: Progress) {
  const { tally } = files
  const before = tally.completed + tally.failed
  const started = performance.now()
  let shown = Number.NEGATIVE_INFINITY
  const isTerminal = process.stderr.isTTY
  const line = () => {
    const known = tally.completed + tally.failed
    const done = known - apart
    const seconds = (performance.now() - started) / 1000
    const rate = (known - before) / Math.max(seconds, 0.001)
    const left = rate > 0 ? `${duration((all - done) / rate)} left` : ''
    const money = `${formatUsd(budget.spent)} of ${formatUsd(budget.cap)} USDC`
    return `${progressBar(done, all, 24)}  ${tally.failed} failed  ${money}  ${rate.toFixed(1)}/s  ${left}`
  }
  const show = () => {
    const now = performance.now()
    if (all === 0 || now - shown < (isTerminal ? 200 : 10_000)) return
    shown = now
    note(isTerminal ? `\r\x1b[K${line()}` : `${line()}\n`)
  }
  let ended = false
  show()
  return {
    show,
    [Symbol.dispose]() {
      if (ended || all === 0) return
      ended = true
      note(isTerminal ? `\r\x1b[K${line()}\n` : `${line()}\n`)
    },
  }
}

function duration(seconds: number): string {
  const whole = Math.ceil(seconds)
  const minutes = Math.floor(whole / 60)
  return minutes > 0 ? `${minutes} min ${whole % 60} s` : `${whole} s`
}

interface Ending {
  files: OutputFiles
  budget: Budget
  all: number
  options: { json?: boolean; 'dry-run'?: boolean; out?: string }
}

export function report(run: Omit<Run, 'untouched'>, { files, budget, all, options }: Ending): ExitStatus {
  const { tally } = files
  const { stop, unfinished } = run
  const untouched = all - tally.completed - tally.failed - unfinished.length
  const message = stop && 'message' in stop ? stop.message : null
  if (options.json)
    print(
      json({
        rows: all,
        completed: tally.completed,
        failed: tally.failed,
        unfinished: unfinished.length,
        untouched,
        verdicts: tally.verdicts,
        failures: tally.failures,
        spent_usd: formatUsd(budget.spent),
        budget_usd: formatUsd(budget.cap),
        stopped: stop && { reason: stop.kind, message },
        out: options.out,
      }),
    )
  else {
    print(`${counted(all, 'row')}: ${tally.completed} completed, ${tally.failed} failed\n`)
    for (const [verdict, times] of sorted(tally.verdicts)) print(`  ${String(times).padStart(6)} ${visible(verdict)}\n`)
    for (const [code, times] of sorted(tally.failures))
      print(`  ${String(times).padStart(6)} failed: ${visible(code)}\n`)
    if (unfinished.length > 0)
      print(`  ${String(unfinished.length).padStart(6)} not known yet (${visible(unfinished[0]?.error.code ?? '')})\n`)
    if (untouched > 0) print(`  ${String(untouched).padStart(6)} untouched\n`)
    print(`Spent ${formatUsd(budget.spent)} of ${formatUsd(budget.cap)} USDC\n`)
    print(`Results are in ${options.out}\n`)
    const advice = adviceOf(run)
    if (advice) note(`${visible(advice)}\n`)
  }
  if (stop?.kind === 'interrupted') return INTERRUPTED
  if (stop?.kind === 'budget') return 3
  return tally.failed > 0 || unfinished.length > 0 || stop ? 1 : 0
}

function adviceOf({ stop, unfinished }: Omit<Run, 'untouched'>): string | null {
  if (stop?.kind === 'budget') return 'The budget is reached. A higher --budget with --resume goes on.'
  if (stop?.kind === 'interrupted') return 'Interrupted. --resume goes on.'
  if (stop?.kind === 'payments_refused') return `Stopped: the payments are refused. ${stop.message}`
  if (stop) return `Stopped: ${stop.message} --resume goes on.`
  return unfinished.length > 0 ? 'Some rows have no outcome yet. --resume asks for it, and pays nothing twice.' : null
}

function sorted(counts: Record<string, number>): [string, number][] {
  return Object.entries(counts).sort(([, a], [, b]) => b - a)
}

const MAX_LISTED = 20
