// The consequence of an error for a verification: the request waits, fails without a charge, or is left to the queue's next
// attempt.
import { isConnectionLoss } from '../server/db/connection-loss.ts'
import { transact } from '../server/db/pool.ts'
import { AppError } from '../server/errors.ts'
import { annotate } from '../server/tracing/spans.ts'
import { failRequest, requestErrorOf, StaleAttemptError, type WorkingRequest } from '../server/verification/request.ts'
import { PERSIST_SECONDS } from '../server/verification/settlement.ts'
import { inSeconds, snooze } from '../server/verification/snooze.ts'
import { AssessorBusyError } from './assessment/circuit.ts'
import type { Work } from './context.ts'
import { describeAsked, OriginBusyError } from './retrieval/origins.ts'

/** One run of a job, as the queue describes it. */
export interface JobAttempt {
  /** Aborts when the process has to stop; the request is then handed back and does not fail. */
  signal: AbortSignal
  /** Attempts that may follow this one; 0 for the last. */
  attemptsLeft: number
}

/** Validity that must be left of the payment when the work begins. */
export const MIN_VALIDITY_SECONDS = 60

/** Postpones the request or fails it. An error that the next attempt of the queue may not have is thrown again. */
export async function handleFailure(
  error: unknown,
  request: WorkingRequest,
  work: Work,
  job: JobAttempt,
): Promise<void> {
  if (error instanceof StaleAttemptError) {
    work.log.info({ event: 'fenced', request_id: request.id, message: error.message })
    return
  }
  if (job.signal.aborted) return snooze(request, work, { seconds: 0 })
  if (error instanceof OriginBusyError) return waitForOrigin(error, request, work)
  if (error instanceof AssessorBusyError) return waitForModel(error, request, work)
  // At the last attempt as well: the queue gives the job back, and spends no attempt (see InterruptedError).
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

/** A job in a line is woken when its turn is free. If the wake-up is lost, the job runs by itself after so many seconds. */
const RECHECK_SECONDS = 60

/** Waits in the line of the origin, as long as the payment would still be valid afterwards. */
async function waitForOrigin(busy: OriginBusyError, request: WorkingRequest, work: Work): Promise<void> {
  const { asked, retryAfterSeconds } = busy
  work.log.info({ event: 'put_off', request_id: request.id, reason: busy.name, seconds: retryAfterSeconds, asked })
  const left = secondsLeft(request)
  if (left <= (asked ? retryAfterSeconds : 0))
    return fail(request, work, new AppError('source_rate_limited', tooLong(busy)))
  const host = new URL(request.body.source_url).hostname
  const seconds = Math.min(left, asked ? Math.max(retryAfterSeconds, RECHECK_SECONDS) : RECHECK_SECONDS)
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
  if (!asked) return 'Too many requests wait for this host: the payment would expire before this one is made.'
  return `${describeAsked(asked)} The payment is not valid for that long.`
}

/** Waits for the model, as long as the payment would still be valid afterwards. */
async function waitForModel(busy: AssessorBusyError, request: WorkingRequest, work: Work): Promise<void> {
  const { retryAfterSeconds: seconds } = busy
  // An outage of the model is logged once (see assessment/anthropic.ts).
  work.log.debug({ event: 'put_off', request_id: request.id, reason: busy.name, seconds })
  if (secondsLeft(request) > seconds)
    return snooze(request, work, { seconds, waiting: { for: 'model', until: inSeconds(seconds) } })
  return fail(request, work, new AppError('assessment_failed', NO_MODEL))
}

const NO_MODEL = 'The assessing model did not answer while the payment was valid. Nothing was charged.'

async function fail(request: WorkingRequest, work: Work, error: AppError) {
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
