// Fetches a result with its token, as often as the service asks, and reports the progress each time. The token goes to the
// service of this page alone, as a bearer, and into no address.
import { readAnswer } from '../../answer.ts'
import { type Clock, systemClock } from '../../clock.ts'
import type { Failure } from '../../error.ts'
import { PURCHASE } from '../../operations/operations.ts'
import type { PurchaseResult } from '../../result.ts'

export type Recovery =
  | { state: 'asking' }
  /** `isAtWork`: the service says that it is; else it did not answer, or not now. `seconds`: until it is asked again. */
  | { state: 'pending'; isAtWork: boolean; message: string; seconds: number }
  | { state: 'completed'; result: PurchaseResult; bytes: Uint8Array<ArrayBuffer> }
  | { state: 'refused'; failure: Failure }

export interface Recoverable {
  /** Of the page, with a slash at its end. */
  service: URL
  requestId: string
  token: string
}

/** Ends with `completed` or `refused`, or when the signal aborts, by throwing its reason. */
export async function* recover(
  { service, requestId, token }: Recoverable,
  signal: AbortSignal,
  clock: Clock = systemClock,
): AsyncGenerator<Recovery> {
  yield { state: 'asking' }
  const url = new URL(PURCHASE.recover.path.slice(1).replace('{request_id}', encodeURIComponent(requestId)), service)
  // A redirect would carry the token to another address.
  const init: RequestInit = {
    headers: { authorization: `Bearer ${token}` },
    credentials: 'omit',
    redirect: 'error',
    cache: 'no-store',
    signal,
  }
  for (let failures = 0; ; ) {
    const answer = await fetch(url, init).then(
      (response) => readAnswer(response, clock.now()),
      (error: unknown) => {
        if (signal.aborted) throw error
        return null
      },
    )
    if (answer?.state === 'completed') {
      const { result, bytes } = answer
      return yield { state: 'completed', result, bytes: new Uint8Array(bytes) }
    }
    const failure = answer ? (answer.state === 'refused' ? answer.failure : null) : NO_ANSWER
    const passes = !answer || (answer.state === 'refused' && answer.passing)
    failures = failure ? failures + 1 : 0
    if (failure && (!passes || failures === MAX_FAILURES)) return yield { state: 'refused', failure }
    const ms = answer?.retryAfterMs ?? PAUSE_MS
    yield {
      state: 'pending',
      isAtWork: answer?.state === 'pending',
      message: wordsOf(answer),
      seconds: Math.ceil(ms / 1000),
    }
    await clock.sleep(ms, signal)
  }
}

function wordsOf(answer: Awaited<ReturnType<typeof readAnswer>> | null): string {
  if (answer?.state === 'pending') return answer.message ?? 'The service is still working on it.'
  return answer?.state === 'refused' ? answer.failure.message : 'The service did not answer.'
}

const NO_ANSWER: Failure = { code: 'network_error', message: 'The service did not answer.', retryable: true }
/** Failures in a row that pass by themselves. */
const MAX_FAILURES = 6
const PAUSE_MS = 3000
