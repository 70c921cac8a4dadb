// Reads the archive of an evidence package: WARC records, each in a gzip member of its own. How far it inflates is bounded.
import { Gunzip } from 'fflate'
import { joinBytes } from '../bytes.ts'
import { Fault } from './steps.ts'

export interface WarcRecord {
  /** Place of the gzip member in the file, in bytes. */
  offset: number
  length: number
  type: string
  /** Names in lower case. */
  fields: ReadonlyMap<string, string>
  block: Uint8Array
}

/** In bytes, after inflating: six responses of the largest size that the service reads fit. */
const MOST_ARCHIVE_BYTES = 32 * 1024 * 1024
const MOST_RECORDS = 64
const LONGEST_HEADER = 262_144
/** Given to the inflater at a time: at worst a thousand times as much comes out before the bound is looked at. */
const PIECE = 4096

/** Throws a Fault for anything but whole records of WARC/1.1 within the limits. */
export function readWarc(bytes: Uint8Array): WarcRecord[] {
  return membersOf(bytes).map(({ offset, length, content }, i) => {
    try {
      return { offset, length, ...readRecord(content) }
    } catch (cause) {
      if (cause instanceof Fault) throw new Fault(`record ${i + 1} ${cause.message}`, { cause })
      throw cause
    }
  })
}

interface Member {
  offset: number
  length: number
  content: Uint8Array
}

function membersOf(bytes: Uint8Array): Member[] {
  const starts = [0]
  const parts: Uint8Array[][] = [[]]
  let total = 0
  const gunzip = new Gunzip((chunk) => {
    total += chunk.length
    if (total > MOST_ARCHIVE_BYTES) throw new Fault(`it inflates to more than ${MOST_ARCHIVE_BYTES} bytes`)
    if (chunk.length > 0) parts.at(-1)?.push(chunk)
  })
  gunzip.onmember = (offset) => {
    if (starts.length === MOST_RECORDS) throw new Fault(`it holds more than ${MOST_RECORDS} records`)
    starts.push(offset)
    parts.push([])
  }
  try {
    for (let at = 0; at < bytes.length; at += PIECE)
      gunzip.push(bytes.subarray(at, at + PIECE), at + PIECE >= bytes.length)
  } catch (cause) {
    if (cause instanceof Fault) throw cause
    throw new Fault('it is not made of whole gzip members', { cause })
  }
  if (bytes.length === 0) throw new Fault('it is empty')
  return starts.map((offset, i) => {
    const member = bytes.subarray(offset, starts[i + 1])
    const content = joinBytes(parts[i] ?? [])
    // The inflater does not look at the end of a member: its length there is the only sign that the last one is whole.
    const stated = new DataView(member.buffer, member.byteOffset + Math.max(0, member.length - 4))
    if (member.length < 18 || stated.getUint32(0, true) !== content.length)
      throw new Fault('it is not made of whole gzip members')
    return { offset, length: member.length, content }
  })
}

function readRecord(content: Uint8Array): Pick<WarcRecord, 'type' | 'fields' | 'block'> {
  const end = findBlankLine(content.subarray(0, LONGEST_HEADER), 0)
  if (end < 0) throw new Fault('has no end of its header')
  const [version, ...lines] = new TextDecoder().decode(content.subarray(0, end)).split('\r\n')
  if (version !== 'WARC/1.1') throw new Fault('is not of WARC/1.1')
  const fields = new Map<string, string>()
  for (const line of lines.filter((one) => one !== '')) {
    const [, name = '', value = ''] = /^([!-9;-~]+):(.*)$/.exec(line) ?? []
    if (name === '') throw new Fault('has a header line that is none')
    if (fields.has(name.toLowerCase()) && name.toLowerCase() !== 'warc-concurrent-to')
      throw new Fault(`has ${name} twice`)
    fields.set(name.toLowerCase(), withoutBlanks(value))
  }
  const length = fields.get('content-length') ?? ''
  const block = content.subarray(end, content.length - 4)
  if (length !== String(block.length) || findBlankLine(content, content.length - 4) !== content.length)
    throw new Fault('is not as long as its Content-Length says')
  return { type: fields.get('warc-type') ?? '', fields, block }
}

/** Without the blanks and tabs around it. An expression would begin at each of many blanks, and read all that follow. */
export function withoutBlanks(text: string): string {
  let [start, end] = [0, text.length]
  while (isBlank(text[start])) start++
  while (end > start && isBlank(text[end - 1])) end--
  return text.slice(start, end)
}

const isBlank = (char: string | undefined) => char === ' ' || char === '\t'

/** The place after the next CR LF CR LF, or -1. */
export function findBlankLine(bytes: Uint8Array, from: number): number {
  for (let at = bytes.indexOf(13, Math.max(0, from)); at >= 0; at = bytes.indexOf(13, at + 1))
    if (bytes[at + 1] === 10 && bytes[at + 2] === 13 && bytes[at + 3] === 10) return at + 4
  return -1
}
