// The thread of the literal assessment: quotes the passages that share the words of a claim, and says in words what was found.

import { isKnownLanguage } from '../../text/language.ts'
import { type ReadText, readOnce } from '../../text/read-text.ts'
import { shortenedTo } from '../../text/sentences.ts'
import { type Query, readClaim, type Term } from '../../text/terms.ts'
import {
  type Digests,
  deriveVerdict,
  LONGEST_EXPLANATION,
  MOST_ITEMS,
  proveEvidence,
  type Verdict,
} from '../evidence.ts'
import type { LiteralFlag } from '../risk-flags.ts'
import { type Findings, findPassages } from './passages.ts'

export interface LiteralTask {
  claim: string
  text: string
  digests: Digests
}

/**
 * Finds passages about a claim in a text of up to 100,000 code points, only by its words. It never says that the text
 * supports the claim: `not_assessed` means that there are passages to read, `insufficient_evidence` that there are none.
 */
export function assessLiterally({ claim, text, digests }: LiteralTask): Verdict {
  const query = readClaim(claim)
  const page = readOnce(text)
  const findings = findPassages(claim, query, page, MOST_ITEMS)
  const proposals = findings.passages.map(({ start, end }) => ({ start, end, stance: 'mentions' as const }))
  const { evidence } = proveEvidence(text, digests, proposals, page.offsets)
  const isKnown = page.isKnownLanguage && isKnownLanguage(claim)
  return {
    assessment_scope: 'literal_quotation_only',
    claim_support: deriveVerdict('not_assessed', 'literal_quotation_only', evidence),
    evidence,
    explanation: explain(page, query, findings),
    risk_flags: flagsOf(query, findings, isKnown),
  }
}

function flagsOf(query: Query, findings: Findings, isKnown: boolean): LiteralFlag[] {
  const { passages, wholeMatches, wholeMatchCount } = findings
  const [best] = passages
  if (!best) return []
  const isShown = (at: number) => passages.some(({ start, end }) => start <= at && at < end)
  const flags: (LiteralFlag | false)[] = [
    best.wording === 'partial' && 'partial_wording',
    absent(query, findings, 'word').length > 0 && 'claim_terms_absent',
    absent(query, findings, 'number').length > 0 && 'number_absent',
    wholeMatchCount > wholeMatches.filter(({ start }) => isShown(start)).length && 'more_matches',
    !isKnown && 'language_not_supported',
  ]
  return flags.filter((flag) => flag !== false).sort()
}

/** The claim's words or numbers that the page does not have, as the claim writes them. */
function absent({ terms }: Query, { present }: Findings, sort: Term['kind']): string[] {
  return [...terms.values()].filter(({ term, kind }) => kind === sort && !present.has(term)).map(({ raw }) => raw)
}

/**
 * In at most four short sentences: what the page has of the claim's words, and what is missing. At most 800 code points. It
 * repeats nothing of the page: quotes are in the evidence only.
 */
function explain(page: ReadText, query: Query, findings: Findings): string {
  const parts = [
    whatWasFound(query, findings),
    findings.isBlank ? '' : whatIsMissing(page, query, findings),
    findings.passages.length > 0 ? CAVEAT : '',
  ]
  return shortenedTo(parts.filter(Boolean).join(' '), LONGEST_EXPLANATION - 1)
}

function whatWasFound(query: Query, { isBlank, passages, wholeMatchCount }: Findings): string {
  const [best] = passages
  if (query.tokens.length === 0) return 'The claim has no visible characters to search for.'
  if (isBlank) return 'The page has no text to search.'
  if (!best) return 'No passage of the page shares enough words with the claim to be about it, so nothing is quoted.'
  if (best.wording !== 'partial') {
    const likeness =
      best.wording === 'exact' ? 'word for word' : 'but with other letter case, punctuation or typography'
    if (wholeMatchCount === 1) return `The page has the words of the claim in one place, ${likeness}.`
    return `The page has the words of the claim in ${wholeMatchCount} places, in the first quote ${likeness}.`
  }
  return passages.length === 1
    ? 'One passage of the page shares words with the claim and is quoted.'
    : `${passages.length} passages of the page share words with the claim and are quoted, the most similar first.`
}

/** Words that are part of a longer word of the page are not named, nor are single digits, which the page may have in words. */
function whatIsMissing({ lowerCase: lower }: ReadText, query: Query, findings: Findings): string {
  const numbers = absent(query, findings, 'number').filter((number) => number.length > 1)
  const words = absent(query, findings, 'word').filter((word) => !lower.includes(word.toLowerCase()))
  const missing = [...numbers, ...words]
  if (missing.length === 0) return ''
  const named = missing.slice(0, MOST_NAMED).map((term) => `"${shortenedTo(term, LONGEST_NAMED)}"`)
  const further = missing.length - named.length
  if (further > 0)
    return `The page does not have ${named.join(', ')} and ${further} more ${further === 1 ? 'word' : 'words'} of the claim.`
  const last = named.pop()
  return `The page does not have ${named.length > 0 ? `${named.join(', ')} and ` : ''}${last}.`
}

const CAVEAT = 'Only words were compared, so read the quotes to see whether they support the claim.'
const MOST_NAMED = 6
const LONGEST_NAMED = 40
