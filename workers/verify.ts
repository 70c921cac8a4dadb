// One verification, from where its record stands to its end. Each stage commits before the next begins and is never done
// again once committed: an assessment costs money, a settlement moves it. Killed anywhere, the next attempt reads the
// state and carries on; the attempt token keeps a worker that was wrongly thought dead from committing anything.
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { enqueue, type Payload } from '../server/db/jobs.ts'
import { transact } from '../server/db/pool.ts'
import { AppError } from '../server/errors.ts'
import { openPayload } from '../server/payments/seal.ts'
import type { OfferedPayment, SettlementIntent, SettlementOutcome } from '../server/payments/x402.ts'
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
  noteIntent,
  releasePayment,
  requestErrorOf,
  TransactionTakenError,
  type WorkingRequest,
} from '../server/verification/request.ts'
import { DEFAULT_MAX_AGE_SECONDS, inconsistency } from '../server/verification/result.ts'
import { AssessorBusy } from './assessment/circuit.ts'
import { gatedProcedure, judgePage } from './assessment/page-quality.ts'
import type { Work } from './context.ts'
import { observeSource } from './retrieval/observation.ts'
import { OriginBusy } from './retrieval/origins.ts'

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
   * Every evidence item is proved against the text. Throws AppError `assessment_failed` when it comes to no verdict, and
   * AssessorBusy when it may come to one later.
   */
  assess(task: AssessmentTask): Promise<Assessment>
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
    const begun = request.state === 'settling'
    if (request.state === 'assessed') request = await timed(work, 'intend', intend(request, work))
    if (request.state === 'settling') request = await timed(work, 'settle', settle(request, work, { begun }))
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
  return advance(work.steps, request, 'assessed', { assessment: verdict })
}

/** Committed before the facilitator is called: from here on the authorization may be out of our hands. */
async function intend(request: WorkingRequest, work: Work): Promise<WorkingRequest> {
  const intent = await work.facilitator.prepare(openOffer(request, work))
  return advance(work.steps, request, 'settling', { intent })
}

/**
 * A settlement that was `begun` by an attempt before this one may have been made already, so it is looked for first; it is
 * asked for again, with the same authorization, only where it was not made and still can be.
 * A crash after the facilitator answered and before the commit: the next attempt looks, and finds the same.
 * Answers null when the outcome is open; the request then waits in the queue.
 */
async function settle(request: WorkingRequest, work: Work, { begun }: { begun: boolean }) {
  if (!request.intent) throw new Error(`request ${request.id} is settling without intent`)
  const offer = openOffer(request, work)
  const found = begun ? await work.facilitator.resolve(offer, request.intent) : { kind: 'open' as const }
  const outcome = found.kind === 'open' ? await work.facilitator.settle(offer, request.intent) : found
  work.metrics.settlements.inc({ outcome: outcome.kind })
  if (outcome.kind === 'paid') return book(request, work, outcome)
  if (outcome.kind === 'unknown') await snooze(request, work, outcome.retryAfterSeconds, outcome.intent)
  else await release(request, work, outcome.reason)
  work.log.warn({ event: 'settlement', outcome: outcome.kind, reason: outcome.reason, request_id: request.id })
  return null
}

/**
 * Answers null when the transaction has paid for another request. The request is then neither completed
 * nor offered for payment again: it stays in `settling`, on the operator's list, until the chain shows what became of it.
 */
async function book(request: WorkingRequest, work: Work, paid: Extract<SettlementOutcome, { kind: 'paid' }>) {
  const { payment, response, proof, logIndex } = paid
  const settlement = { payment, response: { ...response }, proof, log_index: logIndex }
  try {
    return { ...(await advance(work.steps, request, 'settled', { settlement })), payment_sealed: null }
  } catch (error) {
    if (!(error instanceof TransactionTakenError)) throw error
    const { network, transaction } = payment
    work.log.error({ event: 'transaction_taken', request_id: request.id, network, transaction, proof })
    const { intent } = request
    const denied = intent && { ...intent, denied_at: intent.denied_at ?? Math.floor(Date.now() / 1000) }
    await snooze(request, work, PERSIST_SECONDS, denied)
    return null
  }
}

function openOffer(request: WorkingRequest, work: Work): OfferedPayment {
  if (!request.payment_sealed) throw new Error(`request ${request.id} holds no payment`)
  return { payload: openPayload(work.secrets.payload, request.id, request.payment_sealed), bound: request.payment }
}

async function complete(request: WorkingRequest, work: Work) {
  await completeRequest(work.chain, request, new Date())
  work.metrics.moves.inc({ state: 'completed' })
  await work.announcements.add(request.id)
}

async function release(request: WorkingRequest, work: Work, reason: string) {
  const { quoteTtlSeconds } = work.config
  await transact(work.db, (tx) => releasePayment(tx, request, { reason, quoteTtlSeconds }))
  work.metrics.moves.inc({ state: 'unpaid' })
  await work.announcements.add(request.id)
}

/** The running job row is given up and a fresh one takes its place: no attempt is spent, no backoff applies. */
async function snooze(request: WorkingRequest, work: Work, seconds: number, intent?: SettlementIntent | null) {
  const runAt = new Date(Date.now() + seconds * 1000)
  await transact(work.db, async (tx) => {
    if (!(await holdsRequest(tx, request))) return
    if (intent && !isDeepStrictEqual(intent, request.intent)) await noteIntent(tx, request, intent)
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
  if (error instanceof OriginBusy || error instanceof AssessorBusy) return queueUp(error, request, work)
  const mayFail = request.state === 'accepted' || request.state === 'observed' || request.state === 'assessed'
  if (mayFail && error instanceof AppError) return fail(request, work, error)
  work.log.error({ event: 'verification_error', request_id: request.id, state: request.state, err: error })
  if (!turn.last) throw error
  if (mayFail) return fail(request, work, new AppError('execution_failed', 'The work could not be done.'))
  return snooze(request, work, PERSIST_SECONDS)
}

/** Validity that must be left of the payment when the work begins. */
const MIN_VALIDITY_SECONDS = 60

/** Waits in the queue for the source's turn or the assessor, as long as the payment would still hold afterwards. */
async function queueUp(busy: OriginBusy | AssessorBusy, request: WorkingRequest, work: Work): Promise<void> {
  work.log.info({ event: 'put_off', request_id: request.id, reason: busy.name, seconds: busy.retryAfterSeconds })
  const left = request.payment.valid_before - Date.now() / 1000
  if (left - busy.retryAfterSeconds > MIN_VALIDITY_SECONDS) return snooze(request, work, busy.retryAfterSeconds)
  return fail(request, work, busy instanceof OriginBusy ? tooBusy(busy) : new AppError('assessment_failed', NO_MODEL))
}

function tooBusy({ cause }: OriginBusy): AppError {
  return cause instanceof AppError ? cause : new AppError('source_timeout', 'The source is asked by too many at once.')
}

const NO_MODEL = 'The assessing model did not answer while the payment held. Nothing was charged.'

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
