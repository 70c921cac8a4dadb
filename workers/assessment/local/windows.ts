// Cuts a text into sentences, the unit in which the verifier chooses, reads and quotes, and chooses the passages that it reads:
// the sentences nearest to the claim, each with its neighbours.
import { log, rounded } from './arithmetic.ts'
import { termsOf } from './words.ts'

/** A sentence without the blanks around it. Offsets are UTF-16 units of the text. */
export interface Sentence {
  text: string
  start: number
  end: number
}

/** Blanks after `.`, `!` or `?` that stand before a capital, a digit or an opening mark. */
const BREAK = /(?<=[.!?])\s+(?=["“([]?[A-Z0-9])/g

/** The sentences of a text in its order: its lines, each cut at every BREAK. Empty ones are left out. */
export function sentencesOf(text: string): Sentence[] {
  const found: Sentence[] = []
  let lineStart = 0
  for (const line of text.split('\n')) {
    let from = 0
    for (const gap of line.matchAll(BREAK)) {
      add(found, line, lineStart, from, gap.index)
      from = gap.index + gap[0].length
    }
    add(found, line, lineStart, from, line.length)
    lineStart += line.length + 1
  }
  return found
}

function add(found: Sentence[], line: string, lineStart: number, from: number, to: number) {
  const piece = line.slice(from, to)
  const text = piece.trim()
  if (text === '') return
  const start = lineStart + from + piece.length - piece.trimStart().length
  found.push({ text, start, end: start + text.length })
}

export interface WindowSize {
  /** How many windows at most. */
  k: number
  /** Words of a window beyond which no neighbour joins it. */
  width: number
}

/** A passage: the sentences `from` to `to`, chosen for the sentence `index`. `text` is what the verifier reads. */
export interface Window {
  index: number
  from: number
  to: number
  text: string
}

/** Words up to which the first sentence of a text is its title. */
const LONGEST_TITLE = 16

/**
 * The windows around the `k` sentences with the highest score by BM25, the best first; equal scores in the order of the
 * text. Each takes one sentence before it and one after it as long as it stays within `width` words, and has the title in
 * front unless it begins there. Windows may overlap.
 */
export function chooseWindows(sentences: readonly Sentence[], claim: string, { k, width }: WindowSize): Window[] {
  const [first] = sentences
  if (!first) return []
  const sizes = sentences.map(({ text }) => text.split(/\s+/).length)
  const title = (sizes[0] ?? 0) <= LONGEST_TITLE ? `${first.text}. ` : ''
  const scores = scoresOf(sentences, claim)
  const nearest = scores
    .map((score, index) => ({ score, index }))
    .sort((a, b) => b.score - a.score || a.index - b.index)
  return nearest.slice(0, k).map(({ index }) => {
    const { from, to } = widened(index, sizes, width)
    const passage = sentences.slice(from, to + 1).map(({ text }) => text)
    return { index, from, to, text: (from > 0 ? title : '') + passage.join(' ') }
  })
}

function widened(index: number, sizes: readonly number[], width: number) {
  let [from, to, words] = [index, index, sizes[index] ?? 0]
  const before = sizes[index - 1]
  if (words < width && before !== undefined && words + before <= width) {
    from = index - 1
    words += before
  }
  const after = sizes[index + 1]
  if (words < width && after !== undefined && words + after <= width) to = index + 1
  return { from, to }
}

const K1 = 1.2
const B = 0.75

/** BM25 of each sentence for the terms of the claim. */
function scoresOf(sentences: readonly Sentence[], claim: string): number[] {
  const query = new Map(termsOf(claim).map((term) => [term, 1]))
  const passages = sentences.map(({ text }) => {
    const terms = termsOf(text)
    return { terms: terms.filter((term) => query.has(term)), length: terms.length }
  })
  return bm25(query, passages)
}

/**
 * BM25 of passages, rounded.
 * @param query terms, each with the factor by which it counts
 * @param passages the terms of the query in a passage, each as often as it occurs, and how many terms it has in all
 */
export function bm25(
  query: ReadonlyMap<string, number>,
  passages: readonly { terms: readonly string[]; length: number }[],
): number[] {
  const counted = passages.map(({ terms, length }) => ({ counts: countsOf(terms), length }))
  const mean = counted.reduce((sum, { length }) => sum + length, 0) / passages.length || 1
  const weights = new Map<string, number>()
  for (const [term, factor] of query) {
    const holding = counted.filter(({ counts }) => counts.has(term)).length
    weights.set(term, factor * log(1 + (passages.length - holding + 0.5) / (holding + 0.5)))
  }
  return counted.map(({ counts, length }) => {
    let score = 0
    for (const [term, weight] of weights) {
      const count = counts.get(term)
      if (count) score += (weight * count * (K1 + 1)) / (count + K1 * (1 - B + (B * length) / mean))
    }
    return rounded(score)
  })
}

function countsOf(terms: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const term of terms) counts.set(term, (counts.get(term) ?? 0) + 1)
  return counts
}
