// Checks a verdict without a model: numbers, dates, units, negations, quoted words. A check that fails
// takes a line's stance away, and with it the verdict that needed the line; no check gives a verdict.
import type { Answer } from './answer.ts'
import type { Proposal } from './evidence.ts'
import type { Span } from './lines.ts'
import { type Doubt, type PageText, pageText, quantityDoubts } from './quantity-checks.ts'
import { isTelling, isTellingWord, type Query, readClaim } from './query.ts'
import { searchText } from './search.ts'
import type { SemanticFlag } from './semantic-risk-flags.ts'
import { sentencesOf } from './sentences.ts'
import { type Granularity, granularityFor, scanTokens, tokensOf } from './tokens.ts'
import { vocabularyOf } from './vocabulary.ts'
import { absentTerms, wordingOf } from './warnings.ts'

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

  const isAstray = !isRelated(
    query,
    page,
    proposed.evidence.map(({ start, end }) => text.slice(start, end)),
    proposed,
  )
  if (isAstray) flags.add('unrelated_evidence')

  const stanceOf = (item: Proposal): Proposal['stance'] => {
    if (isAstray || (item.stance === 'supports' && supportFails)) return 'mentions'
    if (item.stance === 'contradicts' && statesClaim(claim, query, text.slice(item.start, item.end))) {
      flags.add('claim_wording_present')
      return 'mentions'
    }
    return item.stance
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
    ...wordingDoubts(claim, query, quotes),
    ...(holdsAll(page.text, quotedPhrases(claim)) ? [] : [{ flag: 'quoted_phrase_absent', isGrave: true } as const]),
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
  if (readings.every(({ isNegatedOtherwise }) => isNegatedOtherwise))
    doubts.push({ flag: 'negation_mismatch', isGrave: readings.some(({ share }) => share >= MOST_WORDS) })
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
  }
}

/** The claim word for word, neither negated nor attributed to a speaker: hardly a contradiction. */
function statesClaim(claim: string, query: Query, quote: string): boolean {
  const { isVerbatim, isNegatedOtherwise, isAttributed } = readQuote(claim, query, quote)
  return isVerbatim && query.tokens.length >= FEW_TOKENS && !isNegatedOtherwise && !isAttributed
}

/**
 * Whether the quoted lines have enough of the claim's words to be about it at all. What gives orders without knowing
 * the claim has none of them, if the reader obeys them. Words of another language than the page's cannot be looked for.
 */
function isRelated(query: Query, page: PageText, quotes: readonly string[], { verdict }: Proposed): boolean {
  if (verdict === 'insufficient_evidence' || quotes.length === 0 || !sharesLanguage(query, page)) return true
  const found = new Set<number>()
  for (const quote of quotes)
    for (const [term, frequency] of searchText(query, quote, sentencesOf(quote)).frequencies.entries())
      if (frequency > 0) found.add(term)
  // The other checks judge a missing number.
  const telling = [...query.terms.entries()].filter(
    ([i, term]) => isTelling(term) && (isTellingWord(term) || found.has(i)),
  )
  const weight = (terms: typeof telling) => terms.reduce((sum, [, { prior }]) => sum + prior, 0)
  return weight(telling.filter(([i]) => found.has(i))) >= LEAST_SHARED[verdict] * weight(telling)
}

function sharesLanguage({ tokens }: Query, { text }: PageText): boolean {
  const said = vocabularyOf(tokens.map(({ folded }) => folded))
  const begun = new Set(tokensOf(text.slice(0, LANGUAGE_SAMPLE)).map(({ folded }) => folded))
  return tokens.some(({ kind }) => kind === 'dense')
    ? tokens.some(({ folded }) => begun.has(folded))
    : said === vocabularyOf(begun)
}

interface Phrase {
  granularity: Granularity
  tokens: string
}

/** What the claim puts between quotation marks, where that is more than one token. */
function quotedPhrases(claim: string): Phrase[] {
  return [...claim.matchAll(QUOTED)].flatMap((match) => {
    const phrase = match[1]!.trim().normalize('NFC')
    const granularity = granularityFor(phrase)
    return tokensOf(phrase, granularity).length > 1 ? { granularity, tokens: foldedTokens(phrase, granularity) } : []
  })
}

/**
 * Whether a text has the tokens of all phrases, each phrase's in a row. The text is read once, however many there are.
 */
function holdsAll(text: string, phrases: readonly Phrase[]): boolean {
  const read = new Map<Granularity, string>()
  return phrases.every(({ granularity, tokens }) => {
    const all = read.get(granularity) ?? foldedTokens(text, granularity)
    read.set(granularity, all)
    return all.includes(tokens)
  })
}

/** The tokens of a text, each between two line breaks, which no token holds. */
function foldedTokens(text: string, granularity: Granularity): string {
  const tokens: string[] = []
  scanTokens(text, granularity, (folded) => tokens.push(folded))
  return `\n${tokens.join('\n')}\n`
}

const MOST_WORDS = 0.75
/** Of the claim's telling words, by weight: a contradiction has the subject, support has more. */
const LEAST_SHARED = { supports: 0.26, mixed: 0.26, contradicts: 0.2 }
/** UTF-16 units. */
const LANGUAGE_SAMPLE = 4000
const FEW_TOKENS = 4
const QUOTED = /["“”„«「『]([^"“”„«»「」『』]{6,400})["“”»」』]/gu
