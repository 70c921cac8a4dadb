// Reads the answer of a tool of the service from a chat host: the part that can be examined, and the part that can only be
// shown.
import type { CallToolResult } from '@modelcontextprotocol/client'
import { decodeBase64Json } from '../../bytes.ts'
import type { Check } from '../../checks.ts'
import { type Cited, readCited } from '../citations/cited.ts'

export type Arguments = Readonly<Record<string, unknown>>

export type Answer = Examinable | { cited: Cited } | Words

export interface Examinable {
  /** The text to examine; null where there is none. */
  document: string | null
  /** The service's own checks of a receipt or a result, as the tools that check one answer. */
  judged: { valid: boolean; checks: readonly Check[] } | null
}

/** An answer that can only be said. */
export interface Words {
  title: string
  words: string
}

/** @param args of the call: the answer to a check does not repeat what was checked */
export function readAnswer(
  result: Pick<CallToolResult, 'content' | 'structuredContent' | '_meta'>,
  args: Arguments,
): Answer {
  const text = result.content.map((part) => (part.type === 'text' ? part.text : '')).join('')
  const read = readObject(text)
  const structured: unknown = result.structuredContent
  const value: object | null = read ?? (typeof structured === 'object' ? structured : null)
  if (!value) return { title: 'There is no result to draw.', words: `The host handed on: ${cut(text) || 'nothing'}` }
  if (isJudged(value)) return { document: checkedBy(args), judged: value }
  if (isTerms(value)) return { document: JSON.stringify(inWordsOfHttp(value)), judged: null }
  const cited = readCited(structured ?? value, result._meta)
  if (cited) return { cited }
  if (isPending(value)) return { title: 'The check is not finished.', words: cut(value.message) }
  if (isRefusal(value)) return { title: 'Nothing was checked.', words: cut(value.error.message) }
  // The unchanged text: the receipt covers its bytes, and a duplicate member must be detected.
  return { document: read ? text : JSON.stringify(value), judged: null }
}

const cut = (text: string) => text.slice(0, 500)

function readObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null
  } catch {
    return null
  }
}

function isJudged(value: object): value is NonNullable<Examinable['judged']> {
  return 'valid' in value && typeof value.valid === 'boolean' && 'checks' in value && Array.isArray(value.checks)
}

/** A free check that goes on. A purchase that does is an error of the interface, with its status. */
function isPending(value: object): value is { message: string } {
  const { status, message, error } = value as Record<string, unknown>
  return status === 'pending' && typeof message === 'string' && error === undefined
}

/** An error of a free tool. That of a purchase has a status. */
function isRefusal(value: object): value is { error: { message: string } } {
  const { status, error } = value as { status?: unknown; error?: { message?: unknown } | null }
  return status === undefined && typeof error?.message === 'string'
}

/** What was passed in: a whole result, or a receipt, in the form in which the client knows it. */
function checkedBy(args: Arguments): string | null {
  const { result_json, proof, canonical_envelope_base64, envelope } = args
  if (typeof result_json === 'string') return result_json
  const { inclusion, checkpoint } = { ...args, ...(proof ?? {}) } as Arguments
  return receiptOf({ ...args, inclusion, checkpoint, envelope: envelope ?? envelopeIn(canonical_envelope_base64) })
}

/** The envelope that the canonical bytes hold; undefined without them. Bytes that hold none fail the checks as `null`. */
function envelopeIn(base64: unknown): unknown {
  if (typeof base64 !== 'string') return undefined
  return decodeBase64Json(base64)
}

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
