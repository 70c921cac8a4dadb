// The requests of one purchase: all have one deadline, and every failure contains the key and the token.
import { type Answer, type Pending, type Refused, readAnswer } from './answer.ts'
import type { Clock } from './clock.ts'
import { type CallReference, type ClientErrorCode, CountersignError, type Failure } from './error.ts'
import { networkFailure } from './network-failure.ts'

/** The part of `fetch` that is used. Must reject when the signal aborts. */
export type Fetch = (url: string, init?: RequestInit) => Promise<Response>

export interface WaitOptions {
  /** Seconds a request may be held open by the service (`Prefer: wait`), 0 to 25; default 25. */
  wait?: number
  /** Milliseconds until `deadline_exceeded`; default 180,000. The purchase itself continues. */
  timeoutMs?: number
  signal?: AbortSignal
}

export class Exchange {
  readonly reference: CallReference
  readonly #clock: Clock
  readonly #wait: number
  readonly #ends: number
  readonly #deadline: AbortSignal
  readonly #signal: AbortSignal

  constructor(clock: Clock, reference: CallReference, { wait = MAX_WAIT_S, timeoutMs = 180_000, signal }: WaitOptions) {
    this.reference = { ...reference }
    this.#clock = clock
    this.#wait = Math.max(0, Math.min(MAX_WAIT_S, Math.trunc(wait)))
    this.#ends = clock.now() + timeoutMs
    this.#deadline = clock.deadline(timeoutMs)
    this.#signal = signal ? AbortSignal.any([signal, this.#deadline]) : this.#deadline
  }

  /** Sends once. A broken connection counts as a transient answer, because the outcome of the request is unknown. */
  async send(fetch: Fetch, url: string, init: RequestInit): Promise<Answer> {
    this.#checkTime(0)
    const headers = { ...(init.headers as Record<string, string>), ...this.#preference() }
    try {
      // A redirect would carry the key, the payment or the token to an address that the caller has not chosen.
      const response = await fetch(url, { ...init, headers, redirect: 'manual', signal: this.#signal })
      return this.#note(await readAnswer(response, this.#clock.now()))
    } catch (cause) {
      if (this.#signal.aborted) throw this.#stopped(cause)
      return broken(url, cause)
    }
  }

  /** Sends until an answer is about the purchase, or too many transient answers came in a row. */
  async persist(send: () => Promise<Answer>): Promise<Answer> {
    for (let failures = 1; ; failures++) {
      const answer = await send()
      if (answer.state !== 'refused' || !answer.passing || failures === MAX_FAILURES) return answer
      await this.pause(answer, failures)
    }
  }

  /** Waits for the seconds of Retry-After, else longer with every failure. */
  async pause(answer: Pending | Refused, failures = 1): Promise<void> {
    const ms = answer.retryAfterMs ?? 1000 * 2 ** (failures - 1)
    this.#checkTime(ms, answer.retryAfterMs !== null)
    await this.#clock.sleep(ms, this.#signal).catch((cause: unknown) => {
      throw this.#stopped(cause)
    })
  }

  error(failure: Failure): CountersignError {
    return new CountersignError(failure, this.reference)
  }

  /** The wait that a request asks for never exceeds the time left. */
  #preference(): Record<string, string> {
    const seconds = Math.min(this.#wait, Math.floor((this.#ends - this.#clock.now()) / 1000))
    return seconds > 0 ? { prefer: `wait=${seconds}` } : {}
  }

  #note(answer: Answer): Answer {
    if (answer.state === 'completed') this.reference.requestId = answer.result.request_id
    if (answer.state === 'pending') this.reference.requestId = answer.requestId ?? this.reference.requestId
    if (answer.state === 'refused') this.reference.requestId = answer.failure.requestId ?? this.reference.requestId
    else this.reference.recoveryToken = answer.recoveryToken ?? this.reference.recoveryToken
    return answer
  }

  /** @param isAsked whether it is the service that asks for the pause */
  #checkTime(ms: number, isAsked = false): void {
    if (this.#signal.aborted) throw this.#stopped(this.#signal.reason)
    if (this.#clock.now() + ms <= this.#ends) return
    const asked = `The service asks to wait ${Math.ceil(ms / 1000)} seconds, which is longer than this call may take.`
    throw this.#late(isAsked ? asked : NOT_IN_TIME)
  }

  #late(words: string, cause?: unknown): CountersignError {
    return this.error(clientFailure('deadline_exceeded', `${words} Repeat with the same key to go on.`, cause))
  }

  #stopped(cause: unknown): CountersignError {
    if (!this.#signal.aborted || this.#deadline.aborted) return this.#late(NOT_IN_TIME, cause)
    return this.error(clientFailure('aborted', 'The caller stopped waiting. Repeat with the same key to go on.', cause))
  }
}

export function clientFailure(code: ClientErrorCode, message: string, cause?: unknown): Failure {
  return { code, message, retryable: !UNSENT.has(code), cause }
}

/** Faults of the call itself, for which nothing was sent. */
const UNSENT: ReadonlySet<ClientErrorCode> = new Set(['invalid_idempotency_key', 'api_key_missing', 'invalid_input'])

const NOT_IN_TIME = 'Not completed in time.'

/** Unpredictable, because a caller who guesses a key can occupy it. */
export function createIdempotencyKey(): string {
  return `cs_${crypto.randomUUID()}`
}

function broken(url: string, cause: unknown): Refused {
  const failure = clientFailure('network_error', networkFailure(url, cause), cause)
  return { state: 'refused', failure, passing: true, retryAfterMs: null }
}

/** The longest wait of the service; its router would cut longer ones off. */
const MAX_WAIT_S = 25
/** Transient failures in a row: at least about half a minute of them. */
const MAX_FAILURES = 6
