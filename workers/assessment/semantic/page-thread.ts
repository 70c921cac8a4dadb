// The thread of the semantic assessment: cuts a page into questions, and checks and quotes what the model answers.
import { isKnownLanguage } from '../../text/language.ts'
import { codePointIndex } from '../../text/offsets.ts'
import { sentencesOf } from '../../text/sentences.ts'
import { type Digests, deriveVerdict, proveEvidence, type Span, type Verdict } from '../evidence.ts'
import type { SemanticFlag } from '../risk-flags.ts'
import { type Heard, mergeHeard, type Reading } from './answer.ts'
import { isSuspect, type Suspect, type Suspicion, suspectsOf } from './injection.ts'
import { linesOf, relationOf, type Window, windowsOf } from './lines.ts'
import { claimPart, LEFT_OUT, pagePart, partTitle, type Question, SYSTEM } from './prompt.ts'
import { rationale } from './rationale.ts'
import { absentNumber, absentQuotation } from './withdrawal.ts'

export interface PlanTask {
  claim: string
  text: string
  nonce: string
  /** When the page was read: an ISO date. */
  retrieved: string
  windowTokens: number
  /** Lines to leave out; null: those that look suspicious, and those unrelated to the claim. */
  masked: readonly number[] | null
}

/** The questions for one reading. */
export interface Plan {
  questions: { window: Window; question: Question }[]
  masked: readonly number[]
  /** How many lines are shown. */
  shown: number
  suspects: Suspect[]
  /** Lines with many words of the claim: without them the page may say something else, so none is left out. */
  about: readonly number[]
  claimIsSuspect: boolean
}

/**
 * Plans one reading of a page. The first leaves out the lines that look suspicious or are unrelated to the claim. A further
 * one leaves out `masked` and nothing else, and the sentences of the claim that address the model.
 */
export function planReading({ claim, text, nonce, retrieved, windowTokens, masked }: PlanTask): Plan {
  const lines = linesOf(text)
  const relation = relationOf(claim, text, lines)
  const suspects = masked === null ? suspectsOf(text, lines) : []
  const hidden = new Set(masked ?? [...suspects.map(({ line }) => line), ...relation.unrelated()])
  const windows = windowsOf(text, lines, windowTokens, hidden)
  const view = { text, lines, nonce, retrieved, masked: hidden }
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
    about: lines.flatMap((_, line) => (relation.holdsClaim(line) ? [line] : [])),
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
  /** Null if a suspicious line is what the page says about the claim: then no verdict is possible. */
  first: readonly Heard[] | null
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
 * Makes an assessment from answers. Cuts the quotations from the text and proves them. The verdict is the model's, or none
 * where its lines cannot be quoted, where suspicious text carries it, where words that the claim attributes to a speaker are
 * not on the page, or where no quote for the claim holds a number of it. The output meets the interface's rules for every input.
 */
export function conclude(task: ConcludeTask): Verdict {
  const { claim, text } = task
  const lines = linesOf(text)
  const masked = new Set([...task.suspects.map(({ line }) => line), ...task.reported])
  const spans = lines.filter((_, line) => masked.has(line))
  const { reading, proposed, flags } = soleReading(task, lines, spans)
  if (reading.verdict === 'supports' && absentQuotation(claim, text)) {
    reading.verdict = 'insufficient_evidence'
    flags.add('quoted_phrase_absent')
  }
  const { evidence } = proveEvidence(text, task.digests, reading.evidence)
  const quotes = evidence.flatMap(({ stance, quote }) => (stance === 'supports' ? [quote] : []))
  if (reading.verdict === 'supports' && quotes.length > 0 && absentNumber(claim, quotes)) {
    reading.verdict = 'insufficient_evidence'
    flags.add('number_not_quoted')
  }
  const index = codePointIndex(text)
  const verdict = deriveVerdict(reading.verdict, 'source_local_semantic_support', evidence) as Reading['verdict']
  if (verdict !== proposed) flags.add('verdict_lowered')
  if (reading.parts.length > 1 && reading.parts.some(({ status }) => status === 'silent'))
    flags.add('part_without_evidence')
  if (!(isKnownLanguage(text) && isKnownLanguage(claim))) flags.add('language_not_supported')
  return {
    assessment_scope: 'source_local_semantic_support',
    claim_support: verdict,
    evidence:
      verdict === 'insufficient_evidence'
        ? evidence.map((item) => ({ ...item, stance: 'mentions' as const }))
        : evidence,
    explanation: rationale({
      claim,
      verdict,
      proposed,
      parts: reading.parts,
      flags,
      suspects: spans.map(({ start, end }) => ({ start: index.toCodePoint(start), end: index.toCodePoint(end) })),
      lines: lines.length,
      shown: task.shown,
      isAsked: task.first !== null,
      windows: task.first?.length ?? 0,
      isTruncated: task.isTruncated,
    }),
    risk_flags: [...flags].sort(),
  }
}

/** `proposed` is the verdict of the first reading; that of `reading` the one after the comparison of both readings. */
function soleReading(task: ConcludeTask, lines: readonly Span[], spans: readonly Span[]) {
  const first = mergeHeard(task.first ?? [], lines)
  const other = task.second && mergeHeard(task.second, lines)
  const differs = other !== null && other.verdict !== first.verdict
  const sole = other ?? first
  const isOpen = (item: Span) => !spans.some((span) => item.start < span.end && span.start < item.end)
  const reading: Reading = { ...sole, evidence: sole.evidence.filter(isOpen) }
  if (differs) reading.verdict = 'insufficient_evidence'
  const flags = new Set(circumstances(task))
  if (differs) flags.add('readings_differ')
  if (sole.dropped > 0) flags.add('evidence_dropped')
  return { reading, proposed: first.verdict, flags }
}

function circumstances({ suspects, reported, claimIsSuspect, first }: ConcludeTask): SemanticFlag[] {
  const flags: SemanticFlag[] = suspects.flatMap(({ kinds }) => kinds.map((kind) => FLAGS[kind]))
  if (first === null) flags.push('order_about_claim')
  if (reported.length > 0) flags.push('suspicious_text')
  if (claimIsSuspect) flags.push('claim_addresses_model')
  if (first && first.length > 1) flags.push('assessed_in_parts')
  return flags
}

const FLAGS: Record<Suspicion, SemanticFlag> = {
  instruction: 'instruction_like_text',
  verdict: 'text_aimed_at_verdict',
  seam: 'forged_markup',
}
