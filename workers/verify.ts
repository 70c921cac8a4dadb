// One verification, from where its record stands to its end. Each stage commits before the next begins and is never done
// again once committed: an assessment costs money, a settlement moves it. Killed anywhere, the next attempt reads the
// state and carries on; the attempt token keeps a worker that was wrongly thought dead from committing anything.
import { randomUUID } from 'node:crypto'
import { enqueue, type Payload } from '../server/db/jobs.ts'
import { transact } from '../server/db/pool.ts'
import { AppError } from '../server/errors.ts'
import { openPayload } from '../server/payments/seal.ts'
import type { OfferedPayment } from '../server/payments/x402.ts'
import { jobOf } from '../server/verification/admission.ts'
import { type Assessment, assessment as assessmentShape } from '../server/verification/assessment.ts'
import { completeRequest } from '../server/verification/completion.ts'
import type { Observation } from '../server/verification/observation.ts'
import {
  advance,
  claimRequest,
  Fenced,
  failRequest,
  holdsRequest,
  releasePayment,
  requestErrorOf,
  type WorkingRequest,
} from '../server/verification/request.ts'
import { DEFAULT_MAX_AGE_SECONDS, inconsistency } from '../server/verification/result.ts'
import type { Work } from './context.ts'
import { observeSource } from './retrieval/observation.ts'
import { OriginBusy } from './retrieval/origins.ts'

/** Says what a text says about a claim. Implementations: assessment/literal.ts. */
export interface Assessor {
  /** Names everything that may change its answer, in at most 100 characters; part of `methodology_version`. */
  readonly procedure: string
  /** Every evidence item is proved against the text. Throws AppError `assessment_failed` when it comes to no verdict. */
  assess(input: { claim: string; observation: Observation; signal?: AbortSignal }): Promise<Assessment>
}

/** What the queue says of this turn. */
export interface Turn {
  /** Aborts when the process is to stop; the request is then handed back, not failed. */
  signal: AbortSignal
  /** No further attempt follows this one. */
  last: boolean
}

export async function verifyRequest({ request_id }: Payload<'verify_request'>, work: Work, turn: Turn): Promise<void> {
  let request = await claimRequest(work.db, request_id, randomUUID())
  if (!request) return
  const held = request
  try {
    if (request.state === 'accepted') request = await timed(work, 'observe', observe(request, work, turn))
    if (request.state === 'observed') request = await timed(work, 'assess', assess(request, work, turn))
    if (request.state === 'assessed') request = await timed(work, 'intend', advance(work.steps, request, 'settling'))
    if (request.state === 'settling') request = await timed(work, 'settle', settle(request, work))
    if (request?.state === 'settled') await timed(work, 'complete', complete(request, work))
  } catch (error) {
    await conclude(error, request ?? held, work, turn)
  }
}

async function observe(request: WorkingRequest, work: Work, { signal }: Turn): Promise<WorkingRequest> {
  const { source_url, options } = request.body
  const maxAge = options?.max_age_seconds ?? DEFAULT_MAX_AGE_SECONDS
  const visit = () =>
    work.origins.visit(new URL(source_url).origin, signal, () => observeSource(source_url, work, signal))
  const { observation, hit } = await work.cache.observe(source_url, maxAge, visit, signal)
  return advance(work.steps, request, 'observed', { stored: { observation, cache_hit: hit } })
}

async function assess(request: WorkingRequest, work: Work, { signal }: Turn): Promise<WorkingRequest> {
  if (!request.stored) throw new Error(`request ${request.id} was not observed`)
  const { observation } = request.stored
  const verdict = assessmentShape.parse(await work.assessor.assess({ claim: request.body.claim, observation, signal }))
  const problem = inconsistency(verdict)
  if (problem) throw new Error(`the assessor broke a rule of the interface: ${problem}`)
  return advance(work.steps, request, 'assessed', { assessment: verdict })
}

/**
 * The intent to settle is committed before this is called, so whoever finds the request in `settling` knows that the
 * authorization may have been used, and asks again with the same one.
 * A crash after the facilitator answered and before the commit: the next attempt settles again and is told the same.
 * Answers null when the outcome is open; the request then waits in the queue.
 */
async function settle(request: WorkingRequest, work: Work): Promise<WorkingRequest | null> {
  if (!request.payment_sealed) throw new Error(`request ${request.id} holds no payment`)
  const payload = openPayload(work.secrets.payload, request.id, request.payment_sealed)
  const offer: OfferedPayment = { payload, bound: request.payment }
  const outcome = await work.facilitator.settle(offer)
  work.metrics.settlements.inc({ outcome: outcome.kind })
  if (outcome.kind === 'paid') {
    const settlement = { payment: outcome.payment, response: { ...outcome.response } }
    return { ...(await advance(work.steps, request, 'settled', { settlement })), payment_sealed: null }
  }
  work.log.warn({ event: 'settlement', outcome: outcome.kind, reason: outcome.reason, request_id: request.id })
  if (outcome.kind === 'unknown') await snooze(request, work, outcome.retryAfterSeconds)
  else await release(request, work)
  return null
}

async function complete(request: WorkingRequest, work: Work) {
  await completeRequest(work.chain, request, new Date())
  work.metrics.moves.inc({ state: 'completed' })
  await work.announcements.add(request.id)
}

async function release(request: WorkingRequest, work: Work) {
  await transact(work.db, (tx) => releasePayment(tx, request, work.config.quoteTtlSeconds))
  work.metrics.moves.inc({ state: 'unpaid' })
  await work.announcements.add(request.id)
}

/** The running job row is given up and a fresh one takes its place: no attempt is spent, no backoff applies. */
async function snooze(request: WorkingRequest, work: Work, seconds: number) {
  const runAt = new Date(Date.now() + seconds * 1000)
  await transact(work.db, async (tx) => {
    if (!(await holdsRequest(tx, request))) return
    await enqueue(tx, [{ name: 'verify_request', payload: { request_id: request.id }, ...jobOf(request.id), runAt }])
  })
}

/** Seconds until a settled or settling request is taken up again after its attempts ran out. It is never given up. */
const PERSIST_SECONDS = 60

/** What a thrown value means for the request; whatever is left to the queue is thrown on. */
async function conclude(error: unknown, request: WorkingRequest, work: Work, turn: Turn): Promise<void> {
  if (error instanceof Fenced) {
    work.log.info({ event: 'fenced', request_id: request.id, message: error.message })
    return
  }
  if (turn.signal.aborted) return snooze(request, work, 0)
  if (error instanceof OriginBusy) return queueUp(error, request, work)
  const mayFail = request.state === 'accepted' || request.state === 'observed' || request.state === 'assessed'
  if (mayFail && error instanceof AppError) return fail(request, work, error)
  work.log.error({ event: 'verification_error', request_id: request.id, state: request.state, err: error })
  if (!turn.last) throw error
  if (mayFail) return fail(request, work, new AppError('execution_failed', 'The work could not be done.'))
  return snooze(request, work, PERSIST_SECONDS)
}

/** Validity that must be left of the payment when the work begins. */
const MIN_VALIDITY_SECONDS = 60

/** Waits for the source's turn in the queue, as long as the payment would still hold afterwards. */
async function queueUp(busy: OriginBusy, request: WorkingRequest, work: Work): Promise<void> {
  const left = request.payment.valid_before - Date.now() / 1000
  if (left - busy.retryAfterSeconds > MIN_VALIDITY_SECONDS) return snooze(request, work, busy.retryAfterSeconds)
  return fail(request, work, new AppError('source_timeout', 'The source asked to be left alone for too long.'))
}

async function fail(request: WorkingRequest, work: Work, error: AppError) {
  try {
    await transact(work.db, (tx) => failRequest(tx, request, requestErrorOf(error.code, error.message)))
  } catch (refusal) {
    if (refusal instanceof Fenced) return
    throw refusal
  }
  work.metrics.moves.inc({ state: 'failed' })
  work.metrics.failures.inc({ code: error.code })
  work.log.info({ event: 'verification_failed', request_id: request.id, code: error.code })
  await work.announcements.add(request.id)
}

async function timed<T>(work: Work, stage: string, doing: Promise<T>): Promise<T> {
  const end = work.metrics.stageSeconds.startTimer({ stage })
  try {
    return await doing
  } finally {
    end()
  }
}
