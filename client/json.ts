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
 * signed. Throws a SyntaxError, for data that is nested too deep as well.
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  // In valid JSON a string followed by a colon is a member name and nothing else is.
  let names = 0
  for (const match of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?/gs)) if (match[1]) names++
  if (names !== memberCount(value)) throw new SyntaxError('A member name is given twice in one object')
  return value
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

function memberCount(value: unknown, depth = 0): number {
  if (value === null || typeof value !== 'object') return 0
  // JSON.parse takes any depth, and what walks over the value afterwards would run out of stack.
  if (depth === MAX_DEPTH) throw new SyntaxError(`It is nested more than ${MAX_DEPTH} deep`)
  const members = Object.values(value)
  const own = Array.isArray(value) ? 0 : members.length
  return members.reduce<number>((count, member) => count + memberCount(member, depth + 1), own)
}

const MAX_DEPTH = 64
