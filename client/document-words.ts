// Says in words what a file claims to be, before anything in it is proved: claim, verdict, page and date of a result, or
// that it is the answer to a failed request.

import { joinBytes } from './bytes.ts'
import { timestamp } from './chain/attestation.ts'
import { MAX_JSON_BYTES, parseJson } from './json.ts'
import type { ClaimSupport } from './result.ts'
import { integer, list, literal, object, text } from './shape.ts'
import { headInWords } from './verdict-words.ts'

export interface DocumentWords {
  /** Set for an answer without a receipt: there is nothing to verify. */
  failure: string | null
  /** Empty for files that say nothing in words. */
  words: Readonly<Record<string, string>>
}

/** Keeps the beginning of a stream while it is read for something else. Longer files are no results. */
export class KeptText {
  readonly #parts: Uint8Array[] = []
  #bytes = 0

  async *through(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      this.#bytes += chunk.length
      if (this.#bytes <= MAX_JSON_BYTES) this.#parts.push(chunk)
      yield chunk
    }
  }

  text(): string {
    return this.#bytes <= MAX_JSON_BYTES
      ? new TextDecoder('utf-8', { ignoreBOM: true }).decode(joinBytes(this.#parts))
      : ''
  }
}

const MOST_CLAIMS = 10

export function describeDocument(document: string): DocumentWords {
  const value = parse(document)
  if (failureShape(value, '') === null) {
    const { status, error } = value as { status?: unknown; error: { code: string; message: string } }
    const words = { Error: `${error.code}: ${error.message}` }
    if (status === 'pending') return { failure: 'a request that is not completed; there is no receipt yet', words }
    if (status === 'payment_required') return { failure: 'terms of payment; there is no receipt', words }
    return { failure: 'a failed request; there is no receipt', words }
  }
  if (claimsShape(value, '') === null) return { failure: null, words: claimsWords(value as ClaimsHead) }
  return { failure: null, words: resultShape(value, '') === null ? resultWords(value as ResultHead) : {} }
}

function parse(document: string): unknown {
  try {
    // Of a file that two readers may read differently, nothing is repeated.
    const value = parseJson(document)
    return typeof value === 'object' && value !== null && Object.hasOwn(value, 'receipt') === false
      ? { ...value, receipt: null }
      : value
  } catch {
    return null
  }
}

const failureShape = object({ error: object({ code: text(/./), message: text() }), receipt: literal(null) })

const judged = {
  claim: text(/./s),
  claim_support: literal('supports', 'contradicts', 'mixed', 'insufficient_evidence', 'not_assessed'),
}
const head = {
  source: object({ final_url: text(/./) }),
  checked_at: timestamp,
  payment: object({ mode: text(/./) }),
  receipt: object({ attestation: object({ serial: integer(1) }) }),
}
const resultShape = object({ ...judged, ...head })
const claimsShape = object({ claims: list(object(judged), MOST_CLAIMS, 1), ...head })

interface Judged {
  claim: string
  claim_support: ClaimSupport
  risk_flags?: unknown
}

interface Head {
  source: { final_url: string }
  checked_at: string
  methodology_version?: unknown
  payment: { mode: string; simulated?: unknown }
  receipt: { attestation: { serial: number } }
}

type ResultHead = Head & Judged
type ClaimsHead = Head & { claims: readonly Judged[] }

function resultWords(result: ResultHead) {
  return { Claim: result.claim, Verdict: verdictWords(result, result), ...headWords(result) }
}

function claimsWords({ claims, ...head }: ClaimsHead) {
  const each = claims.flatMap((one, i) => [
    [`Claim ${i + 1}`, one.claim],
    [`Verdict ${i + 1}`, verdictWords(one, head)],
  ])
  return { ...Object.fromEntries(each), ...headWords(head) }
}

/** What a file has in place of flags or of a method may be anything. */
function verdictWords({ claim_support, risk_flags }: Judged, { methodology_version }: Head): string {
  const flags = Array.isArray(risk_flags) ? risk_flags : []
  const method = typeof methodology_version === 'string' ? methodology_version : undefined
  return `${claim_support}: ${headInWords({ claim_support, risk_flags: flags, methodology_version: method })}`
}

function headWords({ source, checked_at, payment, receipt }: Head) {
  const paid = payment.simulated === true ? `${payment.mode} mode: no money moved` : `${payment.mode} mode`
  return {
    Page: source.final_url,
    'Read on': inWords.format(new Date(checked_at)),
    Receipt: `serial ${receipt.attestation.serial}, ${paid}`,
  }
}

/** A time in words, in UTC. */
export const inWords = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeStyle: 'long', timeZone: 'UTC' })
