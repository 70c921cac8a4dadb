// Whether the lines that a model names, and their page, are about the claim at all.
import type { Answer } from './answer.ts'
import type { Proposal } from './evidence.ts'
import type { Span } from './lines.ts'
import { agreeAcrossUnits } from './measures.ts'
import { POINTS_BACK } from './passages.ts'
import { quantitiesOf } from './quantities.ts'
import type { Quantity } from './quantity.ts'
import { distinctQuantities, MOST_QUANTITIES, type PageText } from './quantity-checks.ts'
import { isTelling, isTellingWord, type Query, type Term } from './query.ts'
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
 * Whether the quoted lines have enough of the claim's words and numbers to be about it at all. Lines nearby and the head
 * of the page count too: they name what pronouns and paragraphs speak of. Of a page that is longer than a quotation, the
 * lines with those nearby and the page are asked together, and one word is granted, because the words of a short claim
 * are few. What gives orders without knowing the claim has none of its words, if the reader obeys them. Words of another
 * language than the page's cannot be looked for.
 */
export function isRelated(claim: string, query: Query, page: PageText, { verdict, evidence }: Named): boolean {
  if (verdict === 'insufficient_evidence' || evidence.length === 0 || !sharesLanguage(query, page)) return true
  const quotes = evidence.map(({ start, end }) => page.text.slice(start, end))
  const words = wordsOf(query)
  const quoted = termsIn(query, quotes)
  if (verdict === 'contradicts') {
    const nearby = weightOf(words, termsIn(query, [...quotes, ...linesAround(page, evidence)]))
    return (weightOf(words, quoted) + nearby) / 2 >= LEAST_AGAINST * weightOf(words) || pointsBack(page, evidence)
  }
  const numbers = distinctQuantities(claim).slice(0, MOST_QUANTITIES)
  const found = (given: readonly Quantity[]) =>
    numbers.filter((one) => given.some((other) => agreeAcrossUnits(one, other))).length
  const all = weightOf(words) + numbers.length
  const near = termsIn(
    query,
    page.linesNear(evidence).map(({ start, end }) => page.text.slice(start, end)),
  )
  const inLines = weightOf(words, quoted) + found(quotes.flatMap(quantitiesOf))
  const nearby = weightOf(words, near) + found(page.quantitiesNear(evidence))
  const names = words.filter(([, { raw }]) => IS_NAME.test(raw) && !IS_NATIONALITY.test(raw))
  const isNamed = names.length === 0 || names.some(([i]) => near.has(i)) || pointsBack(page, evidence)
  const least = page.text.length <= SHORT_PAGE ? LEAST_SHARED.onShortPage : LEAST_SHARED.onPage
  if ((inLines + nearby) / 2 < (isNamed ? least.withName : least.withoutName) * all) return false
  if (page.text.length <= SHORT_PAGE) return true
  const onPage = weightOf(words, termsOnPage(query, page)) + found(page.quantities())
  return (nearby + onPage) / 2 + GRANTED >= LEAST_OF_PAGE * all
}

/** The claim's telling words with the numbers of their terms; its numbers are compared by what they say. */
function wordsOf({ terms }: Query): [number, Term][] {
  return [...terms.entries()].filter(([, term]) => isTellingWord(term))
}

/** The weight of the words, or of those among them that were found. */
function weightOf(words: readonly [number, Term][], found?: ReadonlySet<number>): number {
  return words.reduce((sum, [i, { prior }]) => (!found || found.has(i) ? sum + prior : sum), 0)
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
  // A name has words of other languages: Van Buren.
  const said = tokens.filter(({ raw }, i) => i === 0 || !IS_NAME.test(raw)).map(({ folded }) => folded)
  return isLatin(said) === isLatin(begun) && mayShareLanguage(said, begun)
}

/**
 * Of the claim's words and numbers, by weight: what lines that support it have, with and without those nearby. Without a
 * name of the claim the lines share words by chance.
 */
const LEAST_SHARED = {
  onShortPage: { withName: 0.2, withoutName: 0.34 },
  onPage: { withName: 0.25, withoutName: 0.3 },
}
/** A contradiction has the subject, and may have no more. */
const LEAST_AGAINST = 0.1
/** Of the same: what the lines with those nearby, and the page, have on average, where so much is granted. */
const [LEAST_OF_PAGE, GRANTED] = [0.58, 1]
const IS_NAME = /^\p{Lu}/u
/** Shared by many a page of another subject. */
const IS_NATIONALITY =
  /^(?:Americans?|Australians?|Austrian|Belgian|Brazilian|British|Canadians?|Chinese|Danish|Dutch|English|European|Finnish|French|Germans?|Greek|Indian|Irish|Italian|Japanese|Korean|Mexican|Norwegian|Polish|Portuguese|Russian|Scottish|Spanish|Swedish|Swiss|Turkish|Ukrainian|Welsh)$/u
const SPEAKS_BACK = new RegExp(`${POINTS_BACK.source}|^The \\p{Ll}`, 'u')
/** UTF-16 units; hardly more than one quotation, so that the page says nothing besides. */
const SHORT_PAGE = 450
/** UTF-16 units. */
const LANGUAGE_SAMPLE = 4000
const LEAST_NAMES = 2
