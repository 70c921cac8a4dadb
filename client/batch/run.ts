// Runs a batch: buys the remaining rows, as many in parallel as the service has capacity for, and stops when it is useless
// to continue: the budget is reached, the terms have changed, the payments are refused, or the service does not answer.
//
// A run is in one of three states:
//
//   buying    takes rows, the fresh ones first, then those without an answer again
//   full      the budget refused a row: takes only rows without an answer, whose payment may be made already, until a row that runs
//             has ended, because that may release its reservation
//   closing   there is a reason to stop: takes no row
//
// Without a row to take it waits for one that runs. If none runs, `full` becomes `closing`, and the others end. It ends in every
// case: a row is taken MAX_TRIES times at most, except after the budget refused it, and between two such refusals of one row
// another row has ended.
//
// A row here is what one payment buys: also several rows of the input that are bought together.
import type { CountersignError, Purchase } from '../client.ts'
import type { PurchaseResult } from '../result.ts'
import { BudgetError } from './budget.ts'
import { type Buyer, type Outcome, TermsError } from './buyer.ts'
import type { Order } from './order.ts'
import { CapacityError, type Pace } from './pace.ts'
import type { Row } from './rows.ts'

/** Why rows are left. */
export type Stop =
  | { kind: 'budget' }
  | { kind: 'interrupted' }
  | { kind: 'busy'; message: string }
  | { kind: 'terms'; message: string }
  | { kind: 'payments_refused'; message: string }
  | { kind: 'unreachable'; message: string }

export interface Run<R extends Order = Row> {
  /** Null: each row has its line in the results or the errors, except `unfinished`. */
  stop: Stop | null
  /** Rows whose outcome is not known yet. */
  unfinished: { row: R; error: CountersignError }[]
  /** Rows for which nothing was done. */
  untouched: number
}

export interface RunOptions<R extends Order> {
  rows: readonly R[]
  buyer: Pick<Buyer, 'buy'>
  files: {
    complete(row: R, purchase: Purchase<PurchaseResult>): Promise<void>
    fail(row: R, error: CountersignError, charged: boolean): Promise<void>
  }
  pace: Pace
  /** No new row after this. */
  finish: AbortSignal
  /** Nothing more after this. */
  abort: AbortSignal
  /** After each row that ended. */
  onProgress?: () => void
}

/** Throws what the buyer or the files throw unexpectedly, after the rows that run have ended. */
export async function runRows<R extends Order>(options: RunOptions<R>): Promise<Run<R>> {
  return await new Loop(options).run()
}

type State = 'buying' | 'full' | 'closing'

interface Item<R extends Order> {
  row: R
  tries: number
  /** The error of the last attempt; null if nothing was sent. */
  error: CountersignError | null
}

class Loop<R extends Order> {
  readonly #options: RunOptions<R>
  /** The next one last. */
  readonly #fresh: Item<R>[]
  /** Sent, and without an answer. */
  readonly #again: Item<R>[] = []
  readonly #unfinished: Run<R>['unfinished'] = []
  /** Aborted in the state `closing`, so that nothing waits for a place any more. */
  readonly #closing = new AbortController()
  #state: State = 'buying'
  #stop: Stop | null = null
  #failure: { error: unknown } | null = null
  #running = 0
  /** How many have ended with an outcome, and so may have released a reservation. */
  #outcomes = 0
  #wake: () => void = () => {}
  /** Consecutive ones. */
  #refusals = 0
  #silences = 0

  constructor(options: RunOptions<R>) {
    this.#options = options
    this.#fresh = options.rows.map((row) => ({ row, tries: 0, error: null })).reverse()
  }

  async run(): Promise<Run<R>> {
    const { finish, abort } = this.#options
    const interrupt = () => this.#close({ kind: 'interrupted' })
    for (const signal of [finish, abort]) {
      if (signal.aborted) interrupt()
      signal.addEventListener('abort', interrupt, { once: true })
    }
    try {
      for (let item = this.#next(); item !== 'end'; item = this.#next())
        if (item === 'wait') await this.#rowEnds()
        else await this.#start(item)
    } finally {
      for (const signal of [finish, abort]) signal.removeEventListener('abort', interrupt)
    }
    if (this.#failure) throw this.#failure.error
    const left = [...this.#fresh, ...this.#again]
    for (const { row, error } of left) if (error) this.#unfinished.push({ row, error })
    const untouched = left.filter(({ error }) => error === null).length
    return { stop: this.#stop, unfinished: this.#unfinished, untouched }
  }

  /** What to do next in this state. */
  #next(): Item<R> | 'wait' | 'end' {
    const fresh = this.#state === 'buying' ? this.#fresh.pop() : undefined
    const item = fresh ?? (this.#state === 'closing' ? undefined : this.#again.shift())
    if (item) return item
    if (this.#running > 0) return 'wait'
    if (this.#state === 'full') this.#close({ kind: 'budget' })
    return 'end'
  }

  async #start(item: Item<R>): Promise<void> {
    const { pace } = this.#options
    try {
      await pace.enter(this.#closing.signal)
    } catch (error) {
      this.#putBack(item)
      if (error instanceof CapacityError) this.#close({ kind: 'busy', message: error.message })
      return
    }
    // The state may have changed during the wait.
    if (this.#state === 'closing' || (this.#state === 'full' && item.error === null)) {
      this.#putBack(item)
      pace.leave()
      return
    }
    this.#running++
    const before = this.#outcomes
    void this.#buy(item)
      .catch((error: unknown) => this.#handle(item, error, before))
      .finally(() => {
        this.#running--
        pace.leave()
        this.#wake()
      })
  }

  async #buy(item: Item<R>): Promise<void> {
    const { buyer, files, pace, abort, onProgress } = this.#options
    const outcome = await buyer.buy(item.row, abort)
    this.#outcomes++
    if (this.#state === 'full') this.#state = 'buying'
    if (outcome.kind === 'unfinished') return this.#keepUnfinished(item, outcome)
    this.#silences = 0
    this.#refusals = isPaymentRefused(outcome) ? this.#refusals + 1 : 0
    if (outcome.kind === 'completed') {
      pace.succeed()
      await files.complete(item.row, outcome.purchase)
    } else {
      if (this.#refusals >= MAX_REFUSALS) this.#close({ kind: 'payments_refused', message: outcome.error.message })
      await files.fail(item.row, outcome.error, outcome.charged)
    }
    onProgress?.()
  }

  #keepUnfinished(item: Item<R>, { error, isLater }: Extract<Outcome, { kind: 'unfinished' }>): void {
    item.error = error
    item.tries = isLater ? MAX_TRIES : item.tries + 1
    if (item.tries < MAX_TRIES) this.#again.push(item)
    else this.#unfinished.push({ row: item.row, error })
    if (isLater) return
    this.#silences++
    if (this.#silences >= MAX_SILENCES + this.#options.pace.limit)
      this.#close({ kind: 'unreachable', message: error.message })
  }

  /** @param before `#outcomes` when the row was taken */
  #handle(item: Item<R>, error: unknown, before: number): void {
    if (error instanceof BudgetError) {
      this.#fresh.push(item)
      // A row that has ended in the meantime may have released what this one needed.
      if (this.#state === 'buying' && this.#outcomes === before) this.#state = 'full'
    } else if (error instanceof TermsError) {
      this.#putBack(item)
      this.#close({ kind: 'terms', message: error.message })
    } else if (error instanceof CapacityError) {
      this.#putBack(item)
      this.#close({ kind: 'busy', message: error.message })
    } else if (this.#options.abort.aborted) this.#putBack(item)
    else {
      this.#failure ??= { error }
      this.#close(null)
    }
  }

  #putBack(item: Item<R>): void {
    if (item.error === null) this.#fresh.push(item)
    else this.#again.unshift(item)
  }

  /** The first reason counts. */
  #close(stop: Stop | null): void {
    if (this.#state === 'closing') return
    this.#state = 'closing'
    this.#stop = stop
    this.#closing.abort()
  }

  #rowEnds(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }
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
