// One verification, from its stored state to its end: observe, assess, settle, complete. A step that cannot be repeated, or
// that costs money, has a commit before and after it; a committed stage is never repeated. After a crash at any point the
// next attempt reads the state and continues there. The attempt token prevents commits of a worker that was wrongly taken
// for dead.
//
//   commit                                            what a crash before it repeats
//   observed (only with a model)                      the fetch
//   assessed (only with a model)                      the question to the model
//   observed, assessed (without a model), settling    fetch and literal assessment
//   settled, completed, receipt                       nothing: the chain is asked for the payment, and only if it was not
//                                                     made, the facilitator gets the same authorization again
import type { Payload } from '../server/db/jobs.ts'
import { annotate, inSpan, inTrace, processing } from '../server/tracing/spans.ts'
import { completeRequest } from '../server/verification/completion.ts'
import { claimRequest, type WorkingRequest } from '../server/verification/request.ts'
import { awaitProof, prepareSettlement, settle } from '../server/verification/settlement.ts'
import { commit, TransactionTakenError } from '../server/verification/steps.ts'
import { assess } from './assessment-stage.ts'
import type { Work } from './context.ts'
import { handleFailure, type JobAttempt } from './failure.ts'
import { isOutdated, observe } from './observation-stage.ts'

export async function verifyRequest(
  { request_id }: Payload<'verify_request'>,
  work: Work,
  job: JobAttempt,
): Promise<void> {
  const request = await claimRequest(work.claims, request_id, work.id.make())
  if (!request) return
  const attributes = { 'countersign.request_id': request_id, 'countersign.request.state': request.state }
  await inTrace(work.tracing, ...processing('verify_request', { parent: request, attributes }), () =>
    runStages(request, work, job),
  )
}

async function runStages(claimed: WorkingRequest, work: Work, job: JobAttempt): Promise<void> {
  let request: WorkingRequest | null = claimed
  const begun = request.state === 'settling'
  const spent: StageSeconds = {}
  // The request after its last stage. A stage that stops returns null.
  let held = request
  try {
    while (request && needsWork(request, work)) {
      held = request
      const isToBeRead: boolean = request.state === 'accepted' || isOutdated(request, work)
      request = isToBeRead
        ? await timed(spent, work, 'observe', () => observe(held, work, job))
        : await timed(spent, work, 'assess', () => assess(held, work, job.signal))
    }
    held = request ?? held
    if (request?.state === 'assessed') request = await timed(spent, work, 'intend', () => prepareSettlement(held, work))
    held = request ?? held
    if (request?.state === 'settling')
      request = await timed(spent, work, 'settle', () =>
        unlessStopping(job.signal, () => settle(held, work, { begun })),
      )
    held = request ?? held
    // The settlement is committed alone: if it made an earlier attempt fail, it must not make the receipts of other
    // requests fail.
    if (request && begun) held = request = await commit(work.steps, request)
    if (request?.state === 'settled') {
      await timed(spent, work, 'complete', () => complete(held, work))
      logCompleted(request, work, spent)
    }
  } catch (error) {
    if (error instanceof TransactionTakenError) await awaitProof(held, work)
    else await handleFailure(error, held, work, job)
  }
}

/** Whether work is left before the settlement. */
function needsWork(request: WorkingRequest, work: Work): boolean {
  return request.state === 'accepted' || request.state === 'observed' || isOutdated(request, work)
}

async function complete(request: WorkingRequest, work: Work) {
  await completeRequest(request, work, new Date(work.now()))
  work.metrics.moves.inc({ state: 'completed' })
  if (request.assessment) work.metrics.completed.inc({ verdict: request.assessment.claim_support })
  work.metrics.resultSeconds.observe(Math.max(0, (work.now() - request.accepted_at.getTime()) / 1000))
  await work.changeEvents.add(request.id)
}

/**
 * Rejects when the process has to stop. A facilitator may take a minute, which is longer than the process then has; the next attempt
 * asks the chain first, as after a crash.
 */
async function unlessStopping<T>(signal: AbortSignal, run: () => Promise<T>): Promise<T> {
  signal.throwIfAborted()
  const stopped = Promise.withResolvers<never>()
  const stop = () => stopped.reject(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  const running = run()
  // It is not awaited after a stop.
  running.catch(() => {})
  try {
    return await Promise.race([running, stopped.promise])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** Seconds that this attempt spent in each stage. */
type StageSeconds = Record<string, number>

/** Logs the line of a completed verification; workers/failure.ts logs the line of a failed one. */
function logCompleted(
  { id, body, stored, assessment, settlement }: WorkingRequest,
  { log }: Work,
  spent: StageSeconds,
) {
  annotate({ 'countersign.verdict': assessment?.claim_support, 'countersign.cache_hit': stored?.cache_hit })
  log.info({
    event: 'verification_completed',
    request_id: id,
    host: new URL(body.source_url).host,
    verdict: assessment?.claim_support,
    seconds: spent,
    cache_hit: stored?.cache_hit,
    payment: settlement?.payment.mode,
  })
}

async function timed<T>(spent: StageSeconds, work: Work, stage: string, run: () => Promise<T>): Promise<T> {
  const end = work.metrics.stageSeconds.startTimer({ stage })
  try {
    return await inSpan(`verification.${stage}`, {}, run)
  } finally {
    spent[stage] = Math.round(((spent[stage] ?? 0) + end()) * 1000) / 1000
  }
}
