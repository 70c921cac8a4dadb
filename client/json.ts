// Reads JSON without ambiguity and writes it in canonical form (RFC 8785, JCS), as signatures need it.

export interface JsonFault {
  kind: 'not_json' | 'not_unicode'
  /** JSON Pointer to the value; empty for the root. */
  path: string
  reason: string
}

/** The faults that keep a value from having one canonical form; empty for plain, well-formed JSON data. */
export function jsonFaults(value: unknown): JsonFault[] {
  const faults: JsonFault[] = []
  inspect(value, '', [], faults)
  return faults
}

/** RFC 8785 text of a value. Throws a TypeError where `jsonFaults` finds a fault. */
export function canonicalJson(value: unknown): string {
  const fault = jsonFaults(value)[0]
  if (fault) throw new TypeError(`No canonical JSON: ${describe(fault)}`)
  return write(value)
}

/** The value has no faults: names in the order of their UTF-16 units, and the numbers and strings of ECMAScript. */
function write(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(write).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = value as Record<string, unknown>
  const names = Object.keys(members).sort()
  return `{${names.map((name) => `${JSON.stringify(name)}:${write(members[name])}`).join(',')}}`
}

/**
 * JSON.parse that refuses a repeated member name: of two values, a reader of the text may see the one that was not
 * signed. Throws a SyntaxError, for data that is nested too deep or has too many values as well.
 */
export function parseJson(text: string): unknown {
  const names = countNames(text)
  const value: unknown = JSON.parse(text)
  if (names !== memberCount(value)) throw new SyntaxError('A member name is given twice in one object')
  return value
}

/**
 * The member names of valid JSON: a colon outside strings follows each, and nothing else. Refuses before anything is made of the text what
 * would exhaust memory: JSON.parse takes any depth, and a hundred bytes and more for a value of two characters. Linear.
 */
function countNames(text: string): number {
  let names = 0
  let depth = 0
  let values = 0
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit === QUOTE) i = endOfString(text, i)
    else if (unit === COLON) names++
    else if (unit === OPEN_BRACKET || unit === OPEN_BRACE) {
      if (++depth > MAX_DEPTH) throw new SyntaxError(`It is nested more than ${MAX_DEPTH} deep`)
      values++
    } else if (unit === CLOSE_BRACKET || unit === CLOSE_BRACE) depth--
    else if (unit === COMMA) values++
    if (values > MAX_VALUES) throw new SyntaxError(`It has more than ${MAX_VALUES.toLocaleString('en')} values`)
  }
  return names
}

function endOfString(text: string, begin: number): number {
  let i = begin + 1
  while (i < text.length && text.charCodeAt(i) !== QUOTE) i += text.charCodeAt(i) === BACKSLASH ? 2 : 1
  return i
}

export function describe(fault: JsonFault): string {
  return `${fault.path || 'the value'} ${fault.reason}`
}

function inspect(value: unknown, path: string, ancestors: readonly object[], faults: JsonFault[]): void {
  if (typeof value === 'string') inspectText(value, path, 'is not well-formed Unicode', faults)
  else if (typeof value === 'number') inspectNumber(value, path, faults)
  else if (typeof value === 'object' && value !== null) inspectContainer(value, path, ancestors, faults)
  else if (value !== null && typeof value !== 'boolean')
    faults.push({ kind: 'not_json', path, reason: 'is not JSON data' })
}

function inspectContainer(value: object, path: string, ancestors: readonly object[], faults: JsonFault[]): void {
  const refuse = (reason: string) => faults.push({ kind: 'not_json', path, reason })
  if (ancestors.includes(value)) return void refuse('contains itself')
  if (ancestors.length === MAX_DEPTH) return void refuse(`is nested more than ${MAX_DEPTH} deep`)
  const inside = [...ancestors, value]
  if (Array.isArray(value)) {
    // By index, not forEach: a hole must be seen.
    for (let i = 0; i < value.length; i++) inspect(value[i], `${path}/${i}`, inside, faults)
    return
  }
  if (!isPlain(value)) return void refuse('is not JSON data')
  for (const [name, member] of Object.entries(value)) {
    const memberPath = `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
    inspectText(name, memberPath, 'has a name that is not well-formed Unicode', faults)
    inspect(member, memberPath, inside, faults)
  }
}

function inspectNumber(value: number, path: string, faults: JsonFault[]): void {
  if (!Number.isFinite(value)) faults.push({ kind: 'not_json', path, reason: 'is not a finite number' })
}

function inspectText(text: string, path: string, reason: string, faults: JsonFault[]): void {
  if (!text.isWellFormed()) faults.push({ kind: 'not_unicode', path: path.toWellFormed(), reason })
}

/** Objects of a class (Date, Map, boxed values, anything with toJSON) have no JSON form of their own. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  // Objects of another realm (a frame, a vm) have another Object.prototype: what counts is that theirs is the root.
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

/** Not deeper than `countNames` allows. */
function memberCount(value: unknown): number {
  if (value === null || typeof value !== 'object') return 0
  let count = 0
  if (Array.isArray(value)) for (const item of value) count += memberCount(item)
  else for (const member of Object.values(value)) count += 1 + memberCount(member)
  return count
}

/** In bytes: as long as an answer of the service may be. */
export const MAX_JSON_BYTES = 16_777_216
const MAX_DEPTH = 64
/** Of one text. A chain of 28,000 receipts, which is 16 MB, has 364,000. */
const MAX_VALUES = 400_000

const [QUOTE, BACKSLASH, COLON, COMMA, OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [
  34, 92, 58, 44, 91, 93, 123, 125,
]
