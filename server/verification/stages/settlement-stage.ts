// The stage in which the facilitator is asked for the money. A facilitator may take a minute for one payment, and its payer may be the
// cause, so a slow settlement leaves its job: the places of the queue are for others meanwhile.
import type { WorkingRequest } from '../request.ts'
import { handleFailure } from './failure.ts'
import { askForOutcome, awaitProof, enterOutcome } from './settlement.ts'
import { postponeRequests } from './slow-work.ts'
import { snooze } from './snooze.ts'
import type { JobAttempt, VerificationTools } from './stage-tools.ts'
import { commit, TransactionTakenError } from './steps.ts'

/**
 * Settles the payment. Answers null while the outcome is open, when nothing was charged, and when the facilitator is slow: the request
 * then continues in another job when it has answered.
 * @param options `begun`: whether an earlier attempt has begun the settlement
 */
export async function settle(
  request: WorkingRequest,
  work: VerificationTools,
  job: JobAttempt,
  options: { begun: boolean },
): Promise<WorkingRequest | null> {
  const stopping = new AbortController()
  const signal = AbortSignal.any([job.signal, stopping.signal])
  const asking = unlessStopping(signal, () => askForOutcome(request, work, options))
  // The last attempt keeps its job, as in the stage that reads the page.
  if (job.attemptsLeft === 0 || (await work.slowWork.isQuick(asking, 'settlement')))
    return enterOutcome(request, work, await asking, options)
  // Until `asking` is awaited again, a rejection has no other listener.
  asking.catch(() => {})
  const left = { id: request.id, attempt: request.attempt, attemptsLeft: job.attemptsLeft }
  await work.slowWork.keep(left, { postpone: postponeRequests, end: stopping }, async (release) => {
    let held = request
    try {
      const outcome = await asking
      // Before the row gets another job. A crash from here on is one between the facilitator's answer and its commit.
      await release()
      const settled = await enterOutcome(request, work, outcome, options)
      if (!settled) return
      held = settled
      held = await commit(work.steps, settled)
      await snooze(held, work, { seconds: 0 })
    } catch (error) {
      await release()
      await handleSettlementFailure(error, held, work, { signal, attemptsLeft: 0 })
    }
  })
  return null
}

/** As handleFailure; a settlement whose transaction has paid for another request waits for proof. */
export async function handleSettlementFailure(
  error: unknown,
  request: WorkingRequest,
  work: VerificationTools,
  job: JobAttempt,
): Promise<void> {
  if (error instanceof TransactionTakenError) await awaitProof(request, work)
  else await handleFailure(error, request, work, job)
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
