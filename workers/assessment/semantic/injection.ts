// Finds sentences that address a program instead of people: orders, text about the verdict, forged parts of a prompt. Such a
// sentence alone is not shown to the model. The list of patterns (orders.txt) does not find everything, and no rule depends on that.
import { readSections } from '../../text/sections.ts'
import type { Span } from '../evidence.ts'

export type Suspicion = 'instruction' | 'verdict' | 'seam'

export interface Suspect {
  /** Number of the line. */
  line: number
  kinds: Suspicion[]
}

/**
 * The lines that address a program, in order. A sentence that line breaks divide is read as a whole too, and all of its lines
 * are found. Time is linear in the length of the text.
 */
export function suspectsOf(text: string, lines: readonly Span[]): Suspect[] {
  const wordsOf = ({ start, end }: Span) => text.slice(start, end)
  const found = lines.map((line) => suspicionsIn(wordsOf(line)))
  for (let line = 0; line < lines.length; line++) {
    let last = line
    let whole = wordsOf(lines[line]!)
    for (let next = lines[last + 1]; next && whole.length < LONGEST_SENTENCE; next = lines[last + 1]) {
      const isDivided = ONE_BREAK.test(text.slice(lines[last]!.end, next.start))
      if (!isDivided || !UNFINISHED.test(whole) || !RESUMED.test(wordsOf(next))) break
      whole += ` ${wordsOf(next)}`
      last++
    }
    if (last === line) continue
    const kinds = suspicionsIn(whole)
    if (kinds.length > 0) found.fill(kinds, line, last + 1)
    line = last
  }
  return found.flatMap((kinds, line) => (kinds.length === 0 ? [] : [{ line, kinds }]))
}

/** Whether a single text, such as a claim, addresses a program. */
export const isSuspect = (text: string): boolean => suspicionsIn(text).length > 0

function suspicionsIn(text: string): Suspicion[] {
  const readings = readingsOf(text)
  const has = (patterns: readonly RegExp[]) => readings.some((one) => patterns.some((pattern) => pattern.test(one)))
  return KINDS.filter((kind) => has(PATTERNS[kind]))
}

/** The possible readings of a text: folded; with look-alike letters and spelled-out words replaced; and decoded. */
function readingsOf(raw: string): string[] {
  const plain = fold(raw)
    .replace(/[‘’‛′´`]/g, "'")
    .replace(/[*~]{1,3}(?=\p{L})|(?<=\p{L})[*~]{1,3}|(?<!\p{L})_{1,3}(?=\p{L})|(?<=\p{L})_{1,3}(?!\p{L})/gu, '')
    .replace(/\s+/g, ' ')
  const readings = [plain]
  const undisguised = undisguise(plain)
  if (undisguised !== plain) readings.push(undisguised)
  if (BACKWARDS.test(plain)) readings.push([...plain].reverse().join(''))
  if (ROTATED.test(plain))
    readings.push(plain.replace(/[a-z]/g, (letter) => ALPHABET.charAt((ALPHABET.indexOf(letter) + 13) % 26)))
  for (const [coded] of raw.matchAll(BASE64)) {
    const decoded = Buffer.from(coded, 'base64').toString('utf8')
    if (PRINTABLE.test(decoded)) readings.push(fold(decoded))
  }
  return readings
}

/** i g n o r e, 1gn0re, and ignоre with a Cyrillic о. */
function undisguise(plain: string): string {
  return plain
    .replace(SPELLED, (letters) => ` ${letters.replace(/(\p{L})[\s.\-·|/_]/gu, '$1')} `)
    .replace(/\p{L}[\p{L}\p{Nd}$@!|]*|[\p{Nd}$@!|]+\p{L}[\p{L}\p{Nd}$@!|]*/gu, (word) => {
      const latin = LATIN.test(word) ? replaced(word, LOOKALIKES) : word
      return LATIN.test(latin) && /\p{L}/u.test(latin) ? replaced(latin, LEET) : latin
    })
    .replace(/\s+/g, ' ')
}

const replaced = (word: string, signs: ReadonlyMap<string, string>) =>
  Array.from(word, (sign) => signs.get(sign) ?? sign).join('')

/**
 * The form in which text is compared with the patterns: without compatibility forms, accents, marks, case and invisible characters.
 */
function fold(text: string): string {
  const plain = text.normalize('NFKD').replace(/[\p{Mn}\p{DI}]/gu, '')
  return plain.normalize('NFC').toLowerCase()
}

/** The patterns of one kind. Those with names of words are made for each language that they are for. */
function patternsOf(kind: Suspicion): RegExp[] {
  const filled = (section: string, words: Words) =>
    (SECTIONS.get(section) ?? []).map((line) => line.replace(/\{([a-z_]+)\}/g, (_, name: string) => words.get(name)!))
  const sources = LANGUAGES.flatMap((words, i) => filled(i === 0 ? kind : `${kind}: other`, words))
  return sources.map((source) => new RegExp(withoutMarks(source), 'u'))
}

/** As text is folded, but for case, which has a meaning in patterns: marks of Hindi or Japanese are gone on both sides. */
const withoutMarks = (source: string) =>
  source
    .normalize('NFKD')
    .replace(/\p{Mn}/gu, '')
    .normalize('NFC')

type Words = ReadonlyMap<string, string>
const SECTIONS = readSections(new URL('./orders.txt', import.meta.url))
/** English first. */
const LANGUAGES: readonly Words[] = [...SECTIONS].flatMap(([section, lines]) =>
  section.startsWith('words: ') ? [new Map(lines.map((line) => line.split(/ = (.*)/s, 2) as [string, string]))] : [],
)
const KINDS = ['instruction', 'seam', 'verdict'] as const
const PATTERNS: Record<Suspicion, readonly RegExp[]> = {
  instruction: patternsOf('instruction'),
  seam: patternsOf('seam'),
  verdict: patternsOf('verdict'),
}
/** UTF-16 units. */
const LONGEST_SENTENCE = 400
const ONE_BREAK = /^[^\n\r\S]*\r?\n[^\n\r\S]*$/
const UNFINISHED = /[\p{L}\p{Nd},]\s*$/u
const RESUMED = /^\s*\p{Ll}/u
/** Words without a meaning of their own, written backwards, and with each letter moved by thirteen. */
const BACKWARDS = /\b(?:eht|dna|lla|ruoy|siht|taht|htiw)\b/
const ROTATED = /\b(?:gur|naq|nyy|lbhe|guvf|gung|jvgu)\b/
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz'
const BASE64 = /[A-Za-z0-9+/]{32,2000}={0,2}/g
const PRINTABLE = /^[\t\n\r\x20-\x7e\u00a0-\u024f]{20,}$/
const SPELLED = /(?<!\p{L})(?:\p{L}[\s.\-·|/_]){4,}\p{L}(?!\p{L})/gu
const LATIN = /[a-z]/
const mapOf = (from: string, to: string) => new Map(Array.from(from, (sign, i) => [sign, to.charAt(i)]))
const LEET = mapOf('0134578$@|', 'oieastbsal')
const LOOKALIKES = mapOf('авсԁеёһіјкмнорԛѕтуѵԝхαεικνορτυ', 'abcdeehijkmhopqstyvwxaeikvoptu')
