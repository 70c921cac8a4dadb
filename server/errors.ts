// Every failure that a caller can get. Callers branch on the code, so a code is never renamed or reused; messages are for people
// and may change. The documentation and the tests read this table.
import { randomInt } from 'node:crypto'

interface Entry {
  status: number
  /**
   * True: the same call, with the same Idempotency-Key where it has one, may succeed later. False where the caller has to change
   * something first.
   */
  retryable: boolean
  /** Whether a single AppError may differ in `retryable` from the table; `about` then says when. */
  varies?: true
  about: string
}

const table = {
  invalid_request: { status: 400, retryable: false, about: 'The request does not have the documented form.' },
  invalid_idempotency_key: {
    status: 400,
    retryable: false,
    about: 'Idempotency-Key is missing where it is required, or does not match the pattern of the operation.',
  },
  payment_required: {
    status: 402,
    retryable: true,
    about: 'The terms of payment are in PAYMENT-REQUIRED. Repeat the call, with the same key, with a payment.',
  },
  payment_invalid: {
    status: 402,
    retryable: true,
    about: 'The payment authorization cannot be read or does not meet the terms. Nothing was charged.',
  },
  settlement_failed: {
    status: 402,
    retryable: true,
    about:
      'The payment did not settle, and it is proved that it never will. Nothing was charged; the finished work is kept.',
  },
  unauthenticated: { status: 401, retryable: false, about: 'The request has no valid API key.' },
  forbidden: { status: 403, retryable: false, about: 'The API key does not have the right for this operation.' },
  not_found: { status: 404, retryable: false, about: 'There is no such thing, or this caller may not see it.' },
  tier_limit: { status: 403, retryable: false, about: 'The account already has as many of these as its tier allows.' },
  handle_taken: {
    status: 409,
    retryable: false,
    about: 'Another account has this handle, or it is reserved.',
  },
  already_subscribed: {
    status: 409,
    retryable: false,
    about: 'The account has this tier already, or a subscription that has to be settled first.',
  },
  checkout_superseded: {
    status: 409,
    retryable: true,
    about: 'Another call for the same account began or completed a checkout at the same moment.',
  },
  lease_ended: { status: 409, retryable: false, about: 'The lease is revoked or expired.' },
  precondition_failed: {
    status: 412,
    retryable: false,
    about: 'The condition in If-Match or If-None-Match is not met.',
  },
  idempotency_conflict: {
    status: 409,
    retryable: false,
    about: 'The Idempotency-Key belongs to another request body.',
  },
  payment_conflict: {
    status: 409,
    retryable: false,
    about: 'The payment authorization is bound to another request, or the request to another payment.',
  },
  quote_expired: {
    status: 410,
    retryable: false,
    about: 'The quote was not paid in time. Ask with a new key; this key is free again an hour after the expiry.',
  },
  result_expired: { status: 410, retryable: false, about: 'The result is past its retention and was deleted.' },
  body_too_large: { status: 413, retryable: false, about: 'The request body is too large.' },
  unsupported_media_type: { status: 415, retryable: false, about: 'The operation takes another Content-Type.' },
  budget_exceeded: { status: 422, retryable: false, about: 'The price is above options.max_price_usd.' },
  source_blocked: {
    status: 422,
    retryable: false,
    about: 'The source URL, or an address it leads to, is not a public HTTPS destination on port 443.',
  },
  source_dns_failed: { status: 422, retryable: true, about: 'The host name of the source does not resolve.' },
  source_unreachable: {
    status: 422,
    retryable: true,
    about: 'The service could not connect to the source, or the connection broke.',
  },
  source_timeout: { status: 422, retryable: true, about: 'The source did not answer in time.' },
  source_tls_invalid: {
    status: 422,
    retryable: false,
    about: 'The TLS certificate or handshake of the source is invalid.',
  },
  source_protocol_error: { status: 422, retryable: false, about: 'The source does not answer in valid HTTP/1.1.' },
  source_http_status: {
    status: 422,
    retryable: false,
    varies: true,
    about:
      'The source answered with another status than 200. Retryable after 408, 425, 429 and every status from 500 on, ' +
      'not after any other.',
  },
  source_rate_limited: {
    status: 422,
    retryable: true,
    about: 'The source asked for a pause that is longer than the payment is valid.',
  },
  source_redirect_invalid: { status: 422, retryable: false, about: 'A redirect of the source cannot be followed.' },
  source_too_many_redirects: { status: 422, retryable: false, about: 'The source redirects more than five times.' },
  source_unsupported_type: { status: 422, retryable: false, about: 'The source is neither text/html nor text/plain.' },
  source_headers_too_large: { status: 422, retryable: false, about: 'The response headers exceed 65,536 bytes.' },
  source_too_large: {
    status: 422,
    retryable: false,
    about: 'The response exceeds the limit on wire or decoded bytes.',
  },
  source_encoding_invalid: { status: 422, retryable: false, about: 'The content coding or charset cannot be decoded.' },
  source_too_complex: {
    status: 422,
    retryable: false,
    about: 'The markup exceeds the limits on depth, nodes or time.',
  },
  source_empty: { status: 422, retryable: false, about: 'The source has no visible text.' },
  source_challenge: {
    status: 422,
    retryable: true,
    about:
      'The source answered with a robot check. Sources do that when they are busy, so a later call may get the page.',
  },
  source_login_required: { status: 422, retryable: false, about: 'The source shows its text only after a login.' },
  source_not_found: {
    status: 422,
    retryable: false,
    about: 'The source says, with status 200, that there is no page.',
  },
  source_needs_script: { status: 422, retryable: false, about: 'The source shows its text only where scripts run.' },
  assessment_failed: {
    status: 422,
    retryable: true,
    varies: true,
    about: 'The assessment gave no valid outcome. Not retryable if the model declined the text.',
  },
  cancelled: {
    status: 422,
    retryable: true,
    about: 'The caller, or the operator, withdrew the request. Nothing was charged.',
  },
  execution_failed: { status: 422, retryable: true, about: 'The work could not be done. Nothing was charged.' },
  daily_limit: { status: 429, retryable: true, about: 'A limit for this UTC day is reached. The message names it.' },
  rate_limited: {
    status: 429,
    retryable: true,
    about:
      'Too many requests from this address, account or request, or too many verifications in flight for this payer, address or ' +
      'domain. The message names the limit. Nothing was charged, and the key and the payment stay free.',
  },
  verification_disabled: { status: 503, retryable: true, about: 'Verification is switched off.' },
  capacity_exceeded: { status: 503, retryable: true, about: 'Too many requests are waiting.' },
  provider_unavailable: {
    status: 503,
    retryable: true,
    about: 'A service that is needed, such as the database or the model, does not answer.',
  },
  internal_error: {
    status: 503,
    retryable: true,
    about: 'A fault of the service. The same request may be sent again.',
  },
} as const satisfies Record<string, Entry>

export type ErrorCode = keyof typeof table

/** In the order of the table. The cast is safe: the table is written above, and has no member that its type does not name. */
export const ERROR_CODES = Object.keys(table) as ErrorCode[]

/** Code → status, retryable, meaning. Widened, so that it can be walked. */
export const errorTable: Readonly<Record<ErrorCode, Entry>> = table

/** In words, whether a call that failed with this code is to be repeated. */
export function retryRule(code: ErrorCode): 'retryable' | 'retryable in some cases' | 'not retryable' {
  const { retryable, varies } = errorTable[code]
  if (varies) return 'retryable in some cases'
  return retryable ? 'retryable' : 'not retryable'
}

/** A failure that a caller can act on. Anything else that is thrown is a fault of the service, answered as `internal_error`. */
export class AppError extends Error {
  override name = 'AppError'
  readonly code: ErrorCode
  /** Response headers that belong to this failure, e.g. Retry-After. */
  readonly headers: Readonly<Record<string, string>>
  /** Whether the same call may succeed later: as in the table, unless this error says otherwise. */
  readonly retryable: boolean

  constructor(
    code: ErrorCode,
    message: string,
    options: { cause?: unknown; headers?: Record<string, string>; retryable?: boolean } = {},
  ) {
    super(message, { cause: options.cause })
    this.code = code
    this.headers = options.headers ?? {}
    this.retryable = options.retryable ?? table[code].retryable
  }
}

/**
 * The database does not answer, or has no connection free. Whether the interrupted work had an effect is not known. It is
 * not an AppError, because a worker must not end a request because of it.
 */
export class UnavailableError extends Error {
  override name = 'UnavailableError'
  readonly code: 'provider_unavailable' | 'capacity_exceeded'
  constructor(code: UnavailableError['code'], message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.code = code
  }
}

/** The end of each message of an UnavailableError. It says nothing to a reader of a page. */
export const EFFECT_UNKNOWN =
  'It is not known whether this call had an effect. Repeat it, with the same Idempotency-Key where it has one.'

/** The beginning of the message where Postgres has a full disk. It lasts until the operator has freed space, not for seconds. */
export const STORAGE_FULL = 'The storage of this service is full.'

function answerUnavailable({ code, message }: UnavailableError): AppError {
  return new AppError(code, `${message} ${EFFECT_UNKNOWN}`, { headers: retrySoon() })
}

/** `Retry-After` of what may pass at once: 1 to 4 seconds, at random, so that callers do not come back together. */
export function retrySoon(): Record<string, string> {
  return { 'retry-after': String(randomInt(1, 5)) }
}

/** Whether a source that answered with this status may answer 200 later: true for 408, 425, 429 and every status from 500 on. */
export function isPassingStatus(status: number): boolean {
  return status >= 500 || status === 408 || status === 425 || status === 429
}

/** The message of any thrown value. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/**
 * The code of the innermost cause that has one, for example ECONNREFUSED; else the status of an HTTP answer, or the name of the
 * error. For logs where the message may quote a secret.
 */
export function causeCode(error: unknown): string {
  let found = error instanceof Error ? error.name : 'unknown'
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const code = 'code' in cause ? cause.code : undefined
    const status = 'status' in cause ? cause.status : undefined
    if (typeof code === 'string' && /^[\w.-]{1,64}$/.test(code)) found = code
    else if (typeof status === 'number') found = `http_${status}`
  }
  return found
}

const MAX_MESSAGE = 2000
const UNCHARGED = 'Nothing was charged.'

/** The message with the sentence that nothing was charged, added where it is missing; at most 2000 characters. */
export function sayUncharged(message: string): string {
  if (/nothing was charged/i.test(message)) return message.slice(0, MAX_MESSAGE).toWellFormed()
  return `${message.slice(0, MAX_MESSAGE - UNCHARGED.length - 1).toWellFormed()} ${UNCHARGED}`
}

/**
 * The public form of any thrown value: an AppError unchanged, a database that does not answer or has no space as 503 with
 * Retry-After, everything else as `internal_error` without details.
 */
export function publicError(error: unknown) {
  const known = asAppError(error)
  const { code, headers, message, retryable } = known
  const retryAfter = headers['retry-after']
  const retryAfterSeconds = retryAfter === undefined ? undefined : Number(retryAfter)
  return { status: errorTable[code].status, headers, retryAfterSeconds, error: { code, message, retryable } }
}

/**
 * Whether Postgres lacks resources, for example on a full disk: SQLSTATE class 53. The error ends when the operator has
 * freed space.
 */
export function isOutOfRoom(error: unknown): boolean {
  return /^53[0-9A-Z]{3}$/.test(sqlState(error))
}

/** Whether the disk of Postgres is full. It then answers, and stores nothing. */
export function isStorageFull(error: unknown): boolean {
  return sqlState(error) === '53100'
}

function sqlState(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

function asAppError(error: unknown): AppError {
  if (error instanceof AppError) return error
  if (error instanceof UnavailableError) return answerUnavailable(error)
  if (isOutOfRoom(error)) {
    const message = isStorageFull(error) ? STORAGE_FULL : 'The database of the service is at its limit.'
    return answerUnavailable(new UnavailableError('provider_unavailable', message))
  }
  return new AppError('internal_error', 'The service failed unexpectedly. Try again.')
}
