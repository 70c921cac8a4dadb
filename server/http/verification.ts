// Renders answers of the verification operations in HTTP, with the statuses, headers and bodies of the interface and no others.
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Api } from '../context.ts'
import { publicError } from '../errors.ts'
import { claimsInput } from '../interface/claims.ts'
import { PRICE, priceOf } from '../interface/price.ts'
import { verificationInput } from '../interface/result.ts'
import { CLAIMS_EXAMPLE, EXAMPLE, resourceUrl, type Through } from '../payments/discovery.ts'
import { encodeTerms, paymentRequired } from '../payments/x402.ts'
import { describeSale } from '../verification/answer.ts'
import { failureBody, nonCompletedBody, type VerificationAnswer } from '../verification/answer-body.ts'
import { describeResource } from '../verification/offer/offer.ts'
import { recoveryToken } from '../verification/recovery-token.ts'

/**
 * Whether the answer has the body of the interface: on its routes, and on the paths beside them that lead nowhere. The route counts too,
 * because a path can be spelled in several ways (`/%61pi/`). A free look has its bodies too; its page has not.
 */
export function isOfInterface({
  routeOptions,
  url,
  method,
}: Pick<FastifyRequest, 'routeOptions' | 'url' | 'method'>): boolean {
  const paths = [url.split('?')[0], routeOptions.url]
  const isPage = method === 'GET' || method === 'HEAD'
  return paths.some((path) => path?.startsWith('/api/') || (path === '/try' && !isPage))
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
  /** What was thrown, for a page that says it in words. Programs get the body alone. */
  cause?: unknown
}

/** The statuses that these routes may answer; every other status of an error is mapped onto them. */
const STATUSES = new Set([200, 202, 400, 402, 404, 409, 410, 415, 422, 429, 503])

/** @param options `through`: the offer that a 402 makes */
export function renderAnswer(
  answer: VerificationAnswer,
  api: Api,
  options: { recovery: boolean; through?: Through | undefined },
): HttpAnswer {
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
      return renderFailure(answer)
    case 'payment_required':
      return renderChallenge(answer, api, options.through ?? (answer.claims === null ? 'http' : 'claims'))
  }
}

/** A request for which the service was too busy ends with 503: nothing is wrong with it or its page. */
function renderFailure(answer: Extract<VerificationAnswer, { kind: 'failed' }>): HttpAnswer {
  const wasBusy = answer.error.code === 'capacity_exceeded'
  return {
    status: wasBusy ? 503 : 422,
    headers: { 'cache-control': 'no-store', ...(wasBusy && { 'retry-after': String(BUSY_SECONDS) }) },
    body: nonCompletedBody(answer),
  }
}

/** The Retry-After of a request for which the service was too busy. */
const BUSY_SECONDS = 10

function renderChallenge(
  answer: Extract<VerificationAnswer, { kind: 'payment_required' }>,
  api: Api,
  through: Through,
): HttpAnswer {
  const resource = describeResource(api, through)
  // A message may repeat parts of the call, and a header must be small.
  const error = through === 'buy' ? `${describeSale(answer.claims)} Nothing was charged.` : answer.message
  const price = priceOf(answer.claims)
  const terms = paymentRequired(api.facilitator.termsFor(answer.requestId, price), resource, error, through)
  return {
    status: 402,
    headers: { 'cache-control': 'no-store', 'payment-required': encodeTerms(terms) },
    body: {
      ...nonCompletedBody(answer),
      payment_required: terms,
      quote: {
        amount_atomic: price.atomic,
        currency: PRICE.currency,
        decimals: PRICE.decimals,
        price_usd: price.usd,
        expires_at: answer.quoteExpiresAt.toISOString(),
      },
      ...(through === 'buy' && { how_to_call: describeCall(api, answer.claims) }),
    },
  }
}

/** How a client that knows nothing of this service buys here. */
function describeCall({ baseUrl }: Api, claims: number | null) {
  return {
    summary:
      'POST the JSON body below with an x402 v2 client: it gets this 402, signs one of payment_required.accepts, and sends the ' +
      'same body again with PAYMENT-SIGNATURE. The answer, 200, is the result with its receipt. 202 means that the work goes ' +
      'on: send the same signed payment again, or ask at Location with X-Service-Recovery-Token as bearer token. Never ' +
      'sign a second payment for it. Failures are 422 and are not charged.',
    method: 'POST',
    url: resourceUrl('buy', baseUrl),
    headers: { 'content-type': 'application/json' },
    ...(claims === null
      ? { body: EXAMPLE, body_schema: verificationSchema }
      : { body: CLAIMS_EXAMPLE, body_schema: claimsSchema }),
    openapi: `${baseUrl}/openapi.json`,
    guide: `${baseUrl}/llms.txt`,
  }
}

const verificationSchema = z.toJSONSchema(verificationInput, { io: 'input' })
const claimsSchema = z.toJSONSchema(claimsInput, { io: 'input' })

/** Renders any thrown value in the statuses of this interface: an oversized body is a 400, an internal error a 503. */
export function renderVerificationError(error: unknown): FailureAnswer {
  const { status, headers } = publicError(error)
  return {
    status: STATUSES.has(status) ? status : status < 500 ? 400 : 503,
    headers: { 'cache-control': 'no-store', ...headers },
    body: failureBody(error),
  }
}
