// The thread that finds quotes in the text of a page.
import { foldQuote, foldText, wholeRange } from './folding.ts'
import { occurrencesOf } from './occurrences.ts'
import { codePointIndex } from './offsets.ts'
import { findNearest, similarityOf, wordsOf } from './similarity.ts'
import { textDirective } from './text-fragment.ts'

export interface QuoteTask {
  text: string
  quotes: readonly WantedQuote[]
}

export interface WantedQuote {
  quote: string
  /** A code point; of several matches the one closest to it is used. */
  near: number
}

/** How a quote is in a text. */
export type QuoteMatch = 'exact' | 'typographic' | 'near' | 'absent'

export interface QuotePassage {
  text: string
  /** In code points, end exclusive. */
  start: number
  end: number
  /** The similarity of its words and their order to those of the quote, 0 to 1. */
  similarity: number
  /** Text directive of a link to the passage. */
  directive: string
}

/**
 * `exact`: the text has the quote. `typographic`: it has a passage that is equal but for white space, quotation marks, dashes,
 * case and the composition of characters. `near`: it has a passage that is much like it.
 */
export type FoundQuote = { match: Exclude<QuoteMatch, 'absent'>; passage: QuotePassage } | { match: 'absent' }

/** Finds each quote, in the order given. Takes time in proportion to the text, and to the square of each quote. */
export function findQuotes({ text, quotes }: QuoteTask): FoundQuote[] {
  const index = codePointIndex(text)
  let folded: ReturnType<typeof foldText> | undefined
  let words: ReturnType<typeof wordsOf> | undefined

  const passage = (start: number, end: number, similarity: number): QuotePassage => ({
    text: text.slice(start, end),
    start: index.toCodePoint(start),
    end: index.toCodePoint(end),
    similarity,
    directive: textDirective(text, start, end),
  })

  function findTypographic(quote: string, near: number): [number, number] | null {
    const { units } = foldQuote(quote)
    folded ??= foldText(text)
    const places: [number, number][] = []
    for (const from of occurrencesOf(units, folded.units)) {
      const range = wholeRange(folded, text, from, from + units.length)
      if (range) places.push(range)
    }
    return closest(places, near, ([start]) => start)
  }

  return quotes.map(({ quote, near }): FoundQuote => {
    const place = index.toUtf16(Math.min(near, index.length))
    const exact = closest(occurrencesOf(quote, text), place, (start) => start)
    if (exact !== null) return { match: 'exact', passage: passage(exact, exact + quote.length, 1) }
    const alike = findTypographic(quote, place)
    if (alike) {
      const [start, end] = alike
      return { match: 'typographic', passage: passage(start, end, similarityOf(quote, text.slice(start, end))) }
    }
    words ??= wordsOf(text)
    const nearest = findNearest(quote, words)
    if (!nearest) return { match: 'absent' }
    return { match: 'near', passage: passage(nearest.start, nearest.end, nearest.similarity) }
  })
}

/** The first of the items that are closest to the place; null for none. */
function closest<T>(items: Iterable<T>, place: number, startOf: (item: T) => number): T | null {
  let best: T | null = null
  let distance = Number.POSITIVE_INFINITY
  for (const item of items) {
    const here = Math.abs(startOf(item) - place)
    if (here < distance) [best, distance] = [item, here]
  }
  return best
}
