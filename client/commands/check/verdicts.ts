// `countersign check --verify`: buys verdicts for citations that the quote check could not decide, as `batch` buys rows.
// All runs share one folder for each service and its terms, so that no verdict is bought twice, even for different reports.
import { createHash } from 'node:crypto'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { UsageError, visible } from '../../arguments.ts'
import { type Budget, openBudgetFile, openRunBudget } from '../../batch/budget.ts'
import { affordable, costOf, groupByPage, type Item, itemsOf } from '../../batch/groups.ts'
import { checkJournal, Journal, readPayments } from '../../batch/journal.ts'
import { lock } from '../../batch/lock.ts'
import { checkLines, readLines } from '../../batch/log-file.ts'
import { formatUsd } from '../../batch/money.ts'
import { Opened } from '../../batch/opened.ts'
import { type ErrorLine, isRetried, OutputFiles, type ResultLine } from '../../batch/output-files.ts'
import type { Row } from '../../batch/rows.ts'
import type { Run } from '../../batch/run.ts'
import { citableResults } from '../../citation.ts'
import type { Capabilities } from '../../operations/discovery.ts'
import { KEEP_DAYS } from '../../report/answer-store.ts'
import type { Judged, Verdict } from '../../report/judgement.ts'
import type { VerdictSums } from '../../report/outcome.ts'
import { applyVerdicts, type Claim, claimsOf, type NoVerdict, nameOf } from '../../report/verdicts.ts'
import type { PurchaseResult } from '../../result.ts'
import type { Terms, Wallet } from '../../wallet.ts'
import { counted, questionOf, tellCost, tellMode } from '../batch/report.ts'
import { askTermsOfRow, buyRows, explained, ownAddress, settleAccounts } from '../buy/buying.ts'
import { confirm } from '../confirm.ts'
import { faultOf } from '../files.ts'
import { note } from '../output.ts'
import { openClient } from '../patience.ts'

export interface VerdictOptions {
  service: string
  wallet: Wallet
  /** Atomic units that this run may spend. */
  cap: bigint
  budgetFile: string | undefined
  /** Claims on one page are bought together. */
  isGrouped: boolean
  folder: string
  yes: boolean | undefined
}

export interface Verified {
  judged: Judged[]
  sums: VerdictSums
  isInterrupted: boolean
}

/** Throws a UsageError where the verdicts of earlier runs, or what those runs have paid, cannot be read. */
export async function checkVerdicts(folder: string, service: string): Promise<void> {
  const home = join(folder, digest(service))
  await explained(async () => {
    for (const terms of await listFolders(home)) {
      await checkJournal(join(home, terms, 'journal.jsonl'))
      for (const name of ['results.jsonl', 'errors.jsonl']) await checkLines(join(home, terms, name))
    }
    await readKnown(home)
  })
}

/** Prints what is left and what it costs, asks, buys, and adds the verdicts to the citations. Throws a UsageError. */
export function verifyCitations(judged: readonly Judged[], options: VerdictOptions): Promise<Verified> {
  return explained(() => verify(judged, options))
}

async function verify(judged: readonly Judged[], options: VerdictOptions): Promise<Verified> {
  const claims = claimsOf(judged)
  const home = join(options.folder, digest(options.service))
  const known = await readKnown(home)
  const rows = claims.flatMap((claim, n): Row[] => {
    const { times, verdict } = known.get(nameOf(claim)) ?? { times: 0, verdict: null }
    return verdict ? [] : [rowOf(claim, n, times)]
  })
  const verdicts = new Map<string, Verdict | NoVerdict>(
    [...known].flatMap(([name, { verdict }]) => (verdict ? [[name, verdict] as const] : [])),
  )
  const bought = rows.length > 0 ? await purchase(rows, { kept: claims.length - rows.length, home, options }) : NONE
  for (const [name, verdict] of bought.verdicts) verdicts.set(name, verdict)
  const has = (claim: Claim) => 'claimSupport' in (verdicts.get(nameOf(claim)) ?? {})
  return {
    judged: applyVerdicts(judged, verdicts),
    sums: {
      wanted: claims.length,
      bought: rows.filter(has).length,
      kept: claims.length - rows.length,
      missing: rows.filter((row) => !has(row)).length,
      spentUsd: formatUsd(bought.spent),
      folder: claims.some(has) ? home : null,
    },
    isInterrupted: bought.isInterrupted,
  }
}

interface Bought {
  verdicts: Map<string, Verdict | NoVerdict>
  /** Atomic units. */
  spent: bigint
  isInterrupted: boolean
}

const NONE: Bought = { verdicts: new Map(), spent: 0n, isInterrupted: false }

interface Purchase {
  /** Claims whose verdict is known. */
  kept: number
  home: string
  options: VerdictOptions
}

async function purchase(rows: Row[], { kept, home, options }: Purchase): Promise<Bought> {
  const { service, wallet, cap, yes, isGrouped } = options
  const capabilities = await openClient({ baseUrl: service }).getCapabilities()
  if (/(^|\s)literal-\d/.test(capabilities.methodology_version))
    throw new UsageError(
      'This service has no model: it finds quotations and gives no verdicts. Check without --verify.',
    )
  const price = BigInt(capabilities.price.amount_atomic)
  const together = (some: readonly Row[]): readonly Item[] => (isGrouped ? groupByPage(some) : some)
  const terms = await askTermsOfRow(service, together(rows), wallet, capabilities)
  const folder = join(home, digest(isGrouped ? `${termsText(terms)} by page` : termsText(terms)))
  const earlier = await fetchEarlier(rows, { home, folder, options })
  const left = rows.filter((row) => !earlier.verdicts.has(nameOf(row)))
  if (left.length === 0 || earlier.isInterrupted) return earlier
  const items = together(left)
  printPlan(left, items, { kept: kept + rows.length - left.length, price, cap, capabilities })
  note(`Paid to ${visible(terms.payTo)} on ${visible(terms.network)}, from ${ownAddress(wallet, terms)}.\n`)
  if (!(await confirm(questionOf(left.length, costOf(items, price), capabilities, 'verdict'), yes))) return earlier
  const { verdicts, spent, isInterrupted } = await buy(left, terms, { folder, options: less(options, earlier.spent) })
  return { verdicts: new Map([...earlier.verdicts, ...verdicts]), spent: earlier.spent + spent, isInterrupted }
}

/**
 * Fetches what an interrupted run has paid for on other terms: a claim with a payment that can still be charged is not paid
 * again only because price or recipient have changed. Signs nothing. A claim whose payment has expired gets no verdict
 * here.
 */
async function fetchEarlier(
  rows: readonly Row[],
  { home, folder, options }: { home: string; folder: string; options: VerdictOptions },
): Promise<Bought> {
  let all = NONE
  for (const other of (await listFolders(home)).map((name) => join(home, name))) {
    if (other === folder || all.isInterrupted) continue
    const journal = await readPayments(join(other, 'journal.jsonl'))
    const paid = rows.filter(({ id }) => journal?.paid.has(id))
    if (!journal || paid.length === 0) continue
    note(`Fetching ${counted(paid.length, 'verdict')} that an earlier run paid for on other terms.\n`)
    const bought = await buy(paid, journal.terms, {
      folder: other,
      options: less(options, all.spent),
      isFetchOnly: true,
    })
    all = {
      verdicts: new Map([...all.verdicts, ...bought.verdicts]),
      spent: all.spent + bought.spent,
      isInterrupted: bought.isInterrupted,
    }
  }
  return all
}

/** The budget of one run also covers what it fetches on earlier terms. A budget file counts that by itself. */
function less(options: VerdictOptions, spent: bigint): VerdictOptions {
  return options.budgetFile === undefined ? { ...options, cap: options.cap - spent } : options
}

interface Buying {
  folder: string
  options: VerdictOptions
  /** Signs nothing; a claim whose payment turns out uncharged is left out of the verdicts. */
  isFetchOnly?: boolean
}

async function buy(rows: Row[], terms: Terms, { folder, options, isFetchOnly = false }: Buying): Promise<Bought> {
  const { service, wallet, isGrouped } = options
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await using opened = new Opened()
  opened.use(await lock(join(folder, 'lock')))
  const input = { service, input_sha256: digest('verdicts of countersign check'), isGrouped }
  const journal = opened.use(await Journal.open(join(folder, 'journal.jsonl'), input, async () => terms))
  const now = Date.now()
  const retry = {
    isRetried: (error: ErrorLine) => isRetried(error, now),
    before: (ids: string[]) => journal.retry(ids),
  }
  const files = opened.use(await OutputFiles.open(folder, { retry }))
  const budget = await openBudget(opened, { journal, rows, options })
  const open = openPayments(rows, journal)
  // A payment whose result was not fetched yet counts for the run that fetches it.
  const before = budget.spent - [...open.values()].reduce((sum, atoms) => sum + atoms, 0n)
  await settleAccounts(journal, files, budget)
  const left = rows.filter(({ id }) => !files.isDone(id))
  const { paid, unpaid } = itemsOf(left, journal)
  const run = await buyRows({
    service,
    wallet,
    items: [...paid, ...unpaid],
    journal,
    budget,
    files,
    concurrency: AT_ONCE,
    isFetchOnly,
  })
  const verdicts = new Map(left.map((row) => [nameOf(row), missing(run)] as const))
  for (const { row, error } of run.unfinished)
    verdicts.set(nameOf(row), { code: error.code, message: LATER + error.message })
  const names = new Map(rows.map((row) => [row.id, nameOf(row)]))
  const failures = [...files.failures].filter(({ id }) => names.has(id))
  const all = new Map<string, Verdict | NoVerdict>(verdicts)
  for (const { id, code, message, charged } of failures)
    if (isFetchOnly && !charged) all.delete(names.get(id)!)
    else all.set(names.get(id)!, { code, message })
  for await (const line of readLines<ResultLine>(join(folder, 'results.jsonl')))
    if (names.has(line.id)) all.set(names.get(line.id)!, verdictOf(line, true))
  return { verdicts: all, spent: budget.spent - before, isInterrupted: run.stop?.kind === 'interrupted' }
}

/** By default the budget applies to this run only. Of the spending of earlier runs, only open payments count. */
async function openBudget(
  opened: Opened,
  { journal, rows, options }: { journal: Journal; rows: readonly Row[]; options: VerdictOptions },
): Promise<Budget> {
  const { budgetFile, cap } = options
  const run = `${journal.header.run}/`
  if (budgetFile !== undefined)
    return opened.use(await openBudgetFile(budgetFile, { cap, run, sent: journal.reserved }))
  return openRunBudget(cap, openPayments(rows, journal))
}

/** Atomic units by payment. One payment may be for several rows. */
function openPayments(rows: readonly Row[], journal: Journal): Map<string, bigint> {
  const payments = rows.flatMap(({ id }) => journal.paymentOf(id) ?? [])
  return new Map(payments.map(({ payment, atoms }) => [payment, BigInt(atoms)]))
}

interface Plan {
  kept: number
  price: bigint
  cap: bigint
  capabilities: Capabilities
}

function printPlan(rows: readonly Row[], items: readonly Item[], { kept, price, cap, capabilities }: Plan): void {
  const count = rows.length
  const cost = costOf(items, price)
  if (kept > 0) note(`${counted(kept, 'verdict')} of earlier runs still count.\n`)
  note(`The quote check cannot settle ${counted(count, 'citation')}. `)
  tellCost('verdict', rows, items, price)
  tellMode(capabilities)
  note(`Budget ${formatUsd(cap)} USDC`)
  note(cost > cap ? `: enough for ${counted(affordable(items, price, cap), 'verdict')}. The others are left.\n` : '.\n')
}

interface Known {
  /** How often it was bought. */
  times: number
  /** The newest one, unless it is too old. */
  verdict: Verdict | null
}

/** What earlier runs have bought from this service, on any terms. */
async function readKnown(home: string): Promise<Map<string, Known>> {
  const oldest = Date.now() - KEEP_DAYS * 86_400_000
  const known = new Map<string, Known>()
  for (const folder of await listFolders(home))
    for await (const line of readLines<ResultLine>(join(home, folder, 'results.jsonl'))) {
      const verdict = verdictOf(line, false)
      const { times, verdict: other } = known.get(nameOf(line)) ?? { times: 0, verdict: null }
      const isYoung = Date.parse(verdict.checkedAt) > oldest
      const isYounger = !other || Date.parse(verdict.checkedAt) > Date.parse(other.checkedAt)
      known.set(nameOf(line), { times: times + 1, verdict: isYoung && isYounger ? verdict : other })
    }
  return known
}

/** One folder for each terms that were ever paid on. */
function listFolders(home: string): Promise<string[]> {
  return readdir(home).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw new UsageError(`Cannot read ${home}: ${faultOf(error)}`, { cause: error })
  })
}

function verdictOf(line: ResultLine, isNew: boolean): Verdict {
  const result = JSON.parse(Buffer.from(line.result_base64, 'base64').toString()) as PurchaseResult
  const found = citableResults(result).find(({ claim }) => claim === line.claim)
  return {
    claimSupport: found?.claim_support ?? 'not_assessed',
    isAssessed: found !== undefined && found.assessment_scope !== 'literal_quotation_only',
    explanation: found?.explanation ?? '',
    quote: line.quote,
    fragmentUrl: line.fragment_url,
    requestId: line.request_id,
    receiptSerial: line.receipt_serial,
    checkedAt: result.checked_at,
    isNew,
    ...(found && { result: found }),
  }
}

/** The finding for a row for which nothing was done. */
function missing({ stop }: Pick<Run, 'stop'>): NoVerdict {
  if (stop?.kind === 'budget') return { code: 'budget_reached', message: 'There is no verdict: the budget is reached.' }
  if (stop?.kind === 'interrupted')
    return { code: 'interrupted', message: `There is no verdict: interrupted. ${AGAIN}` }
  return {
    code: stop?.kind ?? 'unfinished',
    message: `There is no verdict. ${stop && 'message' in stop ? stop.message : AGAIN}`,
  }
}

/** The same claim has the same row, until its verdict is too old: a row is bought once. */
function rowOf({ source_url, claim }: Claim, n: number, times: number): Row {
  const id = sha256(nameOf({ source_url, claim })).slice(0, 24)
  return { id: times === 0 ? id : `${id}-${times + 1}`, line: n + 1, source_url, claim }
}

/** What decides about the money. */
function termsText({ scheme, network, asset, amount, payTo }: Terms): string {
  return JSON.stringify([scheme, network, asset, amount, payTo])
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const digest = (text: string) => sha256(text).slice(0, 16)

const AGAIN = 'Run the same command again: nothing is paid twice.'
const LATER = `There is no verdict yet. ${AGAIN} `
/** Most verifications in parallel. */
const AT_ONCE = 8
