// The form of a model's answer: the parts of the claim, each with numbers of lines and a word of a closed list. Every part of
// it is checked before use, and the verdict is derived from it by code.
import { z } from 'zod'
import { decided, type Proposal, type Span, type Stance } from '../evidence.ts'
import type { Window } from './lines.ts'

const STATUSES = ['stated', 'follows', 'other_value', 'opposite', 'conflict', 'reported', 'unsure', 'silent'] as const
export type Status = (typeof STATUSES)[number]
export type Verdict = 'supports' | 'contradicts' | 'mixed' | 'insufficient_evidence'

const run = z.object({ from: z.int(), to: z.int() })
type Run = z.output<typeof run>

/** Lines come before the status, so that a model, which writes in order, finds evidence before it decides. */
const part = z.object({ part: z.string(), for: z.array(run), against: z.array(run), status: z.enum(STATUSES) })
const answer = z.object({ parts: z.array(part), suspicious: z.array(z.int()) })
export type Answer = z.output<typeof answer>

/** The schema for structured output. It has no bounds and no patterns, because some servers do not support them. */
export const answerSchema = z.toJSONSchema(answer, {
  override: ({ jsonSchema }) => {
    delete jsonSchema.minimum
    delete jsonSchema.maximum
  },
}) as Record<string, unknown>
delete answerSchema.$schema

/** The answer cannot be used: it is no JSON, breaks the form, or names no line that was shown. */
export class UnusableAnswerError extends Error {
  override name = 'UnusableAnswerError'
  /** The beginning of what the model wrote. */
  readonly written: string
  constructor(reason: string, written: string, options?: ErrorOptions) {
    super(reason, options)
    this.written = written.slice(0, LONGEST_EXCERPT)
  }
}

/** One line by its number, or a run of lines as a pair, as models write them where no schema is enforced. */
const lenientRun = z.union([
  run,
  z.int().transform((line) => ({ from: line, to: line })),
  z.tuple([z.int(), z.int()]).transform(([from, to]) => ({ from, to })),
])
const lenientRuns = z
  .array(lenientRun)
  .nullish()
  .transform((runs) => runs ?? [])
const lenient = z.object({
  parts: z.array(part.extend({ part: z.string().catch(''), for: lenientRuns, against: lenientRuns })).min(1),
  suspicious: z.array(z.int()).catch([]),
})

/**
 * Reads the answer of a model. Not every server enforces the schema: reasoning, prose or a fence around the object, missing
 * lists and further members are accepted. Everything else throws UnusableAnswerError.
 */
export function readAnswer(written: string): Answer {
  const parsed = lenient.safeParse(jsonIn(written))
  if (!parsed.success) throw new UnusableAnswerError('the answer is not of the form asked for', written)
  return parsed.data
}

function jsonIn(written: string): unknown {
  if (written.length > LONGEST_ANSWER) throw new UnusableAnswerError('the answer is too long', written)
  const said = written.slice(written.lastIndexOf(END_OF_THINKING) + 1)
  const [start, end] = [said.indexOf('{'), said.lastIndexOf('}')]
  if (start < 0 || end < start) throw new UnusableAnswerError('the answer holds no JSON object', written)
  try {
    return JSON.parse(said.slice(start, end + 1))
  } catch (cause) {
    throw new UnusableAnswerError('the answer is no JSON', written, { cause })
  }
}

/** A part of the claim, as one window of the page decides it. */
export interface HeardPart {
  says: string
  status: Status
  /** Lines from 0, with the stance that they have if the part decides the verdict. */
  items: { from: number; to: number; stance: Stance }[]
}

/** An answer that names only lines that were shown. */
export interface Heard {
  verdict: Verdict
  parts: HeardPart[]
  suspicious: number[]
  /** Runs that named other lines, or were too long to quote. */
  dropped: number
}

/**
 * Checks an answer against the lines of a window and the title; masked lines were not shown. Throws UnusableAnswerError if a status rests
 * on no line that was shown.
 */
export function heard(answer: Answer, written: string, { first, last }: Window, masked: ReadonlySet<number>): Heard {
  let dropped = 0
  const shown = (runs: readonly Run[], stance: Stance) =>
    runs.slice(0, MOST_RUNS).flatMap(({ from, to }) => {
      const isTitle = from === 1 && to === 1
      const isInside = first <= from - 1 && from <= to && to - 1 <= last && to - from < LONGEST_RUN
      const isShown = isTitle || isInside
      const lines = isShown ? Array.from({ length: to - from + 1 }, (_, i) => from - 1 + i) : []
      if (isShown && !lines.some((line) => masked.has(line))) return [{ from: from - 1, to: to - 1, stance }]
      dropped++
      return []
    })
  const parts = answer.parts.slice(0, MOST_PARTS).map((one): HeardPart => {
    const items = [...shown(one.for, 'supports'), ...shown(one.against, 'contradicts')]
    for (const stance of NEEDED[one.status])
      if (!items.some((item) => item.stance === stance))
        throw new UnusableAnswerError(`the status ${one.status} rests on no line that was shown`, written)
    return { says: one.part, status: one.status, items }
  })
  const suspicious = answer.suspicious.map((line) => line - 1).filter((line) => first <= line && line <= last)
  return {
    verdict: verdictOf(parts.map(({ status }) => status)),
    parts,
    suspicious: [...new Set(suspicious)].slice(0, MOST_SUSPICIOUS),
    dropped,
  }
}

/**
 * A contradicted part contradicts the whole claim. A page that says both of a part is mixed. The claim is supported only if
 * each of its parts is.
 */
function verdictOf(statuses: readonly Status[]): Verdict {
  if (statuses.some((status) => SIDE[status] === 'contradicts')) return 'contradicts'
  if (statuses.some((status) => SIDE[status] === 'mixed')) return 'mixed'
  return statuses.every((status) => SIDE[status] === 'supports') ? 'supports' : 'insufficient_evidence'
}

/** The combined verdict of all windows of a page. Different verdicts in different windows make a mixed verdict. */
export interface Reading {
  verdict: Verdict
  /** Of the window that decides. */
  parts: readonly HeardPart[]
  /** Best first. Only lines that carry the verdict have its stance. */
  evidence: Proposal[]
  dropped: number
}

export function mergeHeard(windows: readonly Heard[], lines: readonly Span[]): Reading {
  const says = (verdict: Verdict) => windows.some((one) => one.verdict === verdict || one.verdict === 'mixed')
  const verdict = decided(says('supports'), says('contradicts'))
  const isSame = (one: Heard) =>
    one.verdict === verdict || (verdict === 'mixed' && one.verdict !== 'insufficient_evidence')
  const deciding = windows.filter(isSame)
  const others = windows.filter((one) => !isSame(one))
  const carried = (one: HeardPart) => CARRIED[verdict].has(SIDE[one.status] ?? 'open')
  const carrying = deciding.flatMap(({ parts }) => parts.filter(carried)).flatMap(({ items }) => items)
  const further = [...deciding, ...others].flatMap(({ parts }) => parts).flatMap(({ items }) => items)
  return {
    verdict,
    parts: (deciding[0] ?? windows[0])?.parts ?? [],
    // `heard` keeps only runs whose lines were shown.
    evidence: [...inTurn(verdict, carrying), ...further.map((item) => ({ ...item, stance: 'mentions' as const }))]
      .slice(0, MOST_MERGED)
      .map(({ from, to, stance }) => ({ start: lines[from]!.start, end: lines[to]!.end, stance })),
    dropped: windows.reduce((sum, { dropped }) => sum + dropped, 0),
  }
}

/** The lines on the verdict's side; for a mixed verdict both sides in turn. */
function inTurn<T extends { stance: Stance }>(verdict: Verdict, items: readonly T[]): T[] {
  const sides = (verdict === 'mixed' ? ['supports', 'contradicts'] : [verdict]).map((side) =>
    items.filter(({ stance }) => stance === side),
  )
  const longest = Math.max(...sides.map(({ length }) => length))
  return Array.from({ length: longest }, (_, i) => sides.flatMap((side) => side.slice(i, i + 1))).flat()
}

/** What a status says of its part; a status that is not here leaves it open. */
const SIDE: Partial<Record<Status, 'supports' | 'contradicts' | 'mixed'>> = {
  stated: 'supports',
  follows: 'supports',
  other_value: 'contradicts',
  opposite: 'contradicts',
  conflict: 'mixed',
}
const NEEDED: Record<Status, readonly Stance[]> = {
  stated: ['supports'],
  follows: ['supports'],
  other_value: ['contradicts'],
  opposite: ['contradicts'],
  conflict: ['supports', 'contradicts'],
  reported: [],
  unsure: [],
  silent: [],
}
/** Of which parts the lines carry a verdict. */
const CARRIED: Record<Verdict, ReadonlySet<string>> = {
  supports: new Set(['supports']),
  contradicts: new Set(['contradicts']),
  mixed: new Set(['supports', 'contradicts', 'mixed']),
  insufficient_evidence: new Set(),
}
/** The last sign of the tag by which some models end their reasoning. */
const END_OF_THINKING = '</think>'
/** UTF-16 units; the longest honest answer has a tenth. */
const LONGEST_ANSWER = 40_000
const LONGEST_EXCERPT = 300
const [MOST_PARTS, MOST_RUNS, MOST_MERGED] = [12, 6, 24]
/** Lines in one quotation. */
const LONGEST_RUN = 8
const MOST_SUSPICIOUS = 200
