// Renders answers of the verification operations in MCP: as results of a tool, with tokens, payments and waits in `_meta`.
import { decodePaymentResponseHeader } from '@x402/core/http'
import type { Api } from '../context.ts'
import { publicError } from '../errors.ts'
import type { PurchaseResult } from '../interface/claims.ts'
import { priceOf } from '../interface/price.ts'
import { paymentRequired } from '../payments/x402.ts'
import { failureBody, nonCompletedBody, type VerificationAnswer } from '../verification/answer-body.ts'
import { describeResource } from '../verification/offer/offer.ts'
import { recoveryToken } from '../verification/recovery-token.ts'
import { wholeResult } from './result-resource.ts'
import { cut, MAX_TEXT, summarizeClaims, summarizeResult } from './summary.ts'
import { type CallToolResult, linkOf, RETRY_AFTER, resultOf } from './tool.ts'

/** Members of `_meta`, in calls and in results. */
export const META = {
  key: 'service/idempotency-key',
  token: 'service/recovery-token',
  replayed: 'service/replayed',
  payment: 'x402/payment',
  settlement: 'x402/payment-response',
} as const

/**
 * @param options `key`: the caller's, or the one made for it: returned, so that the caller can send it again. `links`: as in
 * `ToolCall`
 */
export function renderAnswer(
  answer: VerificationAnswer,
  api: Api,
  { key, links }: { key?: string; links: boolean },
): CallToolResult {
  const repeated = key === undefined ? {} : { [META.key]: key }
  switch (answer.kind) {
    case 'completed': {
      const result: PurchaseResult = JSON.parse(answer.bytes.toString())
      const text = 'claims' in result ? summarizeClaims(result) : summarizeResult(result, api.baseUrl)
      return {
        content: [{ type: 'text', text }, ...(links ? [linkOf(wholeResult(answer.requestId, api))] : [])],
        structuredContent: { ...result },
        _meta: {
          ...repeated,
          [META.token]: answer.recoveryToken,
          ...(answer.settlementHeader && { [META.settlement]: decodePaymentResponseHeader(answer.settlementHeader) }),
          ...(answer.replay && { [META.replayed]: true }),
        },
      }
    }
    case 'payment_required': {
      const offers = api.facilitator.termsFor(answer.requestId, priceOf(answer.claims))
      const through = answer.claims === null ? 'mcp' : 'mcpClaims'
      const resource = describeResource(api, through)
      const termsWith = (message: string) => paymentRequired(offers, resource, message, through)
      const terms = termsWith(cutFor(answer.message, (message) => JSON.stringify(termsWith(message))))
      // Clients that pay read the terms as text too, so they are never put into words.
      const content = [{ type: 'text' as const, text: JSON.stringify(terms) }]
      return { ...resultOf(terms, repeated), content, isError: true }
    }
    case 'pending': {
      const token = recoveryToken(api.secrets.recovery, answer.requestId)
      const meta = { ...repeated, [META.token]: token, [RETRY_AFTER]: answer.retryAfterSeconds }
      return resultOf(nonCompletedBody(answer), meta)
    }
    case 'failed':
      return { ...resultOf(nonCompletedBody(answer), repeated), isError: true }
  }
}

/** As much of the message as leaves the whole short enough for a model. */
function cutFor(message: string, whole: (message: string) => string): string {
  const escapes = JSON.stringify(message).length - 2 - message.length
  return cut(message, Math.max(0, MAX_TEXT - [...whole('')].length - escapes))
}

export function renderVerificationError(error: unknown): CallToolResult {
  const { retryAfterSeconds } = publicError(error)
  const meta = retryAfterSeconds === undefined ? {} : { [RETRY_AFTER]: retryAfterSeconds }
  return { ...resultOf(failureBody(error), meta), isError: true }
}
