// The first stage of a verification: reads the page, or takes an observation from the cache, and stores it.
import { isDeepStrictEqual } from 'node:util'
import { observeSource } from '../../../workers/retrieval/observation.ts'
import { DEFAULT_MAX_AGE_SECONDS } from '../../interface/result.ts'
import { purchaseLane } from '../lane.ts'
import type { StoredObservation, WorkingRequest } from '../request.ts'
import { handleFailure } from './failure.ts'
import { jobKeyOf } from './job.ts'
import { postponeRequests } from './slow-work.ts'
import { snooze } from './snooze.ts'
import type { JobAttempt, VerificationTools } from './stage-tools.ts'
import { commit, enter } from './steps.ts'

/**
 * Whether a cached observation will be older than the caller accepts when the result is served: the request may have waited
 * for its worker, for the model, or for a second payment. From the settlement on the observation is not replaced.
 */
export function isOutdated(
  { state, stored, body }: WorkingRequest,
  work: Pick<VerificationTools, 'now' | 'settleSeconds'>,
): boolean {
  if ((state !== 'observed' && state !== 'assessed') || !stored?.cache_hit) return false
  const age = (work.now() - Date.parse(stored.observation.checked_at)) / 1000
  // Ages are whole seconds, rounded down.
  return age + work.settleSeconds >= maxAgeOf(body) + 1
}

function maxAgeOf({ options }: WorkingRequest['body']): number {
  return options?.max_age_seconds ?? DEFAULT_MAX_AGE_SECONDS
}

/**
 * Reads the page, or takes an observation that is young enough. An assessment is kept if the page still reads the same.
 * Answers null when the source is slow: the fetch then continues without this job (see slow-work.ts).
 */
export async function observe(
  request: WorkingRequest,
  work: VerificationTools,
  job: JobAttempt,
): Promise<WorkingRequest | null> {
  const stopping = new AbortController()
  const signal = AbortSignal.any([job.signal, stopping.signal])
  const fetching = fetchObservation(request, work, signal)
  // The last attempt keeps its job. A job that is stored again would have new attempts, and a page that crashes its worker
  // could crash workers without end.
  if (job.attemptsLeft === 0 || (await work.slowWork.isQuick(fetching, 'fetch'))) {
    const observed = enterObserved(request, await fetching)
    // A separate commit is worth its time only before something that takes long or costs money.
    return work.assessor.isRepeatable ? observed : commit(work.steps, observed)
  }
  // Until `fetching` is awaited again, a rejection has no other listener.
  fetching.catch(() => {})
  const left = { id: request.id, attempt: request.attempt, attemptsLeft: job.attemptsLeft }
  await work.slowWork.keep(left, { postpone: postponeRequests, end: stopping }, async (release) => {
    try {
      const observed = await commit(work.steps, enterObserved(request, await fetching))
      await release()
      await snooze(observed, work, { seconds: 0 })
    } catch (error) {
      await release()
      await handleFailure(error, request, work, { signal, attemptsLeft: 0 })
    }
  })
  return null
}

/** Throws OriginBusyError when no turn at the origin is free for this request, and a ThreadError when no thread is. */
async function fetchObservation(
  request: WorkingRequest,
  work: VerificationTools,
  signal: AbortSignal,
): Promise<StoredObservation> {
  const { id, state, body } = request
  const lane = purchaseLane(request, work)
  const keep = work.captures?.keep
  const visit = () => observeSource(body.source_url, work, { signal, jobKey: jobKeyOf(id), lane, keep })
  // A request whose cached observation became too old reads the source, because another cached observation could also
  // become too old.
  const maxAge = state === 'accepted' ? maxAgeOf(body) : 0
  const { observation, capture, hit } = await work.cache.observe(body.source_url, maxAge, visit, signal)
  return { observation, cache_hit: hit, ...(capture && { capture }) }
}

function enterObserved(request: WorkingRequest, stored: StoredObservation): WorkingRequest {
  const digests = ({ observation }: StoredObservation) => [
    observation.source.content_sha256,
    observation.source.text_sha256,
  ]
  const isSame = request.stored !== null && isDeepStrictEqual(digests(request.stored), digests(stored))
  return enter(request, isSame && request.assessment ? 'assessed' : 'observed', { stored })
}
