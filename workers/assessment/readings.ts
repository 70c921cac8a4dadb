// One reading of a page: a model's answers for its parts, checked against the lines that were shown, and combined by rules.
import { type Answer, type Basis, UnusableAnswerError, type Verdict } from './answer.ts'
import type { Proposal, Stance } from './evidence.ts'
import type { Span, Window } from './lines.ts'

/** Evidence by the numbers of lines, from 0. */
export interface Item {
  from: number
  to: number
  stance: Stance
}

/** An answer that names only lines that were shown. */
export interface Heard {
  verdict: Verdict
  basis: Basis | null
  items: Item[]
  suspicious: number[]
  /** Items that named other lines, or runs too long to quote. */
  dropped: number
}

/**
 * Checks an answer against the lines of a window; masked lines were not shown. Throws UnusableAnswerError if it names lines
 * and none of them was shown, or gives a verdict without any line for it.
 */
export function heard(answer: Answer, { first, last }: Window, masked: ReadonlySet<number>): Heard {
  const items = answer.evidence
    .slice(0, MOST_NAMED)
    .map(({ from, to, stance }) => ({ from: from - 1, to: to - 1, stance }))
  const shown = items.filter(({ from, to }) => {
    if (!(first <= from && from <= to && to <= last && to - from < LONGEST_RUN)) return false
    for (let line = from; line <= to; line++) if (masked.has(line)) return false
    return true
  })
  if (items.length > 0 && shown.length === 0) throw new UnusableAnswerError('the answer names no line that was shown')
  for (const stance of STANCES[answer.verdict])
    if (!items.some((item) => item.stance === stance)) throw new UnusableAnswerError('the verdict rests on no line')
  const suspicious = answer.suspicious.map((line) => line - 1).filter((line) => first <= line && line <= last)
  return {
    verdict: answer.verdict,
    basis: answer.basis ?? null,
    items: shown,
    suspicious: [...new Set(suspicious)].slice(0, MOST_SUSPICIOUS),
    dropped: answer.evidence.length - shown.length,
  }
}

/** The combined verdict of all parts. Different verdicts in different parts make a mixed verdict. */
export interface Reading {
  verdict: Verdict
  basis: Basis | null
  /** Best first. */
  evidence: Proposal[]
  dropped: number
}

/**
 * Parts overlap, so the same lines may come twice, and the first place is quoted. Of many items the first `MOST_MERGED`
 * are kept: that many hold six that do not overlap, and each is checked against the whole claim.
 */
export function mergeHeard(parts: readonly Heard[], lines: readonly Span[]): Reading {
  const takes = (...verdicts: Verdict[]) => parts.some(({ verdict }) => verdicts.includes(verdict))
  const verdict = mergedVerdict(takes('supports', 'mixed'), takes('contradicts', 'mixed'))
  const leading = parts.find((part) => part.verdict === verdict) ?? parts.find(({ items }) => items.length > 0)
  return {
    verdict,
    basis: (leading ?? parts[0])?.basis ?? null,
    // `heard` keeps only items whose lines were shown.
    evidence: inOrder(verdict, inTurn(parts.map(({ items }) => items)))
      .slice(0, MOST_MERGED)
      .map(({ from, to, stance }) => ({ start: lines[from]!.start, end: lines[to]!.end, stance })),
    dropped: parts.reduce((sum, { dropped }) => sum + dropped, 0),
  }
}

function mergedVerdict(supports: boolean, contradicts: boolean): Verdict {
  if (supports && contradicts) return 'mixed'
  if (supports) return 'supports'
  return contradicts ? 'contradicts' : 'insufficient_evidence'
}

/** The first of each list, then the second of each. */
function inTurn<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length))
  return Array.from({ length: longest }, (_, i) => lists.flatMap((list) => list.slice(i, i + 1))).flat()
}

/** Orders the evidence of the verdict first; for a mixed verdict, both sides alternate. */
function inOrder(verdict: Verdict, items: readonly Item[]): Item[] {
  const needed = STANCES[verdict]
  const sides = needed.map((stance) => items.filter((item) => item.stance === stance))
  return [...inTurn(sides), ...items.filter(({ stance }) => !needed.some((one) => one === stance))]
}

const STANCES: Record<Verdict, readonly Stance[]> = {
  supports: ['supports'],
  contradicts: ['contradicts'],
  mixed: ['supports', 'contradicts'],
  insufficient_evidence: [],
}
const MOST_NAMED = 12
const MOST_MERGED = 24
/** Lines in one quotation. */
const LONGEST_RUN = 8
const MOST_SUSPICIOUS = 200
