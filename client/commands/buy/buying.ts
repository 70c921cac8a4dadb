// Shared by the commands that buy: the terms that a service asks for, the accounts after a crash, and which failures are wrong
// usage.
import { UsageError } from '../../arguments.ts'
import { type Budget, budgetLock, checkBudget } from '../../batch/budget.ts'
import { Buyer, pinTerms, TermsError } from '../../batch/buyer.ts'
import { type Item, rowsOf } from '../../batch/groups.ts'
import { type Journal, JournalError } from '../../batch/journal.ts'
import { checkUnlocked, LockedError } from '../../batch/lock.ts'
import { DamagedFileError } from '../../batch/log-file.ts'
import { parseUsd } from '../../batch/money.ts'
import { inputOf, priceOf, type Question } from '../../batch/order.ts'
import type { OutputFiles } from '../../batch/output-files.ts'
import { Pace } from '../../batch/pace.ts'
import type { Row } from '../../batch/rows.ts'
import { type Run, runRows } from '../../batch/run.ts'
import { CountersignError, createIdempotencyKey } from '../../client.ts'
import { systemClock } from '../../clock.ts'
import { originOf } from '../../network-failure.ts'
import type { Capabilities } from '../../operations/discovery.ts'
import type { Terms, Wallet } from '../../wallet.ts'
import { counted, openProgress } from '../batch/report.ts'
import { checkReplaceable, checkWritable, readable } from '../files.ts'
import { firstError } from '../output.ts'
import { openClient, patiently } from '../patience.ts'
import { endAtSignals, stopAtSignals } from '../signals.ts'

/** Milliseconds for one row: longer than any settlement takes that succeeds. */
const ROW_MS = 600_000
const GIVEN_AWAY = 'The service answered with a result where it should have asked for a payment.'

/**
 * Runs a command that buys. Failures count as wrong usage if the user can correct them before anything is bought. A signal ends it
 * with exit status 130.
 */
export async function explained<T>(work: () => Promise<T>): Promise<T> {
  using _ending = endAtSignals()
  try {
    return await work()
  } catch (thrown) {
    const cause = firstError(thrown)
    if (isUsage(cause) && !(cause instanceof UsageError)) throw new UsageError((cause as Error).message, { cause })
    throw cause
  }
}

/** Whether the user can correct what was thrown. */
export function isUsage(cause: unknown): boolean {
  return [UsageError, LockedError, JournalError, DamagedFileError, TermsError].some((kind) => cause instanceof kind)
}

/** Atomic units of `--budget`. Throws a UsageError. */
export function budgetOf(text: string | undefined): bigint {
  if (text === undefined) throw new UsageError('The most that may be spent is missing: give --budget USD.')
  const atoms = parseUsd(text)
  if (atoms === null) throw new UsageError(`--budget ${text} is not an amount of dollars, such as 6.00.`)
  return atoms
}

/** Throws a UsageError for a file in which a budget cannot be kept, or which holds something else. There need be none. */
export async function checkBudgetFile(path: string | undefined): Promise<void> {
  // Beside it is its lock, and it is continued in its place.
  await checkReplaceable(path)
  await checkWritable(path)
  if (path === undefined) return
  await readable(path, () => checkBudget(path)).catch((cause: Error) => {
    throw new UsageError(cause.message, { cause })
  })
}

/** As checkBudgetFile, for a run that holds the file to its end. Throws a LockedError too, where another run holds it. */
export async function checkBudgetFileOfRun(path: string | undefined): Promise<void> {
  await checkBudgetFile(path)
  if (path !== undefined) checkUnlocked(budgetLock(path))
}

/** The terms of the first question that the service does not refuse, however many are refused before it, checked. Pays nothing. */
export async function askTerms(
  service: string,
  questions: readonly Question[],
  wallet: Wallet,
  { price, payment_mode }: Capabilities,
): Promise<Terms> {
  let last: unknown
  for (const question of questions) {
    const client = openClient({ baseUrl: service })
    const options = { idempotencyKey: createIdempotencyKey() }
    const asked: Promise<unknown> =
      'claims' in question
        ? client.verifyClaims(inputOf(question), options)
        : client.verifySource(inputOf(question), options)
    const error = await asked.then(
      () => new CountersignError({ code: 'unexpected_response', message: GIVEN_AWAY, retryable: false }),
      (error: unknown) => error,
    )
    if (error instanceof CountersignError && error.paymentRequired)
      return pinTerms(error.paymentRequired, wallet, {
        priceAtoms: String(priceOf(BigInt(price.amount_atomic), question)),
        mode: payment_mode,
      })
    last = error
    // A page that is temporarily unavailable concerns only that question.
    if (!(error instanceof CountersignError) || (error.retryable && error.status !== 422)) break
  }
  throw last
}

/** The terms of one claim, asked for with the first groups of rows where there are any: the service must sell those too. */
export async function askTermsOfRow(
  service: string,
  items: readonly Item[],
  wallet: Wallet,
  capabilities: Capabilities,
): Promise<Terms> {
  const groups = items.filter((item) => 'rows' in item)
  const terms = await askTerms(service, groups.length > 0 ? groups : items, wallet, capabilities)
  return { ...terms, amount: capabilities.price.amount_atomic }
}

export function ownAddress(wallet: Wallet, { network }: Terms): string {
  const kind = network.startsWith('eip155:') ? 'evm' : 'solana'
  return wallet.addresses.find((one) => one.kind === kind)?.address ?? ''
}

/** Releases payments that a crash left counted: their rows have failed uncharged. */
export async function settleAccounts(journal: Journal, files: OutputFiles, budget: Budget): Promise<void> {
  for (const { id, charged, code } of files.failures) {
    const payment = journal.paymentOf(id)
    if (charged || !payment) continue
    await journal.release(payment, code)
    await budget.release(payment.payment)
  }
}

export interface Purchase {
  service: string
  wallet: Wallet
  items: readonly Item[]
  journal: Journal
  budget: Budget
  files: OutputFiles
  /** Most purchases in parallel, unless the service asks for fewer. */
  concurrency: number
  /** All rows that the progress counts, with those that have an outcome in `files`; by default those of `items` alone. */
  all?: number
  /** Signs nothing: fetches what the payments of the journal bought. */
  isFetchOnly?: boolean
}

/** The rows, and those that ask the same as one of them. */
export function countWithTwins(rows: readonly Row[], files: OutputFiles): number {
  return rows.reduce((count, { id }) => count + 1 + files.twinsOf(id).length, 0)
}

/** Buys the rows on the terms of the journal, shows the progress, and stops at a signal. */
export async function buyRows(purchase: Purchase): Promise<Omit<Run, 'untouched'>> {
  const { items, journal, budget, files, concurrency } = purchase
  const pace = new Pace(concurrency, systemClock)
  const { terms } = journal.header
  const price = BigInt(terms.amount)
  const buyer = new Buyer({
    ...{ ...purchase, terms, pace, clock: systemClock, timeoutMs: ROW_MS },
    priceOf: (order) => priceOf(price, order),
  })
  using stopping = stopAtSignals(
    () =>
      `No new rows. ${counted(pace.running, 'purchase')} under way get three seconds; Ctrl-C again leaves them at once.`,
  )
  const left = countWithTwins(items.flatMap(rowsOf), files)
  const apart = purchase.all === undefined ? files.tally.completed + files.tally.failed : 0
  using progress = openProgress({ all: left === 0 ? 0 : (purchase.all ?? left), apart, files, budget })
  const words = () => `Waiting for ${originOf(purchase.service)}: ${counted(pace.running, 'purchase')} under way.`
  const run = await patiently(Date.now(), words, () =>
    runRows({ rows: items, buyer, files, pace, ...stopping, onProgress: progress.show }),
  )
  const unfinished = run.unfinished.flatMap(({ row: item, error }) =>
    rowsOf(item)
      .flatMap((row) => [row, ...files.twinsOf(row.id)])
      .flatMap((row) => (files.isDone(row.id) ? [] : [{ row, error }])),
  )
  return { stop: run.stop, unfinished }
}
