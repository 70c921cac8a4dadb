// The files of a batch in its folder. `results.jsonl` and `errors.jsonl` are written to disk before a row counts as done,
// so they show which rows are left. `results.csv` has a line for each row of both; it is rewritten when a batch continues.

import { once } from 'node:events'
import { createWriteStream, type WriteStream } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'csv-stringify/sync'
import { textFragmentUrl } from '../citation.ts'
import type { CountersignError, Purchase } from '../client.ts'
import type { Evidence, VerificationResult } from '../result.ts'
import { LogFile } from './log-file.ts'
import { formatUsd } from './money.ts'
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
  cost_usd: string
  /** The best quote of the result, and a link that marks it on its page. */
  quote: string | null
  fragment_url: string | null
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

export class OutputFiles implements AsyncDisposable {
  readonly tally: Tally = { completed: 0, failed: 0, verdicts: {}, failures: {} }
  readonly #results: LogFile<ResultLine>
  readonly #errors: LogFile<ErrorLine>
  readonly #done: Set<string>
  readonly #failed: Map<string, ErrorLine>
  readonly #csv: WriteStream

  private constructor(files: Opened) {
    this.#results = files.results
    this.#errors = files.errors
    this.#done = files.done
    this.#failed = files.failed
    this.#csv = files.csv
    Object.assign(this.tally, files.tally)
  }

  /**
   * @param retry which failures are tried again, and what must be on the disk before they are left out here: a crash between the
   * two must not lose that they had failed
   */
  static async open(
    folder: string,
    retry?: { isRetried: (error: ErrorLine) => boolean; before: (ids: string[]) => Promise<void> },
  ): Promise<OutputFiles> {
    await using opened = new AsyncDisposableStack()
    const tally: Tally = { completed: 0, failed: 0, verdicts: {}, failures: {} }
    const done = new Set<string>()
    const failed = new Map<string, ErrorLine>()
    // A crash may have left it incomplete; its contents are in the other two files.
    const csvPath = join(folder, 'results.csv')
    const csv = createWriteStream(`${csvPath}.new`, { mode: 0o600 })
    await once(csv, 'open')
    csv.write(record(COLUMNS))
    const results = opened.use(
      await LogFile.open<ResultLine>(join(folder, 'results.jsonl'), (line) => {
        done.add(line.id)
        count(tally, line)
        csv.write(recordOf(line))
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
      csv.write(recordOf(line))
    }
    await rename(`${csvPath}.new`, csvPath)
    opened.move()
    return new OutputFiles({ results, errors, done, failed, csv, tally })
  }

  isDone(id: string): boolean {
    return this.#done.has(id) || this.#failed.has(id)
  }

  /** The failures that are kept. */
  get failures(): Iterable<ErrorLine> {
    return this.#failed.values()
  }

  /** Resolves when the result is on the disk. */
  async complete(row: Row, { result, bytes }: Purchase): Promise<void> {
    const best = bestOf(result)
    const line: ResultLine = {
      id: row.id,
      line: row.line,
      source_url: row.source_url,
      claim: row.claim,
      status: 'completed',
      claim_support: result.claim_support,
      request_id: result.request_id,
      receipt_serial: result.receipt.attestation.serial,
      cost_usd: formatUsd(BigInt(result.payment.amount_atomic)),
      quote: best?.quote ?? null,
      fragment_url: best ? textFragmentUrl(result, best) : null,
      receipt: result.receipt,
      result_base64: Buffer.from(bytes).toString('base64'),
    }
    this.#done.add(row.id)
    await this.#results.append(line)
    count(this.tally, line)
    this.#csv.write(recordOf(line))
  }

  async fail(row: Row, error: CountersignError, charged: boolean): Promise<void> {
    const { code, message, retryable, requestId } = error
    // A page that could not be read, or an input that was refused, will fail again a minute later.
    const until = retryable || charged ? null : new Date(Date.now() + REMEMBERED_MS).toISOString()
    await this.#fail({
      ...headOf(row),
      code,
      message,
      retryable,
      charged,
      request_id: requestId,
      remembered_until: until,
    })
  }

  async refuse(row: UnusableRow): Promise<void> {
    const about = { code: 'unusable_row', message: row.reason, retryable: false, charged: false }
    await this.#fail({ ...headOf(row), ...about, request_id: null, remembered_until: null })
  }

  async #fail(about: Omit<ErrorLine, 'status' | 'failed_at'>): Promise<void> {
    const line: ErrorLine = { ...about, status: 'failed', failed_at: new Date().toISOString() }
    this.#failed.set(line.id, line)
    await this.#errors.append(line)
    count(this.tally, line)
    this.#csv.write(recordOf(line))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#results[Symbol.asyncDispose]()
    await this.#errors[Symbol.asyncDispose]()
    this.#csv.end()
    await once(this.#csv, 'close')
  }
}

interface Opened {
  results: LogFile<ResultLine>
  errors: LogFile<ErrorLine>
  done: Set<string>
  failed: Map<string, ErrorLine>
  csv: WriteStream
  tally: Tally
}

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

function recordOf(line: ResultLine | ErrorLine): string {
  const head = [line.id, line.source_url, line.claim]
  if (line.status === 'failed') return record([...head, '', '', '', '', line.charged ? '' : '0.00', line.code])
  const { claim_support, quote, fragment_url, receipt_serial, cost_usd } = line
  return record([...head, claim_support, quote ?? '', fragment_url ?? '', String(receipt_serial), cost_usd, ''])
}

/** Quotes are text of pages, so a cell that a spreadsheet would read as a formula gets an apostrophe. */
function record(cells: string[]): string {
  return stringify([cells], { escape_formulas: true })
}

/** A day. */
const REMEMBERED_MS = 86_400_000
