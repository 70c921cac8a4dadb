// The form of numbers in variables.
import { z } from 'zod'

/** Decimal digits and nothing else: a blank, read as a number, would be 0, which switches limits off. */
export function whole(least: number, most: number = Number.MAX_SAFE_INTEGER) {
  return z.string().regex(/^\d+$/, 'must be a whole number').transform(Number).pipe(z.int().min(least).max(most))
}

/** Decimal digits with a point or without one: another form, such as `0x10` or a blank, is a mistake. */
export function decimal(least: number, most: number) {
  const form = z.string().regex(/^(\d+|\d*\.\d+)$/, 'must be a number in digits, such as 1 or 0.5')
  return form.transform(Number).pipe(z.number().min(least).max(most))
}
