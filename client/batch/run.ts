// Runs a batch: buys the remaining rows, as many in parallel as the service has capacity for, and stops when it is useless
// to continue: the budget is reached, the terms have changed, the payments are refused, or the service does not answer.
import type { CountersignError } from '../client.ts'
import { BudgetError } from './budget.ts'
import { type Buyer, type Outcome, TermsError } from './buyer.ts'
import type { OutputFiles } from './output-files.ts'
import type { Pace } from './pace.ts'
import type { Row } from './rows.ts'

/** Why rows are left. */
export type Stop =
  | { kind: 'budget' }
  | { kind: 'interrupted' }
  | { kind: 'terms'; message: string }
  | { kind: 'payments_refused'; message: string }
  | { kind: 'unreachable'; message: string }

export interface Run {
  /** Null: each row has its line in the results or the errors, except `unfinished`. */
  stop: Stop | null
  /** Rows whose outcome is not known yet. */
  unfinished: { row: Row; error: CountersignError }[]
  /** Rows for which nothing was done. */
  untouched: number
}

export interface RunOptions {
  rows: readonly Row[]
  buyer: Pick<Buyer, 'buy'>
  files: Pick<OutputFiles, 'complete' | 'fail'>
  pace: Pace
  /** No new row after this. */
  finish: AbortSignal
  /** Nothing more after this. */
  abort: AbortSignal
  /** After each row that ended. */
  onProgress?: () => void
}

export async function runRows({ rows, buyer, files, pace, finish, abort, onProgress }: RunOptions): Promise<Run> {
  const queue: Item[] = rows.map((row) => ({ row, tries: 0, error: null }))
  const unfinished: Run['unfinished'] = []
  const running = new Set<Promise<void>>()
  const closing = AbortSignal.any([finish, abort])
  let stop: Stop | null = null
  let starved = false
  let refusals = 0
  let silences = 0
  let failure: { error: unknown } | null = null

  const take = async (item: Item) => {
    const outcome = await buyer.buy(item.row, abort)
    if (outcome.kind === 'unfinished' && outcome.isLater) {
      unfinished.push({ row: item.row, error: outcome.error })
      return
    }
    if (outcome.kind === 'unfinished') {
      silences++
      item.error = outcome.error
      if (++item.tries < MAX_TRIES) queue.push(item)
      else unfinished.push({ row: item.row, error: outcome.error })
      if (silences >= MAX_SILENCES + pace.limit) stop ??= { kind: 'unreachable', message: outcome.error.message }
      return
    }
    silences = 0
    refusals = isPaymentRefused(outcome) ? refusals + 1 : 0
    if (outcome.kind === 'completed') {
      pace.succeed()
      await files.complete(item.row, outcome.purchase)
    } else {
      await files.fail(item.row, outcome.error, outcome.charged)
      if (refusals >= MAX_REFUSALS) stop ??= { kind: 'payments_refused', message: outcome.error.message }
    }
    onProgress?.()
  }

  const handle = (item: Item) => (error: unknown) => {
    if (error instanceof BudgetError) {
      queue.unshift(item)
      starved = true
    } else if (error instanceof TermsError) {
      queue.unshift(item)
      stop ??= { kind: 'terms', message: error.message }
    } else if (abort.aborted) queue.unshift(item)
    else failure ??= { error }
  }

  while (!stop && !failure && !closing.aborted) {
    // Running rows may release their reservations.
    if (starved && running.size > 0) {
      await Promise.race(running)
      starved = false
      continue
    }
    if (starved) {
      stop = { kind: 'budget' }
      break
    }
    const item = queue.shift()
    if (!item) {
      if (running.size === 0) break
      await Promise.race(running)
      continue
    }
    try {
      await pace.enter(closing)
    } catch {
      queue.unshift(item)
      break
    }
    if (stop || starved) {
      queue.unshift(item)
      pace.leave()
      continue
    }
    const task: Promise<void> = take(item)
      .catch(handle(item))
      .finally(() => {
        pace.leave()
        running.delete(task)
      })
    running.add(task)
  }
  await Promise.all(running)
  if (failure) throw (failure as { error: unknown }).error
  if (closing.aborted) stop ??= { kind: 'interrupted' }
  for (const { row, error } of queue) if (error) unfinished.push({ row, error })
  return { stop, unfinished, untouched: queue.filter(({ error }) => error === null).length }
}

interface Item {
  row: Row
  tries: number
  /** The error of the last attempt; null if nothing was sent. */
  error: CountersignError | null
}

function isPaymentRefused(outcome: Outcome): boolean {
  return outcome.kind === 'failed' && outcome.error.status === 402
}

/** How often a row is sent before it is left for another run. */
const MAX_TRIES = 5
/** Consecutive refused payments after which the wallet is considered the cause, not the rows. */
const MAX_REFUSALS = 5
/** Consecutive rows without an answer, not counting running rows. */
const MAX_SILENCES = 10
