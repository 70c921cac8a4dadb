// The numbered lines that a model gets: each is an exact span of the text, so that an answer can name lines and nothing else. Lines are
// mostly sentences; in a text with very many sentences, neighbours form one line. A paragraph far from everything that is about the claim
// says nothing about it, so it is left out. An order in such a paragraph, whatever its words and language, then reaches no model.

import { mayShareLanguage } from '../../text/language.ts'
import { sentencesOf } from '../../text/sentences.ts'
import { readClaim, termsIn } from '../../text/terms.ts'
import { LONGEST_QUOTE, type Span } from '../evidence.ts'

/** Every visible character of the text is in exactly one line; a line is short enough to be quoted whole. */
export function linesOf(text: string): Span[] {
  const sentences = sentencesOf(text)
  if (sentences.length <= MOST_LINES) return sentences.map(({ start, end }) => ({ start, end }))
  return joined(sentences, Math.ceil(text.length / (MOST_LINES / 2)))
}

/** Neighbours together up to about `length` UTF-16 units. */
function joined(sentences: readonly Span[], length: number): Span[] {
  const lines: Span[] = []
  for (const { start, end } of sentences) {
    const last = lines.at(-1)
    if (last && end - last.start <= Math.min(length, LONGEST_QUOTE)) last.end = end
    else lines.push({ start, end })
  }
  return lines
}

/** Lines `first` to `last`, shown together. */
export interface Window {
  first: number
  last: number
}

/**
 * Parts of the text that each fit into `budget` tokens, in order, covering all of it but the masked lines; each begins with
 * the last lines of the previous part, so that text across a boundary is complete in one part. Each part has at least one
 * line, also if the budget is smaller; if all lines are masked, there are no parts.
 */
export function windowsOf(
  text: string,
  lines: readonly Span[],
  budget: number,
  masked: ReadonlySet<number> = new Set(),
): Window[] {
  const shown = lines
    .map((span, line) => ({ line, tokens: tokensAbout(text, span) }))
    .filter(({ line }) => !masked.has(line))
  const windows: Window[] = []
  // `first` and `last` are the shown lines at `from` and `to`.
  let from = 0
  for (let first = shown[from]; first; first = shown[from]) {
    let [to, last, tokens] = [from, first, first.tokens]
    for (let next = shown[to + 1]; next; next = shown[to + 1]) {
      tokens += next.tokens
      if (tokens > budget) break
      last = next
      to++
    }
    windows.push({ first: first.line, last: last.line })
    if (to + 1 === shown.length) break
    from = Math.max(from + 1, to + 1 - Math.min(OVERLAP, (to - from) >> 1))
  }
  return windows
}

/** An estimate that is too high for most tokenizers: three ASCII characters, or one of another kind, are a token. */
function tokensAbout(text: string, { start, end }: Span): number {
  let ascii = 0
  for (let i = start; i < end; i++) if (text.charCodeAt(i) < 128) ascii++
  return TOKENS_OF_NUMBER + ascii / 3 + (end - start - ascii)
}

/** What a claim shares with each line of a page. */
export interface Relation {
  /** Whether a line has so many words of the claim that it may be what the page says about it. */
  holdsClaim(line: number): boolean
  /**
   * The numbers of the lines that are not related to the claim. A paragraph is related if it has a content word of the claim or
   * another form of one, or a number where the claim has a number. With a related paragraph those before and after it are
   * shown, and so are the first line and each line that refers to others. If no paragraph is related, none is shown. All are
   * shown if the page is in another language than the claim, because then its words cannot be searched.
   */
  unrelated(): number[]
}

/** Linear in the length of the text. */
export function relationOf(claim: string, text: string, lines: readonly Span[]): Relation {
  const query = readClaim(claim)
  const found = termsIn(query, text, lines)
  const hasNumber = [...query.terms.values()].some(({ kind }) => kind === 'number')
  const termsOf = (line: number) => new Set(found[line]?.terms).size
  const wordsOf = ({ start, end }: Span) => text.slice(start, end)
  const isRelated = (line: number) => termsOf(line) > 0 || (hasNumber && /\p{Nd}/u.test(wordsOf(lines[line]!)))
  const many = Math.min(MANY_WORDS, Math.ceil(query.terms.size / 2))
  return {
    holdsClaim: (line) => many > 0 && termsOf(line) >= many,
    unrelated() {
      if (!mayShareLanguage(claim, text)) return []
      const paragraphs = paragraphsOf(text, lines)
      const about = paragraphs.map((paragraph) => paragraph.some(isRelated))
      if (!about.includes(true)) return [...lines.keys()]
      return paragraphs.flatMap((paragraph, i) =>
        about[i - 1] || about[i] || about[i + 1]
          ? []
          : paragraph.filter((line) => line > 0 && !REFERS_BACK.test(wordsOf(lines[line]!))),
      )
    },
  }
}

/** The numbers of the lines of each paragraph. */
function paragraphsOf(text: string, lines: readonly Span[]): number[][] {
  const paragraphs: number[][] = []
  for (const [line, { start }] of lines.entries()) {
    const before = lines[line - 1]
    if (!before || LINE_BREAK.test(text.slice(before.end, start))) paragraphs.push([line])
    else paragraphs.at(-1)?.push(line)
  }
  return paragraphs
}

const MOST_LINES = 6000
const OVERLAP = 4
const TOKENS_OF_NUMBER = 8
const LINE_BREAK = /[\n\r\u0085\u2028\u2029]/
/** Different content terms. */
const MANY_WORDS = 2
/** Corrections, and lines that speak of what the page says elsewhere. */
const REFERS_BACK =
  /\b(?:corrections?|corrected|errat(?:um|a)|corrigend(?:um|a)|retract(?:ed|ion)|clarifications?|editor['’]s note|withdrawn|superseded|update[ds]?)\b|\b(?:above|below|earlier|previous(?:ly)?|preceding|foregoing|aforementioned|former)\b|\b(?:berichtigung|korrektur|oben)\b|\b(?:vorstehend|obige|früher)|\b(?:rectificatif|correction|ci-dessus)\b|\bprécédent|\b(?:correcci[oó]n|rectificaci[oó]n|arriba|anterior(?:es|mente)?)\b|\b(?:corre[cç][aã]o|errata|acima)\b|\b(?:rettifica|correzione|sopra|precedente)\b|исправлен|опровержен|выше|更正|勘误|以上|上述|訂正|上記|정정|위의/iu
