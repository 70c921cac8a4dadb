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
import type { Payload } from '../../db/jobs.ts'
import { annotate, inSpan, inTrace, processing } from '../../tracing/spans.ts'
import { claimRequest, type State, type WorkingRequest } from '../request.ts'
import { assess } from './assessment-stage.ts'
import { completeRequest } from './completion.ts'
import { isOutdated, observe } from './observation-stage.ts'
import { prepareSettlement } from './settlement.ts'
import { handleSettlementFailure, settle } from './settlement-stage.ts'
import type { JobAttempt, VerificationTools } from './stage-tools.ts'
import { commit } from './steps.ts'

export async function verifyRequest(
  { request_id }: Payload<'verify_request'>,
  work: VerificationTools,
  job: JobAttempt,
): Promise<void> {
  const request = await claimRequest(work.claims, request_id, work.id.make())
  if (!request) return
  const attributes = { 'countersign.request_id': request_id, 'countersign.request.state': request.state }
  await inTrace(work.tracing, ...processing('verify_request', { parent: request, attributes }), () =>
    runStages(request, work, job),
  )
}

/** One run of a job, from the state in which it found its request. */
interface Attempt {
  work: VerificationTools
  job: JobAttempt
  /** Whether an earlier attempt has begun the settlement. */
  begun: boolean
}

interface Stage {
  /** In metrics, spans and the log. */
  name: string
  /** Null when the attempt ends here: the request waits, or its payment was released. */
  run(request: WorkingRequest, attempt: Attempt): Promise<WorkingRequest | null>
}

const OBSERVE: Stage = { name: 'observe', run: (request, { work, job }) => observe(request, work, job) }

/** What is done with a request in each state. The other states are ends. */
const STAGES: Partial<Record<State, Stage>> = {
  accepted: OBSERVE,
  observed: { name: 'assess', run: (request, { work, job }) => assess(request, work, job.signal) },
  assessed: { name: 'intend', run: (request, { work }) => prepareSettlement(request, work) },
  settling: { name: 'settle', run: (request, { work, job, begun }) => settle(request, work, job, { begun }) },
  settled: { name: 'complete', run: (request, { work }) => complete(request, work) },
}

function stageOf(request: WorkingRequest, work: VerificationTools): Stage | undefined {
  return isOutdated(request, work) ? OBSERVE : STAGES[request.state]
}

async function runStages(claimed: WorkingRequest, work: VerificationTools, job: JobAttempt): Promise<void> {
  const attempt: Attempt = { work, job, begun: claimed.state === 'settling' }
  const spent: StageSeconds = {}
  let request = claimed
  try {
    for (let stage = stageOf(request, work); stage; stage = stageOf(request, work)) {
      const { name, run } = stage
      const next = await timed(spent, work, name, () => run(request, attempt))
      if (!next) return
      request = next
      // Such a settlement is committed alone: if it made an earlier attempt fail, it must not make the receipts of other requests
      // fail.
      if (name === 'settle' && attempt.begun) request = await commit(work.steps, request)
    }
    logCompleted(request, work, spent)
  } catch (error) {
    await handleSettlementFailure(error, request, work, job)
  }
}

async function complete(request: WorkingRequest, work: VerificationTools): Promise<WorkingRequest> {
  await completeRequest(request, work, new Date(work.now()))
  work.metrics.moves.inc({ state: 'completed' })
  const verdict = verdictOf(request)
  if (verdict) work.metrics.completed.inc({ verdict })
  work.metrics.resultSeconds.observe(Math.max(0, (work.now() - request.accepted_at.getTime()) / 1000))
  await work.changeEvents.add(request.id)
  return { ...request, state: 'completed' }
}

/** The verdict by which a completed request is counted and logged: one of many claims is counted once, as such. */
function verdictOf({ assessment }: WorkingRequest): string | undefined {
  if (!assessment) return undefined
  return 'claims' in assessment ? 'source_claims' : assessment.claim_support
}

/** Seconds that this attempt spent in each stage. */
type StageSeconds = Record<string, number>

/** Logs the line of a completed verification; server/verification/stages/failure.ts logs the line of a failed one. */
function logCompleted(request: WorkingRequest, { log }: VerificationTools, spent: StageSeconds) {
  const { id, body, stored, settlement } = request
  const verdict = verdictOf(request)
  annotate({ 'countersign.verdict': verdict, 'countersign.cache_hit': stored?.cache_hit })
  log.info({
    event: 'verification_completed',
    request_id: id,
    host: new URL(body.source_url).host,
    verdict,
    seconds: spent,
    cache_hit: stored?.cache_hit,
    payment: settlement?.payment.mode,
  })
}

async function timed<T>(
  spent: StageSeconds,
  work: VerificationTools,
  stage: string,
  run: () => Promise<T>,
): Promise<T> {
  const end = work.metrics.stageSeconds.startTimer({ stage })
  try {
    return await inSpan(`verification.${stage}`, {}, run)
  } finally {
    spent[stage] = Math.round(((spent[stage] ?? 0) + end()) * 1000) / 1000
  }
}
