// Whether the quantities of a claim and of a passage agree. Agreement puts a passage forward and disagreement is a
// warning; neither is ever taken for support.
import type { DateQuantity, NumberQuantity, Quantity } from './quantity.ts'

export type Disagreement = 'number' | 'date' | 'unit'

/** The share of the claimed quantities that are given, 0 to 1; 0 if none is claimed. */
export function agreeingShare(claimed: readonly Quantity[], given: readonly Quantity[]): number {
  if (claimed.length === 0) return 0
  return claimed.filter((one) => given.some((other) => agree(one, other))).length / claimed.length
}

/** Whether both say the same, as far as both say it: 8.3 million agrees with 8,336,817, and 2019 with May 2019. */
export function agree(a: Quantity, b: Quantity): boolean {
  if (a.kind === 'number' && b.kind === 'number')
    return valuesAgree(a, b) && (a.unit === null || b.unit === null || a.unit.name === b.unit.name)
  if (a.kind === 'date' && b.kind === 'date')
    return datesAgree(a, b) || ((a.swappable || b.swappable) && datesAgree(swapped(a), b))
  return a.kind === 'date' ? isSameFigure(a, b) : isSameFigure(b, a)
}

/** A bare number of four digits is taken for a year, and may have been none. */
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
  const comparable = given.filter((other) => sortOf(other) === sortOf(claimed))
  if (comparable.length === 0) return null
  if (claimed.kind === 'date') return 'date'
  return comparable.some((other) => other.kind === 'number' && valuesAgree(claimed, other)) ? 'unit' : 'number'
}

/** What may be compared: dates, bare counts, and numbers of one dimension. */
function sortOf(quantity: Quantity): string {
  return quantity.kind === 'date' ? 'date' : (quantity.unit?.dimension ?? 'count')
}

function valuesAgree(a: NumberQuantity, b: NumberQuantity): boolean {
  // Half a step of the coarser one, and a little for what binary fractions cannot say.
  return Math.abs(a.value - b.value) <= (Math.max(a.precision, b.precision) / 2) * (1 + 1e-9)
}

/** At least one part is given by both, and none differs. */
function datesAgree(a: DateQuantity, b: DateQuantity): boolean {
  const shared = (['year', 'month', 'day'] as const).filter((part) => a[part] !== null && b[part] !== null)
  return shared.length > 0 && shared.every((part) => a[part] === b[part])
}

const swapped = (date: DateQuantity): DateQuantity => ({ ...date, day: date.month, month: date.day })
