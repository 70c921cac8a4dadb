// The assessor that asks a model what a text says about a claim, and trusts only what can be checked: the model names lines
// by number, this service cuts and proves the quotations, and the verdict never exceeds what they support.
import { createHmac } from 'node:crypto'
import { AppError } from '../../../server/errors.ts'
import type { Assessment } from '../../../server/interface/assessment.ts'
import type { Logger, Metrics } from '../../../server/telemetry.ts'
import { type Lane, PAGE_LIMITS, type Threads } from '../../../server/threads/pool.ts'
import { shortenedTo } from '../../text/sentences.ts'
import { type AssessmentTask, type Assessor, assessEach, throwAsFailure } from '../assessor.ts'
import { LONGEST_EXPLANATION, type Verdict } from '../evidence.ts'
import type { LocalAssessor } from '../local.ts'
import { semanticProcedure } from '../procedure.ts'
import { type Heard, heard, readAnswer, UnusableAnswerError } from './answer.ts'
import { AssessorBusyError } from './circuit.ts'
import type { Model, Usage } from './model.ts'
import type { ConcludeTask, Plan, PlanTask } from './page-thread.ts'

export interface SemanticTools {
  model: Model
  threads: Threads
  /** The secret for the marks that separate page and prompt; 32 bytes that no page's author knows. */
  secret: Buffer
  windowTokens: number
  /** Reads each page too; its verdict is never given, but may cast doubt on the model's. */
  second: Pick<LocalAssessor, 'read'> | null
  /** Assesses if the model does not answer; null: requests wait for the model instead. */
  fallback: Assessor | null
  metrics: Metrics
  log: Logger
}

/**
 * Makes at most two readings of the page, each with one question per part; none if nothing on the page is related to the claim.
 */
export function semanticAssessor(tools: SemanticTools): Assessor {
  const procedure = semanticProcedure(tools.model.id, tools.windowTokens)
  return {
    procedure,
    ready: tools.fallback ? undefined : tools.model.circuit.proved(),
    get pausedUntil() {
      const until = tools.model.circuit.opensAt
      tools.metrics.assessorPaused.set(until === null ? 0 : 1)
      return tools.fallback || until === null ? null : new Date(until)
    },
    get problem() {
      return tools.model.circuit.problem
    },
    assess: (task) =>
      orFallBack(
        () => assessOne(task),
        (error, by) => fallBack(error, task, by, tools),
      ),
    // If the model does not answer for one claim, the fallback assesses all: a result has one procedure.
    assessAll: (task) =>
      orFallBack(
        () => assessEach(task, assessOne),
        (error, by) => assessEach(task, (one) => fallBack(error, one, by, tools)),
      ),
  }

  async function assessOne(task: AssessmentTask): Promise<Assessment> {
    const opinion = secondOpinion(task, tools)
    const verdict = await assessByModel(task, tools)
    tools.metrics.assessments.inc({ assessor: 'semantic', verdict: verdict.claim_support })
    return { ...doubted(verdict, await opinion, tools), procedure }
  }

  async function orFallBack<T>(
    assess: () => Promise<T>,
    instead: (error: AssessorBusyError, by: Assessor) => Promise<T>,
  ): Promise<T> {
    try {
      return await assess()
    } catch (error) {
      if (!(error instanceof AssessorBusyError) || !tools.fallback) throw error
      return instead(error, tools.fallback)
    }
  }
}

/** What the second reader holds; null if there is none, or it fails, and then no verdict is lost. */
async function secondOpinion(task: AssessmentTask, { second, log }: SemanticTools) {
  try {
    return second && (await second.read(task)).verdict.claim_support
  } catch (error) {
    if (!task.signal?.aborted) log.warn({ event: 'second_reader_failed', err: error })
    return null
  }
}

/**
 * The model's verdict is kept whatever the second reader holds. Where that plainly holds the opposite, by the threshold of its
 * own verdicts, a flag and a sentence say so.
 */
function doubted(verdict: Verdict, held: Verdict['claim_support'] | null, { log, metrics }: SemanticTools): Verdict {
  if (held === null) return verdict
  const { claim_support: given } = verdict
  metrics.secondReadings.inc({ model: given, verifier: held })
  log.info({ event: 'read_twice', model: given, verifier: held })
  const isOpposite =
    (given === 'supports' && held === 'contradicts') || (given === 'contradicts' && held === 'supports')
  if (!isOpposite) return verdict
  const explanation = shortenedTo(verdict.explanation, LONGEST_EXPLANATION - DOUBT.length - 2)
  return {
    ...verdict,
    explanation: `${explanation} ${DOUBT}`,
    risk_flags: [...verdict.risk_flags, 'verdict_doubted'].sort(),
  }
}

const DOUBT = 'A second reader, the small model that comes with this service, holds the opposite.'

async function fallBack(
  error: AssessorBusyError,
  task: AssessmentTask,
  fallback: Assessor,
  { metrics, log }: SemanticTools,
): Promise<Assessment> {
  const assessment = await fallback.assess(task)
  const kind = assessment.assessment_scope === 'literal_quotation_only' ? 'literal' : 'local'
  log.warn({ event: 'assessed_without_model', by: kind, reason: error.message })
  if (kind === 'literal') metrics.assessments.inc({ assessor: kind, verdict: assessment.claim_support })
  return { ...assessment, risk_flags: [...assessment.risk_flags, `${kind}_fallback`].sort() }
}

async function assessByModel(
  { claim, observation, signal, until, lane }: AssessmentTask,
  tools: SemanticTools,
): Promise<Verdict> {
  const { source } = observation
  const deadline = Math.min(until ?? Number.POSITIVE_INFINITY, Date.now() + LONGEST_MS)
  const given = signal ?? new AbortController().signal
  const asking: Asking = { tools, signal: given, until: deadline, text: source.text_sha256, lane, usage: [] }
  const page = { claim, text: source.normalized_text }
  try {
    const marked = { nonce: markFor(source.text_sha256, tools), retrieved: observation.checked_at.slice(0, 10) }
    const readings = await readPage({ ...page, ...marked }, asking)
    const task: ConcludeTask = {
      ...page,
      ...readings,
      digests: { sourceSha256: source.content_sha256, textSha256: source.text_sha256 },
      isTruncated: observation.risk_flags.includes('text_truncated'),
    }
    return await inThread<Verdict>(asking, 'conclude', task)
  } finally {
    countUsage(asking.usage, tools)
  }
}

/** The same for every claim on a page, so that a repeated attempt asks the same question. */
function markFor(textSha256: string, { secret }: SemanticTools): string {
  return createHmac('sha256', secret).update(`page ${textSha256}`).digest('hex').slice(0, 16)
}

/**
 * Reads the page once, and a second time without the lines that the model reported, or without orders in the claim, if
 * these could have caused the verdict. If a suspicious line may be what the page says about the claim, leaving it out would
 * change what the page says, so there is no reading.
 */
async function readPage(page: Omit<PlanTask, 'windowTokens' | 'masked'>, asking: Asking) {
  const task: PlanTask = { ...page, windowTokens: asking.tools.windowTokens, masked: null }
  const plan = await inThread<Plan>(asking, 'planReading', task)
  const { suspects, claimIsSuspect, shown } = plan
  const about = new Set(plan.about)
  const none = { first: null, second: null, suspects, reported: [], claimIsSuspect, shown }
  if (suspects.some(({ line }) => about.has(line))) return none
  const first = await readAll(plan, asking)
  const hidden = new Set(plan.masked)
  const reported = [...new Set(first.flatMap(({ suspicious }) => suspicious))].filter((line) => !hidden.has(line))
  if (!needsSecond(first, reported, plan)) return { ...none, first, reported }
  if (reported.some((line) => about.has(line))) return { ...none, reported }
  const again = await inThread<Plan>(asking, 'planReading', { ...task, masked: [...plan.masked, ...reported] })
  return { ...none, first, second: await readAll(again, asking), reported }
}

/** Whether the model was shown something suspicious that could have caused the verdict of the first reading. */
function needsSecond(first: readonly Heard[], reported: readonly number[], { claimIsSuspect }: Plan): boolean {
  if (reported.length === 0 && !claimIsSuspect) return false
  return first.some(({ verdict }) => verdict !== 'insufficient_evidence')
}

interface Asking {
  tools: SemanticTools
  /** The digest of the page's text. */
  text: string
  signal: AbortSignal
  until: number
  /** For whom. */
  lane: Lane | undefined
  usage: Usage[]
}

/** Reads all parts in parallel, within the model's semaphore; the first failure ends the others. */
async function readAll({ questions, masked }: Plan, asking: Asking): Promise<Heard[]> {
  const giveUp = new AbortController()
  const hidden = new Set(masked)
  const part = { ...asking, signal: AbortSignal.any([asking.signal, giveUp.signal]) }
  try {
    return await Promise.all(questions.map((one) => readPart(one, hidden, part)))
  } finally {
    giveUp.abort()
  }
}

/** After an unusable answer the question is asked once more. After a second one the request fails, uncharged. */
async function readPart(
  { window, question }: Plan['questions'][number],
  masked: ReadonlySet<number>,
  asking: Asking,
): Promise<Heard> {
  const { tools, usage, ...options } = asking
  for (let attempt = 1; ; attempt++) {
    try {
      const reply = await tools.model.ask(question, options)
      usage.push(reply.usage)
      return heard(readAnswer(reply.written), reply.written, window, masked)
    } catch (error) {
      if (!(error instanceof UnusableAnswerError)) throw error
      tools.log.warn({ event: 'unusable_answer', attempt, reason: error.message })
      tools.log.debug({ event: 'unusable_answer_text', attempt, written: error.written })
      if (attempt === ATTEMPTS)
        throw new AppError('assessment_failed', 'The model gave no usable answer. Nothing was charged.', {
          cause: error,
        })
    }
  }
}

function inThread<T>({ tools, signal, lane }: Asking, name: string, task: PlanTask | ConcludeTask): Promise<T> {
  return tools.threads.run<T>(semanticThread, name, task, { ...PAGE_LIMITS, signal, lane }).catch(throwAsFailure)
}

function countUsage(usage: readonly Usage[], { metrics, log }: SemanticTools) {
  if (usage.length === 0) return
  const sum = (pick: (one: Usage) => number) => usage.reduce((total, one) => total + pick(one), 0)
  const tokens = sum(({ input, output, cacheWrite, cacheRead }) => input + output + cacheWrite + cacheRead)
  const usd = usage.some((one) => one.usd === null) ? null : sum((one) => one.usd ?? 0)
  metrics.assessmentTokens.observe(tokens)
  if (usd !== null) metrics.assessmentUsd.observe(usd)
  log.info({ event: 'assessed', questions: usage.length, tokens, usd })
}

const semanticThread = new URL('./page-thread.ts', import.meta.url)
/** For one assessment, all questions and waits together. */
const LONGEST_MS = 120_000
const ATTEMPTS = 2
