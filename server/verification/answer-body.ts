// The answers of the verification operations before a protocol renders them, and the bodies that all protocols share.
import { publicError } from '../errors.ts'
import { type NonCompleted, SCHEMA_VERSION } from '../interface/result.ts'
import type { RequestError } from './request.ts'

/** Every answer that is not an AppError. HTTP and MCP each render it: http/verification.ts, mcp/verification.ts. */
export type VerificationAnswer =
  | {
      kind: 'completed'
      requestId: string
      bytes: Buffer
      settlementHeader: string | null
      recoveryToken: string
      replay: boolean
    }
  | {
      kind: 'pending'
      requestId: string
      code: 'processing' | 'settlement_unknown'
      message: string
      /** Seconds to wait before the next call. */
      retryAfterSeconds: number
    }
  | { kind: 'failed'; requestId: string; error: RequestError }
  | {
      kind: 'payment_required'
      requestId: string
      /** As in `RequestView`: the price depends on it. */
      claims: number | null
      /** No request is stored: its id is in the terms alone, and a payment that repeats it makes the request. */
      unstored?: true
      code: 'payment_required' | 'payment_invalid' | 'settlement_failed'
      message: string
      quoteExpiresAt: Date
    }

/** The body of an answer without a result; of `payment_required` without the terms, which differ by protocol. */
export function nonCompletedBody(answer: Exclude<VerificationAnswer, { kind: 'completed' }>): NonCompleted {
  const { kind, requestId } = answer
  const error = kind === 'failed' ? answer.error : { code: answer.code, message: answer.message, retryable: true }
  const stored = kind !== 'payment_required' || !answer.unstored
  return { schema_version: SCHEMA_VERSION, status: kind, error, ...(stored && { request_id: requestId }) }
}

/** The body of an error thrown before there was an answer. The interface calls an oversized body an invalid request. */
export function failureBody(thrown: unknown): NonCompleted {
  const { status, error } = publicError(thrown)
  const code = error.code === 'body_too_large' ? 'invalid_request' : error.code
  return {
    schema_version: SCHEMA_VERSION,
    status: status === 402 ? 'payment_required' : 'failed',
    error: { ...error, code },
  }
}
