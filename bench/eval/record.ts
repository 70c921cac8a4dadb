// Stores the results of the evaluation: docs/accuracy.json for the page /accuracy, with one run for each assessor and set, and
// the same results as a document in docs/accuracy.md.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { promisify } from 'node:util'
import type { AssessmentKind } from '../../server/interface/assessment.ts'
import {
  ACCURACY_FILE,
  type Accuracy,
  type AccuracyRun,
  type Bounded,
  type ClaimSupport,
  type Failure,
  findAccuracy,
  type MarkedRun,
  type Share,
} from '../../server/pages/accuracy/accuracy.ts'
import { settings } from '../../workers/assessment/local/weights.ts'
import { LITERAL_PROCEDURE } from '../../workers/assessment/procedure.ts'
import { renderAccuracy } from './accuracy-document.ts'
import { type Label, VERDICTS } from './labels.ts'
import type { MeasuredRetrieval, Measured as MeasuredSet } from './marked.ts'
import type { Share as Interval } from './random.ts'
import { flawsOf, holdsPassage, isReversed, matrixOf, type Outcome } from './score.ts'
import { wordVerdict } from './word-verdict.ts'

const run = promisify(execFile)

export interface Measured {
  assessment: AssessmentKind
  procedure: string
  /** The file of the set, and how many items it has. */
  set: string
  of: number
  /** Whether nothing was tuned on the set. */
  fresh: boolean
  /** Whether the set lies in the repository, so that its claims may be shown. */
  isOwn: boolean
  through: AccuracyRun['through']
  outcomes: readonly Outcome[]
}

/** Replaces the earlier run of the same assessor on the same set. */
export async function saveRun(measured: Measured): Promise<void> {
  const record = await recordOf(measured)
  const { runs, ...rest } = await findAccuracy()
  const others = runs.filter(({ assessment, set }) => assessment !== record.assessment || set.name !== record.set.name)
  await write({ ...rest, runs: [...others, record] })
}

export interface MarkedSet {
  measured: MeasuredSet
  /** The file of the set. */
  file: string
  part: MarkedRun['part']
}

/** Replaces the earlier runs on the same parts of the same sets. */
export async function saveMarked(sets: readonly MarkedSet[]): Promise<void> {
  const { marked, ...rest } = await findAccuracy()
  const fresh = await Promise.all(sets.map(markedRecordOf))
  const isReplaced = ({ set, part }: MarkedRun) => fresh.some((one) => one.set.name === set.name && one.part === part)
  await write({ ...rest, marked: [...marked.filter((one) => !isReplaced(one)), ...fresh] })
}

async function write(accuracy: Accuracy) {
  await writeFile(ACCURACY_FILE, `${JSON.stringify(accuracy, null, 2)}\n`)
  await writeFile(new URL('accuracy.md', ACCURACY_FILE), renderAccuracy(accuracy))
}

export async function markedRecordOf({ measured, file, part }: MarkedSet): Promise<MarkedRun> {
  const { set, n, retrieval } = measured
  return {
    procedure: LITERAL_PROCEDURE,
    at: new Date().toISOString(),
    set: { name: set, sha256: await digestOf(file), items: n },
    part,
    marked: retrieval.literal.top1.n,
    retrieval: {
      literal: retrievalOf(retrieval.literal),
      bm25: retrievalOf(retrieval.bm25),
      neighbours: retrievalOf(retrieval.neighbours),
    },
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

/** The last commit that changed what reads pages and assesses claims; null outside a repository. */
async function measuredCommit(): Promise<string | null> {
  const found = await run('git', ['log', '-1', '--format=%h', '--', ':/workers/assessment', ':/workers/text'], {
    cwd: import.meta.dirname,
  }).catch(() => ({ stdout: '' }))
  return found.stdout.trim() || null
}

export async function recordOf(measured: Measured): Promise<AccuracyRun> {
  const { assessment, procedure, set, of, fresh, isOwn, through, outcomes } = measured
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
      name: isOwn ? basename(set) : basename(set).replace(/\.jsonl(?:\.gz)?$/, ''),
      sha256: await digestOf(set),
      items: outcomes.length,
      of,
    },
    commit: await measuredCommit(),
    weights_sha256: assessment === 'local' ? settings.weights_sha256 : null,
    fresh,
    through,
    assessed: assessed.length,
    matrix: matrixOf(assessed),
    words:
      assessment === 'literal' ? null : Object.fromEntries(VERDICTS.map((label) => [label, wordsOf(assessed, label)])),
    kinds: isOwn && assessment !== 'literal' ? kindsOf(assessed) : null,
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
    failures: isOwn ? outcomes.flatMap((outcome) => failureOf(outcome, assessment)) : null,
  }
}

/** What BM25 with words says of the same items. */
function wordsOf(outcomes: readonly Outcome[], label: Label): Partial<Record<ClaimSupport, number>> {
  const counts: Partial<Record<ClaimSupport, number>> = {}
  for (const { item } of outcomes.filter(({ item }) => item.label === label)) {
    const verdict = wordVerdict(item.claim, item.observation.source.normalized_text)
    counts[verdict] = (counts[verdict] ?? 0) + 1
  }
  return counts
}

/** By kind of claim: how many have a definite verdict, and how many of these are right. */
function kindsOf(outcomes: readonly Outcome[]): AccuracyRun['kinds'] {
  return [...new Set(outcomes.map(({ item }) => item.kind))].sort().map((kind) => {
    const ofKind = outcomes.filter(({ item }) => item.kind === kind)
    const definite = ofKind.filter(isDefinite)
    const right = definite.filter(({ item, found }) => item.label === found?.claim_support)
    return { kind, items: ofKind.length, definite: definite.length, right: right.length }
  })
}

const isDefinite = ({ found }: Outcome) => found?.claim_support === 'supports' || found?.claim_support === 'contradicts'

function shareOf(outcomes: readonly Outcome[], isPart: (outcome: Outcome) => boolean): Share {
  return { part: outcomes.filter(isPart).length, whole: outcomes.length }
}

/**
 * Without a verdict, a failure is a passage that words could have found and that is not quoted first. The local verifier
 * abstains from most claims by its thresholds, so only its wrong verdicts are failures.
 */
function failureOf(outcome: Outcome, assessment: AssessmentKind): Failure[] {
  const { item, found, failure } = outcome
  const { id, claim, label } = item
  if (!found) return [{ id, claim, label, verdict: null, why: failure ?? 'not assessed' }]
  const verdict = found.claim_support
  if (assessment === 'local' && verdict === 'insufficient_evidence') return []
  if (assessment !== 'literal') return verdict === label ? [] : [{ id, claim, label, verdict, why: 'another verdict' }]
  if (item.passage === undefined || !item.words || holdsPassage(outcome, 1)) return []
  const why = holdsPassage(outcome, 6) ? 'the passage is quoted, but not first' : 'the passage is not quoted'
  return [{ id, claim, label, verdict, why }]
}
