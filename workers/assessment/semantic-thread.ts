// The thread of the semantic assessment: cuts a page into questions, and checks and quotes what the model answers.
import type { Assessment } from '../../server/interface/assessment.ts'
import { checkEvidence } from './checks.ts'
import { type Digests, deriveVerdict, proveEvidence, type Verdict } from './evidence.ts'
import { isSuspect, type Suspect, type Suspicion, suspectsOf } from './injection.ts'
import { isKnownLanguage } from './language.ts'
import { codePointSpans, linesOf, type Span, type Window, windowsOf } from './lines.ts'
import { claimPart, LEFT_OUT, pagePart, partTitle, type Question, SYSTEM } from './prompt.ts'
import { readClaim } from './query.ts'
import { rationale } from './rationale.ts'
import { type Heard, mergeHeard, type Reading } from './readings.ts'
import { unrelatedLines } from './related-lines.ts'
import type { SemanticFlag } from './semantic-risk-flags.ts'
import { sentencesOf } from './sentences.ts'

export interface PlanTask {
  claim: string
  text: string
  nonce: string
  /** Tokens of text in one question, by an estimate that is too high. */
  windowTokens: number
  /** Numbers of lines that must not be shown; null for the first reading, which finds them. */
  masked: readonly number[] | null
}

/** The questions for one reading of a page. */
export interface Plan {
  /** Empty if no line may be shown. */
  questions: { window: Window; question: Question }[]
  /**
   * Lines that are not shown, in no order: lines that give orders to programs, and lines that are not related to the
   * claim.
   */
  masked: number[]
  /** How many lines are shown. */
  shown: number
  /** Of the first reading only. */
  suspects: Suspect[]
  claimIsSuspect: boolean
}

/**
 * Cuts a text of up to 100,000 code points into numbered lines and makes questions about the lines that are related to the
 * claim. Only rules decide which lines a model is shown, never the text of the page.
 */
export function planReading({ claim, text, nonce, windowTokens, masked }: PlanTask): Plan {
  const lines = linesOf(text)
  const suspects = masked === null ? suspectsOf(text, lines) : []
  const hidden = new Set(
    masked ?? [...suspects.map(({ line }) => line), ...unrelatedLines(claim, readClaim(claim), text, lines)],
  )
  const windows = windowsOf(text, lines, windowTokens, hidden)
  const view = { text, lines, nonce, masked: hidden }
  const said = claimPart(masked === null ? claim : withoutOrders(claim), nonce)
  const questions = windows.map((window, i) => ({
    window,
    question: { system: SYSTEM, page: pagePart(view, window, partTitle(i, windows.length)), claim: said },
  }))
  return {
    questions,
    masked: [...hidden],
    shown: lines.length - hidden.size,
    suspects,
    claimIsSuspect: isSuspect(claim),
  }
}

/** Leaves out the sentences of a claim that address a model; the rest may be empty. */
function withoutOrders(claim: string): string {
  if (!isSuspect(claim)) return claim
  const kept = sentencesOf(claim).map(({ start, end }) => claim.slice(start, end))
  return kept.map((sentence) => (isSuspect(sentence) ? LEFT_OUT : sentence)).join(' ')
}

export interface ConcludeTask {
  claim: string
  text: string
  digests: Digests
  isTruncated: boolean
  first: readonly Heard[]
  /** The reading without the reported lines; null if there were none, or a second reading could change nothing. */
  second: readonly Heard[] | null
  suspects: readonly Suspect[]
  /** Further lines that the model reported as suspicious. */
  reported: readonly number[]
  claimIsSuspect: boolean
  /** How many lines the first reading showed. */
  shown: number
}

/**
 * Makes an assessment from answers. Cuts the quotations from the text and proves them. The verdict is the model's, or a
 * lower one. The output meets the interface's rules for every input.
 */
export function conclude(task: ConcludeTask): Verdict {
  const lines = linesOf(task.text)
  const masked = new Set([...task.suspects.map(({ line }) => line), ...task.reported])
  const spans = lines.filter((_, line) => masked.has(line))
  const reading = soleReading(task, lines, spans)
  const checked = checkEvidence(task.claim, task.text, lines, reading)
  const { evidence } = proveEvidence(task.text, task.digests, checked.evidence)
  const verdict = deriveVerdict(reading.verdict, 'source_local_semantic_support', evidence) as Reading['verdict']
  const isLowered = verdict !== reading.proposed
  const flags = new Set<SemanticFlag>([...circumstances(task), ...checked.flags, ...reading.flags])
  if (isLowered) flags.add('verdict_lowered')
  if (!(isKnownLanguage(task.text) && isKnownLanguage(task.claim))) flags.add('language_not_supported')
  return {
    assessment_scope: 'source_local_semantic_support',
    claim_support: verdict,
    evidence: isLowered && verdict === 'insufficient_evidence' ? evidence.map(asMention) : evidence,
    explanation: rationale({
      claim: task.claim,
      partsWithout: checked.partsWithout,
      verdict,
      proposed: reading.proposed,
      basis: reading.basis,
      flags: [...flags],
      suspects: codePointSpans(task.text, spans),
      lines: lines.length,
      shown: task.shown,
      parts: task.first.length,
      isTruncated: task.isTruncated,
    }),
    risk_flags: [...flags].sort(),
  }
}

/** `proposed` is the verdict of the first reading; `verdict` the one after the comparison of both readings. */
interface SoleReading extends Reading {
  proposed: Reading['verdict']
  flags: SemanticFlag[]
}

function soleReading(
  { first, second, claimIsSuspect }: ConcludeTask,
  lines: readonly Span[],
  spans: readonly Span[],
): SoleReading {
  const one = mergeHeard(first, lines)
  const proposed = one.verdict
  const open = (reading: Reading) => reading.evidence.filter((item) => !spans.some((span) => overlap(item, span)))
  const abstain = (reading: Reading, flags: SemanticFlag[]): SoleReading => ({
    ...reading,
    verdict: 'insufficient_evidence',
    evidence: open(reading).map((item) => ({ ...item, stance: 'mentions' })),
    proposed,
    flags,
  })
  if (second) {
    const other = mergeHeard(second, lines)
    if (other.verdict !== proposed)
      return abstain(other, claimIsSuspect ? ['readings_differ', 'claim_addresses_model'] : ['readings_differ'])
    return { ...other, evidence: open(other), proposed, flags: dropFlag(other) }
  }
  return { ...one, evidence: open(one), proposed, flags: dropFlag(one) }
}

const dropFlag = ({ dropped }: Reading): SemanticFlag[] => (dropped > 0 ? ['evidence_dropped'] : [])
const overlap = (a: Span, b: Span) => a.start < b.end && b.start < a.end
const asMention = (item: Assessment['evidence'][number]) => ({ ...item, stance: 'mentions' as const })

function circumstances({ suspects, reported, claimIsSuspect, first }: ConcludeTask): SemanticFlag[] {
  const flags: SemanticFlag[] = suspects.flatMap(({ kinds }) => kinds.map((kind) => FLAGS[kind]))
  const known = new Set(suspects.map(({ line }) => line))
  if (reported.some((line) => !known.has(line))) flags.push('suspicious_text')
  if (claimIsSuspect) flags.push('claim_addresses_model')
  if (first.length > 1) flags.push('assessed_in_parts')
  return flags
}

const FLAGS: Record<Suspicion, SemanticFlag> = {
  instruction: 'instruction_like_text',
  verdict: 'text_aimed_at_verdict',
  seam: 'forged_markup',
}
