// Downloads a whole chain page by page, up to a head that is pinned before the first page. It resumes an interrupted
// file.

import type { Countersign } from '../client.ts'
import { type Clock, systemClock } from '../clock.ts'
import { CountersignError } from '../error.ts'
import { describe, jsonFaults } from '../json.ts'
import { type Attestation, attestationShape, receiptHashFault } from './attestation.ts'
import type { ChainPoint } from './chain.ts'
import {
  BEFORE_ALL,
  EXPORT_MARK,
  type ExportHeader,
  exportLine,
  readHeader,
  readLine,
  readLines,
  TruncatedExportError,
} from './export.ts'

/** The received receipts do not continue those before them, or do not lead to the pinned head. */
export class BrokenChainError extends Error {
  override name = 'BrokenChainError'
}

/** The part of a file's interface that a download uses. */
export interface ExportFile {
  /** Reads from the beginning; yields nothing where there is no file, or an empty one. */
  read(): AsyncIterable<Uint8Array>
  truncate(bytes: number): Promise<void>
  append(text: string): Promise<void>
}

export interface DownloadOptions {
  /** The receipt to end at. Default: the present head. */
  head?: ChainPoint
  onProgress?: (serial: number, head: number) => void
  clock?: Clock
}

/**
 * Completes the export in a file, or begins one. Returns the head at which the export ends. Throws CountersignError,
 * BrokenChainError for bad receipts from the service or in the file, and a SyntaxError for a file with other contents.
 */
export async function download(
  service: Countersign,
  file: ExportFile,
  options: DownloadOptions = {},
): Promise<ChainPoint> {
  const begun = await findExport(file)
  const header = begun?.header ?? (await beginExport(service, options.head))
  const { head } = header
  if (head.serial < 1) throw new SyntaxError('an export ends at serial 1 or later')
  if (options.head && (options.head.serial !== head.serial || options.head.receipt_hash !== head.receipt_hash))
    throw new SyntaxError(`it is an export up to another head, serial ${head.serial}`)
  // The file is changed only when a page has come. A last line without an end was interrupted; it is written again.
  let isBegun = false
  for await (const page of exportPages(service, head, begun?.last ?? BEFORE_ALL, options.clock)) {
    if (!isBegun) await file.truncate(begun?.bytes ?? 0)
    const lines = isBegun || begun ? page : [header, ...page]
    isBegun = true
    await file.append(lines.map(exportLine).join(''))
    options.onProgress?.(page.at(-1)!.serial, head.serial)
  }
  if (begun && !isBegun) await file.truncate(begun.bytes)
  return head
}

interface Begun {
  header: ExportHeader
  /** Of the last whole line. */
  last: ChainPoint
  /** Up to the end of that line. */
  bytes: number
}

/** The part of an export that a file holds; null for an empty file, and for one that ends in its first line. */
async function findExport(file: ExportFile): Promise<Begun | null> {
  let begun: Begun | null = null
  try {
    for await (const line of readLines(file.read())) {
      if (begun) begun.last = follow(readLine(line), begun.last)
      begun ??= { header: readHeader(line), last: BEFORE_ALL, bytes: 0 }
      begun.bytes += new TextEncoder().encode(line).length + 1
    }
  } catch (error) {
    // A text that ends inside a line was cut off; any other text was never an export.
    if (!(error instanceof TruncatedExportError)) throw error
    const text = new TextDecoder().decode(error.rest)
    if (!begun && !EXPORT_MARK.startsWith(text.slice(0, EXPORT_MARK.length))) throw error
  }
  return begun
}

/**
 * Pins the present head, or the given one. Throws CountersignError, and BrokenChainError for a chain without receipts.
 */
export async function beginExport(service: Countersign, head?: ChainPoint): Promise<ExportHeader> {
  if (head) return { countersign_export: 1, head, checkpoint: null }
  const { serial, receipt_hash, checkpoint } = await service.chainHead()
  if (serial === 0) throw new BrokenChainError('The chain has no receipts yet.')
  return { countersign_export: 1, head: { serial, receipt_hash }, checkpoint }
}

/**
 * The receipts after `last` up to the head, a page at a time; each must link to the one before. The hash of a receipt
 * covers its fields, and the head covers the hashes. `verifyExport` checks the signatures. Throws BrokenChainError, and
 * CountersignError when the service does not answer several times in a row.
 */
export async function* exportPages(
  service: Countersign,
  head: ChainPoint,
  last: ChainPoint,
  clock: Clock = systemClock,
): AsyncGenerator<Attestation[]> {
  let at = last
  while (at.serial < head.serial) {
    const from = at.serial + 1
    // Pages end at the same serials for every caller, so that a cache can serve them.
    const to = Math.min(Math.ceil(from / PAGE) * PAGE, head.serial)
    const page = await persist(clock, () => service.chain(from, to))
    if (page.length !== to - from + 1) throw new BrokenChainError(`${page.length} receipts came for ${from} to ${to}.`)
    for (const attestation of page) at = follow(attestation, at)
    yield page as Attestation[]
  }
  if (at.serial !== head.serial || at.receipt_hash !== head.receipt_hash)
    throw new BrokenChainError(`The chain does not lead to the pinned head, serial ${head.serial}.`)
}

function follow(attestation: unknown, last: ChainPoint): ChainPoint {
  const fault = jsonFaults(attestation)[0]
  const wrong = fault ? describe(fault) : attestationShape(attestation, '')
  if (wrong) throw new BrokenChainError(`What comes after serial ${last.serial} is no attestation: ${wrong}.`)
  const { serial, prev_hash, receipt_hash } = attestation as Attestation
  if (serial !== last.serial + 1 || prev_hash !== last.receipt_hash)
    throw new BrokenChainError(`Serial ${serial} does not continue serial ${last.serial}.`)
  const changed = receiptHashFault(attestation as Attestation)
  if (changed) throw new BrokenChainError(`Serial ${serial}: ${changed}.`)
  return { serial, receipt_hash }
}

async function persist<T>(clock: Clock, ask: () => Promise<T>): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof CountersignError) || !error.retryable || failures === MAX_FAILURES) throw error
      await clock.sleep(1000 * 2 ** (failures - 1), new AbortController().signal)
    }
  }
}

const PAGE = 1000
const MAX_FAILURES = 6
