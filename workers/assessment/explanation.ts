// Writes the explanation of a literal assessment: what was searched, what was found, and what that does not mean.
import { shortenedTo } from './cuts.ts'
import { LONGEST_EXPLANATION } from './evidence.ts'
import type { RiskFlag } from './literal-risk-flags.ts'
import type { Passage } from './passages.ts'
import type { Query } from './query.ts'
import type { Findings } from './search.ts'
import { absentTerms } from './warnings.ts'

/** At most 800 code points. It repeats nothing of the page: quotes are in the evidence only. */
export function explain(
  query: Query,
  findings: Findings,
  passages: readonly Passage[],
  flags: readonly RiskFlag[],
): string {
  const parts = [whatWasFound(query, findings, passages), whatIsAbsent(query, findings), whatToCheck(flags), CAVEAT]
  return shortenedTo(parts.filter(Boolean).join(' '), LONGEST_EXPLANATION - 1)
}

function whatWasFound(query: Query, findings: Findings, passages: readonly Passage[]): string {
  const [best] = passages
  if (query.tokens.length === 0) return 'The claim has no visible characters to look for.'
  if (findings.tokenCounts.length === 0) return 'The page has no text to look in.'
  if (!best) return 'No passage of the page shares enough of the words of the claim to bear on it.'
  const shown = passages.length === 1 ? 'One passage is quoted.' : `${passages.length} passages are quoted, best first.`
  return `${wordingFound(findings, best)} ${shown}`
}

function wordingFound({ wholeMatchCount }: Findings, best: Passage): string {
  if (best.wording === 'partial') {
    return 'No passage has the wording of the claim; the first has a part of its words.'
  }
  const likeness = best.wording === 'exact' ? 'word for word' : 'but for case, punctuation or typography'
  if (wholeMatchCount === 1) return `The page has the wording of the claim in one place, ${likeness}.`
  return `The page has the wording of the claim in ${wholeMatchCount} places; the first quoted has it ${likeness}.`
}

function whatIsAbsent(query: Query, findings: Findings): string {
  const absent = absentTerms(query, findings)
  if (absent.length === 0 || findings.tokenCounts.length === 0) return ''
  const named = absent.slice(0, MOST_NAMED).map((term) => `"${shortenedTo(term, LONGEST_NAMED)}"`)
  const further = absent.length > named.length ? ` and ${absent.length - named.length} more` : ''
  return `Nowhere in the page: ${named.join(', ')}${further}.`
}

function whatToCheck(flags: readonly RiskFlag[]): string {
  const checks = flags.map((flag) => CHECKS[flag]).filter((check) => check !== undefined)
  return checks.length === 0 ? '' : `To check in the first passage: ${checks.join(', ')}.`
}

const CHECKS: Partial<Record<RiskFlag, string>> = {
  number_mismatch: 'another number',
  date_mismatch: 'another date',
  unit_mismatch: 'another unit',
  negation_mismatch: 'a negation in one of the two',
  attributed_statement: "somebody's statement",
}
const CAVEAT =
  'Passages were matched by their words alone, which shows where the page speaks of the claim and never whether it supports it.'
const MOST_NAMED = 6
const LONGEST_NAMED = 40
