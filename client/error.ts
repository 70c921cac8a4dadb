// The one error class of the client. It contains what a caller needs to fetch the purchase later.

/** An x402 v2 PaymentRequired object, as the service sent it. */
export interface PaymentRequired {
  x402Version: number
  accepts: { scheme: string; network: string; amount: string; asset: string; payTo: string; [name: string]: unknown }[]
  [name: string]: unknown
}

/**
 * The service's own codes are passed on unchanged (its documentation lists them). These are the client's:
 * - `invalid_idempotency_key`: not 16 to 128 characters of `A-Z a-z 0-9 _ . : -`; nothing was sent.
 * - `api_key_missing`: an operation of an account, and no option `apiKey`; nothing was sent.
 * - `invalid_input`: a name that cannot be part of an address; nothing was sent.
 * - `network_error`: no answer, several times in a row.
 * - `unexpected_response`: an answer outside the interface, from a proxy for instance.
 * - `deadline_exceeded`: not done in `timeoutMs`. The purchase continues.
 * - `aborted`: the caller's signal. The purchase continues.
 * - `payment_unresolved`: the paying fetch failed, and the service knows of no payment. The payment may still arrive.
 */
export type ClientErrorCode =
  | 'invalid_idempotency_key'
  | 'api_key_missing'
  | 'invalid_input'
  | 'network_error'
  | 'unexpected_response'
  | 'deadline_exceeded'
  | 'aborted'
  | 'payment_unresolved'

export interface Failure {
  code: string
  message: string
  retryable: boolean
  status?: number | null
  requestId?: string | null
  paymentRequired?: PaymentRequired | null
  /** What the service asked to wait. */
  retryAfterMs?: number | null
  cause?: unknown
}

/** What names a call, so that it can be repeated or recovered. */
export interface CallReference {
  idempotencyKey: string | null
  requestId: string | null
  recoveryToken: string | null
}

export class CountersignError extends Error {
  override name = 'CountersignError'
  readonly code: string
  /**
   * Whether the same call with the same key may succeed later. The failed attempt was not charged; the next one needs a
   * new payment.
   */
  readonly retryable: boolean
  /** HTTP status; null without an answer. */
  readonly status: number | null
  /** Whole seconds to wait before the next attempt, where the service named them. */
  readonly retryAfter: number | null
  readonly requestId: string | null
  /** Repeat a purchase only with this key, which prevents a second payment. */
  readonly idempotencyKey: string | null
  /** The terms, where the service asked for payment. */
  readonly paymentRequired: PaymentRequired | null
  // Private, so that a printed or serialised error does not show it.
  readonly #recoveryToken: string | null

  constructor(
    failure: Failure,
    reference: CallReference = { idempotencyKey: null, requestId: null, recoveryToken: null },
  ) {
    super(failure.message, { cause: failure.cause })
    this.code = failure.code
    this.retryable = failure.retryable
    this.status = failure.status ?? null
    this.retryAfter = typeof failure.retryAfterMs === 'number' ? Math.ceil(failure.retryAfterMs / 1000) : null
    this.requestId = failure.requestId ?? reference.requestId
    this.idempotencyKey = reference.idempotencyKey
    this.paymentRequired = failure.paymentRequired ?? null
    this.#recoveryToken = reference.recoveryToken
  }

  /**
   * The credential for `recover`, if the service gave one. A secret: it is neither printed nor serialised with the
   * error.
   */
  get recoveryToken(): string | null {
    return this.#recoveryToken
  }
}
