// What a run of the evaluation leaves for the page /accuracy: docs/accuracy.json, with one run for each assessor and set.
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import type { AssessmentKind } from '../../server/interface/assessment.ts'
import {
  ACCURACY_FILE,
  type AccuracyRun,
  type ClaimSupport,
  findAccuracy,
  type Share,
} from '../../server/pages/accuracy.ts'
import { type Label, VERDICTS } from './labels.ts'
import { flawsOf, holdsPassage, isReversed, type Outcome } from './score.ts'

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
  const others = (await findAccuracy()).filter(
    ({ assessment, set }) => assessment !== run.assessment || set.name !== run.set.name,
  )
  await writeFile(ACCURACY_FILE, `${JSON.stringify({ runs: [...others, run] }, null, 2)}\n`)
}

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
      sha256: createHash('sha256')
        .update(await readFile(set))
        .digest('hex'),
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
