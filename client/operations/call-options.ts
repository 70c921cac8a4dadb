// How one call of an operation is made, beside its input: time limits, credentials, idempotency, preconditions.

export interface CallOptions {
  signal?: AbortSignal
  /** Milliseconds for the whole answer; default 60,000. */
  timeoutMs?: number
}

export interface KeyedCallOptions extends CallOptions {
  /** A repeat with the same key and the same input gets the same answer. Generated when left out; an error carries it. */
  idempotencyKey?: string
}

export interface RecoveryCallOptions extends CallOptions {
  /** The token that came with the purchase. */
  recoveryToken: string
}

export interface ProofCallOptions extends CallOptions {
  /** The value of the `PAYMENT-SIGNATURE` header that was sent: its holder is the payer. */
  paymentSignature: string
}

export interface ConditionalCallOptions extends CallOptions {
  /** `*`, or entity tags as an answer gave them: fails with `precondition_failed` in another state than these. */
  ifMatch?: string
  /** `*`, or entity tags: fails with `precondition_failed` in one of these states. For a read, see there. */
  ifNoneMatch?: string
}
