// The journal of a batch: which payments it has signed. A payment is stored on disk before it is sent, so a run that
// continues after a crash sends the same payment again, and the service charges one payment once.
//
//   batch      the first line: of which input, at which service, on which terms, and the secret that the keys come from
//   signed     a payment of a row, or of several rows that are bought together; it counts as spent
//   released   the service said that this payment was not charged; it counts no more
//   retry      a row that had failed is tried anew, under another key: the service repeats a failure to the same key
import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import type { Terms } from '../wallet.ts'
import { checkLines, LogFile, readLines } from './log-file.ts'
import type { Row } from './rows.ts'

export interface Header {
  type: 'batch'
  /** 2 with `grouped`: a client that knows no groups must not go on with them. */
  version: 1 | 2
  run: string
  secret: string
  service: string
  input_sha256: string
  /** The terms that every payment is signed for; with `grouped` the amount is that of one claim. */
  terms: Terms
  /** Rows of one page are bought together. */
  grouped?: true
  created_at: string
}

export interface SignedLine {
  type: 'signed'
  id: string
  /** Names this payment; unique over all runs. */
  payment: string
  /** The value of the header `PAYMENT-SIGNATURE`. */
  header: string
  atoms: string
  /** Unix seconds after which it cannot be settled. */
  valid_before: number
  /** The rows that it buys together, where `id` names a group. */
  rows?: readonly Row[]
}

type Line =
  | Header
  | SignedLine
  | { type: 'released'; payment: string; reason: string }
  | { type: 'retry'; id: string; attempt: number }

/** The folder has no batch, or a batch of another input or service. */
export class JournalError extends Error {
  override name = 'JournalError'
}

export class Journal implements AsyncDisposable {
  readonly header: Header
  readonly #file: LogFile<Line>
  readonly #live: Map<string, SignedLine>
  /** The group with which a row was paid last. */
  readonly #groupOf: Map<string, string>
  readonly #attempts: Map<string, number>
  #count: number

  private constructor(file: LogFile<Line>, read: ReturnType<typeof readInto>, header: Header) {
    this.header = header
    this.#file = file
    this.#live = read.live
    this.#groupOf = read.groupOf
    this.#attempts = read.attempts
    this.#count = read.count
  }

  /**
   * Opens the journal at the path; the first line of a new journal is made from `first`, which is otherwise not called.
   * Throws a JournalError when it is of another input or service, and a DamagedFileError.
   */
  static async open(path: string, expected: Expected, first: () => Promise<Terms>): Promise<Journal> {
    const read = readInto()
    const file = await LogFile.open<Line>(path, read.line)
    try {
      const header = read.header ?? buildHeader(expected, await first())
      if (header.input_sha256 !== expected.input_sha256)
        throw new JournalError('The folder has a batch of another input. Give the same file, or another --out.')
      if (header.service !== expected.service)
        throw new JournalError(`The folder has a batch for ${header.service}. Give that --service, or another --out.`)
      if (!read.header) await file.append(header)
      return new Journal(file, read, header)
    } catch (error) {
      await file[Symbol.asyncDispose]()
      throw error
    }
  }

  /** The payments that count as spent: atomic units by payment. */
  get reserved(): Map<string, bigint> {
    return new Map([...this.#live.values()].map(({ payment, atoms }) => [payment, BigInt(atoms)]))
  }

  /** From 1; higher after a retry. */
  attemptOf(id: string): number {
    return this.#attempts.get(id) ?? 1
  }

  /** The idempotency key of the row's current attempt, which cannot be computed without the secret of the journal. */
  keyOf(id: string): string {
    const hmac = createHmac('sha256', this.header.secret).update(JSON.stringify([id, this.attemptOf(id)]))
    return `cs_${hmac.digest('base64url')}`
  }

  /** The payment of this row, alone or in a group, or of this group, that may have been sent and was not released. */
  paymentOf(id: string): SignedLine | undefined {
    return this.#live.get(id) ?? this.#live.get(this.#groupOf.get(id) ?? '')
  }

  /** A name for the next payment of this row. */
  nameNext(id: string): string {
    return `${this.header.run}/${id}/${++this.#count}`
  }

  async sign(line: Omit<SignedLine, 'type'>): Promise<SignedLine> {
    const signed: SignedLine = { type: 'signed', ...line }
    this.#live.set(line.id, signed)
    for (const row of line.rows ?? []) this.#groupOf.set(row.id, line.id)
    await this.#file.append(signed)
    return signed
  }

  async release({ id, payment }: SignedLine, reason: string): Promise<void> {
    this.#live.delete(id)
    await this.#file.append({ type: 'released', payment, reason })
  }

  async retry(ids: string[]): Promise<void> {
    const lines = ids.map((id) => ({ type: 'retry', id, attempt: this.attemptOf(id) + 1 }) as const)
    for (const { id, attempt } of lines) this.#attempts.set(id, attempt)
    await Promise.all(lines.map((line) => this.#file.append(line)))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file[Symbol.asyncDispose]()
  }
}

/**
 * The terms of the journal at the path, and the rows with a payment that counts as spent. Null where there is no journal.
 * Throws a DamagedFileError or a JournalError.
 */
export async function readPayments(path: string): Promise<{ terms: Terms; paid: Set<string> } | null> {
  const read = readInto()
  for await (const line of readLines<Line>(path)) read.line(line)
  return read.header && { terms: read.header.terms, paid: new Set([...read.live.values()].flatMap(rowsPaidBy)) }
}

/** Throws a DamagedFileError or a JournalError for a file that is no journal. Changes nothing, and there need be no file. */
export function checkJournal(path: string): Promise<void> {
  return checkLines(path, readInto().line)
}

function rowsPaidBy({ id, rows }: SignedLine): string[] {
  return rows?.map((row) => row.id) ?? [id]
}

interface Expected extends Pick<Header, 'service' | 'input_sha256'> {
  /** For a new journal. */
  isGrouped?: boolean
}

function buildHeader({ service, input_sha256, isGrouped = false }: Expected, terms: Terms): Header {
  const secret = randomBytes(32).toString('base64url')
  return {
    type: 'batch',
    version: isGrouped ? 2 : 1,
    run: randomUUID(),
    secret,
    service,
    input_sha256,
    terms,
    ...(isGrouped && { grouped: true }),
    created_at: new Date().toISOString(),
  }
}

function readInto() {
  const live = new Map<string, SignedLine>()
  const attempts = new Map<string, number>()
  const groupOf = new Map<string, string>()
  const idOf = new Map<string, string>()
  const read = {
    header: null as Header | null,
    live,
    attempts,
    groupOf,
    count: 0,
    line(line: Line): void {
      if (read.header === null) {
        if (line.type !== 'batch' || (line.version !== 1 && line.version !== 2))
          throw new JournalError('The folder holds no journal of a batch.')
        read.header = line
      } else if (line.type === 'signed') {
        read.count++
        live.set(line.id, line)
        for (const row of line.rows ?? []) groupOf.set(row.id, line.id)
        idOf.set(line.payment, line.id)
      } else if (line.type === 'released') {
        const id = idOf.get(line.payment)
        if (id !== undefined && live.get(id)?.payment === line.payment) live.delete(id)
      } else if (line.type === 'retry') attempts.set(line.id, line.attempt)
    },
  }
  return read
}
