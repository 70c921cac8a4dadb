// The numbers that a claim states, looked for in the quotes that are to support it. They are compared by value, so that
// spelling, words, scales ("1.2 million") and a claim's own rounding do not matter.
import { type Token, tokensOf } from '../tokens.ts'

/**
 * Whether the claim states a number that none of the quotes holds. A number that the claim rounds or only bounds ("about 300",
 * "before 1990") is held by any number at all. Some numbers count as absent only where a quote has another number before the
 * same word: ordinals, and those up to twelve, which pages also write as lists, pronouns and names of months. Not compared are
 * times of day, numbers that belong to a name ("COVID-19", "(2008 film)"), measures that the quotes give in another unit, and
 * the numbers of a claim that denies something. Linear in the length of claim and quotes.
 */
export function absentNumber(claim: string, quotes: readonly string[]): boolean {
  const stated = distinct(readNumbers(claim))
  if (stated.length === 0 || tokensOf(claim).some(({ folded }) => DENIALS.has(folded))) return false
  const held = distinct(quotes.flatMap(readNumbers))
  return stated.some((number) => !number.isName && !isHeld(number, held))
}

interface Stated {
  /** The value in full, and without its scale where it has one: 12 million is 12 too. */
  values: readonly [number, ...number[]]
  /** What the last digit written is worth: 100,000 in 1.2 million. */
  unit: number
  /** The values that it may stand for: a decade, a century. */
  span: readonly [number, number] | null
  /** The folded word after it. */
  word: string
  isRounded: boolean
  isOrdinal: boolean
  isName: boolean
}

/** Each number once, however often it occurs. */
const distinct = (numbers: readonly Stated[]) => [
  ...new Map(numbers.map((number) => [JSON.stringify(Object.values(number)), number])).values(),
]

function isHeld(stated: Stated, held: readonly Stated[]): boolean {
  const [value] = stated.values
  const isSame = (other: Stated) => other.values.some((one) => isSameValue(stated, value, one))
  if (held.some(isSame)) return true
  if (stated.isRounded) return held.length > 0
  const inPlace = held.filter(({ word }) => word !== '' && word === stated.word)
  if (value <= SMALL || stated.isOrdinal) return inPlace.length === 0
  return inPlace.length === 0 && MEASURES.has(stated.word) && held.some(({ word }) => MEASURES.has(word))
}

function isSameValue({ span, unit, word }: Stated, value: number, other: number): boolean {
  if (Math.abs(other - value) <= EXACT * Math.abs(value)) return true
  if (span && ((span[0] <= other && other <= span[1]) || span[0] % 100 === other)) return true
  if (PERCENT.has(word) && Math.abs(other * 100 - value) <= 1) return true
  // 44.7 is 45 for a claim without decimals, and 1,234,567 is 1.2 million.
  const finer = unit > 1 || !Number.isInteger(other)
  return finer && Math.abs(other - value) <= unit / 2
}

function readNumbers(text: string): Stated[] {
  const composed = text.normalize('NFC')
  const tokens = tokensOf(composed)
  const numbers: Stated[] = []
  for (let i = 0; i < tokens.length; i++) {
    const value = worthOf(tokens[i]!)
    if (value === null) continue
    const { last, ...written } = writtenFrom(composed, tokens, i, value)
    numbers.push({ ...written, ...surroundings(composed, tokens, { first: i, last }, written.values[0]) })
    i = last
  }
  return numbers
}

type Written = Pick<Stated, 'values' | 'unit'> & { last: number }
/** The first and the last token of a number. */
type Place = { first: number; last: number }

/** A number in several words or with a scale; `last` is its last token. */
function writtenFrom(text: string, tokens: readonly Token[], first: number, begun: number): Written {
  let [value, unit, scale, last] = [begun, unitOf(tokens[first]!), 1, first]
  for (;;) {
    if (scale === 100 && tokens[last + 1]?.folded === 'and' && worthOf(tokens[last + 2]) !== null) last++
    const next = tokens[last + 1]
    if (!next) break
    const gap = text.slice(tokens[last]!.end, next.start)
    if (!/^[\s-]*$/.test(gap)) break
    const factor = SCALES.get(next.folded) ?? (gap === '' ? ABBREVIATED.get(next.folded) : undefined)
    const added = /^\p{L}/u.test(next.raw) ? worthOf(next) : null
    const isTens = scale === 1 && value >= 20 && value < 100 && value % 10 === 0
    if (factor !== undefined) [value, unit, scale] = [value * factor, unit * factor, scale * factor]
    else if (added !== null && ((isTens && added < 10) || (scale === 100 && added < 100)))
      [value, unit] = [value + added, 1]
    else break
    last++
  }
  return { values: scale > 1 ? [value, value / scale] : [value], unit, last }
}

function surroundings(text: string, tokens: readonly Token[], { first, last }: Place, value: number) {
  const [before, after, further] = [tokens[first - 1], tokens[last + 1], tokens[last + 2]]
  const gapBefore = before ? text.slice(before.end, tokens[first]!.start) : ' '
  const gapAfter = after ? text.slice(tokens[last]!.end, after.start) : ' '
  const suffix = /^['’]?$/.test(gapAfter) && SUFFIX.test(after?.folded ?? '') ? after!.folded : ''
  const noun = suffix ? further?.folded : after?.folded
  const [sign] = /(?<=^\s*)[%°$€£¥]/.exec(text.slice(tokens[last]!.end, tokens[last]!.end + 2)) ?? []
  const isTime =
    (gapBefore === ':' && before?.kind === 'number') || (/^[:h]$/.test(gapAfter) && after?.kind === 'number')
  const near = [...tokens.slice(Math.max(0, first - 4), first), ...(after ? [after] : [])]
  return {
    span: spanOf(value, suffix, noun ?? ''),
    word: sign ?? (suffix || /^[\s-]*$/.test(gapAfter) ? (noun ?? '') : ''),
    isRounded: near.some(({ folded }) => ROUNDING.has(folded)),
    isOrdinal: suffix !== '' && suffix !== 's',
    isName: isTime || gapBefore.includes('(') || (before?.kind === 'word' && /^[-‐–]?$/.test(gapBefore)),
  }
}

/** Null if the token is no number. */
function worthOf(token: Token | undefined): number | null {
  if (!token) return null
  const { kind, folded } = token
  if (kind === 'number') return Number(folded)
  return FURTHER.get(folded) ?? SCALES.get(folded) ?? null
}

/** What the last digit is worth; the zeros at the end of a whole number count as digits. */
function unitOf({ folded }: Token): number {
  const point = folded.indexOf('.')
  return point < 0 ? 1 : 10 ** (point + 1 - folded.length)
}

function spanOf(value: number, suffix: string, noun: string): [number, number] | null {
  if (suffix === 's' && value % 10 === 0) return [value, value + (value % 100 === 0 ? 99 : 9)]
  return /^centur/.test(noun) ? [(value - 1) * 100, value * 100] : null
}

const SMALL = 12
const EXACT = 1e-9
const SUFFIX = /^(?:st|nd|rd|th|s)$/
const PERCENT: ReadonlySet<string> = new Set(['%', 'percent', 'per', 'prozent', 'pour', 'por'])
const FURTHER: ReadonlyMap<string, number> = new Map(
  Object.entries({ one: 1, dozen: 12, half: 0.5, quarter: 0.25, third: 1 / 3, hundred: 100 }),
)
const SCALES: ReadonlyMap<string, number> = new Map(
  Object.entries({
    1e2: 'hundred hundreds',
    1e3: 'thousand thousands tausend mille mil 千',
    1e4: '万 萬 만',
    1e6: 'million millions mio millionen millon millones milhao milhoes milione milioni',
    1e8: '億 亿 억',
    1e9: 'billion billions bn milliard milliards milliarde milliarden mrd',
    1e12: 'trillion trillions',
  }).flatMap(([scale, words]) => words.split(' ').map((word) => [word, Number(scale)] as const)),
)
/** Only where they touch the number. */
const ABBREVIATED: ReadonlyMap<string, number> = new Map(Object.entries({ k: 1e3, m: 1e6, b: 1e9, tn: 1e12 }))
const ROUNDING: ReadonlySet<string> = new Set(
  (
    'about around approximately approx roughly nearly almost over more less fewer least most under above below circa ca some ' +
    'exceed exceeds exceeded exceeding between up within than before after since until till by early mid middle late etwa rund ungefahr fast uber mehr weniger mindestens hochstens ' +
    'environ presque plus moins unos unas cerca casi mas menos aproximadamente mais quase'
  ).split(' '),
)
const DENIALS: ReadonlySet<string> = new Set(
  'not no never none neither nor without yet t nicht kein keine keinen nie ne pas jamais nunca nao non'.split(' '),
)
const MEASURES: ReadonlySet<string> = new Set(
  (
    'km kilometre kilometres kilometer kilometers mile miles m metre metres meter meters foot feet ft inch inches cm ' +
    'centimetres centimeters yard yards kg kilograms kilogrammes lb lbs pounds tonnes tons ounces ° degrees celsius ' +
    'fahrenheit acre acres hectare hectares ha litre litres liter liters gallon gallons mph kmh knots square cubic ' +
    'days weeks months years decades centuries hours minutes seconds $ € £ ¥ dollars euros'
  ).split(' '),
)
