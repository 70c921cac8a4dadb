// Writes the explanation of a semantic assessment. The model writes no word of it.
import type { Basis, Verdict } from './answer.ts'
import { shortenedTo } from './cuts.ts'
import { LONGEST_EXPLANATION } from './evidence.ts'
import type { Span } from './lines.ts'
import { type SemanticFlag, semanticFlagMeanings } from './semantic-risk-flags.ts'

export interface Grounds {
  claim: string
  verdict: Verdict
  /** What the model said before the checks. */
  proposed: Verdict
  basis: Basis | null
  flags: readonly SemanticFlag[]
  /** Statements of the claim that nothing was quoted for. */
  partsWithout: readonly string[]
  /** In code points of the text. */
  suspects: readonly Span[]
  lines: number
  /** The number of lines that are related to the claim. */
  shown: number
  parts: number
  isTruncated: boolean
}

/**
 * What was looked for, what the page says, and what is missing, in at most 800 code points. It repeats nothing of the page,
 * and of the claim only its first words and a part.
 */
export function rationale(grounds: Grounds): string {
  const parts = [search(grounds), finding(grounds), missing(grounds), suspicion(grounds)]
  return shortenedTo(parts.filter(Boolean).join(' '), LONGEST_EXPLANATION - 1)
}

function search({ claim, lines, shown, parts, isTruncated }: Grounds): string {
  const end = isTruncated ? '; the page is longer than the text that was retrieved' : ''
  if (shown === 0)
    return `No line of the text that may count as evidence has a word or number of ${quoted(claim)}${end}.`
  const inParts = parts > 1 ? ` in ${parts} overlapping parts` : ''
  const [isOne, of] = [shown === 1, 'of the text']
  const all =
    lines === 1
      ? `The one line ${of}`
      : shown === lines
        ? `All ${lines} lines ${of}`
        : `${shown} of ${lines} lines ${of}`
  const why = shown === lines ? '' : ', those with something of it,'
  return `${all}${why} ${isOne ? 'was' : 'were'} read${inParts} for what ${isOne ? 'it says' : 'they say'} of ${quoted(claim)}${end}.`
}

function finding({ verdict, proposed, basis, flags }: Grounds): string {
  if (verdict !== proposed) {
    const [first, second] = flags.filter((flag) => LOWERING.has(flag)).map((flag) => semanticFlagMeanings[flag])
    const said = `The model read it as "${proposed.replaceAll('_', ' ')}", which was not borne out`
    return first ? `${said}: ${lowerFirst(first)}${second ? ` ${second}` : ''}` : `${said}.`
  }
  const because = basis ? REASONS[basis] : ''
  return `${FINDINGS[verdict]}${verdict !== 'insufficient_evidence' || SAID_OF_NOTHING.has(basis ?? '') ? because : ''}.`
}

/** Which part of the claim has no line, or what would have settled it. */
function missing({ verdict, basis, partsWithout }: Grounds): string {
  const [part, ...more] = partsWithout
  if (part !== undefined) {
    const others = more.length === 0 ? '' : ` and ${more.length} more ${more.length === 1 ? 'part' : 'parts'}`
    return `Nothing is quoted for the part ${quoted(part)}${others}.`
  }
  if (verdict === 'supports' || verdict === 'contradicts') return ''
  if (verdict === 'mixed') return 'Missing is what would decide between the two sides.'
  return `Missing is ${basis && SAID_OF_NOTHING.has(basis) ? MISSING[basis] : 'a line that says the claim or its contrary'}.`
}

const quoted = (words: string) => `"${shortenedTo(words.replace(/\s+/gu, ' ').trim(), LONGEST_QUOTED)}"`
const lowerFirst = (sentence: string) => sentence.charAt(0).toLowerCase() + sentence.slice(1)

function suspicion({ suspects }: Grounds): string {
  if (suspects.length === 0) return ''
  const places = suspects.slice(0, MOST_PLACES).map(({ start, end }) => `${start} to ${end}`)
  const further = suspects.length > MOST_PLACES ? ` and ${suspects.length - MOST_PLACES} more` : ''
  return `Text that may be meant to influence programs stands at code points ${places.join(', ')}${further}; it was left out of account.`
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
const MISSING: Partial<Record<Basis, string>> = {
  partly: 'a line for the rest of the claim',
  reported: 'a line in which the page says so itself',
  unsure: 'a line that says it plainly',
  silent: 'any line about it',
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
  'claim_wording_present',
  'claim_words_present',
  'opposite_wording',
  'kind_mismatch',
  'name_mismatch',
  'unrelated_evidence',
  'weak_basis',
  'evidence_dropped',
])
const MOST_PLACES = 3
/** Code points of the claim. */
const LONGEST_QUOTED = 120
