// What withdraws a verdict of the model beside suspicious text: words that the claim attributes to a speaker, and numbers that it
// states, where the page or its quotes do not have them.
import { isAttributed } from '../../text/language.ts'
import { type Granularity, granularityFor, scanTokens, type Token, tokensOf } from '../../text/tokens.ts'

/** Whether the claim attributes words to a speaker that are nowhere in the text. Their tokens must be consecutive. */
export function absentQuotation(claim: string, text: string): boolean {
  if (!isAttributed(claim)) return false
  const read = new Map<Granularity, string>()
  return quotations(claim).some((phrase) => {
    const granularity = granularityFor(phrase)
    const all = read.get(granularity) ?? foldedTokens(text, granularity)
    read.set(granularity, all)
    return !all.includes(foldedTokens(phrase, granularity))
  })
}

/**
 * What stands between quotation marks, without what is left out of it. Marks are paired in order. A straight mark opens where
 * a word follows it and none goes before, and closes otherwise. Few words are a name or a term more often than speech.
 */
function quotations(claim: string): string[] {
  const found: string[] = []
  let open = -1
  for (const { index, 0: mark } of claim.matchAll(MARKS)) {
    const opensByPlace = /^$|[\s\p{Ps}\p{Pi}\p{Pd}]/u.test(claim.slice(Math.max(0, index - 1), index))
    const opens = OPENING.test(mark) || (!CLOSING.test(mark) && open < 0 && opensByPlace)
    if (open >= 0 && !OPENING.test(mark)) {
      found.push(claim.slice(open, index))
      open = -1
    } else if (opens) open = index + 1
  }
  const pieces = found.flatMap((quoted) => quoted.split(LEFT_OUT_OF_QUOTE))
  return pieces.filter((piece) => tokensOf(piece, granularityFor(piece)).length >= LEAST_TOKENS)
}

/** The tokens of a text, each between two line breaks, which no token holds. */
function foldedTokens(text: string, granularity: Granularity): string {
  const tokens: string[] = []
  scanTokens(text.normalize('NFC'), granularity, (folded) => tokens.push(folded))
  return `\n${tokens.join('\n')}\n`
}

/**
 * Whether the claim states a number that none of the quotes holds, by its value. A number that the claim rounds or only bounds
 * ("about 300", "before 1990") is held by any number. Numbers up to twelve, ordinals and measures, which pages also write in
 * other ways, are absent only where a quote has another number before the same word. A claim that denies something, and
 * quotes with a half, a dozen or hundreds in words, are not compared. Linear in the length of claim and quotes.
 */
export function absentNumber(claim: string, quotes: readonly string[]): boolean {
  if (holdsOneOf(DENIALS, claim) || quotes.some((quote) => holdsOneOf(IN_WORDS, quote))) return false
  const held = distinct(quotes.flatMap(readNumbers))
  return distinct(readNumbers(claim)).some((number) => {
    if (held.some((other) => holds(number, other.value)) || (number.isRounded && held.length > 0)) return false
    return !number.isLoose || held.some(({ word }) => word !== '' && word === number.word)
  })
}

interface Stated {
  value: number
  /** What the last digit written is worth: 100,000 in 1.2 million. */
  unit: number
  /** The folded word after it. */
  word: string
  isDecade: boolean
  isRounded: boolean
  isLoose: boolean
}

/** 44.7 is 45 for a claim without decimals, 1,234,567 is 1.2 million, and 1994 is in the 1990s. */
function holds({ value, unit, isDecade }: Stated, other: number): boolean {
  if (isDecade && value <= other && other < value + (value % 100 === 0 ? 100 : 10)) return true
  const isFiner = unit > 1 || !Number.isInteger(other)
  return Math.abs(other - value) <= (isFiner ? unit / 2 : EXACT * value)
}

/** Without times of day, centuries, and numbers of names, such as COVID-19. */
function readNumbers(text: string): Stated[] {
  const composed = text.normalize('NFC')
  const tokens = tokensOf(composed)
  const gapBefore = (i: number) => composed.slice(tokens[i - 1]?.end ?? 0, tokens[i]?.start)
  const numbers: Stated[] = []
  for (let i = 0; i < tokens.length; i++) {
    const [first, before] = [tokens[i]!, tokens[i - 1]]
    const begun = worthOf(first)
    if (begun === null) continue
    const isName = gapBefore(i).includes('(') || (before?.kind === 'word' && /^[-‐–]?$/.test(gapBefore(i)))
    const isTime = [i, i + 1].some((at) => gapBefore(at) === ':' && tokens[at]?.kind === 'number')
    const around = tokens.slice(Math.max(0, i - 4), i)
    let [value, unit] = [begun, 10 ** -(first.folded.split('.')[1]?.length ?? 0)]
    for (let next = tokens[i + 1]; next && /^[\s-]*$/.test(gapBefore(i + 1)); next = tokens[i + 1]) {
      const factor = SCALES.get(next.folded) ?? (gapBefore(i + 1) === '' ? ABBREVIATED.get(next.folded) : undefined)
      const ones = /^\p{L}/u.test(next.raw) && value >= 20 && value < 100 && value % 10 === 0 ? worthOf(next) : null
      if (factor) [value, unit] = [value * factor, unit * factor]
      else if (ones !== null && ones < 10) value += ones
      else break
      i++
    }
    const suffix =
      /^['’]?$/.test(gapBefore(i + 1)) && SUFFIX.test(tokens[i + 1]?.folded ?? '') ? tokens[++i]!.folded : ''
    const after = tokens[i + 1]
    const [sign = ''] = /^\s*[%°$€£¥]/.exec(composed.slice(tokens[i]!.end)) ?? []
    const word = sign.trim() || (after && /^[\s-]*$/.test(gapBefore(i + 1)) ? after.folded : '')
    if (isName || isTime || word.startsWith('centur')) continue
    numbers.push({
      value,
      unit,
      word,
      isDecade: suffix === 's',
      isRounded: [...around, ...(after ? [after] : [])].some(({ folded }) => ROUNDING.has(folded)),
      isLoose: value <= SMALL || (suffix !== '' && suffix !== 's') || MEASURES.has(word),
    })
  }
  return numbers
}

/** Each number once, however often it occurs. */
const distinct = (all: readonly Stated[]) => [...new Map(all.map((one) => [JSON.stringify(one), one])).values()]

const worthOf = ({ kind, folded }: Token) => (kind === 'number' ? Number(folded) : folded === 'one' ? 1 : null)

const holdsOneOf = (words: ReadonlySet<string>, text: string) => tokensOf(text).some(({ folded }) => words.has(folded))
const setOf = (words: string): ReadonlySet<string> => new Set(words.split(' '))

const LEAST_TOKENS = 4
/** Marks that a quotation leaves words out. */
const LEFT_OUT_OF_QUOTE = /\s*(?:\[?(?:\.{3}|…)\]?|\[[^\]]*\])\s*/
const MARKS = /["“”„«»「」『』]/g
/** “ also closes, after „. */
const OPENING = /[„«「『]/
const CLOSING = /[”»」』]/
const SMALL = 12
const EXACT = 1e-9
const SUFFIX = /^(?:st|nd|rd|th|s)$/
const IN_WORDS = setOf('hundred hundreds dozen half')
const SCALES: ReadonlyMap<string, number> = new Map(
  Object.entries({
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
const ROUNDING = setOf(
  'about around approximately approx roughly nearly almost over more less fewer least most under above below circa ca some ' +
    'exceed exceeds exceeded exceeding between up within than before after since until till by early mid middle late etwa ' +
    'rund ungefahr fast uber mehr weniger mindestens hochstens environ presque plus moins unos unas cerca casi mas menos ' +
    'aproximadamente mais quase',
)
const DENIALS = setOf(
  'not no never none neither nor without yet t nicht kein keine keinen nie ne pas jamais nunca nao non',
)
const MEASURES = setOf(
  'km kilometre kilometres kilometer kilometers mile miles m metre metres meter meters foot feet ft inch inches cm ' +
    'centimetres centimeters yard yards kg kilograms kilogrammes lb lbs pounds tonnes tons ounces ° degrees celsius ' +
    'fahrenheit acre acres hectare hectares ha litre litres liter liters gallon gallons mph kmh knots square cubic ' +
    'days weeks months years decades centuries hours minutes seconds $ € £ ¥ dollars euros',
)
