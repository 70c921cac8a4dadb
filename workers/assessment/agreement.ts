// Whether the quantities of a claim and of a passage agree. Agreement raises the rank of a passage, and disagreement is a
// warning; neither counts as support.
import type { Bound, DateQuantity, NumberQuantity, Quantity } from './quantity.ts'

export type Disagreement = 'number' | 'date' | 'unit'

/** The share of the claimed quantities that are given, 0 to 1; 0 if none is claimed. */
export function agreeingShare(claimed: readonly Quantity[], given: readonly Quantity[]): number {
  if (claimed.length === 0) return 0
  return claimed.filter((one) => given.some((other) => agree(one, other))).length / claimed.length
}

/**
 * Whether a given quantity agrees with the claimed one, in the parts that both have: 8.3 million agrees with 8,336,817,
 * 2019 with May 2019, 312 with more than 300, and 1941 with the 1940s.
 */
export function agree(claimed: Quantity, given: Quantity): boolean {
  if (claimed.kind === 'number' && given.kind === 'number')
    return readingsOf(claimed).some((one) => readingsOf(given).some((other) => numbersAgree(one, other)))
  if (claimed.kind === 'date' && given.kind === 'date')
    return datesAgree(claimed, given) || ((claimed.swappable || given.swappable) && datesAgree(swapped(claimed), given))
  return claimed.kind === 'date' ? isSameFigure(claimed, given) : isSameFigure(given, claimed)
}

/** The number in each of the units that its word may mean. */
export function readingsOf(quantity: NumberQuantity): NumberQuantity[] {
  return quantity.or ? [quantity, quantity.or] : [quantity]
}

function numbersAgree(claimed: NumberQuantity, given: NumberQuantity): boolean {
  if (claimed.unit && given.unit && claimed.unit.name !== given.unit.name) return false
  if (isStrict(claimed.bound) && given.bound === null && given.value === claimed.value) return false
  return valuesAgree(claimed, given) || isWithin(claimed.bound, claimed.value, given.value)
}

/** Whether a number is within a claimed bound. */
export function isWithin(bound: Bound | null, claimed: number, given: number): boolean {
  if (bound === 'above' || bound === 'least') return given > claimed
  if (bound === 'below' || bound === 'most') return given < claimed
  return bound === 'about' && Math.abs(given - claimed) <= ABOUT * Math.abs(claimed)
}

/** More than 300 is not 300. */
const isStrict = (bound: Bound | null): boolean => bound === 'above' || bound === 'below'

/** A bare number of four digits counts as a year, which may be wrong. */
function isSameFigure(date: Quantity, number: Quantity): boolean {
  if (date.kind !== 'date' || number.kind !== 'number') return false
  return date.month === null && date.year === number.value && number.unit === null
}

/**
 * How the given quantities differ from a claimed one with which none of them agrees: another number or date of the
 * same sort, or the same number in another unit of the same dimension. Null if one agrees or none is comparable.
 */
export function disagreement(claimed: Quantity, given: readonly Quantity[]): Disagreement | null {
  if (given.some((other) => agree(claimed, other))) return null
  const comparable = given.filter((other) => areComparable(claimed, other))
  if (comparable.length === 0) return null
  if (claimed.kind === 'date') return 'date'
  return comparable.some((other) => other.kind === 'number' && valuesAgree(claimed, other)) ? 'unit' : 'number'
}

/** Dates that share a part, counts of the same thing or of what is not said, and numbers of one dimension. */
function areComparable(claimed: Quantity, given: Quantity): boolean {
  if (claimed.kind === 'date' && given.kind === 'date') return sharePart(claimed, given)
  if (claimed.kind === 'date' || given.kind === 'date') return false
  return readingsOf(claimed).some((one) =>
    readingsOf(given).some((other) => {
      if (one.unit || other.unit) return one.unit?.dimension === other.unit?.dimension
      return one.noun === null || other.noun === null || isSameNoun(one.noun, other.noun)
    }),
  )
}

/** The same word, in whatever number. */
export function isSameNoun(a: string, b: string): boolean {
  const shortest = Math.min(a.length, b.length)
  return a.slice(0, Math.max(3, shortest - 2)) === b.slice(0, Math.max(3, shortest - 2))
}

function valuesAgree(a: NumberQuantity, b: NumberQuantity): boolean {
  // Tolerance: half a step of the coarser number, and a little for rounding of binary fractions.
  return Math.abs(a.value - b.value) <= (Math.max(a.precision, b.precision) / 2) * (1 + 1e-9)
}

/** At least one part is given by both, and none differs, or the claimed year is a bound and is kept. */
function datesAgree(a: DateQuantity, b: DateQuantity): boolean {
  if (!sharePart(a, b)) return false
  if (isInBound(a, b)) return true
  return !(isStrict(a.bound) && b.bound === null) && PARTS.every((part) => !partDiffers(part, a, b))
}

function sharePart(a: DateQuantity, b: DateQuantity): boolean {
  return PARTS.some((part) => a[part] !== null && b[part] !== null)
}

/** Whether both have a part, and neither is in the other's span. */
function partDiffers(part: (typeof PARTS)[number], a: DateQuantity, b: DateQuantity): boolean {
  const [one, other] = [a[part], b[part]]
  if (one === null || other === null) return false
  const last = part === 'year' ? 'until' : part === 'day' ? 'lastDay' : part
  return one > (b[last] ?? other) || other > (a[last] ?? one)
}

/** Before or after a claimed date: by the day where both give one; before June, in any year. */
function isInBound(claimed: DateQuantity, given: DateQuantity): boolean {
  if (claimed.year === null && claimed.month !== null && given.month !== null) {
    if (claimed.bound === 'about') return false
    const isWhole = claimed.day !== null && given.day !== null
    const place = (month: number, day: number | null) => month * 32 + (isWhole ? (day ?? 0) : 0)
    return isWithin(claimed.bound, place(claimed.month, claimed.day), place(given.month, given.day))
  }
  if (claimed.year === null || given.year === null) return false
  if (claimed.bound === 'about') return Math.abs(given.year - claimed.year) <= ABOUT_YEARS
  if (claimed.month === null || given.month === null) return isWithin(claimed.bound, claimed.year, given.year)
  const order = (year: number, month: number, day: number | null) => year * 400 + month * 32 + (day ?? 0)
  const bound = order(claimed.year, claimed.month, claimed.day)
  return isWithin(claimed.bound, bound, order(given.year, given.month, given.day))
}

const swapped = (date: DateQuantity): DateQuantity => ({ ...date, day: date.month, month: date.day })

const PARTS = ['year', 'month', 'day'] as const
/** Of the claimed number. */
const ABOUT = 0.15
const ABOUT_YEARS = 2
