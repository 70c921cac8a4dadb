// The files of a batch in its folder. `results.jsonl` and `errors.jsonl` are written to disk before a row counts as done,
// so they show which rows are left. `results.csv` has a line for each row of both, in the order of the input; it is written when a
// batch begins or continues, and at its end. Rows that ask the same, twins, get the outcome of the first of them.
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'csv-stringify/sync'
import { citableResults, textFragmentUrl } from '../citation.ts'
import type { CountersignError, Purchase } from '../client.ts'
import type { Evidence, PurchaseResult, VerificationResult } from '../result.ts'
import { type Item, rowsOf } from './groups.ts'
import { LogFile } from './log-file.ts'
import { formatUsd } from './money.ts'
import { Opened } from './opened.ts'
import { FURTHER_CLAIM } from './order.ts'
import type { Row, UnusableRow } from './rows.ts'

export interface ResultLine {
  id: string
  line: number
  source_url: string
  claim: string
  status: 'completed'
  claim_support: string
  request_id: string
  receipt_serial: number
  /** 0.00 for a twin; of rows that were bought together, each has its part. */
  cost_usd: string
  /** The id of the row that was bought, where this one asks the same. */
  same_as?: string
  /** The best quote of the result, and a link that marks it on its page. */
  quote: string | null
  fragment_url: string | null
  /** Why, and what raises doubt. A line of an earlier version has neither. */
  explanation?: string
  risk_flags?: readonly string[]
  receipt: VerificationResult['receipt']
  /** The bytes that the service sent. */
  result_base64: string
}

export interface ErrorLine {
  id: string
  line: number
  source_url: string
  claim: string
  status: 'failed'
  code: string
  message: string
  same_as?: string
  /** Whether the same row may succeed later. */
  retryable: boolean
  /** True if the money may still have been charged. */
  charged: boolean
  request_id: string | null
  failed_at: string
  /** Until then `--retry-errors` does not try the row again; null if it is always tried again, or never. */
  remembered_until: string | null
}

export interface Tally {
  completed: number
  failed: number
  verdicts: Record<string, number>
  failures: Record<string, number>
}

interface OpenOptions {
  /**
   * Which failures are tried again, and what must be on the disk before they are left out here: a crash between the two must not
   * lose that they had failed.
   */
  retry?: { isRetried: (error: ErrorLine) => boolean; before: (ids: string[]) => Promise<void> }
  /** The rows that ask the same as another row, by its id. */
  twins?: ReadonlyMap<string, readonly Row[]>
}

export class OutputFiles implements AsyncDisposable {
  readonly tally: Tally = { completed: 0, failed: 0, verdicts: {}, failures: {} }
  readonly #folder: string
  readonly #twins: NonNullable<OpenOptions['twins']>
  readonly #results: LogFile<ResultLine>
  readonly #errors: LogFile<ErrorLine>
  readonly #done: Set<string>
  readonly #failed: Map<string, ErrorLine>
  readonly #records: Recorded[]

  private constructor({ folder, twins, results, errors, done, failed, records, tally }: Contents) {
    this.#folder = folder
    this.#twins = twins
    this.#results = results
    this.#errors = errors
    this.#done = done
    this.#failed = failed
    this.#records = records
    Object.assign(this.tally, tally)
  }

  static async open(folder: string, { retry, twins = new Map() }: OpenOptions = {}): Promise<OutputFiles> {
    await using opened = new Opened()
    const tally: Tally = { completed: 0, failed: 0, verdicts: {}, failures: {} }
    const done = new Set<string>()
    const failed = new Map<string, ErrorLine>()
    const records: Recorded[] = []
    // Twins whose line a crash has prevented: the lines of twins follow that of the first.
    const missing = new Map<string, ResultLine>()
    const results = opened.use(
      await LogFile.open<ResultLine>(join(folder, 'results.jsonl'), (line) => {
        done.add(line.id)
        count(tally, line)
        records.push(recordOf(line))
        missing.delete(line.id)
        for (const twin of twins.get(line.id) ?? []) missing.set(twin.id, lineOfTwin(line, twin))
      }),
    )
    const errorsPath = join(folder, 'errors.jsonl')
    const kept: ErrorLine[] = []
    const retried: string[] = []
    let errors = await LogFile.open<ErrorLine>(errorsPath, (line) => {
      if (retry?.isRetried(line)) retried.push(line.id)
      else kept.push(line)
    })
    if (retry && retried.length > 0) {
      await retry.before(retried)
      await errors[Symbol.asyncDispose]()
      errors = await rewrite(errorsPath, kept)
    }
    opened.use(errors)
    for (const line of kept) {
      failed.set(line.id, line)
      count(tally, line)
      records.push(recordOf(line))
    }
    const files = new OutputFiles({ folder, twins, results, errors, done, failed, records, tally })
    await Promise.all([...missing.values()].filter(({ id }) => !files.isDone(id)).map((line) => files.#complete(line)))
    const others = kept.flatMap((line) => (twins.get(line.id) ?? []).map((twin) => lineOfTwin(line, twin)))
    await Promise.all(others.filter(({ id }) => !files.isDone(id)).map((line) => files.#fail(line)))
    await files.#writeTable()
    opened.move()
    return files
  }

  /** The rows that get the outcome of this one. */
  twinsOf(id: string): readonly Row[] {
    return this.#twins.get(id) ?? []
  }

  isDone(id: string): boolean {
    return this.#done.has(id) || this.#failed.has(id)
  }

  /** The failures that are kept. */
  get failures(): Iterable<ErrorLine> {
    return this.#failed.values()
  }

  /** Resolves when the result is on the disk. Of rows that were bought together, those that have a line keep it. */
  async complete(item: Item, { result, bytes }: Purchase<PurchaseResult>): Promise<void> {
    const found = citableResults(result)
    const result_base64 = Buffer.from(bytes).toString('base64')
    const lines = rowsOf(item).flatMap((row, i) => {
      const one = found[i]
      return one && !this.isDone(row.id) ? [resultLine(row, one, { cost: partOf(result, i), result_base64 })] : []
    })
    const twins = lines.flatMap((line) => this.twinsOf(line.id).map((twin) => lineOfTwin(line, twin)))
    await Promise.all([...lines, ...twins].map((one) => this.#complete(one)))
  }

  async #complete(line: ResultLine): Promise<void> {
    this.#done.add(line.id)
    await this.#results.append(line)
    count(this.tally, line)
    this.#records.push(recordOf(line))
  }

  async fail(item: Item, error: CountersignError, charged: boolean): Promise<void> {
    const { code, message, retryable, requestId } = error
    // A page that could not be read, or an input that was refused, will fail again a minute later.
    const until = retryable || charged ? null : new Date(Date.now() + REMEMBERED_MS).toISOString()
    const about = { code, message, retryable, charged, request_id: requestId, remembered_until: until }
    const lines = rowsOf(item).flatMap((row) => (this.isDone(row.id) ? [] : [errorLine(row, about)]))
    const twins = lines.flatMap((line) => this.twinsOf(line.id).map((twin) => lineOfTwin(line, twin)))
    await Promise.all([...lines, ...twins].map((one) => this.#fail(one)))
  }

  async refuse(row: UnusableRow): Promise<void> {
    const about = { code: 'unusable_row', message: row.reason, retryable: false, charged: false }
    await this.#fail(errorLine(row, { ...about, request_id: null, remembered_until: null }))
  }

  async #fail(line: ErrorLine): Promise<void> {
    this.#failed.set(line.id, line)
    await this.#errors.append(line)
    count(this.tally, line)
    this.#records.push(recordOf(line))
  }

  async #writeTable(): Promise<void> {
    this.#records.sort((one, other) => one.line - other.line)
    const path = join(this.#folder, 'results.csv')
    const table = [record(COLUMNS), ...this.#records.map(({ text }) => text)].join('')
    try {
      await writeFile(`${path}.new`, table, { mode: 0o600 })
      await rename(`${path}.new`, path)
    } catch (error) {
      await rm(`${path}.new`, { force: true }).catch(() => {})
      throw error
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#results[Symbol.asyncDispose]()
    await this.#errors[Symbol.asyncDispose]()
    await this.#writeTable()
  }
}

interface Contents {
  folder: string
  twins: NonNullable<OpenOptions['twins']>
  results: LogFile<ResultLine>
  errors: LogFile<ErrorLine>
  done: Set<string>
  failed: Map<string, ErrorLine>
  records: Recorded[]
  tally: Tally
}

/** A row of `results.csv`. */
interface Recorded {
  /** Of the input. */
  line: number
  text: string
}

/** The line of a row. @param result of several claims: the part of its claim */
function resultLine(
  { id, line, source_url, claim }: Row,
  result: VerificationResult,
  { cost, result_base64 }: { cost: bigint; result_base64: string },
): ResultLine {
  const best = bestOf(result)
  return {
    ...{ id, line, source_url, claim },
    status: 'completed',
    claim_support: result.claim_support,
    request_id: result.request_id,
    receipt_serial: result.receipt.attestation.serial,
    cost_usd: formatUsd(cost),
    quote: best?.quote ?? null,
    fragment_url: best ? textFragmentUrl(result, best) : null,
    explanation: result.explanation,
    risk_flags: result.risk_flags,
    receipt: result.receipt,
    result_base64,
  }
}

/** Atomic units that one claim of a result has cost: the first one what is left of the whole. */
function partOf(result: PurchaseResult, i: number): bigint {
  if (i > 0) return FURTHER_CLAIM
  const further = 'claims' in result ? result.claims.length - 1 : 0
  return BigInt(result.payment.amount_atomic) - FURTHER_CLAIM * BigInt(further)
}

/** What the line of a row says of a row that asks the same. */
function lineOfTwin<L extends ResultLine | ErrorLine>(line: L, { id, line: number }: Row): L {
  return { ...line, id, line: number, same_as: line.id, ...(line.status === 'completed' && { cost_usd: '0.00' }) }
}

function errorLine(
  row: Row | UnusableRow,
  about: Omit<ErrorLine, 'status' | 'failed_at' | keyof UnusableHead>,
): ErrorLine {
  return { ...headOf(row), ...about, status: 'failed', failed_at: new Date().toISOString() }
}

type UnusableHead = ReturnType<typeof headOf>

/** Whether `--retry-errors` tries a failure again: not while it is remembered, and never where money may be gone. */
export function isRetried({ code, charged, retryable, remembered_until }: ErrorLine, now: number): boolean {
  if (charged || code === 'unusable_row') return false
  return retryable || remembered_until === null || Date.parse(remembered_until) <= now
}

/** Replaces the file completely, or not at all. */
async function rewrite(path: string, lines: readonly ErrorLine[]): Promise<LogFile<ErrorLine>> {
  const unfinished = `${path}.new`
  // A crash may have left one behind.
  await writeFile(unfinished, '', { mode: 0o600 })
  const file = await LogFile.open<ErrorLine>(unfinished, () => {})
  await Promise.all(lines.map((line) => file.append(line)))
  await rename(unfinished, path)
  return file
}

function headOf({ id, line, source_url, claim }: Row | UnusableRow) {
  return { id, line, source_url, claim }
}

function count(tally: Tally, line: ResultLine | ErrorLine): void {
  if (line.status === 'completed') {
    tally.completed++
    tally.verdicts[line.claim_support] = (tally.verdicts[line.claim_support] ?? 0) + 1
  } else {
    tally.failed++
    tally.failures[line.code] = (tally.failures[line.code] ?? 0) + 1
  }
}

/** The first that takes a side, else the first. */
function bestOf({ evidence }: VerificationResult): Evidence | undefined {
  return evidence.find(({ stance }) => stance !== 'mentions') ?? evidence[0]
}

const COLUMNS = [
  'id',
  'source_url',
  'claim',
  'claim_support',
  'quote',
  'fragment_url',
  'receipt_serial',
  'cost_usd',
  'error',
]

function recordOf(line: ResultLine | ErrorLine): Recorded {
  const head = [line.id, line.source_url, line.claim]
  const cells = line.status === 'failed' ? failureCells(line) : resultCells(line)
  return { line: line.line, text: record([...head, ...cells]) }
}

function failureCells({ charged, code, message }: ErrorLine): string[] {
  return ['', '', '', '', charged ? '' : '0.00', `${code}: ${message}`]
}

function resultCells({ claim_support, quote, fragment_url, receipt_serial, cost_usd }: ResultLine): string[] {
  return [claim_support, quote ?? '', fragment_url ?? '', String(receipt_serial), cost_usd, '']
}

/** Quotes are text of pages, so a cell that a spreadsheet would read as a formula gets an apostrophe. */
function record(cells: string[]): string {
  return stringify([cells], { escape_formulas: true })
}

/** A day. */
const REMEMBERED_MS = 86_400_000
