// Reads the rows of a batch: CSV or TSV with a header, or JSON lines. A row that cannot be bought is reported with its line
// and the reason, and the others continue.
import { createHash } from 'node:crypto'
import { CsvError, parse } from 'csv-parse/sync'
import { UsageError } from '../arguments.ts'
import { uriFault } from '../uri.ts'
import type { Format } from './formats.ts'
import { claimsOf, MOST_CLAIMS, type Question, type Row } from './order.ts'

export type { Row } from './order.ts'

export interface UnusableRow {
  id: string
  line: number
  source_url: string
  claim: string
  reason: string
}

export interface Rows {
  usable: Row[]
  unusable: UnusableRow[]
  /** Of the bytes of the file, in hex. */
  sha256: string
}

/** Throws a UsageError where the file as a whole cannot be read: not UTF-8, no header, no rows. */
export function readRows(bytes: Uint8Array, format: Format): Rows {
  const text = decode(bytes)
  const found = format === 'jsonl' ? readJsonLines(text) : readTable(text, format === 'csv' ? ',' : '\t')
  const rows: Rows = { usable: [], unusable: [], sha256: createHash('sha256').update(bytes).digest('hex') }
  const named = found.map(({ value }) => textOf(value?.custom_id || value?.id).trim())
  // The name that a duplicate gets must not be the id of a row further down.
  const ids = new Set(named)
  const lineOf = new Map<string, number>()
  const taken = new Set<string>()
  /** By name: the numbers below it are taken. */
  const nextOf = new Map<string, number>()
  /** `name-2`, `name-3` and so on: the first that is not taken. */
  const unusedOf = (name: string) => {
    let times = nextOf.get(name) ?? 2
    while (taken.has(`${name}-${times}`) || ids.has(`${name}-${times}`)) times++
    nextOf.set(name, times + 1)
    return `${name}-${times}`
  }
  for (const [index, { line, value, fault }] of found.entries()) {
    const cells = value ?? {}
    const [source_url, claim] = [textOf(cells.source_url).trim(), textOf(cells.claim)]
    const given = named[index] ?? ''
    const earlier = given === '' ? undefined : lineOf.get(given)
    if (given && earlier === undefined) lineOf.set(given, line)
    const digest = createHash('sha256').update(JSON.stringify([source_url, claim, cells.max_age_seconds ?? null]))
    const name = given || `row-${digest.digest('hex').slice(0, 16)}`
    // Equal rows without ids are separate rows. Two rows with one id would share a line of the results.
    const id = earlier === undefined && !taken.has(name) ? name : unusedOf(name)
    taken.add(id)
    const reason =
      fault ??
      (earlier === undefined
        ? findFault(cells, source_url, claim, given)
        : `the id ${given} is that of line ${earlier}, too`)
    if (reason) rows.unusable.push({ id, line, source_url, claim, reason })
    else {
      const age = ageOf(cells)
      rows.usable.push({ id, line, source_url, claim, ...(age !== undefined && { max_age_seconds: age }) })
    }
  }
  if (found.length === 0) throw new UsageError('The file has no rows.')
  return rows
}

interface Found {
  /** Where the row begins. */
  line: number
  value: Record<string, unknown> | null
  /** Why the line as a whole is no row. */
  fault?: string
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new UsageError('The file is not UTF-8 text.', { cause })
  }
}

function readTable(given: string, delimiter: string): Found[] {
  // Line ends of all kinds, also mixed: a parser that expects the first kind everywhere would read the others as parts of a
  // cell.
  const text = given.replace(/\r\n?/g, '\n')
  const options = { bom: true, delimiter, info: true, raw: true, relax_column_count: true, skip_empty_lines: true }
  let records: { record: string[]; raw: string; info: { lines: number } }[]
  try {
    // TSV has no quotes: a quotation mark in a cell is part of it.
    const quote = delimiter === '\t' ? { quote: null } : {}
    records = parse(text, { ...options, ...quote, record_delimiter: '\n' }) as unknown as typeof records
  } catch (cause) {
    if (!(cause instanceof CsvError)) throw cause
    throw new UsageError(`The file cannot be read as ${delimiter === '\t' ? 'TSV' : 'CSV'}: ${cause.message}.`, {
      cause,
    })
  }
  const [header, ...rest] = records
  if (!header) throw new UsageError('The file is empty.')
  const names = header.record.map((name) => name.trim().toLowerCase())
  for (const name of ['source_url', 'claim'])
    if (!names.includes(name))
      throw new UsageError(`The first line must name the columns, and there is no column ${name}: ${listOf(names)}`)
  for (const name of COLUMNS)
    if (names.indexOf(name) !== names.lastIndexOf(name)) throw new UsageError(`There are two columns ${name}.`)
  return rest.map(({ record, raw, info }) => ({
    line: info.lines - breaksWithin(raw.split('\n')),
    value: Object.fromEntries(names.map((name, i) => [name, record[i] ?? ''])),
    // A claim with a comma and without quotes would be cut off at the comma, and bought.
    ...(record.slice(names.length).some((cell) => cell !== '') && {
      fault: `the row has ${record.length} cells and the header ${names.length}${HINTS[delimiter] ?? ''}`,
    }),
  }))
}

/** Line breaks between the first and the last line with text. */
const breaksWithin = (lines: readonly string[]) => lines.findLastIndex(Boolean) - lines.findIndex(Boolean)

function listOf(names: readonly string[]): string {
  const letters = [...names.join(', ')]
  const list = letters.slice(0, MAX_SHOWN).join('') + (letters.length > MAX_SHOWN ? '…' : '')
  const isDivided = names.length === 1 && list.includes(';')
  return `${list}.${isDivided ? ' Are the cells separated by semicolons? Commas are needed.' : ''}`
}

const MAX_SHOWN = 200

function readJsonLines(text: string): Found[] {
  return text
    .replace(/^\ufeff/, '')
    .split('\n')
    .flatMap((line, index): Found[] => (line.trim() === '' ? [] : [readJsonLine(line, index + 1)]))
}

function readJsonLine(text: string, line: number): Found {
  const value = parseObject(text)
  return value ? { line, value } : { line, value, fault: 'this line is no JSON object' }
}

function parseObject(line: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}

/** Why the service would refuse this row. */
export function findFault(
  cells: { max_age_seconds?: unknown },
  source_url: string,
  claim: string,
  id = '',
): string | null {
  const fault = pageFault(source_url) ?? claimFault(claim)
  if (fault) return fault
  if ([...id].length > MAX_ID) return `the id is longer than ${MAX_ID} characters`
  return ageFault(cells)
}

/** Why the service would refuse this question. */
export function questionFault(question: Question): string | null {
  const claims = claimsOf(question)
  const page = pageFault(question.source_url)
  if (page) return page
  if (claims.length > MOST_CLAIMS)
    return `there are ${claims.length} claims, and one purchase has at most ${MOST_CLAIMS}`
  for (const [i, claim] of claims.entries()) {
    const fault = claimFault(claim)
    if (fault) return claims.length > 1 ? `claim ${i + 1}: ${fault}` : fault
    if (claims.indexOf(claim) < i) return `claim ${i + 1} is claim ${claims.indexOf(claim) + 1} again`
  }
  const context = 'context' in question ? question.context : undefined
  if (context !== undefined && !/\S/u.test(context)) return 'context is empty'
  if (context !== undefined && [...context].length > MAX_CONTEXT)
    return `context is longer than ${MAX_CONTEXT} characters`
  if (context !== undefined && !context.isWellFormed()) return 'context is not well-formed Unicode'
  return ageFault(question)
}

function pageFault(source_url: string): string | null {
  if (source_url === '') return 'source_url is missing'
  if (!/^https:\/\/\S+$/.test(source_url) || !URL.canParse(source_url)) return 'source_url is not an https:// URL'
  // biome-ignore lint/suspicious/noControlCharactersInRegex: ASCII includes the control characters
  if (!/^[\x00-\x7f]*$/.test(source_url)) return 'source_url must be ASCII: percent-encode it'
  if (source_url.length > MAX_URL) return `source_url is longer than ${MAX_URL} characters`
  const fault = uriFault(source_url)
  return fault === null ? null : `source_url is no URI: ${fault}`
}

function claimFault(claim: string): string | null {
  if (!/\S/u.test(claim)) return 'claim is missing'
  if ([...claim].length > MAX_CLAIM) return `claim is longer than ${MAX_CLAIM} characters`
  return claim.isWellFormed() ? null : 'claim is not well-formed Unicode'
}

function ageFault(cells: { max_age_seconds?: unknown }): string | null {
  const age = ageOf(cells)
  if (age !== undefined && !(Number.isInteger(age) && age >= 0 && age <= MAX_AGE))
    return `max_age_seconds is not a whole number from 0 to ${MAX_AGE}`
  return null
}

/** NaN for text that is not a number. */
function ageOf({ max_age_seconds: age }: { max_age_seconds?: unknown }): number | undefined {
  if (age === undefined || age === null || age === '') return undefined
  return typeof age === 'number' || /^\s*\d+\s*$/.test(String(age)) ? Number(age) : Number.NaN
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : ''
}

const HINTS: Record<string, string> = { ',': ': a cell with a comma in it needs quotes' }
const COLUMNS = ['source_url', 'claim', 'id', 'custom_id', 'max_age_seconds']

// The service's limits.
const MAX_URL = 2048
const MAX_CLAIM = 2000
const MAX_CONTEXT = 1000
const MAX_AGE = 300
const MAX_ID = 200
