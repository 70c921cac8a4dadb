// The job of one free look: reads the page and judges the claim with the functions of a purchase, and stores the answer. Nothing
// is settled, and no receipt is made.

import { AssessorBusyError } from '../../workers/assessment/semantic/circuit.ts'
import { observeSource } from '../../workers/retrieval/observation.ts'
import { MAX_PAUSE_SECONDS, OriginBusyError } from '../../workers/retrieval/origin-wait.ts'
import { waitForTurn } from '../../workers/retrieval/origins.ts'
import { isConnectionLoss } from '../db/connection-loss.ts'
import { enqueue, type Payload } from '../db/jobs.ts'
import { transact } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import type { Observation } from '../interface/observation.ts'
import { DEFAULT_MAX_AGE_SECONDS } from '../interface/result.ts'
import { isThreadShortage, type Lane } from '../threads/pool.ts'
import { judgeClaim } from '../verification/assessment-stage.ts'
import { NO_THREAD, THREAD_SECONDS } from '../verification/failure.ts'
import type { Waiting } from '../verification/request.ts'
import { inSeconds } from '../verification/snooze.ts'
import type { JobAttempt, VerificationTools as Work } from '../verification/stage-tools.ts'
import {
  claimLook,
  completeLook,
  composeLook,
  enterStage,
  failLook,
  holdsLook,
  lookJob,
  postponeLooks,
  type Stage,
  storeWait,
  type WorkingLook,
} from './look.ts'
import { observeSample } from './sample-observation.ts'

/** Seconds after which a look is tried again if this process has no place for it. */
const ROOM_SECONDS = 2

export async function takeLook({ look_id }: Payload<'take_look'>, work: Work, job: JobAttempt): Promise<void> {
  const look = await claimLook(work.db, look_id, work.id.make())
  if (!look) return
  try {
    if (!work.slowFetches.admitsFree()) return await handBack(look, work, ROOM_SECONDS)
    await readAndJudge(look, work, job)
  } catch (error) {
    await handleFailure(error, look, work, job)
  }
}

/** A slow fetch continues without this job (see slow-fetches.ts), and answers the look itself. */
async function readAndJudge(look: WorkingLook, work: Work, job: JobAttempt): Promise<void> {
  const stopping = new AbortController()
  const signal = AbortSignal.any([job.signal, stopping.signal])
  await enter('reading', look, work)
  const fetching = observe(look, work, signal)
  // The last attempt keeps its job, so that a page that crashes its worker cannot do that without end.
  if (job.attemptsLeft === 0 || (await work.slowFetches.isQuick(fetching)))
    return judge(look, await fetching, work, signal)
  // Until `fetching` is awaited again, a rejection has no other listener.
  fetching.catch(() => {})
  const left = { id: look.id, attempt: look.attempt, attemptsLeft: job.attemptsLeft }
  await work.slowFetches.keep(left, { postpone: postponeLooks, end: stopping }, async (settle) => {
    try {
      await judge(look, await fetching, work, signal)
      await settle()
    } catch (error) {
      await settle()
      await handleFailure(error, look, work, { signal, attemptsLeft: 0 })
    }
  })
}

/** A page comes from the cache that purchases use, or is read into it; a sample from the service itself. */
async function observe(look: WorkingLook, work: Work, signal: AbortSignal): Promise<Observation> {
  const { body, sample } = look
  const lane = lookLane(look)
  if (sample !== null) return observeSample(sample, body.source_url, work, { signal, lane })
  const visit = () => observeSource(body.source_url, work, { signal, jobKey: lookJob(look).key, lane })
  return (await work.cache.observe(body.source_url, DEFAULT_MAX_AGE_SECONDS, visit, signal)).observation
}

async function judge(look: WorkingLook, observation: Observation, work: Work, signal: AbortSignal) {
  const { id, body } = look
  await enter('assessing', look, work)
  const until = look.changed_at.getTime() + MAX_PAUSE_SECONDS * 1000
  const task = { claim: body.claim, observation, signal, until, lane: lookLane(look) }
  const assessment = await judgeClaim(task, work)
  if (!(await completeLook(work.db, look, composeLook(body, observation, assessment)))) return
  const verdict = assessment.claim_support
  work.metrics.looks.inc({ outcome: verdict })
  work.log.info({ event: 'look_completed', look_id: id, verdict, sample: look.sample ?? undefined })
  await work.changeEvents.add(id)
}

async function enter(stage: Stage, look: WorkingLook, { db, changeEvents }: Work) {
  await enterStage(db, look, stage)
  await changeEvents.add(look.id)
}

/** Postpones the look or fails it. An error that the next attempt of the queue may not have is thrown again. */
async function handleFailure(error: unknown, look: WorkingLook, work: Work, job: JobAttempt): Promise<void> {
  if (job.signal.aborted) return handBack(look, work, 0)
  if (error instanceof OriginBusyError) return waitForOrigin(error, look, work)
  if (error instanceof AssessorBusyError) return waitForModel(error, look, work)
  if (isThreadShortage(error)) return waitForThread(look, work)
  if (error instanceof AppError) return fail(look, work, error)
  if (isConnectionLoss(error)) throw error
  work.log.error({ event: 'look_error', look_id: look.id, err: error })
  if (job.attemptsLeft > 0) throw error
  await fail(look, work, new AppError('execution_failed', 'The work could not be done.'))
}

/** Waits for a free thread, in total at most as long as for a host. */
function waitForThread(look: WorkingLook, work: Work): Promise<void> {
  if (secondsLeft(look) > THREAD_SECONDS) return handBack(look, work, THREAD_SECONDS)
  return fail(look, work, new AppError('capacity_exceeded', NO_THREAD))
}

function waitForModel({ retryAfterSeconds: seconds }: AssessorBusyError, look: WorkingLook, work: Work): Promise<void> {
  if (secondsLeft(look) > seconds) return handBack(look, work, seconds, { for: 'model', until: inSeconds(seconds) })
  return fail(look, work, new AppError('capacity_exceeded', 'The assessing model did not answer in time.'))
}

/** Stores a new job in place of the running one: no attempt is spent, and no backoff applies. */
async function handBack(look: WorkingLook, { db }: Work, seconds: number, wait?: Waiting): Promise<void> {
  const runAt = new Date(Date.now() + seconds * 1000)
  await transact(db, async (tx) => {
    if (!(await holdsLook(tx, look))) return
    if (wait) await storeWait(tx, look.id, wait)
    await enqueue(tx, [{ ...lookJob(look), runAt }])
  })
}

/** Waits in the line of the origin, in total at most as long as a host may ask for. */
async function waitForOrigin(busy: OriginBusyError, look: WorkingLook, work: Work): Promise<void> {
  const wait = { job: lookJob(look), since: look.changed_at, url: look.body.source_url, secondsLeft: secondsLeft(look) }
  const refusal = await waitForTurn(work.origins, busy, wait, async (tx, waiting) => {
    if (!(await holdsLook(tx, look))) return false
    await storeWait(tx, look.id, waiting)
    return true
  })
  if (refusal) await fail(look, work, refusal)
}

/** Seconds for which the look may still wait. */
const secondsLeft = (look: WorkingLook) => MAX_PAUSE_SECONDS - (Date.now() - look.changed_at.getTime()) / 1000

async function fail(look: WorkingLook, work: Work, error: AppError): Promise<void> {
  if (!(await failLook(work.db, look, error))) return
  work.metrics.looks.inc({ outcome: 'failed' })
  work.log.info({ event: 'look_failed', look_id: look.id, code: error.code })
  await work.changeEvents.add(look.id)
}

/** The lane of a look, for which no purchase pays. */
function lookLane({ address_key, domain }: WorkingLook): Lane {
  return { payer: address_key, domain, isFree: true }
}
