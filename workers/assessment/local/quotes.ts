// Verdicts, and quotes as the interface wants them: at most 1,000 code points, with offsets in code points.

export type Verdict = 'supports' | 'contradicts' | 'mixed' | 'insufficient_evidence'
export type Side = 'supports' | 'contradicts'

/** A quote by its code-point offsets in the text. */
export interface LocalQuote {
  quote: string
  start: number
  end: number
  stance: Side | 'mentions'
}

/** Code points. */
const LONGEST_QUOTE = 1000

/** The number of code points between two UTF-16 offsets of a well-formed text. */
export function codePointsBetween(text: string, from: number, to: number): number {
  let count = 0
  for (let i = from; i < to; i++) if ((text.charCodeAt(i) & 0xfc00) !== 0xdc00) count++
  return count
}

/** The sentence, or its beginning up to the last blank within LONGEST_QUOTE; without a blank, one code point less than that. */
export function quotable(sentence: string): string {
  if (sentence.length <= LONGEST_QUOTE) return sentence
  const beginning = beginningOf(sentence, LONGEST_QUOTE)
  if (beginning === sentence) return sentence
  const blank = beginning.lastIndexOf(' ')
  // Not `slice(0, -1)`, which would leave half of a character of two units.
  const whole = (blank < 0 ? beginningOf(sentence, LONGEST_QUOTE - 1) : beginning.slice(0, blank)).trimEnd()
  return whole === '' ? beginning : whole
}

/** The first code points of a text, at most so many. */
export function beginningOf(text: string, codePoints: number): string {
  let at = 0
  for (let i = 0; i < codePoints && at < text.length; i++) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
  return text.slice(0, at)
}

/** A text on one line, cut with an ellipsis where it is longer than so many code points. */
export function shortened(text: string, codePoints: number): string {
  const line = text.replace(/\s+/g, ' ').trim()
  const beginning = beginningOf(line, codePoints - 1)
  return beginning.length < beginningOf(line, codePoints).length && beginningOf(line, codePoints) !== line
    ? `${beginning.trimEnd()}…`
    : line
}
