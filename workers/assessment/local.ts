// The local assessor: the verifier that comes with the product reads the passages nearest to the claim. It runs on threads of its
// own, each of which holds the weights, so that a verdict of one to two seconds delays no page.
import { LRUCache } from 'lru-cache'
import type { Logger, Metrics } from '../../server/telemetry.ts'
import { openThreads, ThreadError } from '../../server/threads/pool.ts'
import { codePointIndex } from '../text/offsets.ts'
import { type AssessmentTask, type Assessor, throwAsFailure } from './assessor.ts'
import { type Digests, isProven, type Verdict } from './evidence.ts'
import type { LocalAssessment, Reading } from './local/assessment.ts'
import type { LocalTask } from './local-thread.ts'
import { LOCAL_PROCEDURE } from './procedure.ts'

export interface LocalAnswer {
  verdict: Verdict
  reading: Reading
}

export interface LocalAssessor extends Assessor, AsyncDisposable {
  /** The verdict together with what it was derived from. */
  read(task: Omit<AssessmentTask, 'until'>): Promise<LocalAnswer>
}

export interface LocalTools {
  /** Threads. Each takes 350 MB. */
  threads: number
  metrics: Metrics
  log: Logger
  /** Of one claim. */
  limits?: { runningMs: number; waitingMs: number }
  /** The file that a thread runs. */
  thread?: URL
}

/** Starts the threads and loads the weights in the background. Until they are there the assessor says that it is paused. */
export function openLocalAssessor({
  threads,
  metrics,
  log,
  limits = LIMITS,
  thread = THREAD,
}: LocalTools): LocalAssessor {
  const pool = openThreads({
    minThreads: threads,
    maxThreads: threads,
    onLoss: (error) => log.error({ event: 'thread_lost', err: error }),
  })
  let problem: string | null = 'the verifier is being loaded'
  const started = performance.now()
  // A thread that loads takes no second task, so each of these goes to another thread. In turn, so that the first judges sooner.
  const turns = new Int32Array(new SharedArrayBuffer(4 * (threads + 1))).fill(1, 0, 1)
  const loads = Array.from({ length: threads }, (_, turn) => pool.run(thread, 'load', { turn, turns }))
  const ready = Promise.resolve(loads[0]).then(() => {
    problem = null
    log.info({ event: 'verifier_ready', threads, ms: Math.round(performance.now() - started) })
  })
  Promise.all([ready, ...loads]).catch((error) => {
    // Without the message, which may name a folder: /readyz shows this to anyone.
    problem = 'the verifier cannot be loaded; the event verifier_failed in the log of its worker says why'
    if (!(error instanceof ThreadError && error.code === 'closed')) log.error({ event: 'verifier_failed', err: error })
  })

  // A verdict follows from text and claim alone, so a kept one is what the verifier would answer again.
  const kept = new LRUCache<string, LocalAssessment>({ maxSize: KEPT_UNITS, sizeCalculation: sizeOf })

  async function read({ claim, observation: { source }, signal, lane }: Omit<AssessmentTask, 'until'>) {
    const digests = { sourceSha256: source.content_sha256, textSha256: source.text_sha256 }
    const name = `${source.text_sha256} ${claim}`
    const known = kept.get(name)
    if (known) {
      metrics.keptVerdicts.inc()
      return answerOf(known, digests)
    }
    await ready
    const task: LocalTask = { claim, text: source.normalized_text }
    const reading = pool.run<LocalAssessment>(thread, 'assess', task, { ...limits, signal, lane })
    const found = await reading.catch(throwAsFailure)
    const answer = answerOf(found, digests)
    requireProof(answer.verdict, task.text, digests)
    kept.set(name, found)
    return answer
  }

  return {
    procedure: LOCAL_PROCEDURE,
    get pausedUntil() {
      return problem === null ? null : new Date(Date.now() + LOADING_MS)
    },
    get problem() {
      return problem
    },
    ready,
    read,
    async assess(task) {
      const { verdict } = await read(task)
      metrics.assessments.inc({ assessor: 'local', verdict: verdict.claim_support })
      return { ...verdict, procedure: LOCAL_PROCEDURE }
    },
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  }
}

/** The assessment in the form of the interface. */
function answerOf(
  { quotes, reading, ...verdict }: LocalAssessment,
  { sourceSha256, textSha256 }: Digests,
): LocalAnswer {
  const evidence = quotes.map((quote, i) => ({
    evidence_id: `e${i + 1}`,
    ...quote,
    source_sha256: sourceSha256,
    text_sha256: textSha256,
  }))
  return { verdict: { ...verdict, assessment_scope: 'source_local_semantic_support', evidence }, reading }
}

/** Every quote is cut from the text by the verifier; a quote that is not there is a fault of this program. */
function requireProof({ evidence }: Verdict, text: string, digests: Digests) {
  const index = codePointIndex(text)
  if (!evidence.every((item) => isProven(text, index, digests, item)))
    throw new Error('a local quote is not in the text')
}

/** UTF-16 units, about. */
function sizeOf({ quotes, reading }: LocalAssessment, name: string): number {
  const texts = [name, ...quotes.map(({ quote }) => quote), ...reading.windows.map(({ text }) => text)]
  return texts.reduce((sum, text) => sum + text.length, SIZE_OF_REST)
}

const THREAD = new URL('./local-thread.ts', import.meta.url)

/** Milliseconds. The longest claim on the longest sentences takes some ten seconds of a quiet core. */
const LIMITS = { runningMs: 120_000, waitingMs: 45_000 }
/** Milliseconds until which nothing is sold if no further beat comes. The worker beats as soon as the weights are there. */
const LOADING_MS = 10_000
/** Of the verdicts that are kept, in UTF-16 units: some thousand of them, in at most 16 MB. */
const KEPT_UNITS = 8_000_000
/** What a verdict holds beside its texts, in the same units. */
const SIZE_OF_REST = 1500
