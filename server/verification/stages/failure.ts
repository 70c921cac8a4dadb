// The consequence of an error for a verification: the request waits, fails without a charge, or is left to the queue's next
// attempt.

import { AssessorBusyError } from '../../../workers/assessment/semantic/circuit.ts'
import { OriginBusyError } from '../../../workers/retrieval/origin-wait.ts'
import { waitForTurn } from '../../../workers/retrieval/origins.ts'
import { isConnectionLoss } from '../../db/connection-loss.ts'
import { transact } from '../../db/pool.ts'
import { AppError } from '../../errors.ts'
import { isThreadShortage } from '../../threads/pool.ts'
import { annotate } from '../../tracing/spans.ts'
import {
  failRequest,
  holdsRequest,
  requestErrorOf,
  StaleAttemptError,
  storeWaiting,
  type WorkingRequest,
} from '../request.ts'
import { jobOf } from './job.ts'
import { PERSIST_SECONDS } from './settlement.ts'
import { inSeconds, snooze } from './snooze.ts'
import type { JobAttempt, VerificationTools } from './stage-tools.ts'

/** Validity that must be left of the payment when the work begins. */
export const MIN_VALIDITY_SECONDS = 60

/** Postpones the request or fails it. An error that the next attempt of the queue may not have is thrown again. */
export async function handleFailure(
  error: unknown,
  request: WorkingRequest,
  work: VerificationTools,
  job: JobAttempt,
): Promise<void> {
  if (error instanceof StaleAttemptError) {
    work.log.info({ event: 'fenced', request_id: request.id, message: error.message })
    return
  }
  if (job.signal.aborted) return snooze(request, work, { seconds: 0 })
  if (error instanceof OriginBusyError) return waitForOrigin(error, request, work)
  if (error instanceof AssessorBusyError) return waitForModel(error, request, work)
  if (isThreadShortage(error)) return waitForThread(request, work)
  // At the last attempt as well: the job runs again and spends no attempt (see throughOutages).
  if (isConnectionLoss(error)) throw error
  const mayFail = request.state === 'accepted' || request.state === 'observed' || request.state === 'assessed'
  if (mayFail && error instanceof AppError) return fail(request, work, error)
  work.log.error({ event: 'verification_error', request_id: request.id, state: request.state, err: error })
  if (job.attemptsLeft > 0) throw error
  if (mayFail) return fail(request, work, new AppError('execution_failed', 'The work could not be done.'))
  return snooze(request, work, { seconds: PERSIST_SECONDS })
}

/** Seconds until the payment is too short for the work that is left. */
function secondsLeft({ payment }: WorkingRequest): number {
  return payment.valid_before - Date.now() / 1000 - MIN_VALIDITY_SECONDS
}

/** Waits in the line of the origin, as long as the payment would still be valid afterwards. */
async function waitForOrigin(busy: OriginBusyError, request: WorkingRequest, work: VerificationTools): Promise<void> {
  const { asked, retryAfterSeconds } = busy
  work.log.info({ event: 'put_off', request_id: request.id, reason: busy.name, seconds: retryAfterSeconds, asked })
  const job = { name: 'verify_request' as const, payload: { request_id: request.id }, ...jobOf(request) }
  const wait = { job, since: request.changed_at, url: request.body.source_url, secondsLeft: secondsLeft(request) }
  const refusal = await waitForTurn(work.origins, busy, wait, async (tx, waiting) => {
    if (!(await holdsRequest(tx, request))) return false
    await storeWaiting(tx, request, waiting)
    return true
  })
  if (refusal) await fail(request, work, refusal)
}

/** Waits for the model, as long as the payment would still be valid afterwards. */
async function waitForModel(busy: AssessorBusyError, request: WorkingRequest, work: VerificationTools): Promise<void> {
  const { retryAfterSeconds: seconds } = busy
  // An outage of the model is logged once (see assessment/anthropic.ts).
  work.log.debug({ event: 'put_off', request_id: request.id, reason: busy.name, seconds })
  if (secondsLeft(request) > seconds)
    return snooze(request, work, { seconds, waiting: { for: 'model', until: inSeconds(seconds) } })
  return fail(request, work, new AppError('capacity_exceeded', NO_MODEL))
}

const NO_MODEL = 'The assessing model did not answer while the payment was valid. Nothing was charged.'

/** Waits for a free thread, as long as the payment would still be valid afterwards. The page has no part in this. */
async function waitForThread(request: WorkingRequest, work: VerificationTools): Promise<void> {
  work.log.info({ event: 'put_off', request_id: request.id, reason: 'no thread is free', seconds: THREAD_SECONDS })
  if (secondsLeft(request) > THREAD_SECONDS) return snooze(request, work, { seconds: THREAD_SECONDS })
  return fail(request, work, new AppError('capacity_exceeded', NO_THREAD))
}

/** Seconds until a request that found no thread is tried again. */
export const THREAD_SECONDS = 5
export const NO_THREAD = 'The service was too busy to read this page. The page is not the cause.'

async function fail(request: WorkingRequest, work: VerificationTools, error: AppError) {
  const { maxInFlightPerPayer } = work.config
  try {
    await transact(work.db, (tx) => failRequest(tx, request, requestErrorOf(error), maxInFlightPerPayer))
  } catch (refusal) {
    if (refusal instanceof StaleAttemptError) return
    throw refusal
  }
  work.metrics.moves.inc({ state: 'failed' })
  annotate({ 'error.type': error.code })
  work.metrics.failures.inc({ code: error.code })
  const { host } = new URL(request.body.source_url)
  work.log.info({
    event: 'verification_failed',
    request_id: request.id,
    host,
    code: error.code,
    payment: 'not charged',
  })
  await work.changeEvents.add(request.id)
}
