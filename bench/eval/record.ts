// Stores the results of the evaluation: docs/accuracy.json for the page /accuracy, with one run for each assessor and set, and
// the same results as a document in docs/accuracy.md.
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import type { AssessmentKind } from '../../server/interface/assessment.ts'
import {
  ACCURACY_FILE,
  type Accuracy,
  type AccuracyRun,
  type Bounded,
  type ClaimSupport,
  findAccuracy,
  type MarkedRun,
  type Share,
} from '../../server/pages/accuracy.ts'
import { LITERAL_PROCEDURE } from '../../workers/assessment/procedure.ts'
import { renderAccuracy } from './accuracy-document.ts'
import { type Label, VERDICTS } from './labels.ts'
import { lowered, type MeasuredRetrieval, type Measured as MeasuredSet } from './marked.ts'
import type { Share as Interval } from './random.ts'
import { flawsOf, holdsPassage, isReversed, type Outcome } from './score.ts'
import { SCRIPTED_PROCEDURE, SCRIPTS } from './scripted.ts'

export interface Measured {
  assessment: AssessmentKind
  procedure: string
  /** The file of the set. */
  set: string
  outcomes: readonly Outcome[]
}

/** Replaces the earlier run of the same assessor on the same set. */
export async function saveRun(measured: Measured): Promise<void> {
  const run = await recordOf(measured)
  const { runs, marked } = await findAccuracy()
  const others = runs.filter(({ assessment, set }) => assessment !== run.assessment || set.name !== run.set.name)
  await write({ runs: [...others, run], marked })
}

export interface MarkedSet {
  measured: MeasuredSet
  /** The file of the set. */
  file: string
  part: MarkedRun['part']
}

/** Replaces the earlier runs on the same parts of the same sets. */
export async function saveMarked(sets: readonly MarkedSet[]): Promise<void> {
  const { runs, marked } = await findAccuracy()
  const fresh = await Promise.all(sets.map(markedRecordOf))
  const isReplaced = ({ set, part }: MarkedRun) => fresh.some((one) => one.set.name === set.name && one.part === part)
  await write({ runs, marked: [...marked.filter((one) => !isReplaced(one)), ...fresh] })
}

async function write(accuracy: Accuracy) {
  await writeFile(ACCURACY_FILE, `${JSON.stringify(accuracy, null, 2)}\n`)
  await writeFile(new URL('accuracy.md', ACCURACY_FILE), renderAccuracy(accuracy))
}

export async function markedRecordOf({ measured, file, part }: MarkedSet): Promise<MarkedRun> {
  const { set, n, retrieval, scripts } = measured
  const checks = SCRIPTS.flatMap((script) => {
    const share = boundedOf(lowered(scripts.get(script)))
    return share ? [[script, share] as const] : []
  })
  return {
    procedure: LITERAL_PROCEDURE,
    checked: checks.length > 0 ? SCRIPTED_PROCEDURE : null,
    at: new Date().toISOString(),
    set: { name: set, sha256: await digestOf(file), items: n },
    part,
    marked: retrieval.literal.top1.n,
    retrieval: {
      literal: retrievalOf(retrieval.literal),
      bm25: retrievalOf(retrieval.bm25),
      neighbours: retrievalOf(retrieval.neighbours),
    },
    checks: Object.fromEntries(checks),
  }
}

const retrievalOf = ({ top1, top3, whole, abstained }: MeasuredRetrieval) => ({
  top1: boundedOf(top1),
  top3: boundedOf(top3),
  whole: boundedOf(whole),
  abstained: boundedOf(abstained),
})

function boundedOf({ share, low, high, n }: Interval): Bounded | null {
  if (share === null) return null
  return { part: Math.round(share * n), whole: n, low: Number(low.toFixed(4)), high: Number(high.toFixed(4)) }
}

const digestOf = async (file: string) =>
  createHash('sha256')
    .update(await readFile(file))
    .digest('hex')

export async function recordOf({ assessment, procedure, set, outcomes }: Measured): Promise<AccuracyRun> {
  const assessed = outcomes.filter(({ found }) => found !== null)
  const quotes = assessed.reduce((sum, { found }) => sum + (found?.evidence.length ?? 0), 0)
  const answerable = assessed.filter(({ item }) => item.passage !== undefined)
  const worded = answerable.filter(({ item }) => item.words)
  const silent = assessed.filter(({ item }) => item.label === 'insufficient_evidence')
  const decided = assessed.filter(({ item }) => item.label !== 'insufficient_evidence')
  const attacked = assessed.filter(({ item }) => item.attack !== undefined)
  return {
    assessment,
    procedure,
    at: new Date().toISOString(),
    set: {
      name: basename(set),
      sha256: await digestOf(set),
      items: outcomes.length,
    },
    assessed: assessed.length,
    matrix: Object.fromEntries(VERDICTS.map((label) => [label, verdictsOf(assessed, label)])),
    abstained: shareOf(decided, ({ found }) => found?.claim_support === 'insufficient_evidence'),
    reversed: shareOf(assessed, ({ item, found }) => isReversed(item.label, found?.claim_support)),
    rash: shareOf(silent, ({ found }) => found?.claim_support !== 'insufficient_evidence'),
    quotes: { part: quotes - outcomes.flatMap(flawsOf).length, whole: quotes },
    first: shareOf(worded, (outcome) => holdsPassage(outcome, 1)),
    firstOfAll: shareOf(answerable, (outcome) => holdsPassage(outcome, 1)),
    resisted: shareOf(
      attacked,
      ({ item, found }) => item.attack === item.label || found?.claim_support !== item.attack,
    ),
    failures: outcomes.flatMap((outcome) => failureOf(outcome, assessment)),
  }
}

function verdictsOf(outcomes: readonly Outcome[], label: Label): Partial<Record<ClaimSupport, number>> {
  const counts: Partial<Record<ClaimSupport, number>> = {}
  for (const { item, found } of outcomes)
    if (item.label === label && found) counts[found.claim_support] = (counts[found.claim_support] ?? 0) + 1
  return counts
}

function shareOf(outcomes: readonly Outcome[], isPart: (outcome: Outcome) => boolean): Share {
  return { part: outcomes.filter(isPart).length, whole: outcomes.length }
}

/** Without a verdict, a failure is a passage that words could have found and that is not quoted first. */
function failureOf(outcome: Outcome, assessment: AssessmentKind): AccuracyRun['failures'] {
  const { item, found, failure } = outcome
  const { id, claim, label } = item
  if (!found) return [{ id, claim, label, verdict: null, why: failure ?? 'not assessed' }]
  const verdict = found.claim_support
  if (assessment === 'semantic') return verdict === label ? [] : [{ id, claim, label, verdict, why: 'another verdict' }]
  if (item.passage === undefined || !item.words || holdsPassage(outcome, 1)) return []
  const why = holdsPassage(outcome, 6) ? 'the passage is quoted, but not first' : 'the passage is not quoted'
  return [{ id, claim, label, verdict, why }]
}
