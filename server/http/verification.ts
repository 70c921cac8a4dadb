// How the answers of the verification interface look in HTTP: its statuses, its headers, its body shape, and no others.
import type { Api } from '../context.ts'
import { type ErrorCode, publicError } from '../errors.ts'
import { type NonCompleted, PRICE, SCHEMA_VERSION } from '../interface/result.ts'
import { encodeTerms, paymentRequired } from '../payments/x402.ts'
import type { VerificationAnswer } from '../verification/answer.ts'
import { describeResource } from '../verification/offer.ts'
import { recoveryToken } from '../verification/recovery-token.ts'

/** An answer ready to be written. A Buffer is sent as it is; anything else as JSON. */
export interface HttpAnswer {
  status: number
  headers: Record<string, string>
  body: unknown
}

/** Statuses these routes may leave with; anything else a framework or a parser comes up with is mapped onto them. */
const STATUSES = new Set([200, 202, 400, 402, 404, 409, 410, 415, 422, 429, 503])

export function renderAnswer(answer: VerificationAnswer, api: Api, options: { recovery: boolean }): HttpAnswer {
  switch (answer.kind) {
    case 'completed':
      return {
        status: 200,
        headers: {
          'content-type': 'application/json; charset=utf-8',
          'cache-control': 'private, no-store',
          'x-service-recovery-token': answer.recoveryToken,
          ...(answer.settlementHeader && !options.recovery && { 'payment-response': answer.settlementHeader }),
          ...(answer.replay && { 'x-service-idempotent-replay': 'true' }),
        },
        body: answer.bytes,
      }
    case 'pending':
      return {
        status: 202,
        headers: {
          'cache-control': 'no-store',
          'retry-after': String(answer.retryAfterSeconds),
          location: `${api.baseUrl}/api/agent/v1/requests/${answer.requestId}`,
          ...credentialsOf(answer.requestId, api),
        },
        body: nonCompleted(
          'pending',
          { code: answer.code, message: answer.message, retryable: true },
          answer.requestId,
        ),
      }
    case 'failed':
      return {
        status: 422,
        headers: { 'cache-control': 'no-store' },
        body: nonCompleted('failed', answer.error, answer.requestId),
      }
    case 'payment_required':
      return renderChallenge(answer, api)
  }
}

function credentialsOf(requestId: string, api: Api) {
  return { 'x-service-recovery-token': recoveryToken(api.secrets.recovery, requestId) }
}

function renderChallenge(answer: Extract<VerificationAnswer, { kind: 'payment_required' }>, api: Api): HttpAnswer {
  const resource = describeResource(api, 'http')
  const terms = paymentRequired(api.facilitator.termsFor(answer.requestId), resource, answer.message)
  const error = { code: answer.code, message: answer.message, retryable: true }
  return {
    status: 402,
    headers: { 'cache-control': 'no-store', 'payment-required': encodeTerms(terms) },
    body: {
      ...nonCompleted('payment_required', error, answer.requestId),
      payment_required: terms,
      quote: {
        amount_atomic: PRICE.atomic,
        currency: PRICE.currency,
        decimals: PRICE.decimals,
        price_usd: PRICE.usd,
        expires_at: answer.quoteExpiresAt.toISOString(),
      },
    },
  }
}

function nonCompleted(status: NonCompleted['status'], error: NonCompleted['error'], requestId?: string): NonCompleted {
  return { schema_version: SCHEMA_VERSION, status, error, ...(requestId && { request_id: requestId }) }
}

/** Whatever went wrong, in this interface's statuses: an oversized body is a 400 here, a fault of ours a 503. */
export function renderVerificationError(error: unknown): HttpAnswer {
  const known = publicError(error)
  const status = STATUSES.has(known.status) ? known.status : known.status < 500 ? 400 : 503
  const code: ErrorCode = status === 400 && known.status === 413 ? 'invalid_request' : known.error.code
  return {
    status,
    headers: { 'cache-control': 'no-store', ...known.headers },
    body: nonCompleted(status === 402 ? 'payment_required' : 'failed', { ...known.error, code }),
  }
}
