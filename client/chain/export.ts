// A whole chain in one file of JSON lines: the first line names the head that was pinned when the export began; then
// comes one attestation a line. Every byte is covered, so a change anywhere makes the file invalid.

import { joinBytes } from '../bytes.ts'
import type { Check, Verification } from '../checks.ts'
import { parseJson } from '../json.ts'
import { closed, either, integer, literal, text } from '../shape.ts'
import { type Attestation, GENESIS_HASH, hex256 } from './attestation.ts'
import { type ChainOptions, type ChainPoint, ChainVerifier } from './chain.ts'

export interface ExportHeader {
  countersign_export: 1
  head: ChainPoint
  /** The signed head of the tree over exactly these receipts; null where an older head was given. */
  checkpoint: string | null
}

export const headerShape = closed({
  countersign_export: literal(1),
  head: closed({ serial: integer(1), receipt_hash: hex256 }),
  checkpoint: either(text(/./), literal(null)),
})

/** The point before serial 1: an export is a whole chain. */
export const BEFORE_ALL: ChainPoint = { serial: 0, receipt_hash: GENESIS_HASH }

/** The beginning of every export. */
export const EXPORT_MARK = '{"countersign_export"'

/** The order of a line's members: first those of the header. */
const MEMBERS = [
  ...['countersign_export', 'head', 'checkpoint'],
  ...['v', 'serial', 'subject_sha256', 'label', 'requested_by', 'key_id', 'ts_ms', 'ts_utc', 'prev_hash'],
  ...['pubkey_hex', 'receipt_hash', 'sig_ed25519_hex'],
]

/** The text of one line, its newline included. */
export function exportLine(value: ExportHeader | Attestation): string {
  return `${JSON.stringify(value, MEMBERS)}\n`
}

/**
 * Verifies an export, line by line: a file of any length. `head` in the options is one that was pinned independently,
 * and must be the one that the file names.
 */
export async function verifyExport(chunks: AsyncIterable<Uint8Array>, options: ChainOptions): Promise<Verification> {
  const { head: pinned, ...rest } = options
  const lines = readLines(chunks)
  let verifier: ChainVerifier | undefined
  let format: string | null = null
  try {
    const header = readHeader((await lines.next()).value ?? '')
    const { head, checkpoint } = header
    verifier = new ChainVerifier({ ...rest, from: BEFORE_ALL, head, ...(checkpoint !== null && { checkpoint }) })
    if (pinned && (pinned.serial !== head.serial || pinned.receipt_hash !== head.receipt_hash))
      format = `it is an export up to another head than the given one, serial ${pinned.serial}`
    for await (const line of lines) verifier.add(readLine(line))
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    format = error.message
  }
  const first: Check = format === null ? { name: 'format', ok: true } : { name: 'format', ok: false, detail: format }
  const { checks } = (verifier ?? new ChainVerifier(rest)).end()
  return { ok: [first, ...checks].every(({ ok }) => ok), checks: [first, ...checks] }
}

export function readHeader(line: string): ExportHeader {
  const header = readLine(line)
  const wrong = headerShape(header, '')
  if (wrong) throw new SyntaxError(`the first line is not that of an export: ${wrong}`)
  return header as ExportHeader
}

/** Accepts only one spelling of a value: other spellings would be changes that no digest shows. */
export function readLine(line: string): unknown {
  const value = parseJson(line)
  if (exportLine(value as Attestation) !== `${line}\n`)
    throw new SyntaxError('a line is not written as an export writes it')
  return value
}

/** The text ends in the middle of a line. */
export class TruncatedExportError extends SyntaxError {
  readonly rest: Uint8Array

  constructor(rest: Uint8Array) {
    super('the last line is cut short')
    this.rest = rest
  }
}

/**
 * Lines of UTF-8 text. Throws a SyntaxError for other bytes, and TruncatedExportError for a last line without a
 * newline.
 */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  let rest: Uint8Array = new Uint8Array()
  for await (const chunk of chunks) {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      yield decode(join(rest, chunk.subarray(from, end)))
      rest = new Uint8Array()
      from = end + 1
    }
    rest = join(rest, chunk.subarray(from))
  }
  if (rest.length > 0) throw new TruncatedExportError(rest)
}

function join(rest: Uint8Array, more: Uint8Array) {
  if (rest.length + more.length > MAX_LINE) throw new SyntaxError(`a line is longer than ${MAX_LINE} bytes`)
  return joinBytes([rest, more])
}

function decode(line: Uint8Array): string {
  try {
    return utf8.decode(line)
  } catch (cause) {
    throw new SyntaxError('it is not text in UTF-8', { cause })
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const NEWLINE = 0x0a
/** Many times what a line may need: the first one has a checkpoint with a line for each witness. */
const MAX_LINE = 65_536
