// The form of whole numbers in variables.
import { z } from 'zod'

/** Decimal digits and nothing else: a blank, read as a number, would be 0, which switches limits off. */
export function whole(least: number, most: number = Number.MAX_SAFE_INTEGER) {
  return z.string().regex(/^\d+$/, 'must be a whole number').transform(Number).pipe(z.int().min(least).max(most))
}
