// The number in a text at a place, in digits or in words: 2,500, two thousand five hundred, half a million, two and a half.
import type { Reading } from './quantity.ts'
import { DENSE_SCALES, SCALES, UNITS, type Unit } from './units.ts'

export interface Figure {
  value: number
  precision: number
  /** The place after it. */
  next: number
  /** Set where the words of the number enclose its unit: a year and a half, half an hour. */
  unit?: Unit
}

/**
 * Digits; or number words, of which twenty-five and twenty-fifth take two; or a lone `a` or `one` before a scale, as in a
 * million; or a fraction, as in half a million, half an hour and an hour and a half.
 */
export function readFigure(reading: Reading, at: number): Figure | null {
  const { tokens, word, gapBefore } = reading
  const token = tokens[at]
  if (token?.kind === 'dense') return readHan(tokens, at)
  if (token?.kind !== 'number') return readFraction(reading, at) ?? readOne(reading, at)
  const value = Number(token.folded)
  const ones = isSpelled(reading, at) && value >= 20 && value < 100 ? onesIn(reading, at + 1) : null
  if (ones !== null && /^[- ]$/.test(gapBefore(at + 1))) return figure(value + ones, 1, at + 2)
  if (isAndHalf(reading, at + 1) && !UNITS.has(word(at + 1))) return figure(value + 0.5, HALF_STEP, at + 4)
  const decimals = token.folded.split('.')[1]?.length ?? 0
  return figure(value, 10 ** -decimals, at + 1)
}

const isSpelled = ({ tokens }: Reading, at: number) => tokens[at]?.kind === 'number' && !DIGIT.test(tokens[at].raw)

/** The five of twenty-five, the one of twenty-one, and the fifth of twenty-fifth. */
function onesIn(reading: Reading, at: number): number | null {
  const ordinal = ORDINALS.indexOf(reading.word(at))
  if (ordinal >= 0) return ordinal + 1
  if (reading.word(at) === 'one') return 1
  const value = isSpelled(reading, at) ? Number(reading.word(at)) : 10
  return value < 10 ? value : null
}

/** a million, one hundred, one and a half, an hour and a half */
function readOne(reading: Reading, at: number): Figure | null {
  const { word } = reading
  if (!ONE.has(word(at))) return null
  if (word(at) !== 'an' && SCALES.has(word(at + 1))) return figure(1, 1, at + 1)
  if (word(at) === 'one' && isAndHalf(reading, at + 1)) return figure(1.5, HALF_STEP, at + 4)
  const unit = UNITS.get(word(at + 1))
  return unit && isAndHalf(reading, at + 2) ? { ...figure(1.5, HALF_STEP, at + 5), unit } : null
}

const isAndHalf = ({ word }: Reading, at: number) =>
  word(at) === 'and' && word(at + 1) === 'a' && word(at + 2) === 'half'

/** half a million, a quarter of a century, half an hour, half-hour */
function readFraction({ word, gapBefore }: Reading, at: number): Figure | null {
  const share = FRACTIONS.get(word(at))
  if (share === undefined) return null
  const of = word(at + 1) === 'of' ? at + 2 : at + 1
  const isJoined = of === at + 1 && gapBefore(of) === '-'
  const next = isJoined ? of : of + 1
  if (!isJoined && !ONE.has(word(of))) return null
  if (SCALES.has(word(next))) return figure(share, share / 5, next)
  const unit = UNITS.get(word(next))
  // A single letter after "a" is a letter: half a g.
  return unit && word(next).length > 2 ? { ...figure(share, share / 5, next + 1), unit } : null
}

/** 三十五, 千二百, 二〇: at least two signs, because a single one is part of many words. */
function readHan(tokens: Reading['tokens'], at: number): Figure | null {
  let [sum, digits, next] = [0, '', at]
  let endBefore: number | null = null
  for (const { folded, kind, start, end } of tokens.slice(at, at + LONGEST_HAN + 1)) {
    if (kind !== 'dense' || (endBefore !== null && endBefore !== start)) break
    const digit = HAN_DIGITS.indexOf(folded)
    const scale = HAN_SCALES.get(folded)
    if (digit >= 0) digits += digit
    else if (scale === undefined) break
    else {
      sum += (digits === '' ? 1 : Number(digits)) * scale
      digits = ''
    }
    endBefore = end
    next++
  }
  return next - at < 2 || next - at > LONGEST_HAN ? null : figure(sum + Number(digits), 1, next)
}

const figure = (value: number, precision: number, next: number): Figure => ({ value, precision, next })

/**
 * Multiplies by the scales that follow; adds what follows a scale of a dense script, and the words that follow a spelled
 * scale, as in two hundred and fifty. `bn` and `5m` need a currency.
 */
export function readScale(reading: Reading, { value, precision, next }: Figure, isMoney: boolean): Figure {
  const { word, gapBefore, tokens } = reading
  const dense = DENSE_SCALES.get(word(next))
  if (dense !== undefined && gapBefore(next).trim() === '') {
    const rest =
      tokens[next + 1]?.kind === 'number' && gapBefore(next + 1) === '' ? readFigure(reading, next + 1) : null
    const scaledRest = rest && DENSE_SCALES.has(word(rest.next)) ? readScale(reading, rest, isMoney) : null
    if (scaledRest) return figure(value * dense + scaledRest.value, scaledRest.precision, scaledRest.next)
    return readScale(reading, figure(value * dense, precision * dense, next + 1), isMoney)
  }
  const scale = SCALES.get(word(next)) ?? (isMoney ? MONEY_SCALES.get(word(next)) : undefined)
  if (scale === undefined || !CLOSE.test(gapBefore(next))) return figure(value, precision, next)
  const scaled = figure(value * scale, precision * scale, next + 1)
  return readScale(reading, withSpelledRest(reading, scaled, scale), isMoney)
}

/** Adds the five hundred of two thousand five hundred: a smaller number in words behind a hundred or thousand in words. */
function withSpelledRest(reading: Reading, scaled: Figure, scale: number): Figure {
  const { word, gapBefore } = reading
  const isWord = (scale === 100 || scale === 1000) && isSpelled(reading, scaled.next - 2)
  const isLone = (scale === 100 || scale === 1000) && ONE.has(word(scaled.next - 2))
  if (!isWord && !isLone) return scaled
  const at = word(scaled.next) === 'and' ? scaled.next + 1 : scaled.next
  if (!/^[\s-]$/.test(gapBefore(scaled.next)) || !/^\s?$/.test(gapBefore(at).replace('-', ''))) return scaled
  if (!isSpelled(reading, at)) return scaled
  const rest = readFigure(reading, at)
  if (!rest || rest.unit) return scaled
  const isHundreds = scale === 1000 && word(rest.next) === 'hundred'
  const whole = isHundreds ? withSpelledRest(reading, figure(rest.value * 100, 100, rest.next + 1), 100) : rest
  // "Two hundred and three hundred" are two numbers, and "two hundred and fifty thousand" is one.
  if (whole.value >= scale || (SCALES.get(word(whole.next)) ?? Number.POSITIVE_INFINITY) <= scale) return scaled
  return figure(scaled.value + whole.value, whole.precision, whole.next)
}

const DIGIT = /\p{Nd}/u
const CLOSE = /^[\s-]?$/
const ONE: ReadonlySet<string> = new Set(['a', 'an', 'one'])
const FRACTIONS: ReadonlyMap<string, number> = new Map([
  ['half', 0.5],
  ['quarter', 0.25],
])
const HALF_STEP = 0.1
const ORDINALS = 'first second third fourth fifth sixth seventh eighth ninth'.split(' ')
export const MONEY_SCALES: ReadonlyMap<string, number> = new Map([
  ['k', 1e3],
  ['m', 1e6],
  ['b', 1e9],
])
const HAN_DIGITS = '〇一二三四五六七八九'
const HAN_SCALES: ReadonlyMap<string, number> = new Map([
  ['十', 10],
  ['百', 100],
  ['千', 1000],
])
const LONGEST_HAN = 12
