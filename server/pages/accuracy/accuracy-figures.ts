// Figures of a confusion matrix: how many verdicts are definite and how many of these are right, each with its interval.
import type { AccuracyRun, Bounded, Published } from './accuracy.ts'

export type Matrix = AccuracyRun['matrix']

export interface VerdictFigures {
  /** Verdicts that are `supports` or `contradicts`, of all. */
  definite: Bounded
  /** Definite verdicts that are the label, of the definite ones, and of those on each side. */
  precision: Bounded
  ofSupports: Bounded
  ofContradicts: Bounded
  /** `supports` in place of `contradicts` or the reverse, of the items with one of these labels. */
  reversed: Bounded
  /** Definite verdicts where the page does not decide, of such items. */
  rash: Bounded
}

const SIDES = ['supports', 'contradicts'] as const

export function verdictFigures(matrix: Matrix): VerdictFigures {
  const cell = (label: string, verdict: string) => (matrix[label] as Record<string, number> | undefined)?.[verdict] ?? 0
  const labels = Object.keys(matrix)
  const total = (label: string) => Object.values(matrix[label] ?? {}).reduce((sum, count) => sum + count, 0)
  const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0)
  const given = (verdict: string) => sum(labels.map((label) => cell(label, verdict)))
  const definite = sum(SIDES.map(given))
  return {
    definite: bounded(definite, sum(labels.map(total))),
    precision: bounded(sum(SIDES.map((side) => cell(side, side))), definite),
    ofSupports: bounded(cell('supports', 'supports'), given('supports')),
    ofContradicts: bounded(cell('contradicts', 'contradicts'), given('contradicts')),
    reversed: bounded(
      cell('supports', 'contradicts') + cell('contradicts', 'supports'),
      total('supports') + total('contradicts'),
    ),
    rash: bounded(sum(SIDES.map((side) => cell('insufficient_evidence', side))), total('insufficient_evidence')),
  }
}

/** How many items with a label got that verdict. */
export function recallOf(matrix: Matrix, label: string): Bounded {
  const counts = Object.entries(matrix[label] ?? {})
  const right = counts.find(([verdict]) => verdict === label)?.[1] ?? 0
  return bounded(
    right,
    counts.reduce((sum, [, count]) => sum + count, 0),
  )
}

/** A share with Wilson's interval for 95 of 100, which is also right for few cases and for shares near 0 and 1. */
export function bounded(part: number, whole: number): Bounded {
  if (whole === 0) return { part, whole, low: 0, high: 1 }
  const [p, square] = [part / whole, Z * Z]
  const middle = (p + square / (2 * whole)) / (1 + square / whole)
  const half = (Z / (1 + square / whole)) * Math.sqrt((p * (1 - p)) / whole + square / (4 * whole * whole))
  return { part, whole, low: Math.max(0, middle - half), high: Math.min(1, middle + half) }
}

/** `90.1 % [81.0, 95.1] of 71`; a dash where there is no case. */
export function withInterval({ part, whole, low, high }: Bounded): string {
  if (whole === 0) return '–'
  const percent = (share: number) => (100 * share).toFixed(1)
  return `${percent(part / whole)} % [${percent(low)}, ${percent(high)}] of ${whole}`
}

const Z = 1.959964

/** How the tables of verdicts are read, in Markdown. */
export const READING = `Brackets are Wilson's intervals for 95 of 100. *Definite* verdicts are \`supports\` and \`contradicts\`; the other claims got
\`insufficient_evidence\` or \`mixed\`. *Right of definite* is the precision. *Wrong way* is \`supports\` in place of \`contradicts\` or the
reverse, among claims that are one of them. On a *fresh* set nothing was trained or tuned. A sample has the claims whose ids have
the smallest SHA-256. *BM25 with words* has no model: it compares the words, numbers and negations of the best sentence with the
claim's. *Bought*: each page was served over HTTPS and each verdict bought from a started service, so retrieval and extraction are
part of the figures; otherwise the pages came as text.`

/** Tables in plain text, the same for the page and the document: headings, rows, and how many columns at the end are figures. */
export interface Rows {
  headings: readonly string[]
  rows: readonly (readonly string[])[]
  figures: number
}

/** The figures of each run, and below them those of BM25 with words on the same items. */
export function summaryRows(runs: readonly AccuracyRun[]): Rows {
  const row = (first: readonly string[], matrix: Matrix) => {
    const { definite, precision, ofSupports, ofContradicts, reversed } = verdictFigures(matrix)
    return [...first, ...[definite, precision, ofSupports, ofContradicts, reversed].map(withInterval)]
  }
  return {
    headings: ['set', 'by', 'definite', 'right of definite', 'of `supports`', 'of `contradicts`', 'wrong way'],
    rows: runs.flatMap(({ set, assessment, fresh, through, matrix, words }) => [
      row(
        [
          `${set.name}, ${fresh ? 'fresh' : 'not fresh'}, ${sizeOf(set)}`,
          through === 'service' ? `${assessment}, bought` : assessment,
        ],
        matrix,
      ),
      ...(words ? [row([set.name, 'BM25 with words'], words)] : []),
    ]),
    figures: 5,
  }
}

const sizeOf = ({ items, of }: AccuracyRun['set']) =>
  items === of ? `all ${items} claims` : `${items} of ${of} claims`

/** Labels and verdicts of several sets. */
export function matrixRows(runs: readonly AccuracyRun[]): Rows {
  const verdicts = ['supports', 'contradicts', 'mixed', 'insufficient_evidence']
  return {
    headings: ['set', 'label', ...verdicts.map((verdict) => `\`${verdict}\``), 'the label'],
    rows: runs.flatMap(({ set, matrix }) =>
      Object.entries(matrix)
        .filter(([, counts]) => Object.keys(counts).length > 0)
        .map(([label, counts]) => [
          set.name,
          `\`${label}\``,
          ...verdicts.map((verdict) => String((counts as Record<string, number>)[verdict] ?? 0)),
          withInterval(recallOf(matrix, label)),
        ]),
    ),
    figures: verdicts.length + 1,
  }
}

export function kindRows(kinds: NonNullable<AccuracyRun['kinds']>): Rows {
  return {
    headings: ['kind of claim', 'claims', 'definite', 'right of definite'],
    rows: kinds.map(({ kind, items, definite, right }) => [
      kind,
      String(items),
      withInterval(bounded(definite, items)),
      withInterval(bounded(right, definite)),
    ]),
    figures: 3,
  }
}

export function publishedRows({ sets }: Published): Rows {
  return {
    headings: ['set', 'claims', 'definite', 'right of definite', 'of `supports`', 'of `contradicts`'],
    rows: sets.map(({ name, fresh, runtime, claims, supports, contradicts }) => {
      const definite = supports.whole + contradicts.whole
      return [
        `${name}, ${fresh ? 'fresh' : 'not fresh'}${runtime === 'native' ? ', native runtime' : ''}`,
        String(claims),
        withInterval(bounded(definite, claims)),
        withInterval(bounded(supports.part + contradicts.part, definite)),
        withInterval(bounded(supports.part, supports.whole)),
        withInterval(bounded(contradicts.part, contradicts.whole)),
      ]
    }),
    figures: 5,
  }
}

/** Whether what was published lies in the intervals measured on the same sets, in one sentence; null where no set is the same. */
export function agreement(runs: readonly AccuracyRun[], { procedure, sets }: Published): string | null {
  const pairs = runs
    .filter((run) => run.procedure === procedure)
    .flatMap((run) => sets.filter(({ name }) => name === run.set.name).map((one) => ({ run, one })))
  if (pairs.length === 0) return null
  const holds = (measured: Bounded, share: number) => measured.low <= share && share <= measured.high
  const inside = (is: (figures: VerdictFigures, one: Published['sets'][number]) => boolean) =>
    pairs.filter(({ run, one }) => is(verdictFigures(run.matrix), one)).length
  const definite = inside((figures, { claims, supports, contradicts }) =>
    holds(figures.definite, (supports.whole + contradicts.whole) / claims),
  )
  const precision = inside((figures, { supports, contradicts }) =>
    holds(figures.precision, (supports.part + contradicts.part) / (supports.whole + contradicts.whole)),
  )
  const claims = pairs.reduce((sum, { run }) => sum + run.set.items, 0)
  return `${claims} claims of ${pairs.length} of these sets were measured here too: the intervals contain the published share of definite verdicts on ${definite} of the ${pairs.length} sets, and the published precision on ${precision}.`
}
