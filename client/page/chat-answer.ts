// Reads the answer of a tool of the service from a chat host: the part that can be examined, and the part that can only be
// shown.
import type { CallToolResult } from '@modelcontextprotocol/client'
import type { Check } from '../checks.ts'

export type Arguments = Readonly<Record<string, unknown>>

export interface Answer {
  /** The text to examine; null where there is none. */
  document: string | null
  /** The service's own checks of a receipt, as `service_receipt_verify` answers. */
  judged: { valid: boolean; checks: readonly Check[] } | null
  /** The text of an answer that cannot be examined. */
  words: string | null
}

/** @param args of the call: the answer to a check of a receipt does not repeat the receipt */
export function readAnswer(result: Pick<CallToolResult, 'content' | 'structuredContent'>, args: Arguments): Answer {
  const text = result.content.map((part) => (part.type === 'text' ? part.text : '')).join('')
  const read = readObject(text)
  const value = read ?? result.structuredContent
  if (!value) return { document: null, judged: null, words: text.slice(0, MAX_WORDS) }
  if (isJudged(value)) return { document: receiptOf(args), judged: value, words: null }
  if (isTerms(value)) return { document: JSON.stringify(inWordsOfHttp(value)), judged: null, words: null }
  // The unchanged text: the receipt covers its bytes, and a duplicate member must be detected.
  return { document: read ? text : JSON.stringify(value), judged: null, words: null }
}

const MAX_WORDS = 500

function readObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null
  } catch {
    return null
  }
}

function isJudged(value: object): value is NonNullable<Answer['judged']> {
  return 'valid' in value && typeof value.valid === 'boolean' && 'checks' in value && Array.isArray(value.checks)
}

/** The receipt that was passed in, in the form in which the client knows it. */
function receiptOf({ attestation, inclusion, checkpoint, envelope, ...others }: Arguments): string | null {
  if (typeof attestation !== 'object' || attestation === null) return null
  if (envelope !== undefined) {
    const { canonical_envelope_base64, verification = NO_NOTE } = others
    return JSON.stringify({ envelope, canonical_envelope_base64, attestation, verification })
  }
  if (inclusion !== undefined && checkpoint !== undefined) return JSON.stringify({ attestation, inclusion, checkpoint })
  return JSON.stringify({ attestation })
}

/** A note for people, which no signature covers and no check reads; calls may leave it out. */
const NO_NOTE = 'none was given'

interface Terms {
  x402Version: number
  error: string
}

function isTerms(value: object): value is Terms {
  return 'x402Version' in value && 'accepts' in value && 'error' in value && typeof value.error === 'string'
}

/** Over MCP the terms of a payment are the whole answer, because x402 wants it so. */
function inWordsOfHttp({ error }: Terms) {
  return { status: 'payment_required', error: { code: 'payment_required', message: error, retryable: true } }
}
