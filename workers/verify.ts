// One verification, from where its record stands to its end. Each stage commits before the next begins and is never
// done again once committed: an assessment costs money, a settlement moves it. Killed anywhere, the next attempt reads
// the state and carries on; the attempt token keeps a worker that was wrongly thought dead from committing anything.
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Payload } from '../server/db/jobs.ts'
import { transact } from '../server/db/pool.ts'
import { AppError } from '../server/errors.ts'
import { type Assessment, assessment as assessmentShape } from '../server/interface/assessment.ts'
import type { Observation } from '../server/interface/observation.ts'
import { DEFAULT_MAX_AGE_SECONDS, inconsistency } from '../server/interface/result.ts'
import { jobKeyOf } from '../server/verification/admission.ts'
import { completeRequest } from '../server/verification/completion.ts'
import {
  claimRequest,
  failRequest,
  requestErrorOf,
  StaleAttemptError,
  type StoredObservation,
  type WorkingRequest,
} from '../server/verification/request.ts'
import { intend, PERSIST_SECONDS, settle } from '../server/verification/settlement.ts'
import { inSeconds, snooze } from '../server/verification/snooze.ts'
import { advance } from '../server/verification/steps.ts'
import { AssessorBusyError } from './assessment/circuit.ts'
import { judgePage } from './assessment/page-quality.ts'
import { gatedProcedure } from './assessment/procedure.ts'
import type { Work } from './context.ts'
import { observeSource } from './retrieval/observation.ts'
import { describeAsked, OriginBusyError } from './retrieval/origins.ts'

export interface AssessmentTask {
  claim: string
  observation: Observation
  signal?: AbortSignal
  /** Milliseconds since the epoch by which the assessment is needed; later it is of no use. */
  until?: number
}

/** Says what a text says about a claim. Implementations: assessment/literal.ts, assessment/semantic.ts. */
export interface Assessor {
  /** Names everything that may change its answer, in at most 100 characters; part of `methodology_version`. */
  readonly procedure: string
  /** Set while it takes no work because what it needs does not answer. */
  readonly pausedUntil?: Date | null
  /**
   * Every evidence item is proved against the text. Throws AppError `assessment_failed` when it comes to no verdict,
   * and AssessorBusyError when it may come to one later.
   */
  assess(task: AssessmentTask): Promise<Assessment>
}

/** What the queue says of this turn. */
export interface Turn {
  /** Aborts when the process is to stop; the request is then handed back, not failed. */
  signal: AbortSignal
  /** Attempts that may follow this one; with 0 it is the last. */
  attemptsLeft: number
}

export async function verifyRequest({ request_id }: Payload<'verify_request'>, work: Work, turn: Turn): Promise<void> {
  let request: WorkingRequest | null = await claimRequest(work.db, request_id, randomUUID())
  if (!request) return
  const begun = request.state === 'settling'
  let held = request
  try {
    while (request && needsWork(request, work)) {
      held = request
      const isToBeRead: boolean = request.state === 'accepted' || isOutdated(request, work)
      request = isToBeRead
        ? await timed(work, 'observe', observe(request, work, turn))
        : await timed(work, 'assess', assess(request, work, turn))
    }
    held = request ?? held
    if (request?.state === 'assessed') request = await timed(work, 'intend', intend(request, work))
    held = request ?? held
    if (request?.state === 'settling') request = await timed(work, 'settle', settle(request, work, { begun }))
    held = request ?? held
    if (request?.state === 'settled') await timed(work, 'complete', complete(request, work))
  } catch (error) {
    await conclude(error, held, work, turn)
  }
}

/** Whether anything is left to be done before money moves. */
function needsWork(request: WorkingRequest, work: Work): boolean {
  return request.state === 'accepted' || request.state === 'observed' || isOutdated(request, work)
}

/**
 * Whether a shared observation has become older than the caller accepts, as it will be when the result is served: a
 * request may have waited for its worker, for the model, or for a second payment. From the settlement on it stays what
 * it is.
 */
function isOutdated({ state, stored, body }: WorkingRequest, work: Work): boolean {
  if ((state !== 'observed' && state !== 'assessed') || !stored?.cache_hit) return false
  const age = (work.now() - Date.parse(stored.observation.checked_at)) / 1000
  // Ages are whole seconds, rounded down.
  return age + work.settleSeconds >= maxAgeOf(body) + 1
}

function maxAgeOf({ options }: WorkingRequest['body']): number {
  return options?.max_age_seconds ?? DEFAULT_MAX_AGE_SECONDS
}

/**
 * Reads the page, or takes an observation that is young enough. An assessment is kept where the page still reads the
 * same. Answers null when the source is slow: the fetch then goes on without this job (see slow-fetches.ts).
 */
async function observe(request: WorkingRequest, work: Work, turn: Turn): Promise<WorkingRequest | null> {
  const leaving = new AbortController()
  const signal = AbortSignal.any([turn.signal, leaving.signal])
  const looking = look(request, work, signal)
  // The last attempt keeps its job: one that is made anew would have attempts again, and a page that kills its worker
  // could kill all of them.
  if (turn.attemptsLeft === 0 || (await work.slowFetches.isQuick(looking)))
    return noteObserved(request, await looking, work)
  // Until it is awaited again, a rejection has no other listener.
  looking.catch(() => {})
  await work.slowFetches.keep(request, { attemptsLeft: turn.attemptsLeft, end: leaving }, async (settle) => {
    try {
      const observed = await noteObserved(request, await looking, work)
      await settle()
      await snooze(observed, work, { seconds: 0 })
    } catch (error) {
      await settle()
      await conclude(error, request, work, { signal, attemptsLeft: 0 })
    }
  })
  return null
}

/** Throws OriginBusyError when it is not this request's turn. */
async function look({ id, state, body }: WorkingRequest, work: Work, signal: AbortSignal): Promise<StoredObservation> {
  const visit = () => observeSource(body.source_url, work, signal, jobKeyOf(id))
  // What has grown too old once is read from the source: another shared one could be too old again when it is needed.
  const maxAge = state === 'accepted' ? maxAgeOf(body) : 0
  const { observation, hit } = await work.cache.observe(body.source_url, maxAge, visit, signal)
  return { observation, cache_hit: hit }
}

function noteObserved(request: WorkingRequest, stored: StoredObservation, work: Work): Promise<WorkingRequest> {
  const digests = ({ observation }: StoredObservation) => [
    observation.source.content_sha256,
    observation.source.text_sha256,
  ]
  const isSame = request.stored !== null && isDeepStrictEqual(digests(request.stored), digests(stored))
  return advance(work.steps, request, isSame && request.assessment ? 'assessed' : 'observed', { stored })
}

async function assess(request: WorkingRequest, work: Work, { signal }: Turn): Promise<WorkingRequest> {
  if (!request.stored) throw new Error(`request ${request.id} was not observed`)
  return advance(work.steps, request, 'assessed', { assessment: await judge(request, request.stored, work, signal) })
}

async function judge(request: WorkingRequest, { observation }: StoredObservation, work: Work, signal: AbortSignal) {
  const { claim } = request.body
  const doubts = judgePage(claim, observation)
  const until = (request.payment.valid_before - MIN_VALIDITY_SECONDS) * 1000
  const found = await work.assessor.assess({ claim, observation, signal, until })
  const verdict = assessmentShape.parse({
    ...found,
    risk_flags: [...new Set([...doubts, ...found.risk_flags])].sort(),
    procedure: gatedProcedure(found.procedure),
  })
  const problem = inconsistency(verdict)
  if (problem) throw new Error(`the assessor broke a rule of the interface: ${problem}`)
  return verdict
}

async function complete(request: WorkingRequest, work: Work) {
  await completeRequest(work.chain, request, new Date(work.now()))
  work.metrics.moves.inc({ state: 'completed' })
  await work.changeEvents.add(request.id)
}

/** What a thrown value means for the request; whatever is left to the queue is thrown on. */
async function conclude(error: unknown, request: WorkingRequest, work: Work, turn: Turn): Promise<void> {
  if (error instanceof StaleAttemptError) {
    work.log.info({ event: 'fenced', request_id: request.id, message: error.message })
    return
  }
  if (turn.signal.aborted) return snooze(request, work, { seconds: 0 })
  if (error instanceof OriginBusyError) return standInLine(error, request, work)
  if (error instanceof AssessorBusyError) return awaitModel(error, request, work)
  const mayFail = request.state === 'accepted' || request.state === 'observed' || request.state === 'assessed'
  if (mayFail && error instanceof AppError) return fail(request, work, error)
  work.log.error({ event: 'verification_error', request_id: request.id, state: request.state, err: error })
  if (turn.attemptsLeft > 0) throw error
  if (mayFail) return fail(request, work, new AppError('execution_failed', 'The work could not be done.'))
  return snooze(request, work, { seconds: PERSIST_SECONDS })
}

/** Validity that must be left of the payment when the work begins. */
const MIN_VALIDITY_SECONDS = 60

/** Seconds until the payment is too short for the work that is left. */
function secondsLeft({ payment }: WorkingRequest): number {
  return payment.valid_before - Date.now() / 1000 - MIN_VALIDITY_SECONDS
}

/** A job in a line is woken when its turn is free. Should that wake be lost, it looks for itself this much later. */
const LOOK_SECONDS = 60

/** Waits in the line of the origin, for as long as the payment would still hold afterwards. */
async function standInLine(busy: OriginBusyError, request: WorkingRequest, work: Work): Promise<void> {
  const { asked, retryAfterSeconds } = busy
  work.log.info({ event: 'put_off', request_id: request.id, reason: busy.name, seconds: retryAfterSeconds, asked })
  const left = secondsLeft(request)
  if (left <= (asked ? retryAfterSeconds : 0))
    return fail(request, work, new AppError('source_rate_limited', tooLong(busy)))
  const host = new URL(request.body.source_url).hostname
  const seconds = Math.min(left, asked ? Math.max(retryAfterSeconds, LOOK_SECONDS) : LOOK_SECONDS)
  const waiting = {
    for: 'origin' as const,
    until: inSeconds(retryAfterSeconds),
    host: asked?.host ?? host,
    ...(asked && { asked_seconds: asked.seconds }),
  }
  await snooze(request, work, { seconds, waiting, line: busy })
  await work.origins.wake(busy.line)
}

function tooLong({ asked }: OriginBusyError): string {
  if (!asked) return 'More requests wait for this host than can be made before the payment runs out.'
  return `${describeAsked(asked)} The payment does not hold that long.`
}

/** Waits for the model, for as long as the payment would still hold afterwards. */
async function awaitModel(busy: AssessorBusyError, request: WorkingRequest, work: Work): Promise<void> {
  const { retryAfterSeconds: seconds } = busy
  work.log.info({ event: 'put_off', request_id: request.id, reason: busy.name, seconds })
  if (secondsLeft(request) > seconds)
    return snooze(request, work, { seconds, waiting: { for: 'model', until: inSeconds(seconds) } })
  return fail(request, work, new AppError('assessment_failed', NO_MODEL))
}

const NO_MODEL = 'The assessing model did not answer while the payment held. Nothing was charged.'

async function fail(request: WorkingRequest, work: Work, error: AppError) {
  const { maxInFlightPerPayer } = work.config
  try {
    await transact(work.db, (tx) => failRequest(tx, request, requestErrorOf(error), maxInFlightPerPayer))
  } catch (refusal) {
    if (refusal instanceof StaleAttemptError) return
    throw refusal
  }
  work.metrics.moves.inc({ state: 'failed' })
  work.metrics.failures.inc({ code: error.code })
  work.log.info({ event: 'verification_failed', request_id: request.id, code: error.code })
  await work.changeEvents.add(request.id)
}

async function timed<T>(work: Work, stage: string, doing: Promise<T>): Promise<T> {
  const end = work.metrics.stageSeconds.startTimer({ stage })
  try {
    return await doing
  } finally {
    end()
  }
}
