// Dates as pages write them. A date is read as far as it is given: a year alone, a month of a year, a day without one.
import type { DateQuantity, Found, Reading } from './quantity.ts'

/** Each reads the tokens from a place on. The first that finds a date wins. */
export const dateReaders: readonly ((reading: Reading, at: number) => Found<DateQuantity> | null)[] = [
  readIsoDate,
  readNumericDate,
  readDenseDate,
  readDayFirst,
  readMonthFirst,
  readCentury,
  readDecade,
  readYears,
]

/** Whole numbers that may be years. */
export const YEARS = [1000, 2199] as const

/** 2019-03-05, 2019/3/5 */
function readIsoDate(reading: Reading, at: number): Found<DateQuantity> | null {
  const { integer } = reading
  const [year, month, day] = [integer(at, ...YEARS), integer(at + 1, 1, 12), integer(at + 2, 1, 31)]
  if (year === null || month === null || day === null || !isJoined(reading, at)) return null
  return found(3, year, month, day)
}

/** 5.3.2019 and 3/5/2019, where the order of day and month may be open */
function readNumericDate(reading: Reading, at: number): Found<DateQuantity> | null {
  const { integer, gapBefore } = reading
  const [first, second, year] = [integer(at, 1, 31), integer(at + 1, 1, 31), integer(at + 2, ...YEARS)]
  if (first === null || second === null || year === null || !isJoined(reading, at)) return null
  if (first > 12 && second > 12) return null
  const [day, month] = second > 12 ? [second, first] : [first, second]
  return found(3, year, month, day, gapBefore(at + 1) === '/' && first <= 12 && second <= 12)
}

/** Three numbers with the same sign between them. */
function isJoined({ gapBefore }: Reading, at: number): boolean {
  return /^[-/.]$/.test(gapBefore(at + 1)) && gapBefore(at + 2) === gapBefore(at + 1)
}

/** 2019年3月5日 and its parts, in Korean too */
function readDenseDate({ integer, word, gapBefore }: Reading, at: number): Found<DateQuantity> | null {
  const parts: [number | null, number | null, number | null] = [null, null, null]
  let next = at
  for (const [i, [least, most, sign]] of DENSE_PARTS.entries()) {
    const follows = next === at || gapBefore(next).trim() === ''
    const value = follows && sign.test(word(next + 1)) ? integer(next, least, most) : null
    if (value === null) continue
    parts[i] = value
    next += 2
  }
  // A count of days has the same sign as the day of a month.
  return parts[0] === null && parts[1] === null ? null : found(next - at, ...parts)
}

/** 5 March 2019, 5th of March, 5 de marzo de 2019, 5. März, 6-7 March */
function readDayFirst(reading: Reading, at: number): Found<DateQuantity> | null {
  const day = reading.integer(at, 1, 31)
  if (day === null) return null
  const last = lastDayOf(reading, at, day)
  const next = skip(reading, at + (last === null ? 1 : 2))
  const month = reading.month(next)
  return month === null ? null : withLastDay(withYear(reading, at, next + 1, month, day), last)
}

/** March 5, 2019; March 6-7; March 2019; März 2019 */
function readMonthFirst(reading: Reading, at: number): Found<DateQuantity> | null {
  const month = reading.month(at)
  if (month === null) return null
  const day = /^\.?\s+$/.test(reading.gapBefore(at + 1)) ? reading.integer(at + 1, 1, 31) : null
  if (day !== null) {
    const last = lastDayOf(reading, at + 1, day)
    return withLastDay(withYear(reading, at, skip(reading, at + (last === null ? 2 : 3)), month, day), last)
  }
  const date = withYear(reading, at, at + 1, month, null)
  return date.quantity.year === null && !isMonthAlone(reading, at) ? null : date
}

/** Released in March: a word before tells it from a name or a verb. */
function isMonthAlone({ raw, word }: Reading, at: number): boolean {
  return /^\p{Lu}\p{Ll}/u.test(raw(at)) && BEFORE_MONTH.has(word(at - 1))
}

/** The second of 6-7 March and of March 6-7. */
function lastDayOf({ integer, gapBefore }: Reading, at: number, day: number): number | null {
  return /^\s?[-\u2010-\u2015]\s?$/.test(gapBefore(at + 1)) ? integer(at + 1, day + 1, 31) : null
}

const withLastDay = ({ quantity, length }: Found<DateQuantity>, lastDay: number | null): Found<DateQuantity> => ({
  quantity: { ...quantity, lastDay },
  length,
})

function withYear(reading: Reading, from: number, at: number, month: number, day: number | null): Found<DateQuantity> {
  const next = skip(reading, at)
  const year = /^\.?[,\s]*$/.test(reading.gapBefore(next)) ? reading.integer(next, ...YEARS) : null
  return found((year === null ? at : next + 1) - from, year, month, day)
}

/** 19th century, nineteenth century, 21st-century, 19. Jahrhundert, 19e siècle: from the 11th */
function readCentury(reading: Reading, at: number): Found<DateQuantity> | null {
  const { word } = reading
  const own = centuryNumber(reading, at)
  if (!own) return null
  // The 18th of 18th and 19th centuries.
  let next = own.next
  for (let joined = 0; joined < MOST_JOINED && JOINS_CENTURIES.has(word(next)); joined++)
    next = centuryNumber(reading, next + 1)?.next ?? next
  if (!CENTURY.has(word(next)) || BEFORE_CHRIST.has(word(next + 1))) return null
  const quantity = { ...years((own.century - 1) * 100), until: own.century * 100 - 1 }
  return { quantity, length: (next === own.next ? next + 1 : own.next) - at }
}

/** An ordinal number that may count a century, and the place after it. Nineteen centuries are a duration. */
function centuryNumber({ word, integer, gapBefore }: Reading, at: number): { century: number; next: number } | null {
  if (word(at) === '20' && gapBefore(at + 1) === '-' && word(at + 1) === 'first') return { century: 21, next: at + 2 }
  const spelled = ORDINAL_WORDS.indexOf(word(at))
  if (spelled >= 0) return { century: spelled + FIRST_CENTURY, next: at + 1 }
  const century = integer(at, FIRST_CENTURY, 21)
  if (century === null) return null
  if (CENTURY_SUFFIX.test(word(at + 1)) && gapBefore(at + 1) === '') return { century, next: at + 2 }
  return gapBefore(at + 1) === '. ' ? { century, next: at + 1 } : null
}

/** 1940s, 1940's; and '40s, of the last century */
function readDecade({ integer, word, gapBefore }: Reading, at: number): Found<DateQuantity> | null {
  const short = /['’]$/.test(gapBefore(at)) ? integer(at, 10, 90) : null
  const year = short === null ? integer(at, ...YEARS) : 1900 + short
  if (year === null || year % 10 !== 0 || word(at + 1) !== 's' || !/^['’]?$/.test(gapBefore(at + 1))) return null
  const length = year % 100 === 0 && year < 2000 ? 100 : 10
  return { quantity: { ...years(year), until: year + length - 1 }, length: 2 }
}

/** 2018-19: the second number is the last two digits of a year. */
function readYears({ raw, integer, gapBefore }: Reading, at: number): Found<DateQuantity> | null {
  const year = integer(at, ...YEARS)
  const end = integer(at + 1, 0, 99)
  if (year === null || raw(at).length !== 4 || end === null || raw(at + 1).length !== 2) return null
  if (!/^[-\u2010-\u2015/]$/.test(gapBefore(at + 1)) || /^[-\u2010-\u2015/.]$/.test(gapBefore(at + 2))) return null
  const until = year - (year % 100) + end + (end < year % 100 ? 100 : 0)
  return until - year > LONGEST_SPAN ? null : { quantity: { ...years(year), until }, length: 2 }
}

/** A date that is a year and no more. */
export function years(year: number): DateQuantity {
  return { kind: 'date', year, until: null, bound: null, month: null, day: null, lastDay: null, swappable: false }
}

/** Past the words that join the parts of a date, of which there are at most two: 5th of. */
function skip({ word }: Reading, at: number): number {
  if (!JOINERS.has(word(at))) return at
  return JOINERS.has(word(at + 1)) ? at + 2 : at + 1
}

function found(
  length: number,
  year: number | null,
  month: number | null,
  day: number | null,
  swappable = false,
): Found<DateQuantity> {
  return { quantity: { kind: 'date', year, until: null, bound: null, month, day, lastDay: null, swappable }, length }
}

const DENSE_PARTS: readonly [number, number, RegExp][] = [
  [...YEARS, /^[年년]$/],
  [1, 12, /^[月월]$/],
  [1, 31, /^[日일]$/],
]
/** Years. */
const LONGEST_SPAN = 30
const FIRST_CENTURY = 11
const ORDINAL_WORDS =
  'eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth'.split(' ')
const CENTURY_SUFFIX = /^(?:th|st|e|eme)$/
const CENTURY: ReadonlySet<string> = new Set('century centuries jahrhundert jahrhunderts siecle siecles'.split(' '))
const JOINS_CENTURIES: ReadonlySet<string> = new Set(['and', 'or', 'to', 'und', 'et'])
/** Most further centuries in one list. */
const MOST_JOINED = 3
const BEFORE_CHRIST: ReadonlySet<string> = new Set(['bc', 'bce'])
const BEFORE_MONTH: ReadonlySet<string> = new Set(
  `in on since until till from to through during by before after early late mid last next every each im seit bis anfang
   ende mitte en desde hasta em`.split(/\s+/),
)
const JOINERS: ReadonlySet<string> = new Set('st nd rd th er o of the de del di d den г в'.split(' '))
