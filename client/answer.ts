// Reads the service's answer to a purchase or a recovery from one HTTP response.
import { decodeBase64Json, readBody, TooLongError } from './bytes.ts'
import type { Failure, PaymentRequired } from './error.ts'
import { originOf } from './network-failure.ts'
import type { PurchaseResult } from './result.ts'

/** An x402 v2 SettleResponse, as the service sent it. */
export interface Settlement {
  success: boolean
  transaction: string
  network: string
  payer?: string
  [name: string]: unknown
}

export interface Completed {
  state: 'completed'
  result: PurchaseResult
  bytes: Uint8Array
  replay: boolean
  recoveryToken: string | null
  settlement: Settlement | null
}

export interface Pending {
  state: 'pending'
  requestId: string | null
  /** What the request waits for, in the words of the service. */
  message: string | null
  recoveryToken: string | null
  retryAfterMs: number | null
}

export interface Refused {
  state: 'refused'
  failure: Failure
  /** The answer says nothing about the purchase: send the same request again soon. */
  passing: boolean
  retryAfterMs: number | null
}

export type Answer = Completed | Pending | Refused

/** Reads the body to its end; throws what the connection throws. `now` is for a Retry-After given as a date. */
export async function readAnswer(response: Response, now: number): Promise<Answer> {
  const bytes = await readWithin(response)
  if (bytes === null) return refused(tooLong(response), false, null)
  const body = parseObject(bytes)
  if (response.status === 200) return readCompleted(response, bytes, body)
  if (response.status === 202) return readPending(response, body, now)
  return readRefused(response, body, now)
}

/**
 * The error of any route, the control toolkit's included: all have `error: {code, message, retryable}`. `now` is for a
 * Retry-After given as a date.
 */
export function readFailure(response: Response, body: Record<string, unknown> | null, now: number): Failure {
  const { status } = response
  const error = asObject(body?.error)
  const retryAfterMs = readRetryAfter(response, now)
  if (typeof error?.code !== 'string' || typeof error.message !== 'string')
    return { ...unexpected(response), retryAfterMs }
  return {
    code: error.code,
    message: error.message,
    retryable: error.retryable === true,
    status,
    requestId: readText(body?.request_id),
    paymentRequired: readTerms(response, body),
    retryAfterMs,
  }
}

export function parseObject(bytes: Uint8Array): Record<string, unknown> | null {
  try {
    return asObject(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)))
  } catch {
    return null
  }
}

function readCompleted(response: Response, bytes: Uint8Array, body: Record<string, unknown> | null): Answer {
  if (body?.status !== 'completed') return refused(unexpected(response), false, null)
  return {
    state: 'completed',
    result: body as unknown as PurchaseResult,
    bytes,
    replay: response.headers.get('x-service-idempotent-replay') === 'true',
    recoveryToken: response.headers.get('x-service-recovery-token'),
    settlement: asObject(decodeBase64Json(response.headers.get('payment-response'))) as Settlement | null,
  }
}

function readPending(response: Response, body: Record<string, unknown> | null, now: number): Answer {
  return {
    state: 'pending',
    requestId: readText(body?.request_id),
    message: readText(asObject(body?.error)?.message),
    recoveryToken: response.headers.get('x-service-recovery-token'),
    retryAfterMs: readRetryAfter(response, now),
  }
}

function readRefused(response: Response, body: Record<string, unknown> | null, now: number): Answer {
  const failure = readFailure(response, body, now)
  // A request for which the service was too busy has ended: the next attempt needs a new payment.
  const isOfAttempt = failure.code === 'capacity_exceeded' && readText(body?.request_id) !== null
  return refused(
    failure,
    PASSING.has(response.status) && failure.retryable && !isOfAttempt,
    failure.retryAfterMs ?? null,
  )
}

function refused(failure: Failure, passing: boolean, retryAfterMs: number | null): Refused {
  return { state: 'refused', failure, passing, retryAfterMs }
}

/** The body, or null for one of more than MAX_ANSWER bytes. Throws what the connection throws. */
export async function readWithin(response: Response): Promise<Uint8Array | null> {
  try {
    return await readBody(response, MAX_ANSWER)
  } catch (error) {
    if (error instanceof TooLongError) return null
    throw error
  }
}

/** The same answer would be as long again, so the call is not repeated. */
export function tooLong(response: Response): Failure {
  const message = `The answer (status ${response.status}) has more than 16 MB.`
  return { ...unexpected(response), message, retryable: false }
}

/** An answer that no Countersign service gives, as of a proxy or of another program at this address. */
export function unexpected({ status, url }: Response): Failure {
  const advice = PASSING.has(status) ? 'it may be down for the moment.' : 'is the address right?'
  const message = `${originOf(url)} answered (status ${status}) as no Countersign service does: ${advice}`
  return { code: 'unexpected_response', message, retryable: PASSING.has(status), status }
}

function readTerms(response: Response, body: Record<string, unknown> | null): PaymentRequired | null {
  const terms = decodeBase64Json(response.headers.get('payment-required')) ?? body?.payment_required
  const accepts = asObject(terms)?.accepts
  return Array.isArray(accepts) && accepts.every(isOffer) ? (terms as PaymentRequired) : null
}

/** Whether an entry of `accepts` has the members that every scheme has. */
function isOffer(entry: unknown): boolean {
  const offer = asObject(entry)
  return OFFERED.every((name) => typeof offer?.[name] === 'string')
}

const OFFERED = ['scheme', 'network', 'asset', 'amount', 'payTo'] as const

/**
 * Seconds or an HTTP date, as RFC 9110 allows; null for anything else. At least a second, so that no service makes its callers ask
 * without a pause.
 */
export function readRetryAfter(response: Response, now: number): number | null {
  const header = response.headers.get('retry-after')?.trim() ?? ''
  if (/^\d+$/.test(header)) return Math.max(LEAST_PAUSE_MS, Number(header) * 1000)
  // Without the name of a day, Date.parse takes many texts for dates, "-5" among them.
  const date = /^[A-Z][a-z]{2}/.test(header) ? Date.parse(header) : Number.NaN
  return Number.isNaN(date) ? null : Math.max(LEAST_PAUSE_MS, date - now)
}

const LEAST_PAUSE_MS = 1000

function readText(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function asObject(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null
}

/** In bytes. Several times the largest result or chain page. */
const MAX_ANSWER = 16 * 1024 * 1024

// The service is busy, or the connection to it failed. A failure of one attempt is not among them: the next attempt needs a
// new payment, so the caller decides about it.
const PASSING: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504])
