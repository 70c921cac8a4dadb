// Selects the lines of a page that a model is shown for a claim. A paragraph that is not related to the claim says nothing
// about it, so it is left out. An order in such a paragraph, whatever its words and language, then reaches no model.
import type { Span } from './lines.ts'
import { quantitiesOf } from './quantities.ts'
import type { Quantity } from './quantity.ts'
import type { Query } from './query.ts'
import { sharesLanguage } from './relation.ts'
import { searchText } from './search.ts'

/**
 * The numbers of the lines in unrelated paragraphs: they have no content word of the claim and no word related to one, no
 * number of it, no date if it has a date, and no measure of a kind that it has. Empty if the page is one paragraph, or is
 * in another language than the claim, because then its words cannot be searched. Time is linear in the length of the text.
 */
export function unrelatedLines(claim: string, query: Query, text: string, lines: readonly Span[]): number[] {
  const starts = paragraphsOf(text, lines)
  if (starts.length <= 2 || !sharesLanguage(query, text)) return []
  const { hitsFrom } = searchText(
    query,
    text,
    lines.map(({ start, end }) => ({ start, end, line: 0 })),
  )
  const sorts = new Set(quantitiesOf(claim).flatMap(sortsOf))
  const isRelated = ({ start, end }: Span, line: number) => {
    if ((hitsFrom[line] ?? 0) < (hitsFrom[line + 1] ?? 0)) return true
    if (sorts.size === 0) return false
    return quantitiesOf(text.slice(start, end)).some((one) => sortsOf(one).some((sort) => sorts.has(sort)))
  }
  const unrelated: number[] = []
  for (const [i, first] of starts.slice(0, -1).entries()) {
    const paragraph = lines.slice(first, starts[i + 1])
    if (!paragraph.some((span, at) => isRelated(span, first + at)))
      unrelated.push(...paragraph.map((_, at) => first + at))
  }
  return unrelated
}

/** The first line of each paragraph, and the number of lines. */
function paragraphsOf(text: string, lines: readonly Span[]): number[] {
  const starts: number[] = []
  for (const [line, { start }] of lines.entries()) {
    const before = lines[line - 1]
    if (!before || LINE_BREAK.test(text.slice(before.end, start))) starts.push(line)
  }
  return [...starts, lines.length]
}

/** The kinds of a quantity. A number without a unit may count anything, so it has none. */
function sortsOf(quantity: Quantity): string[] {
  if (quantity.kind === 'date') return ['date']
  return [quantity, quantity.or].flatMap((one) => (one?.unit ? [one.unit.dimension] : []))
}

const LINE_BREAK = /[\n\r\u0085\u2028\u2029]/
