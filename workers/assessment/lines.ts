// The numbered lines that a model gets: each is an exact span of the text, so that an answer can name lines and nothing
// else. Lines are mostly sentences; in a text with very many sentences, neighbours form one line.
import { codePointIndex } from '../text/offsets.ts'
import { LONGEST_QUOTE } from './evidence.ts'
import { sentencesOf } from './sentences.ts'

/** UTF-16 offsets. */
export interface Span {
  start: number
  end: number
}

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

/** Code points of the text in each of the given lines' spans, for people: where something was found. */
export function codePointSpans(text: string, spans: readonly Span[]): Span[] {
  const index = codePointIndex(text)
  return spans.map(({ start, end }) => ({ start: index.toCodePoint(start), end: index.toCodePoint(end) }))
}

const MOST_LINES = 6000
const OVERLAP = 4
const TOKENS_OF_NUMBER = 8
