// Writes the explanation of a semantic assessment. No word of it comes from the model.
import type { Basis, Verdict } from './answer.ts'
import { shortenedTo } from './cuts.ts'
import { LONGEST_EXPLANATION } from './evidence.ts'
import type { Span } from './lines.ts'
import { type SemanticFlag, semanticFlagMeanings } from './semantic-risk-flags.ts'

export interface Grounds {
  verdict: Verdict
  /** What the model said before the checks. */
  proposed: Verdict
  basis: Basis | null
  flags: readonly SemanticFlag[]
  /** In code points of the text. */
  suspects: readonly Span[]
  lines: number
  parts: number
  isTruncated: boolean
}

/** At most 800 code points. Of the page itself nothing is repeated. */
export function rationale(grounds: Grounds): string {
  const parts = [finding(grounds), lowering(grounds), suspicion(grounds), coverage(grounds)]
  return shortenedTo(parts.filter(Boolean).join(' '), LONGEST_EXPLANATION - 1)
}

function finding({ verdict, basis }: Grounds): string {
  const because = basis ? REASONS[basis] : ''
  return `${FINDINGS[verdict]}${verdict !== 'insufficient_evidence' || SAID_OF_NOTHING.has(basis ?? '') ? because : ''}.`
}

function lowering({ verdict, proposed, flags }: Grounds): string {
  if (verdict === proposed) return ''
  const reasons = flags.filter((flag) => LOWERING.has(flag)).slice(0, 2)
  const said = `The model read it as "${proposed.replaceAll('_', ' ')}", which was not borne out.`
  return [said, ...reasons.map((flag) => semanticFlagMeanings[flag])].join(' ')
}

function suspicion({ suspects }: Grounds): string {
  if (suspects.length === 0) return ''
  const places = suspects.slice(0, MOST_PLACES).map(({ start, end }) => `${start} to ${end}`)
  const further = suspects.length > MOST_PLACES ? ` and ${suspects.length - MOST_PLACES} more` : ''
  return `Text that may be meant to influence programs stands at code points ${places.join(', ')}${further}; it was left out of account.`
}

function coverage({ lines, parts, isTruncated }: Grounds): string {
  const all = lines === 1 ? 'The one line' : `All ${lines} lines`
  const read = `${all} of the text ${lines === 1 ? 'was' : 'were'} read${parts > 1 ? `, in ${parts} overlapping parts` : ''}.`
  return isTruncated ? `${read} The page is longer than the text that was retrieved.` : read
}

const FINDINGS: Record<Verdict, string> = {
  supports: 'The text supports the claim',
  contradicts: 'The text contradicts the claim',
  mixed: 'The text speaks both for and against the claim',
  insufficient_evidence: 'The text does not settle the claim',
}
const REASONS: Record<Basis, string> = {
  stated: ': it says the same',
  combined: ': it follows from several lines together',
  other_value: ': it gives another number, date, name or place',
  opposite: ': it says the opposite',
  partly: ': it bears on a part of it',
  reported: ': it only reports that somebody said so',
  unsure: ': what bears on it is hypothetical, planned or ambiguous',
  silent: ': nothing in it bears on the claim',
}
const SAID_OF_NOTHING: ReadonlySet<string> = new Set(['partly', 'reported', 'unsure', 'silent'])
const LOWERING: ReadonlySet<SemanticFlag> = new Set([
  'readings_differ',
  'claim_addresses_model',
  'number_mismatch',
  'date_mismatch',
  'unit_mismatch',
  'number_absent',
  'negation_mismatch',
  'quoted_phrase_absent',
  'claim_wording_present',
  'claim_words_present',
  'opposite_wording',
  'names_absent',
  'name_mismatch',
  'unrelated_evidence',
  'weak_basis',
  'evidence_dropped',
])
const MOST_PLACES = 3
