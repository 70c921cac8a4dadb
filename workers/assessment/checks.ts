// Checks a verdict without a model: numbers, dates, units, negations, quoted words. A check that fails
// takes a line's stance away, and with it the verdict that needed the line; no check gives a verdict.
import type { Answer } from './answer.ts'
import { agreementOf } from './contradiction-checks.ts'
import type { Proposal } from './evidence.ts'
import type { Span } from './lines.ts'
import { oppositesBetween } from './opposites.ts'
import { type Doubt, type PageText, pageText, quantityDoubts } from './quantity-checks.ts'
import { type Query, readClaim } from './query.ts'
import { readQuote } from './quote-reading.ts'
import { phraseDoubts, quotedPhrases } from './quoted-phrases.ts'
import { isRelated, lacksNames } from './relation.ts'
import type { SemanticFlag } from './semantic-risk-flags.ts'
import { isNegation } from './warnings.ts'

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

const MOST_WORDS = 0.75
const ALL_WORDS = 0.95
const HALF = 0.5
