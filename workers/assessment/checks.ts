// What can be checked of a verdict without a model: numbers, dates, units, negations, quoted words. A check that fails
// takes a line's stance away, and so the verdict that stood on it; no check ever gives one.
import { disagreement } from './agreement.ts'
import type { Answer } from './answer.ts'
import type { Proposal } from './evidence.ts'
import type { Span } from './lines.ts'
import { agreeAcrossUnits } from './measures.ts'
import { type Quantity, quantitiesOf } from './quantities.ts'
import { isTelling, isTellingWord, type Query, readClaim } from './query.ts'
import { searchText } from './search.ts'
import type { SemanticFlag } from './semantic-risk-flags.ts'
import { sentencesOf } from './sentences.ts'
import { tokensOf } from './tokens.ts'
import { vocabularyOf } from './vocabulary.ts'
import { absentTerms, warningsOf } from './warnings.ts'

export interface Proposed {
  verdict: Answer['verdict']
  basis: Answer['basis']
  evidence: readonly Proposal[]
}

/** The evidence with the stances that hold, and what was found against the others. */
export interface Checked {
  evidence: Proposal[]
  flags: SemanticFlag[]
}

export function checkEvidence(claim: string, text: string, lines: readonly Span[], proposed: Proposed): Checked {
  const page: PageText = { text, lines }
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

interface PageText {
  text: string
  lines: readonly Span[]
}

/** Grave doubts take the support away; the others are only mentioned. */
interface Doubt {
  flag: SemanticFlag
  isGrave: boolean
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
    ...(quotedPhrases(claim).every((phrase) => holds(page.text, phrase))
      ? []
      : [{ flag: 'quoted_phrase_absent', isGrave: true } as const]),
  ]
}

/** A verdict that its own reason does not carry. A part that is contradicted contradicts the whole. */
function isWeak({ verdict, basis }: Proposed): boolean {
  if (verdict === 'supports')
    return basis === 'partly' || basis === 'reported' || basis === 'unsure' || basis === 'silent'
  return verdict === 'contradicts' && (basis === 'reported' || basis === 'unsure' || basis === 'silent')
}

/**
 * Each number and date of the claim must stand in the quoted lines, in whatever unit. Another one of the same sort in its
 * place is grave; so is none on the whole page, unless it is a small count, which a list may give without the word, or
 * part of a name. Where only a part of the claim is supported, one of them is enough.
 */
function quantityDoubts(claim: string, page: PageText, quotes: readonly string[], isPart: boolean): Doubt[] {
  const given = quotes.flatMap(quantitiesOf)
  const claimed = quantitiesOf(claim)
  const isSame = (one: Quantity) => given.some((other) => agreeAcrossUnits(one, other))
  const mayLack = isPart && claimed.some(isSame)
  const named = numbersInNames(claim)
  const doubts: Doubt[] = []
  for (const one of claimed) {
    if (isSame(one) || isLoose(claim, one)) continue
    const isMinor = isSmallCount(one) || (one.kind === 'number' && named.has(one.value))
    // A small count in words may be of a language whose numerals are not known here.
    const kind = disagreement(one, isMinor ? given.filter(isSmallCount) : given)
    if (kind) doubts.push({ flag: `${kind}_mismatch`, isGrave: !mayLack && !(isMinor && !isSmallCount(one)) })
    else doubts.push({ flag: 'number_absent', isGrave: !mayLack && !isMinor && !isGiven(page, one) })
  }
  return doubts
}

/** Lumo 4, Section 12: a whole number behind a name. */
function numbersInNames(claim: string): ReadonlySet<number> {
  return new Set([...claim.matchAll(NAME_WITH_NUMBER)].map((match) => Number(match[1])))
}

/** More than, about, between: the number in the text is then another one by rights. */
function isLoose(claim: string, { kind }: Quantity): boolean {
  return (kind === 'date' ? LOOSE_DATE : LOOSE_NUMBER).test(claim.toLowerCase())
}

function isSmallCount(quantity: Quantity): boolean {
  return (
    quantity.kind === 'number' && quantity.unit === null && Number.isInteger(quantity.value) && quantity.value <= 12
  )
}

function isGiven({ text, lines }: PageText, claimed: Quantity): boolean {
  return lines.some(({ start, end }) => {
    const line = text.slice(start, end)
    return quantitiesOf(line).some((other) => agreeAcrossUnits(claimed, other))
  })
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
  const whole = { start: 0, end: quote.length, core: quote, wording: 'partial' as const, relevance: NO_RELEVANCE }
  const warnings = warningsOf(claim, query, findings, [whole])
  const telling = query.terms.filter((term) => isTelling(term) && term.kind === 'word').length
  return {
    isNegatedOtherwise: warnings.includes('negation_mismatch'),
    isAttributed: warnings.includes('attributed_statement'),
    isVerbatim: findings.wholeMatchCount > 0,
    share: telling === 0 ? 0 : 1 - absentTerms(query, findings).length / telling,
  }
}

/** The claim word for word, neither negated nor put into somebody's mouth: hardly a contradiction. */
function statesClaim(claim: string, query: Query, quote: string): boolean {
  const { isVerbatim, isNegatedOtherwise, isAttributed } = readQuote(claim, query, quote)
  return isVerbatim && query.tokens.length >= FEW_TOKENS && !isNegatedOtherwise && !isAttributed
}

/**
 * Whether the quoted lines have enough of the claim's words to be about it at all. What gives orders without knowing the
 * claim has none of them, whoever obeys it. Words of another language than the page's cannot be looked for.
 */
function isRelated(query: Query, page: PageText, quotes: readonly string[], { verdict }: Proposed): boolean {
  if (verdict === 'insufficient_evidence' || quotes.length === 0 || !sharesLanguage(query, page)) return true
  const found = new Set<number>()
  for (const quote of quotes)
    for (const [term, frequency] of searchText(query, quote, sentencesOf(quote)).frequencies.entries())
      if (frequency > 0) found.add(term)
  // A number that is missing is the other checks' to judge.
  const telling = [...query.terms.entries()].filter(
    ([i, term]) => isTelling(term) && (isTellingWord(term) || found.has(i)),
  )
  const weight = (terms: typeof telling) => terms.reduce((sum, [, { prior }]) => sum + prior, 0)
  return weight(telling.filter(([i]) => found.has(i))) >= LEAST_SHARED[verdict] * weight(telling)
}

function sharesLanguage({ tokens }: Query, { text }: PageText): boolean {
  const said = vocabularyOf(tokens.map(({ folded }) => folded))
  const begun = tokensOf(text.slice(0, LANGUAGE_SAMPLE)).map(({ folded }) => folded)
  return tokens.some(({ kind }) => kind === 'dense')
    ? tokens.some(({ folded }) => begun.includes(folded))
    : said === vocabularyOf(begun)
}

function quotedPhrases(claim: string): string[] {
  return [...claim.matchAll(QUOTED)]
    .map((match) => match[1]!.trim())
    .filter((phrase) => readClaim(phrase).tokens.length > 1)
}

function holds(text: string, phrase: string): boolean {
  return searchText(readClaim(phrase), text, [{ start: 0, end: text.length, line: 0 }]).wholeMatchCount > 0
}

const MOST_WORDS = 0.75
/** Of the claim's telling words, by weight: a contradiction has the subject, support has more. */
const LEAST_SHARED = { supports: 0.26, mixed: 0.26, contradicts: 0.2 }
/** UTF-16 units. */
const LANGUAGE_SAMPLE = 4000
const FEW_TOKENS = 4
const SPELLED =
  '(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|a (?:hundred|thousand|million|billion))'
const NO_RELEVANCE = { score: 0, terms: 0, bears: true }
const NAME_WITH_NUMBER = /\p{Lu}[\p{L}\p{M}]*[ -](\p{Nd}{1,4})(?![\p{Nd}.,:]\p{Nd}|\s*[%°\p{Sc}])/gu
const QUOTED = /["“”„«「『]([^"“”„«»「」『』]{6,400})["“”»」』]/gu
/** Before a number, at most one word away; or, in scripts without spaces, beside it. */
const LOOSE_NUMBER = loose(
  `(?:more|less|fewer|greater|higher|lower|larger|smaller|older|younger) than|over|under|above|below|about|around|some|
   roughly|approximately|approx|nearly|almost|at least|at most|up to|exceed(?:s|ed|ing)?|between|as many as|no more than|
   mehr als|weniger als|über|unter|mindestens|höchstens|etwa|rund|ungefähr|fast|knapp|zwischen|bis zu|plus de|moins de|
   environ|près de|presque|au moins|au plus|entre|quelque|más de|menos de|al menos|unos|unas|alrededor de|cerca de|casi|
   hasta|mais de|pelo menos|aproximadamente|quase|più di|meno di|almeno|circa|quasi|oltre|tra|meer dan|minder dan|minstens|
   ongeveer|bijna|tussen|ponad|mniej niż|co najmniej|około|prawie|mer än|minst|ungefär|более|больше|менее|меньше|свыше|около|
   почти|примерно|до|между|أكثر من|أقل من|حوالي|نحو|على الأقل|יותר מ|פחות מ|לפחות|כ-|लगभग|yaklaşık|en az|en fazla`,
  '超过|超過|多于|至少|不到|少于|大约|约|近|以上|以下|未満|超|約|ほぼ|이상|이하|미만|약|거의|넘|से अधिक|से कम|den fazla|dan fazla',
)
const LOOSE_DATE = loose(
  `before|after|since|until|by|by the end of|between|during|from|early|in early|late|in late|mid|around|vor|nach|seit|bis|
   zwischen|ab|um|avant|après|depuis|jusqu'en|entre|vers|antes de|después de|desde|hasta|hacia|depois de|prima del|dopo il|
   dal|fino al|voor|na|sinds|tot|przed|po|od|do|до|после|с|между|около|قبل|بعد|منذ|לפני|אחרי|מאז`,
  '之前|之后|以来|以前|以後|から|まで|이전|이후|부터|까지|के बाद|से पहले|önce|sonra|beri',
)

function loose(before: string, beside: string): RegExp {
  const words = before.replace(/\|\s+/g, '|')
  return new RegExp(
    `(?<!\\p{L})(?:${words})[\\s-]*(?:\\p{L}+\\s+)?(?:\\p{Sc}\\s?)?(?:\\p{Nd}|${SPELLED})|${beside}`,
    'u',
  )
}
