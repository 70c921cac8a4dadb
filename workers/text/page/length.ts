// The size from which a page is large, and how a text is cut to the length that a result may hold.
import { LIMITS } from '../../../server/interface/limits.ts'

/** Code points of extracted text, at most. */
export const maxCodePoints = LIMITS.textChars

/** Octets of a page, after content decoding. What is smaller is read in a fraction of a second, whatever it holds. */
export const LARGE_BYTES = 1_048_576

/**
 * The beginning of the text, of at most so many code points. It ends where a block ends, or else a word, unless that
 * would cost more than half of it.
 */
export function cutText(text: string, limit: number = maxCodePoints): string {
  const end = endOf(text, limit)
  if (end === text.length) return text
  for (const boundary of ['\n', ' ']) {
    const last = text.lastIndexOf(boundary, end)
    if (last > end / 2) return text.slice(0, last).trimEnd()
  }
  return text.slice(0, end)
}

/** The UTF-16 index after the first `limit` code points, or the end. */
function endOf(text: string, limit: number) {
  if (text.length <= limit) return text.length
  let i = 0
  for (let points = 0; points < limit; points++) {
    const point = text.codePointAt(i)
    if (point === undefined) break
    i += point > 0xffff ? 2 : 1
  }
  return i
}
