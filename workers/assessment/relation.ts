// Whether the lines that a model names, and their page, are about the claim at all.
import type { Answer } from './answer.ts'
import type { Proposal } from './evidence.ts'
import type { Span } from './lines.ts'
import { POINTS_BACK } from './passages.ts'
import type { PageText } from './quantity-checks.ts'
import { isTelling, isTellingWord, type Query } from './query.ts'
import { searchText } from './search.ts'
import { sentencesOf } from './sentences.ts'
import { tokensOf } from './tokens.ts'
import { mayShareLanguage } from './vocabulary.ts'

/** What a model proposes, as far as relation is asked. */
interface Named {
  verdict: Answer['verdict']
  evidence: readonly Proposal[]
}

/**
 * Whether the quoted lines have enough of the claim's words to be about it at all, with the line before each and the
 * first two of the page, which name what pronouns and paragraphs speak of; and whether the page, where it is longer
 * than a quotation, has at least half of them. What gives orders without knowing the claim has none of them, if the
 * reader obeys them. Words of another language than the page's cannot be looked for.
 */
export function isRelated(query: Query, page: PageText, { verdict, evidence }: Named): boolean {
  if (verdict === 'insufficient_evidence' || evidence.length === 0 || !sharesLanguage(query, page)) return true
  const quoted = termsIn(
    query,
    evidence.map(({ start, end }) => page.text.slice(start, end)),
  )
  const around = termsIn(query, linesAround(page, evidence))
  // The other checks judge a missing number.
  const telling = [...query.terms.entries()].filter(
    ([i, term]) => isTelling(term) && (isTellingWord(term) || quoted.has(i)),
  )
  const weight = (terms: typeof telling) => terms.reduce((sum, [, { prior }]) => sum + prior, 0)
  const all = weight(telling)
  const inQuotes = weight(telling.filter(([i]) => quoted.has(i)))
  const nearby = weight(telling.filter(([i]) => quoted.has(i) || around.has(i)))
  const shared = (inQuotes + nearby) / 2
  if (verdict === 'contradicts') return shared >= LEAST_AGAINST * all || pointsBack(page, evidence)
  const least = page.text.length <= SHORT_PAGE ? LEAST_SHARED.onShortPage : LEAST_SHARED.onPage
  if (shared < least.anyway * all) return false
  const names = query.terms.flatMap((term, i) =>
    term.kind === 'word' && isTelling(term) && IS_NAME.test(term.raw) ? [i] : [],
  )
  const hasName = names.length === 0 || names.some((i) => quoted.has(i) || around.has(i))
  if (shared < least.withoutName * all && !hasName && !pointsBack(page, evidence)) return false
  if (page.text.length <= SHORT_PAGE) return true
  const onPage = termsOnPage(query, page)
  return weight(telling.filter(([i]) => onPage.has(i))) >= LEAST_OF_PAGE * all
}

/**
 * Whether most of the claim's names stand nowhere on a page that is longer than a quotation. Capitals in a row are one
 * name, of which one word is enough. The first word of a sentence has a capital by rule, and one name may be spelled
 * otherwise.
 */
export function lacksNames(query: Query, page: PageText): boolean {
  if (page.text.length <= SHORT_PAGE || !sharesLanguage(query, page)) return false
  const names = namesOf(query)
  if (names.length < LEAST_NAMES) return false
  const onPage = termsOnPage(query, page)
  const found = names.filter((words) => words.some((word) => onPage.has(word)))
  return found.length * 2 < names.length
}

/** The names in a claim, each by the numbers of its terms. */
function namesOf({ tokens, terms }: Query): number[][] {
  const numbers = new Map(terms.map(({ folded }, term) => [folded, term]))
  const names: number[][] = []
  let isOpen = false
  for (const [i, { folded, raw, kind }] of tokens.entries()) {
    const term = numbers.get(folded)
    const isName = i > 0 && kind === 'word' && IS_NAME.test(raw) && term !== undefined && isTelling(terms[term]!)
    if (isName && isOpen) names.at(-1)!.push(term)
    else if (isName) names.push([term])
    isOpen = isName
  }
  return names
}

function termsIn(query: Query, texts: readonly string[]): Set<number> {
  const found = new Set<number>()
  for (const text of texts)
    for (const [term, frequency] of searchText(query, text, sentencesOf(text)).frequencies.entries())
      if (frequency > 0) found.add(term)
  return found
}

/** The numbers of the claim's terms that stand anywhere on the page. */
export function termsOnPage(query: Query, { text }: PageText): Set<number> {
  const { frequencies } = searchText(query, text, [{ start: 0, end: text.length, line: 0 }])
  return new Set([...frequencies.entries()].flatMap(([term, frequency]) => (frequency > 0 ? [term] : [])))
}

/** The page's first two lines, and the line before each span. */
export function linesAround({ text, lines }: PageText, spans: readonly Span[]): string[] {
  const around = new Set([0, 1].filter((line) => line < lines.length))
  for (const { start } of spans) {
    const first = lines.findIndex(({ end }) => end > start)
    if (first > 0) around.add(first - 1)
  }
  return [...around].map((line) => text.slice(lines[line]!.start, lines[line]!.end))
}

/** A line about "he", "it" or "the film" need not have the name that the claim has. */
function pointsBack({ text }: PageText, evidence: readonly Proposal[]): boolean {
  return evidence.some(({ start, end, stance }) => stance !== 'mentions' && SPEAKS_BACK.test(text.slice(start, end)))
}

function sharesLanguage({ tokens }: Query, { text }: PageText): boolean {
  const begun = new Set(tokensOf(text.slice(0, LANGUAGE_SAMPLE)).map(({ folded }) => folded))
  if (tokens.some(({ kind }) => kind === 'dense')) return tokens.some(({ folded }) => begun.has(folded))
  const isLatin = (words: Iterable<string>) => {
    const written = [...words].filter((word) => /\p{L}/u.test(word))
    return 2 * written.filter((word) => /^\p{sc=Latn}/u.test(word)).length >= written.length
  }
  const said = tokens.map(({ folded }) => folded)
  return isLatin(said) === isLatin(begun) && mayShareLanguage(said, begun)
}

/**
 * Of the claim's telling words, by weight: what lines that support it have. With less than `withoutName`, and no name
 * of the claim, the lines share words by chance.
 */
const LEAST_SHARED = {
  onShortPage: { anyway: 0.2, withoutName: 0.34 },
  onPage: { anyway: 0.18, withoutName: 0.25 },
}
/** A contradiction has the subject, and may have no more. */
const LEAST_AGAINST = 0.1
const LEAST_OF_PAGE = 0.5
const IS_NAME = /^\p{Lu}/u
const SPEAKS_BACK = new RegExp(`${POINTS_BACK.source}|^The \\p{Ll}`, 'u')
/** UTF-16 units; hardly more than one quotation, so that the page says nothing besides. */
const SHORT_PAGE = 450
/** UTF-16 units. */
const LANGUAGE_SAMPLE = 4000
const LEAST_NAMES = 2
