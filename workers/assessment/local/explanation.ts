// Verdicts, quotes as the interface wants them, with at most 1,000 code points and offsets in code points, and the explanation
// of a local verdict, in plain sentences and at most 800 characters: what the page says beside the claim, who
// judged it, and how often such judgements were right.

export type Verdict = 'supports' | 'contradicts' | 'mixed' | 'insufficient_evidence'
export type Side = 'supports' | 'contradicts'

/** A quote by its code-point offsets in the text. */
export interface LocalQuote {
  quote: string
  start: number
  end: number
  stance: Side | 'mentions'
}

export interface Explained {
  claim: string
  verdict: Verdict
  quotes: readonly LocalQuote[]
  /** Passages read. */
  read: number
  lean: Side | null
  withheld: boolean
  /** Whether the verifier knows the language. */
  known: boolean
}

/**
 * Of 100 such verdicts or leans, how many were right on claims about pages that the verifier had never seen; from the model card.
 */
export const RIGHT_OF_100 = { supports: 90, contradicts: 88, lean: 65 } as const

/** Code points. */
const LONGEST_QUOTE = 1000
const LONGEST_CLAIM = 180
const LONGEST_QUOTED = 220

/** The explanation. It depends on nothing but text and claim, so that it can be recomputed. */
export function explain({ claim, verdict, quotes, read, lean, withheld, known }: Explained): string {
  if (!known) return 'The text is not in English, the only language that the verifier knows, so nothing was judged.'
  if (read === 0) return 'The page has no sentence that could be read, so nothing was judged.'
  const judge = `A small model, the verifier that comes with this service, read ${passages(read)}`
  const said = `The claim is ${ending(shortened(claim, LONGEST_CLAIM))} ${quoted(quotes)}`
  if (verdict === 'mixed')
    return `${said} ${judge} and judged that one of them supports the claim and another contradicts it.`
  if (verdict !== 'insufficient_evidence')
    return `${said} ${judge} and judged that this ${verdict} the claim. On pages that it had never seen, ${RIGHT_OF_100[verdict]} of 100 such verdicts were right.`
  if (withheld)
    return `${said} ${judge} and found the claim stated. But the page checks what others claim, and such pages repeat a claim in order to refute it, so the verdict “supports” is withheld.`
  if (!lean) return `${said} ${judge} and found none that decides whether the claim is right.`
  const leaning = lean === 'supports' ? 'supporting' : 'contradicting'
  return `${said} ${judge}. It leans towards this ${leaning} the claim, but is not sure enough for a verdict: of 100 such leans ${RIGHT_OF_100.lean} were right.`
}

const passages = (count: number) =>
  count === 1 ? 'the one passage of the page' : `the ${count} passages of the page nearest to the claim`

/** The first quote, and for `mixed` the first of the other side too. */
function quoted(quotes: readonly LocalQuote[]): string {
  const [first] = quotes
  if (!first) return ''
  const other = quotes.find(({ stance }) => stance !== first.stance)
  const length = other ? LONGEST_QUOTED / 2 : LONGEST_QUOTED
  const verb = first.stance === 'mentions' ? 'The nearest sentence of the page is' : 'The page says'
  const said = shortened(first.quote, length)
  return other ? `${verb} “${said}” and also ${ending(shortened(other.quote, length))}` : `${verb} ${ending(said)}`
}

/** A quotation at the end of a sentence: with a full stop, unless it ends in a mark of its own. */
const ending = (quotation: string) => (/[.!?…]["'”’)\]]*$/.test(quotation) ? `“${quotation}”` : `“${quotation}”.`)

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
