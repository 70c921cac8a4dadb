// Writes the explanation of a semantic assessment. The model writes no word of it, and the page neither: of the model's answer
// only words that the claim has are repeated.
import { shortenedTo } from '../../text/sentences.ts'
import { LONGEST_EXPLANATION, type Span } from '../evidence.ts'
import { type SemanticFlag, semanticFlagMeanings } from '../risk-flags.ts'
import type { HeardPart, Status, Verdict } from './answer.ts'

export interface Grounds {
  claim: string
  verdict: Verdict
  /** What the model said before the checks. */
  proposed: Verdict
  parts: readonly HeardPart[]
  flags: ReadonlySet<SemanticFlag>
  /** In code points of the text. */
  suspects: readonly Span[]
  lines: number
  /** The number of lines that are related to the claim. */
  shown: number
  isAsked: boolean
  windows: number
  isTruncated: boolean
}

/** What was read, what the page says of the claim's parts, and what is missing, in at most 800 code points. */
export function rationale(grounds: Grounds): string {
  const parts = [search(grounds), finding(grounds), missing(grounds), suspicion(grounds)]
  return shortenedTo(parts.filter(Boolean).join(' '), LONGEST_EXPLANATION - 1)
}

function search({ claim, lines, shown, isAsked, windows, isTruncated }: Grounds): string {
  const beyond = isTruncated ? ' The page is longer than the text that was retrieved.' : ''
  if (!isAsked) return `No model was asked about the claim ${quoted(claim)}.${beyond}`
  if (shown === 0)
    return `No paragraph that may count as evidence has a word or number of the claim ${quoted(claim)}, so no model was asked.${beyond}`
  const some = `the ${shown === 1 ? 'one line' : `${shown} lines`} of ${lines} that could be about`
  const all = lines === 1 ? 'the one line of the page for' : `all ${lines} lines of the page for`
  const inWindows = windows > 1 ? `, in ${windows} overlapping parts` : ''
  return `The model read ${shown === lines ? all : some} the claim ${quoted(claim)}${inWindows}.${beyond}`
}

function finding({ verdict, proposed, parts, flags, shown, isAsked }: Grounds): string {
  if (!isAsked) return semanticFlagMeanings.order_about_claim
  if (verdict !== proposed) {
    const reason = LOWERING.find((flag) => flags.has(flag))
    const said = `Its verdict was ${quoted(proposed.replaceAll('_', ' '))}, which was withdrawn`
    return `${said}. ${reason ? semanticFlagMeanings[reason] : 'The lines that it named cannot be quoted as evidence.'}`
  }
  if (shown === 0) return ''
  const [deciding] = parts.filter(({ status }) => DECIDES[verdict].includes(status))
  if (verdict !== 'insufficient_evidence')
    return `${FINDINGS[verdict]}${deciding ? `: ${REASONS[deciding.status]}` : ''}.`
  return `It found ${deciding ? REASONS[deciding.status] : REASONS.silent}.`
}

/** Which part of the claim is open, or what would have decided. */
function missing({ claim, verdict, parts, isAsked }: Grounds): string {
  if (verdict === 'supports' || !isAsked) return ''
  if (verdict === 'mixed') return 'What is missing is a line that decides between them.'
  const isOpen = ({ status }: HeardPart) => DECIDES.insufficient_evidence.includes(status)
  const [part, ...more] = parts.filter(isOpen)
  const words = part && oneLine(part.says)
  if (parts.length > 1 && words && oneLine(claim).toLowerCase().includes(words.toLowerCase())) {
    const others = more.length === 0 ? '' : `, and nor are ${more.length} more`
    return `The part ${quoted(words)} of the claim is not decided by it${others}.`
  }
  if (verdict === 'contradicts') return ''
  return `What is missing is ${(part && MISSING[part.status]) ?? 'a line that states the claim or its opposite'}.`
}

function suspicion({ suspects }: Grounds): string {
  if (suspects.length === 0) return ''
  const places = suspects.slice(0, MOST_PLACES).map(({ start, end }) => `${start} to ${end}`)
  const further = suspects.length > MOST_PLACES ? ` and ${suspects.length - MOST_PLACES} more` : ''
  return `Text that may be meant to influence programs is at code points ${places.join(', ')}${further}; it was ignored.`
}

const oneLine = (words: string) => words.replace(/\s+/gu, ' ').trim()
const quoted = (words: string) => `"${shortenedTo(oneLine(words).replace(/[.。]$/u, ''), LONGEST_QUOTED)}"`

const DECIDES: Record<Verdict, readonly Status[]> = {
  supports: ['stated', 'follows'],
  contradicts: ['other_value', 'opposite'],
  mixed: ['conflict'],
  insufficient_evidence: ['reported', 'unsure', 'silent'],
}
const FINDINGS: Record<Exclude<Verdict, 'insufficient_evidence'>, string> = {
  supports: 'The quoted lines support the claim',
  contradicts: 'The quoted lines contradict the claim',
  mixed: 'Some of the quoted lines support the claim, and others contradict it',
}
const REASONS: Record<Status, string> = {
  stated: 'they say the same',
  follows: 'it follows from several of them together',
  other_value: 'they give another number, date, name or place',
  opposite: 'they say the opposite',
  conflict: 'they say both',
  reported: 'only a report that somebody said so',
  unsure: 'only something hypothetical, planned or ambiguous',
  silent: 'nothing that decides whether the claim is right',
}
const MISSING: Partial<Record<Status, string>> = {
  reported: 'a line that states the claim as a fact of its own',
  unsure: 'a line that states it plainly',
  silent: 'a line about it',
}
/** The flags that say why a verdict was withdrawn. */
const LOWERING: readonly SemanticFlag[] = [
  'readings_differ',
  'claim_addresses_model',
  'quoted_phrase_absent',
  'number_not_quoted',
  'evidence_dropped',
]
const MOST_PLACES = 3
/** Code points of the claim. */
const LONGEST_QUOTED = 120
