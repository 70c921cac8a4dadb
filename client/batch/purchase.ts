// One purchase that is never paid twice: killed at any instruction and begun again, it goes on with the payment that it has signed,
// and once it is finished and verified it is shown again for a day.
//
// A purchase has a folder of its own, named by service, page, claims, options and network. `purchase.jsonl` says what came of it,
// and a folder for each terms that were ever paid on has the journal of its payments, as a batch has one. `purchase-1.token` has the
// recovery token of the first purchase, `purchase-2.token` that of the one that was bought anew.
import { createHash } from 'node:crypto'
import { mkdir, open, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CountersignError, type Fetch, type Purchase } from '../client.ts'
import { systemClock } from '../clock.ts'
import type { PurchaseResult } from '../result.ts'
import type { Terms, Wallet } from '../wallet.ts'
import { type Budget, BudgetError, openRunBudget, openSharedBudget } from './budget.ts'
import { Buyer, type Outcome, TermsError } from './buyer.ts'
import { checkJournal, Journal, readPayments } from './journal.ts'
import { waitForLock } from './lock.ts'
import { checkLines, LogFile } from './log-file.ts'
import { formatUsd } from './money.ts'
import { Opened } from './opened.ts'
import type { Order, Question } from './order.ts'
import { CapacityError, Pace } from './pace.ts'

export type { Question } from './order.ts'

/** A finished purchase. */
export interface Bought {
  kind: 'completed'
  result: PurchaseResult
  /** As the service sent them. */
  bytes: Uint8Array
  /** What the purchase cost, in this run or an earlier one. */
  costUsd: string
  /** True if nothing was paid or fetched in this run. */
  isEarlier: boolean
  isVerified: boolean
  /** Null if the service gave no token. */
  recovery: Recovery | null
  /** Why the token could not be kept. Then the purchase is not finished: the next run fetches it again. */
  fault?: Error
}

/** What fetches the result and its evidence again, without a payment. */
export interface Recovery {
  token: string
  /** Where the token is kept, with mode 600. */
  file: string
}

export type Ending =
  | Bought
  /** Uncharged. */
  | { kind: 'failed'; error: CountersignError }
  /** The money may have been charged, and there is no result. */
  | { kind: 'lost'; message: string }
  /** The same purchase goes on later. */
  | { kind: 'pending'; message: string }
  | { kind: 'over_budget'; message: string }
  | { kind: 'other_terms'; message: string }
  /** The question was answered with no. */
  | { kind: 'declined' }

export interface PurchaseOptions {
  service: string
  network: string
  wallet: Wallet
  /** The folder of all purchases. */
  folder: string
  /** The limit for this run, or for the file. */
  cap: bigint
  budgetFile?: string
  /** Shared by several purchases of one process; not used with a file. */
  budget?: Budget
  /** Buys anew although it was bought, and shown, within the last day. */
  again: boolean
  /** Whether the result proves. It counts as finished only then. */
  verify: (result: PurchaseResult, bytes: Uint8Array) => Promise<boolean>
  /** Asks the service for its terms. Throws what it refuses, and what the caller does not want to pay. */
  askTerms: () => Promise<Terms>
  /** Whether to pay on these terms. */
  confirm: (terms: Terms) => Promise<boolean>
  /** Called before the service is waited for. */
  onWait?: () => void
  /** The waiting ends; the same purchase goes on later. */
  signal: AbortSignal
  fetch?: Fetch
}

type Line =
  | { type: 'result'; id: string; at: string; cost_usd: string; result_base64: string }
  | { type: 'lost'; id: string; at: string; message: string }
  /** The caller has seen the result: only then may another one be bought. */
  | { type: 'shown'; id: string; at: string }

/**
 * Buys, goes on with an interrupted purchase, or returns a finished one. `show` prints the ending; it counts as shown after that. What
 * was bought is also shown when it cannot be kept, which is thrown after that.
 */
export async function buyOnce(
  question: Question,
  options: PurchaseOptions,
  show: (ending: Ending) => Promise<void>,
): Promise<void> {
  const home = join(options.folder, nameOf(question, options))
  await mkdir(home, { recursive: true, mode: 0o700 })
  await using opened = new Opened()
  opened.use(await waitForLock(join(home, 'lock'), options.signal))
  const lines: Line[] = []
  const log = opened.use(await LogFile.open<Line>(join(home, 'purchase.jsonl'), (line) => lines.push(line)))
  const write = (line: Line) => log.append(line)
  const at = () => new Date().toISOString()
  const ended = lines.filter(({ type }) => type !== 'shown')
  const last = ended.at(-1)
  if (last && !isReplaced(last, lines, options.again)) {
    if (last.type === 'lost') return show({ kind: 'lost', message: last.message })
    await show(await readFinished(last as Extract<Line, { type: 'result' }>, home, options))
    return write({ type: 'shown', id: last.id, at: at() })
  }
  const id = `purchase-${ended.length + 1}`
  const ending = await new Attempt(id, home, question, options).make()
  if (ending.kind === 'lost') await write({ type: 'lost', id, at: at(), message: ending.message })
  const isFinished = ending.kind === 'completed' && ending.isVerified
  let fault = ending.kind === 'completed' ? ending.fault : undefined
  if (isFinished && !fault) {
    const result_base64 = Buffer.from(ending.bytes).toString('base64')
    const line = { type: 'result', id, at: at(), cost_usd: ending.costUsd, result_base64 } as const
    await write(line).catch((error: Error) => {
      fault = error
    })
  }
  await show(ending)
  if (fault) throw fault
  if (isFinished) await write({ type: 'shown', id, at: at() })
}

/** Whether some purchase of this question has a payment that may be charged, on any network. */
export async function hasOpenPayment(folder: string, service: string, question: Question): Promise<boolean> {
  for (const home of await listHomes(folder, service, question)) {
    const lines: Line[] = []
    await using _log = await LogFile.open<Line>(join(home, 'purchase.jsonl'), (line) => lines.push(line))
    const id = `purchase-${lines.filter(({ type }) => type !== 'shown').length + 1}`
    for (const terms of await listFolders(home))
      if ((await readPayments(join(home, terms, 'journal.jsonl')))?.paid.has(id)) return true
  }
  return false
}

/**
 * Throws a DamagedFileError or a JournalError where the record of a purchase of this question, on any network, cannot be continued.
 * Changes nothing.
 */
export async function checkPurchases(folder: string, service: string, question: Question): Promise<void> {
  for (const home of await listHomes(folder, service, question)) {
    await checkLines(join(home, 'purchase.jsonl'))
    for (const terms of await listFolders(home)) await checkJournal(join(home, terms, 'journal.jsonl'))
  }
}

/** The folders of the purchases of this question: one for each network. */
async function listHomes(folder: string, service: string, question: Question): Promise<string[]> {
  const start = `${digest([service, question])}-`
  return (await listFolders(folder)).filter((name) => name.startsWith(start)).map((name) => join(folder, name))
}

/** Whether another purchase may follow this one: it is older than a day, or one is asked for and this one was seen. */
function isReplaced(last: Line, lines: readonly Line[], again: boolean): boolean {
  if (last.type === 'lost') return again
  const isOld = Date.now() - Date.parse(last.at) > KEPT_MS
  return isOld || (again && lines.some(({ type, id }) => type === 'shown' && id === last.id))
}

async function readFinished(
  { id, result_base64, cost_usd }: Extract<Line, { type: 'result' }>,
  home: string,
  { verify }: PurchaseOptions,
): Promise<Bought> {
  const bytes = Buffer.from(result_base64, 'base64')
  const result = JSON.parse(bytes.toString()) as PurchaseResult
  const isVerified = await verify(result, bytes)
  const recovery = await readRecovery(tokenFile(home, id))
  return { kind: 'completed', result, bytes, costUsd: cost_usd, isEarlier: true, isVerified, recovery }
}

const tokenFile = (home: string, id: string) => join(home, `${id}.token`)

async function readRecovery(file: string): Promise<Recovery | null> {
  const token = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  return token.trim() === '' ? null : { token: token.trim(), file }
}

/** On the disk when it resolves: a purchase that counts as finished is not asked for again, so its token must be there before. */
async function keepRecovery(file: string, token: string | null): Promise<Recovery | null> {
  if (token === null) return null
  await using handle = await open(file, 'w', 0o600)
  await handle.writeFile(`${token}\n`)
  await handle.sync()
  return { token, file }
}

class Attempt {
  readonly #order: Order
  readonly #home: string
  readonly #options: PurchaseOptions

  constructor(id: string, home: string, question: Question, options: PurchaseOptions) {
    this.#order = { id, ...question }
    this.#home = home
    this.#options = options
  }

  async make(): Promise<Ending> {
    try {
      return (await this.#goOn()) ?? (await this.#begin())
    } catch (error) {
      if (error instanceof BudgetError) return { kind: 'over_budget', message: error.message }
      if (error instanceof TermsError) return { kind: 'other_terms', message: error.message }
      if (error instanceof CountersignError) return { kind: 'failed', error }
      throw error
    }
  }

  /** Fetches what an earlier run has signed a payment for, on any terms. Null if there is nothing that can be charged. */
  async #goOn(): Promise<Ending | null> {
    for (const name of await listFolders(this.#home)) {
      const payments = await readPayments(join(this.#home, name, 'journal.jsonl'))
      if (!payments?.paid.has(this.#order.id)) continue
      const ending = await this.#buy(payments.terms, true)
      if (ending.kind !== 'failed') return ending
    }
    return null
  }

  async #begin(): Promise<Ending> {
    const { askTerms, confirm, cap, budget, budgetFile } = this.#options
    const terms = await askTerms()
    // A question about a purchase that the budget does not allow would be idle. The file is asked when the amount is reserved.
    const most = budgetFile === undefined && budget ? cap - budget.spent : cap
    if (BigInt(terms.amount) > most) throw new BudgetError('The budget is reached.')
    if (!(await confirm(terms))) return { kind: 'declined' }
    return this.#buy(terms, false)
  }

  async #buy(terms: Terms, isFetchOnly: boolean): Promise<Ending> {
    const { service, wallet, signal, fetch, onWait, network } = this.#options
    const folder = join(this.#home, digest([terms.scheme, network, terms.asset, terms.amount, terms.payTo]))
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const input = { service, input_sha256: digest('one purchase') }
    await using journal = await Journal.open(join(folder, 'journal.jsonl'), input, async () => terms)
    const clock = systemClock
    const pace = new Pace(1, clock)
    const budget = this.#openBudget(journal)
    const common = { service, wallet, journal, budget, pace, clock, timeoutMs: TIMEOUT_MS, isFetchOnly }
    const buyer = new Buyer({ ...common, terms: journal.header.terms, ...(fetch && { fetch }) })
    onWait?.()
    let outcome: Outcome
    try {
      outcome = await buyer.buy(this.#order, signal)
    } catch (error) {
      // The signal, a lack of capacity, or other terms after a payment was sent: it goes on later.
      const isSent = error instanceof TermsError && journal.paymentOf(this.#order.id)
      const isStopped = error instanceof CapacityError || (signal.aborted && !(error instanceof BudgetError))
      if (!isSent && !isStopped) throw error
      return this.#unanswered(journal, error as Error)
    }
    if (outcome.kind === 'unfinished') return this.#unanswered(journal, outcome.error)
    if (outcome.kind === 'completed') return this.#complete(journal, outcome.purchase)
    if (outcome.charged) return { kind: 'lost', message: outcome.error.message }
    // The service repeats a failure to the same key.
    await journal.retry([this.#order.id])
    return { kind: 'failed', error: outcome.error }
  }

  #unanswered(journal: Journal, error: Error): Ending {
    if (journal.paymentOf(this.#order.id)) return { kind: 'pending', message: error.message }
    if (error instanceof CountersignError) return { kind: 'failed', error }
    const failure = { code: 'not_bought', message: error.message, retryable: true }
    return { kind: 'failed', error: new CountersignError(failure) }
  }

  async #complete(journal: Journal, { result, bytes, recoveryToken }: Purchase<PurchaseResult>): Promise<Ending> {
    const costUsd = formatUsd(BigInt(journal.header.terms.amount))
    const isVerified = await this.#options.verify(result, bytes)
    const whole = { kind: 'completed', result, bytes, costUsd, isEarlier: false, isVerified } as const
    try {
      return { ...whole, recovery: await keepRecovery(tokenFile(this.#home, this.#order.id), recoveryToken) }
    } catch (error) {
      return { ...whole, recovery: null, fault: error as Error }
    }
  }

  #openBudget(journal: Journal): Budget {
    const { budgetFile, budget, cap } = this.#options
    if (budgetFile === undefined) return budget ?? openRunBudget(cap, new Map())
    const run = `${journal.header.run}/`
    return openSharedBudget(budgetFile, () => ({ cap, run, sent: journal.reserved }))
  }
}

/** What names a purchase. */
function nameOf(question: Question, { service, network }: PurchaseOptions): string {
  return `${digest([service, question])}-${network.replace(/[^A-Za-z0-9]/g, '-')}`
}

async function listFolders(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

function digest(value: unknown): string {
  const sorted = (_: string, one: unknown) =>
    typeof one === 'object' && one !== null && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).sort())
      : one
  return createHash('sha256').update(JSON.stringify(value, sorted)).digest('hex').slice(0, 24)
}

/** A finished purchase is shown again for a day. */
const KEPT_MS = 86_400_000
/** Longer than any settlement takes that succeeds. */
const TIMEOUT_MS = 600_000
