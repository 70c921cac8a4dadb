// How the answers of the verification interface look in MCP: as results of a tool, with what HTTP has in headers in `_meta`.
import { decodePaymentResponseHeader } from '@x402/core/http'
import type { Api } from '../context.ts'
import { type HttpAnswer, renderAnswer, renderVerificationError } from '../http/verification.ts'
import { paymentRequired } from '../payments/x402.ts'
import type { VerificationAnswer } from '../verification/answer.ts'
import { describeResource } from '../verification/offer.ts'
import { recoveryToken } from '../verification/recovery-token.ts'
import { type CallToolResult, resultOf } from './tool.ts'

export const TOOL_NAME = 'service_verify_source'

/** Members of `_meta`, in calls and in results. */
export const META = {
  key: 'service/idempotency-key',
  token: 'service/recovery-token',
  replayed: 'service/replayed',
  retryAfter: 'service/retry-after-seconds',
  payment: 'x402/payment',
  settlement: 'x402/payment-response',
} as const

/** @param key the caller's, or the one made for it: repeated, so that it can be sent again */
export function renderResult(answer: VerificationAnswer, api: Api, key?: string): CallToolResult {
  const repeated = key === undefined ? {} : { [META.key]: key }
  switch (answer.kind) {
    case 'completed': {
      // The stored bytes themselves: a receipt is good for these and no others.
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
      return fromHttp(renderAnswer(answer, api, { recovery: true }), { ...repeated, [META.token]: token })
    }
    case 'failed':
      return { ...fromHttp(renderAnswer(answer, api, { recovery: true }), repeated), isError: true }
  }
}

export function renderFailure(error: unknown): CallToolResult {
  return { ...fromHttp(renderVerificationError(error), {}), isError: true }
}

function fromHttp({ body, headers }: HttpAnswer, meta: Record<string, unknown>): CallToolResult {
  const retryAfter = headers['retry-after']
  return resultOf(body as object, { ...meta, ...(retryAfter && { [META.retryAfter]: Number(retryAfter) }) })
}
