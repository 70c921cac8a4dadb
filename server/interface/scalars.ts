// The scalar values of the interface: texts, timestamps, digests and amounts.
import { z } from 'zod'

/** Length in Unicode code points, which the interface calls characters. */
export function codePoints(text: string): number {
  let count = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit >= 0xd800 && unit < 0xdc00 && i + 1 < text.length) {
      const next = text.charCodeAt(i + 1)
      if (next >= 0xdc00 && next < 0xe000) {
        count--
        i++
      }
    }
  }
  return count
}

/** Well-formed text of at least `min` and at most `max` code points. JSON Schema counts the same way. */
export const text = (min: number, max: number) =>
  z
    .string()
    .refine((value) => value.isWellFormed(), 'must be well-formed Unicode')
    .refine((value) => isOfLength(value, min, max), `must have ${min} to ${max} characters`)
    .meta({ minLength: min, maxLength: max })

/** Whether a text has `min` to `max` code points. Counts them only if the UTF-16 length alone does not decide. */
function isOfLength(value: string, min: number, max: number): boolean {
  if (value.length < min || value.length > 2 * max) return false
  if (value.length >= 2 * min && value.length <= max) return true
  const length = codePoints(value)
  return length >= min && length <= max
}

export const timestamp = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z$/)
  .meta({ format: 'date-time' })
export const sha256Hex = z.string().regex(/^[0-9a-f]{64}$/)
export const decimalUsd = z.string().regex(/^(0|[1-9][0-9]*)(\.[0-9]{1,6})?$/)
