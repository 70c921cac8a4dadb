// The assessor that asks a model what a text says about a claim, and trusts only what can be checked: the model names lines
// by number, this service cuts and proves the quotations, and the verdict never exceeds what they support.
import { createHmac } from 'node:crypto'
import { AppError } from '../../server/errors.ts'
import type { Assessment } from '../../server/interface/assessment.ts'
import type { Logger, Metrics } from '../../server/telemetry.ts'
import { ThreadError, type Threads } from '../../server/threads/pool.ts'
import { readAnswer, UnusableAnswerError } from './answer.ts'
import type { Model, Usage } from './anthropic.ts'
import type { AssessmentTask, Assessor } from './assessor.ts'
import { AssessorBusyError, type Circuit } from './circuit.ts'
import type { Verdict } from './evidence.ts'
import { semanticProcedure } from './procedure.ts'
import { type Heard, heard } from './readings.ts'
import type { ConcludeTask, Plan, PlanTask } from './semantic-thread.ts'

export interface SemanticTools {
  model: Model
  circuit: Circuit
  threads: Threads
  /** The secret for the marks that separate page and prompt; 32 bytes that no page's author knows. */
  secret: Buffer
  windowTokens: number
  /** Assesses if the model does not answer; null: requests wait for the model instead. */
  fallback: Assessor | null
  metrics: Metrics
  log: Logger
}

/**
 * Makes at most two readings of the page, each with one question per part; none if nothing on the page is related to
 * the claim.
 */
export function semanticAssessor(tools: SemanticTools): Assessor {
  const procedure = semanticProcedure(tools.model.id, tools.windowTokens)
  return {
    procedure,
    get pausedUntil() {
      const until = tools.circuit.opensAt
      tools.metrics.assessorPaused.set(until === null ? 0 : 1)
      return tools.fallback || until === null ? null : new Date(until)
    },
    async assess(task) {
      try {
        const verdict = await assessByModel(task, tools)
        tools.metrics.assessments.inc({ assessor: 'semantic', verdict: verdict.claim_support })
        return { ...verdict, procedure }
      } catch (error) {
        if (!(error instanceof AssessorBusyError) || !tools.fallback) throw error
        return fallBack(error, task, tools.fallback, tools)
      }
    },
  }
}

async function fallBack(
  error: AssessorBusyError,
  task: AssessmentTask,
  fallback: Assessor,
  { metrics, log }: SemanticTools,
): Promise<Assessment> {
  log.warn({ event: 'assessed_literally', reason: error.message })
  const assessment = await fallback.assess(task)
  metrics.assessments.inc({ assessor: 'literal', verdict: assessment.claim_support })
  return { ...assessment, risk_flags: [...assessment.risk_flags, 'literal_fallback'].sort() }
}

async function assessByModel(
  { claim, observation, signal, until }: AssessmentTask,
  tools: SemanticTools,
): Promise<Verdict> {
  const { source } = observation
  const deadline = Math.min(until ?? Number.POSITIVE_INFINITY, Date.now() + LONGEST_MS)
  const asking: Asking = { tools, signal: signal ?? new AbortController().signal, until: deadline, usage: [] }
  const page = { claim, text: source.normalized_text }
  try {
    const readings = await readPage({ ...page, nonce: markFor(source.text_sha256, tools) }, asking)
    const task: ConcludeTask = {
      ...page,
      ...readings,
      digests: { sourceSha256: source.content_sha256, textSha256: source.text_sha256 },
      isTruncated: observation.risk_flags.includes('text_truncated'),
    }
    return await inThread<Verdict>(tools, 'conclude', task, asking.signal)
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
 * these could have caused the verdict.
 */
async function readPage(page: Pick<PlanTask, 'claim' | 'text' | 'nonce'>, asking: Asking) {
  const task: PlanTask = { ...page, windowTokens: asking.tools.windowTokens, masked: null }
  const plan = await inThread<Plan>(asking.tools, 'planReading', task, asking.signal)
  const { suspects, claimIsSuspect } = plan
  const first = await readAll(plan, asking)
  const hidden = new Set(plan.masked)
  const reported = [...new Set(first.flatMap(({ suspicious }) => suspicious))].filter((line) => !hidden.has(line))
  const masked = [...plan.masked, ...reported]
  const second = needsSecond(first, reported, plan) ? await readAgain({ ...task, masked }, asking) : null
  return { first, second, suspects, reported, claimIsSuspect, shown: plan.shown }
}

/** Whether the model was shown something suspicious that could have caused the verdict of the first reading. */
function needsSecond(first: readonly Heard[], reported: readonly number[], { claimIsSuspect }: Plan): boolean {
  if (reported.length === 0 && !claimIsSuspect) return false
  return first.some(({ verdict }) => verdict !== 'insufficient_evidence')
}

async function readAgain(task: PlanTask, asking: Asking): Promise<Heard[]> {
  const plan = await inThread<Plan>(asking.tools, 'planReading', task, asking.signal)
  return readAll(plan, asking)
}

interface Asking {
  tools: SemanticTools
  signal: AbortSignal
  until: number
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
      return heard(readAnswer(reply.written), window, masked)
    } catch (error) {
      if (!(error instanceof UnusableAnswerError)) throw error
      tools.log.warn({ event: 'unusable_answer', attempt, reason: error.message })
      if (attempt === ATTEMPTS)
        throw new AppError('assessment_failed', 'The model gave no usable answer. Nothing was charged.', {
          cause: error,
        })
    }
  }
}

async function inThread<T>(
  { threads }: SemanticTools,
  name: string,
  task: PlanTask | ConcludeTask,
  signal: AbortSignal,
): Promise<T> {
  const limit = AbortSignal.timeout(THREAD_MS)
  try {
    return await threads.run<T>(semanticThread, name, task, { signal: AbortSignal.any([signal, limit]) })
  } catch (error) {
    if (
      error instanceof ThreadError &&
      (error.code === 'out_of_memory' || (error.code === 'timed_out' && limit.aborted))
    )
      throw new AppError('assessment_failed', 'The assessment takes more time or memory than it may.', { cause: error })
    throw error
  }
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

const semanticThread = new URL('./semantic-thread.ts', import.meta.url)
/** For one assessment, all questions and waits together. */
const LONGEST_MS = 120_000
/** Waiting for a thread included; the longest text takes a fraction of one second. */
const THREAD_MS = 20_000
const ATTEMPTS = 2
