// Renders answers of the verification operations in MCP: as results of a tool, with tokens, payments and waits in `_meta`.
import { decodePaymentResponseHeader } from '@x402/core/http'
import type { Api } from '../context.ts'
import { publicError } from '../errors.ts'
import { paymentRequired } from '../payments/x402.ts'
import { failureBody, nonCompletedBody, type VerificationAnswer } from '../verification/answer-body.ts'
import { describeResource } from '../verification/offer.ts'
import { recoveryToken } from '../verification/recovery-token.ts'
import { type CallToolResult, RETRY_AFTER, resultOf } from './tool.ts'

/** Members of `_meta`, in calls and in results. */
export const META = {
  key: 'service/idempotency-key',
  token: 'service/recovery-token',
  replayed: 'service/replayed',
  payment: 'x402/payment',
  settlement: 'x402/payment-response',
} as const

/** @param key the caller's, or the one made for it: returned, so that the caller can send it again */
export function renderAnswer(answer: VerificationAnswer, api: Api, key?: string): CallToolResult {
  const repeated = key === undefined ? {} : { [META.key]: key }
  switch (answer.kind) {
    case 'completed': {
      // The stored bytes, unchanged: the receipt is valid only for these bytes.
      const text = answer.bytes.toString()
      return {
        content: [{ type: 'text', text }],
        structuredContent: JSON.parse(text),
        _meta: {
          ...repeated,
          [META.token]: answer.recoveryToken,
          ...(answer.settlementHeader && { [META.settlement]: decodePaymentResponseHeader(answer.settlementHeader) }),
          ...(answer.replay && { [META.replayed]: true }),
        },
      }
    }
    case 'payment_required': {
      const resource = describeResource(api, 'mcp')
      const terms = paymentRequired(api.facilitator.termsFor(answer.requestId), resource, answer.message, 'mcp')
      return { ...resultOf(terms, repeated), isError: true }
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

export function renderVerificationError(error: unknown): CallToolResult {
  const { retryAfterSeconds } = publicError(error)
  const meta = retryAfterSeconds === undefined ? {} : { [RETRY_AFTER]: retryAfterSeconds }
  return { ...resultOf(failureBody(error), meta), isError: true }
}
