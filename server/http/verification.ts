// Renders answers of the verification operations in HTTP, with the statuses, headers and bodies of the interface and no others.
import type { FastifyRequest } from 'fastify'
import type { Api } from '../context.ts'
import { publicError } from '../errors.ts'
import { PRICE } from '../interface/price.ts'
import { encodeTerms, paymentRequired } from '../payments/x402.ts'
import { failureBody, nonCompletedBody, type VerificationAnswer } from '../verification/answer-body.ts'
import { describeResource } from '../verification/offer.ts'
import { recoveryToken } from '../verification/recovery-token.ts'

/**
 * Whether the answer has the body of the interface: on its routes, and on the paths beside them that lead nowhere. The route counts too,
 * because a path can be spelled in several ways (`/%61pi/`).
 */
export function isOfInterface({ routeOptions, url }: Pick<FastifyRequest, 'routeOptions' | 'url'>): boolean {
  return [url, routeOptions.url].some((path) => path?.startsWith('/api/'))
}

/** An answer ready to be sent. A Buffer is sent as it is; anything else as JSON. */
export interface HttpAnswer {
  status: number
  headers: Record<string, string>
  body: unknown
}

/** The answer to a call that failed. */
export interface FailureAnswer extends HttpAnswer {
  body: { error: { code: string; message: string; retryable: boolean } }
}

/** The statuses that these routes may answer; every other status of an error is mapped onto them. */
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
          'x-service-recovery-token': recoveryToken(api.secrets.recovery, answer.requestId),
        },
        body: nonCompletedBody(answer),
      }
    case 'failed':
      return { status: 422, headers: { 'cache-control': 'no-store' }, body: nonCompletedBody(answer) }
    case 'payment_required':
      return renderChallenge(answer, api)
  }
}

function renderChallenge(answer: Extract<VerificationAnswer, { kind: 'payment_required' }>, api: Api): HttpAnswer {
  const resource = describeResource(api, 'http')
  const terms = paymentRequired(api.facilitator.termsFor(answer.requestId), resource, answer.message)
  return {
    status: 402,
    headers: { 'cache-control': 'no-store', 'payment-required': encodeTerms(terms) },
    body: {
      ...nonCompletedBody(answer),
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

/** Renders any thrown value in the statuses of this interface: an oversized body is a 400, an internal error a 503. */
export function renderVerificationError(error: unknown): FailureAnswer {
  const { status, headers } = publicError(error)
  return {
    status: STATUSES.has(status) ? status : status < 500 ? 400 : 503,
    headers: { 'cache-control': 'no-store', ...headers },
    body: failureBody(error),
  }
}
