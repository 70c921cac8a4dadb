// Checks a verdict without a model: numbers, dates, units, negations, quoted words. A check that fails
// takes a line's stance away, and with it the verdict that needed the line; no check gives a verdict.
import type { Answer } from './answer.ts'
import type { Proposal } from './evidence.ts'
import type { Span } from './lines.ts'
import { agreeAcrossUnits } from './measures.ts'
import { oppositesBetween } from './opposites.ts'
import { POINTS_BACK } from './passages.ts'
import { quantitiesOf } from './quantities.ts'
import { type Doubt, MOST_QUANTITIES, type PageText, pageText, quantityDoubts } from './quantity-checks.ts'
import { isTelling, isTellingWord, type Query, readClaim } from './query.ts'
import { searchText } from './search.ts'
import type { SemanticFlag } from './semantic-risk-flags.ts'
import { sentencesOf } from './sentences.ts'
import { type Granularity, granularityFor, scanTokens, tokensOf } from './tokens.ts'
import { mayShareLanguage } from './vocabulary.ts'
import { absentTerms, isNegation, wordingOf } from './warnings.ts'

export interface Proposed {
  verdict: Answer['verdict']
  basis: Answer['basis']
  evidence: readonly Proposal[]
}

/** The evidence with the stances that passed, and the findings against the others. */
export interface Checked {
  evidence: Proposal[]
  flags: SemanticFlag[]
}

export function checkEvidence(claim: string, text: string, lines: readonly Span[], proposed: Proposed): Checked {
  const page = pageText(text, lines)
  const query = readClaim(claim)
  const flags = new Set<SemanticFlag>()
  const quotes = (stance: Proposal['stance']) =>
    proposed.evidence.filter((item) => item.stance === stance).map(({ start, end }) => text.slice(start, end))
  const supporting = quotes('supports')
  const doubts = supporting.length === 0 ? [] : supportDoubts(claim, query, page, supporting, proposed.verdict)
  for (const { flag } of doubts) flags.add(flag)
  const supportFails = doubts.some(({ isGrave }) => isGrave)

  const isAstray = !isRelated(query, page, proposed)
  if (isAstray) flags.add('unrelated_evidence')

  const agreement = agreementOf(claim, query, quotes('contradicts'))
  if (agreement) flags.add(agreement)

  const stanceOf = ({ stance }: Proposal): Proposal['stance'] => {
    if (isAstray || (stance === 'supports' && supportFails) || (stance === 'contradicts' && agreement))
      return 'mentions'
    return stance
  }
  const evidence = proposed.evidence.map((item) => ({ ...item, stance: stanceOf(item) }))
  if (!isWeak(proposed)) return { evidence, flags: [...flags].sort() }
  flags.add('weak_basis')
  return { evidence: evidence.map((item) => ({ ...item, stance: 'mentions' })), flags: [...flags].sort() }
}

function supportDoubts(
  claim: string,
  query: Query,
  page: PageText,
  quotes: readonly string[],
  verdict: Answer['verdict'],
): Doubt[] {
  return [
    ...quantityDoubts(claim, page, quotes, verdict === 'mixed'),
    ...wordingDoubts(claim, query, quotes).map((doubt) =>
      // One side of a mixed verdict may say the opposite of a part.
      verdict === 'mixed' && doubt.flag === 'opposite_wording' ? { ...doubt, isGrave: false } : doubt,
    ),
    ...phraseDoubts(page.text, quotedPhrases(claim)),
    ...(lacksNames(query, page) ? [{ flag: 'names_absent', isGrave: true } as const] : []),
  ]
}

/** A verdict that its own reason does not support. A contradicted part contradicts the whole claim. */
function isWeak({ verdict, basis }: Proposed): boolean {
  if (verdict === 'supports')
    return basis === 'partly' || basis === 'reported' || basis === 'unsure' || basis === 'silent'
  return verdict === 'contradicts' && (basis === 'reported' || basis === 'unsure' || basis === 'silent')
}

/** Negation counts where a line has most of the claim's words, so that little else can be the difference. */
function wordingDoubts(claim: string, query: Query, quotes: readonly string[]): Doubt[] {
  const readings = quotes.map((quote) => readQuote(claim, query, quote))
  const doubts: Doubt[] = []
  if (readings.every(({ isNegatedOtherwise }) => isNegatedOtherwise)) {
    // What a claim denies may be said by another word in the place of one of its own: "is not French", "is Italian".
    const isDenial = isNegation(claim)
    const needed = isDenial ? ALL_WORDS : MOST_WORDS
    doubts.push({ flag: 'negation_mismatch', isGrave: readings.some(({ share }) => share >= needed) })
  }
  const closest = quotes.filter((_, i) => readings[i]!.weight >= HALF)
  if (closest.length > 0 && oppositesBetween(claim, closest.join('\n')).length > 0)
    doubts.push({ flag: 'opposite_wording', isGrave: true })
  if (readings.every(({ isAttributed }) => isAttributed)) doubts.push({ flag: 'attributed_statement', isGrave: false })
  return doubts
}

function readQuote(claim: string, query: Query, quote: string) {
  const findings = searchText(query, quote, sentencesOf(quote))
  const telling = query.terms.filter((term) => isTelling(term) && term.kind === 'word').length
  return {
    ...wordingOf(claim, query, quote),
    isVerbatim: findings.wholeMatchCount > 0,
    share: telling === 0 ? 0 : 1 - absentTerms(query, findings).length / telling,
    weight: weightIn(query, findings.frequencies),
  }
}

/** Of the claim's telling words, and of its numbers that the quote has, what the quote has by weight. */
function weightIn({ terms }: Query, frequencies: Uint32Array): number {
  let [all, found] = [0, 0]
  for (const [i, term] of terms.entries()) {
    const has = (frequencies[i] ?? 0) > 0
    if (!isTelling(term) || !(isTellingWord(term) || has)) continue
    all += term.prior
    if (has) found += term.prior
  }
  return all === 0 ? 0 : found / all
}

/**
 * How the quotes read against the claim agree with it, if they do. The claim word for word, neither negated nor
 * attributed to a speaker, is hardly a contradiction. Nor are lines that have all its numbers and nearly all of its
 * words, and deny or reverse nothing: a contradiction has another word somewhere.
 */
function agreementOf(claim: string, query: Query, quotes: readonly string[]): SemanticFlag | null {
  const readings = quotes.map((quote) => readQuote(claim, query, quote))
  const plain = readings.filter(({ isNegatedOtherwise, isAttributed }) => !isNegatedOtherwise && !isAttributed)
  if (plain.some(({ isVerbatim }) => isVerbatim) && query.tokens.length >= FEW_TOKENS) return 'claim_wording_present'
  if (quotes.length === 0 || plain.length < quotes.length) return null
  const claimed = quantitiesOf(claim)
  // Each is held against every number of the lines, so a list of numbers is left to the model.
  if (claimed.length > MOST_QUANTITIES) return null
  // A claim that compares may be wrong by its comparison alone.
  if (claimed.some(({ bound }) => bound !== null) || COMPARES.test(claim)) return null
  const all = quotes.join('\n')
  if (readQuote(claim, query, all).weight < NEARLY_ALL || oppositesBetween(claim, all).length > 0) return null
  const given = quotes.flatMap(quantitiesOf)
  const agrees = claimed.every((one) => given.some((other) => agreeAcrossUnits(one, other)))
  return agrees ? 'claim_words_present' : null
}

/**
 * Whether the quoted lines have enough of the claim's words to be about it at all, with the line before each and the
 * first two of the page, which name what pronouns and paragraphs speak of. What gives orders without knowing the claim
 * has none of them, if the reader obeys them. Words of another language than the page's cannot be looked for.
 */
function isRelated(query: Query, page: PageText, { verdict, evidence }: Proposed): boolean {
  if (verdict === 'insufficient_evidence' || evidence.length === 0 || !sharesLanguage(query, page)) return true
  const quoted = termsIn(
    query,
    evidence.map(({ start, end }) => page.text.slice(start, end)),
  )
  const around = termsIn(
    query,
    [...contextOf(page, evidence)].map((line) => lineText(page, line)),
  )
  // The other checks judge a missing number.
  const telling = [...query.terms.entries()].filter(
    ([i, term]) => isTelling(term) && (isTellingWord(term) || quoted.has(i)),
  )
  const weight = (terms: typeof telling) => terms.reduce((sum, [, { prior }]) => sum + prior, 0)
  const all = weight(telling)
  const inQuotes = weight(telling.filter(([i]) => quoted.has(i)))
  const nearby = weight(telling.filter(([i]) => quoted.has(i) || around.has(i)))
  const shared = (inQuotes + nearby) / 2
  if (verdict === 'contradicts') return shared >= LEAST_SHARED.contradicts * all || pointsBack(page, evidence)
  if (shared < LEAST_SHARED.supports * all) return false
  const names = query.terms.flatMap((term, i) =>
    term.kind === 'word' && isTelling(term) && IS_NAME.test(term.raw) ? [i] : [],
  )
  const hasName = names.length === 0 || names.some((i) => quoted.has(i) || around.has(i))
  if (shared < FEW_SHARED * all && !hasName && !pointsBack(page, evidence)) return false
  if (page.text.length <= SHORT_PAGE) return true
  const onPage = searchText(query, page.text, [{ start: 0, end: page.text.length, line: 0 }]).frequencies
  return shared + weight(telling.filter(([i]) => (onPage[i] ?? 0) > 0)) >= LEAST_OF_PAGE * all
}

function termsIn(query: Query, texts: readonly string[]): Set<number> {
  const found = new Set<number>()
  for (const text of texts)
    for (const [term, frequency] of searchText(query, text, sentencesOf(text)).frequencies.entries())
      if (frequency > 0) found.add(term)
  return found
}

/** The numbers of the page's first two lines, and of the line before each piece of evidence. */
function contextOf({ lines }: PageText, evidence: readonly Proposal[]): Set<number> {
  const context = new Set([0, 1].filter((line) => line < lines.length))
  for (const { start } of evidence) {
    const first = lines.findIndex(({ end }) => end > start)
    if (first > 0) context.add(first - 1)
  }
  return context
}

const lineText = ({ text, lines }: PageText, line: number) => text.slice(lines[line]!.start, lines[line]!.end)

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

interface Phrase {
  granularity: Granularity
  tokens: string
}

/** What the claim puts between quotation marks, where that is more than one token. */
function quotedPhrases(claim: string): Phrase[] {
  return quotations(claim)
    .flatMap((quoted) => quoted.split(LEFT_OUT_OF_QUOTE))
    .flatMap((quoted) => {
      const phrase = quoted.trim().normalize('NFC')
      if (phrase.length < SHORTEST_PHRASE || phrase.length > LONGEST_PHRASE) return []
      const granularity = granularityFor(phrase)
      return tokensOf(phrase, granularity).length > 1 ? { granularity, tokens: foldedTokens(phrase, granularity) } : []
    })
}

/**
 * Marks are paired in order, however short what they hold is. A straight mark opens where a word follows it and none
 * goes before, and closes otherwise.
 */
function quotations(claim: string): string[] {
  const found: string[] = []
  let open = -1
  for (const { index, 0: mark } of claim.matchAll(MARKS)) {
    const opensByPlace = /^$|[\s\p{Ps}\p{Pi}\p{Pd}]/u.test(claim.slice(Math.max(0, index - 1), index))
    const opens = OPENING.test(mark) || (!CLOSING.test(mark) && open < 0 && opensByPlace)
    if (open >= 0 && !OPENING.test(mark)) {
      found.push(claim.slice(open, index))
      open = -1
    } else if (opens) open = index + 1
  }
  return found
}

/**
 * Each phrase's tokens must stand in the text in a row. Where most neighbours of a phrase are neighbours in the text, it
 * is quoted with a change, and that is only mentioned. The text is read once, however many phrases there are.
 */
function phraseDoubts(text: string, phrases: readonly Phrase[]): Doubt[] {
  const read = new Map<Granularity, string>()
  const absent = phrases.flatMap(({ granularity, tokens }) => {
    const all = read.get(granularity) ?? foldedTokens(text, granularity)
    read.set(granularity, all)
    return all.includes(tokens) ? [] : [pairsHeld(all, tokens)]
  })
  return absent.length === 0
    ? []
    : [{ flag: 'quoted_phrase_absent', isGrave: absent.some((share) => share < MOST_PAIRS) }]
}

/** The share of a phrase's neighbouring tokens that are neighbours in the text. */
function pairsHeld(all: string, phrase: string): number {
  const tokens = phrase.split('\n').slice(1, -1)
  const pairs = tokens.slice(1).map((token, i) => `\n${tokens[i]}\n${token}\n`)
  return pairs.filter((pair) => all.includes(pair)).length / Math.max(1, pairs.length)
}

/**
 * Whether most of the claim's names stand nowhere on a page that is longer than a quotation. The first word of a
 * sentence has a capital by rule, and one name may be spelled otherwise.
 */
function lacksNames(query: Query, page: PageText): boolean {
  if (page.text.length <= SHORT_PAGE || !sharesLanguage(query, page)) return false
  const [first] = query.tokens
  const names = query.terms.filter(
    (term) => term.kind === 'word' && isTelling(term) && term.folded !== first?.folded && IS_NAME.test(term.raw),
  )
  if (names.length < LEAST_NAMES) return false
  const onPage = termsIn(query, [page.text])
  const found = names.filter((name) => onPage.has(query.terms.indexOf(name)))
  return found.length * 2 < names.length
}

/** The tokens of a text, each between two line breaks, which no token holds. */
function foldedTokens(text: string, granularity: Granularity): string {
  const tokens: string[] = []
  scanTokens(text, granularity, (folded) => tokens.push(folded))
  return `\n${tokens.join('\n')}\n`
}

const MOST_WORDS = 0.75
const ALL_WORDS = 0.95
const HALF = 0.5
const NEARLY_ALL = 0.81
const COMPARES = /\b(?:(?:more|less|fewer) than|half|only)\b/i
/** Of the claim's telling words, by weight: a contradiction has the subject, support has more. */
const LEAST_SHARED = { supports: 0.22, contradicts: 0.1 }
/** With no more than this, and no name of the claim, the lines share words by chance. */
const FEW_SHARED = 0.34
const IS_NAME = /^\p{Lu}/u
const SPEAKS_BACK = new RegExp(`${POINTS_BACK.source}|^The \\p{Ll}`, 'u')
/** What the lines and the page share with the claim, together: a page that supports a claim speaks of it elsewhere too. */
const LEAST_OF_PAGE = 0.72
/** UTF-16 units; hardly more than one quotation, so that the page says nothing besides. */
const SHORT_PAGE = 450
/** UTF-16 units. */
const LANGUAGE_SAMPLE = 4000
const FEW_TOKENS = 4
/** UTF-16 units; shorter ones are names and abbreviations more often than quotations. */
const [SHORTEST_PHRASE, LONGEST_PHRASE] = [6, 400]
/** A quotation says by this that it leaves words out. */
const LEFT_OUT_OF_QUOTE = /\s*(?:\[?(?:\.{3}|…)\]?|\[[^\]]*\])\s*/
const MOST_PAIRS = 0.75
const LEAST_NAMES = 2
const MARKS = /["“”„«»「」『』]/g
/** “ also closes, after „. */
const OPENING = /[„«「『]/
const CLOSING = /[”»」』]/
