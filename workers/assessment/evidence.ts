// Cuts the proposed quotations from the text, and derives the verdict from those that were cut. Pure, so that it runs
// in threads; from the server it imports types, and the limits, which import nothing.
import type { Assessment } from '../../server/interface/assessment.ts'
import { LIMITS } from '../../server/interface/limits.ts'
import type { Evidence } from '../../server/interface/result.ts'
import { type CodePointIndex, codePointIndex } from '../text/offsets.ts'
import { insidePair, sensibleCut, trimmed } from '../text/sentences.ts'

/** What an assessor finds, without its procedure. */
export type Verdict = Omit<Assessment, 'procedure'>

export type Stance = Evidence['stance']

/** UTF-16 offsets. */
export interface Span {
  start: number
  end: number
}

/** A proposed span of the text. Lists of them have the best first. */
export interface Proposal extends Span {
  stance: Stance
}

export interface Digests {
  sourceSha256: string
  textSha256: string
}

/**
 * Cuts the proposed quotations from the text, in the order given, and numbers them e1 to e6. White space at their ends
 * is left out, halves of characters are made whole, and what is longer than 1000 code points ends at the last sensible
 * boundary. `dropped` counts what was not taken: outside the text or the interface's limits, blank, overlapping an
 * earlier one, or more than six. The text must be well formed, else a TypeError.
 */
export function proveEvidence(
  text: string,
  digests: Digests,
  proposals: readonly Proposal[],
  index = codePointIndex(text),
): { evidence: Evidence[]; dropped: number } {
  const taken: Span[] = []
  const evidence: Evidence[] = []
  for (const proposal of proposals) {
    if (evidence.length === MOST_ITEMS) break
    const span = quotableSpan(text, index, proposal)
    if (!span || taken.some((other) => span.start < other.end && other.start < span.end)) continue
    const item: Evidence = {
      evidence_id: `e${evidence.length + 1}`,
      quote: text.slice(span.start, span.end),
      start: index.toCodePoint(span.start),
      end: index.toCodePoint(span.end),
      stance: proposal.stance,
      source_sha256: digests.sourceSha256,
      text_sha256: digests.textSha256,
    }
    if (!isProven(text, index, digests, item)) continue
    taken.push(span)
    evidence.push(item)
  }
  return { evidence, dropped: proposals.length - evidence.length }
}

/**
 * Whether an item is correct: its quote is between its offsets in the text, and its digests are those of text and source.
 */
export function isProven(text: string, index: CodePointIndex, digests: Digests, item: Evidence): boolean {
  const { start, end, quote } = item
  return (
    Number.isInteger(start) &&
    Number.isInteger(end) &&
    0 <= start &&
    start < end &&
    end <= Math.min(index.length, LIMITS.textChars) &&
    end - start <= LONGEST_QUOTE &&
    text.slice(index.toUtf16(start), index.toUtf16(end)) === quote &&
    item.source_sha256 === digests.sourceSha256 &&
    item.text_sha256 === digests.textSha256
  )
}

/**
 * The verdict that the remaining evidence supports. It is never more definite than the proposed one: an abstention stays, a
 * verdict that lost the evidence of a side becomes `insufficient_evidence`, and evidence on both sides is `mixed`. Every
 * result meets the interface's rules of consistency.
 */
export function deriveVerdict(
  proposed: Assessment['claim_support'],
  scope: Assessment['assessment_scope'],
  evidence: readonly Pick<Evidence, 'stance'>[],
): Assessment['claim_support'] {
  if (scope === 'literal_quotation_only') return evidence.length > 0 ? 'not_assessed' : 'insufficient_evidence'
  if (proposed === 'not_assessed' || proposed === 'insufficient_evidence') return proposed
  const has = (stance: Stance) => evidence.some((item) => item.stance === stance)
  const carried = decided(has('supports'), has('contradicts'))
  return carried === proposed || carried === 'mixed' ? carried : 'insufficient_evidence'
}

/** The verdict of a text that says so much of a claim. */
export function decided(supports: boolean, contradicts: boolean) {
  if (supports && contradicts) return 'mixed'
  if (supports) return 'supports'
  return contradicts ? 'contradicts' : 'insufficient_evidence'
}

/** The proposed span, made whole, trimmed and shortened; null if nothing is left that may be quoted. */
function quotableSpan(text: string, index: CodePointIndex, { start, end }: Proposal): Span | null {
  if (!Number.isInteger(start) || !Number.isInteger(end) || start < 0 || end > text.length || start >= end) return null
  const [from, to] = trimmed(text, insidePair(text, start) ? start - 1 : start, insidePair(text, end) ? end + 1 : end)
  if (from === to) return null
  const limit = index.toCodePoint(from) + LONGEST_QUOTE
  if (index.toCodePoint(to) <= limit) return { start: from, end: to }
  const [, cut] = trimmed(text, from, sensibleCut(text, from, index.toUtf16(limit)))
  return { start: from, end: cut }
}

export const MOST_ITEMS = LIMITS.evidenceItems
export const LONGEST_QUOTE = LIMITS.quoteChars
export const LONGEST_EXPLANATION = LIMITS.explanationChars
