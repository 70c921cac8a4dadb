// The scalar values of the interface: texts, timestamps, digests and amounts.
import { z } from 'zod'
import { uriProblem } from './uri.ts'

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

/**
 * Whether a text of one line shows as it is written: no control characters, no further line separators, and none of the
 * characters that turn the direction of what follows, so that it can pass for another text.
 */
export function isPlainLine(text: string): boolean {
  return text.isWellFormed() && !/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u.test(text)
}

export const PLAIN_LINE = 'must be one line without control characters, also none that turn the direction of the text'

export const timestamp = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z$/)
  .meta({ format: 'date-time' })
export const sha256Hex = z.string().regex(/^[0-9a-f]{64}$/)
export const decimalUsd = z.string().regex(/^(0|[1-9][0-9]*)(\.[0-9]{1,6})?$/)

/** A text of the given shape that is a URI (RFC 3986). The published format is tested, so that no result breaks it. */
export const uri = (shape: z.ZodString) =>
  shape
    .refine((value) => uriProblem(value) === null, {
      error: ({ input }) => uriProblem(String(input)) ?? 'must be a URI',
    })
    .meta({ format: 'uri' })
