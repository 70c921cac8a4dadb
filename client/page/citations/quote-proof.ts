// Proves in the browser what a check says of a quotation: the digests of the quote and of the page's text, and that the text has the
// quote at these offsets, or nowhere.
import { sha256Hex } from '../../bytes.ts'
import type { LookedFor } from './cited.ts'

/** A text as it came, with the digest that was computed here. */
export interface DigestedText {
  text: string
  points: readonly string[]
  sha256: string
}

export function digestText(text: string): DigestedText {
  return { text, points: Array.from(text), sha256: sha256Hex(text) }
}

/** One thing that was computed again. */
export interface Step {
  ok: boolean
  words: string
}

/** `open`: nothing is wrong, but there was no text to look in. */
export interface Proof {
  state: 'proved' | 'refuted' | 'open'
  steps: Step[]
}

/** @param text null where the host brought none */
export function proveQuote(found: LookedFor, text: DigestedText | null): Proof {
  const steps = [digestStep('the quote', sha256Hex(found.quote), found.quote_sha256)]
  if (text) {
    steps.push(digestStep("the page's text", text.sha256, found.text_sha256))
    steps.push(...placeSteps(found, text))
  }
  const isWrong = steps.some(({ ok }) => !ok)
  return { state: isWrong ? 'refuted' : text ? 'proved' : 'open', steps }
}

function digestStep(what: string, computed: string, said: string): Step {
  return computed === said
    ? { ok: true, words: `SHA-256 of ${what}, computed here: ${computed}` }
    : { ok: false, words: `SHA-256 of ${what}, computed here, is ${computed}, and the check says ${said}` }
}

function placeSteps({ quote, match, start, end, nearest }: LookedFor, { text, points }: DigestedText): Step[] {
  const at = (from: number, to: number) => points.slice(from, to).join('')
  if (match === 'exact' || match === 'typographic') {
    if (start === null || end === null) return [{ ok: false, words: 'The check names no place for the quote.' }]
    const passage = at(start, end)
    const place = `Characters ${start} to ${end} of the text`
    if (match === 'exact')
      return [{ ok: passage === quote, words: `${place} ${passage === quote ? 'are' : 'are not'} the quote.` }]
    const isAlike = passage !== '' && withoutTypography(passage) === withoutTypography(quote)
    return [{ ok: isAlike, words: `${place} ${isAlike ? 'are' : 'are not'} the quote, typography and case aside.` }]
  }
  const isThere = text.includes(quote)
  const steps = [{ ok: !isThere, words: `The text ${isThere ? 'has' : 'does not have'} the quote word for word.` }]
  if (nearest) {
    const isEqual = at(nearest.start, nearest.end) === nearest.text
    const place = `Characters ${nearest.start} to ${nearest.end} of the text`
    steps.push({ ok: isEqual, words: `${place} ${isEqual ? 'are' : 'are not'} the similar passage.` })
  }
  return steps
}

/** Two texts that differ in white space, dashes, quotation marks, invisible characters and case alone become equal. */
function withoutTypography(text: string): string {
  return text
    .normalize('NFC')
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, '')
    .replace(/\p{Dash}+/gu, '-')
    .replace(/[\p{Quotation_Mark}`\u00b4\u02b9\u02bb\u02bc\u02ee\u2032-\u2037]+/gu, "'")
    .toUpperCase()
    .toLowerCase()
}
