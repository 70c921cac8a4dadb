// Says in words what a file claims to be, before anything in it is proved: claim, verdict, page and date of a result, or
// that it is the answer to a failed request.
import { timestamp } from './attestation.ts'
import { joinBytes } from './bytes.ts'
import { parseJson } from './json.ts'
import { integer, literal, object, text } from './shape.ts'

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
      if (this.#bytes <= MAX_KEPT) this.#parts.push(chunk)
      yield chunk
    }
  }

  text(): string {
    return this.#bytes <= MAX_KEPT ? new TextDecoder('utf-8', { ignoreBOM: true }).decode(joinBytes(this.#parts)) : ''
  }
}

/** In bytes: as long as an answer of the service may be. */
const MAX_KEPT = 16 * 1024 * 1024

export function describeDocument(document: string): DocumentWords {
  const value = parse(document)
  if (failureShape(value, '') === null) {
    const { status, error } = value as { status?: unknown; error: { code: string; message: string } }
    const words = { Error: `${error.code}: ${error.message}` }
    if (status === 'pending') return { failure: 'a request that is not completed; there is no receipt yet', words }
    if (status === 'payment_required') return { failure: 'terms of payment; there is no receipt', words }
    return { failure: 'a failed request; there is no receipt', words }
  }
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

const resultShape = object({
  claim: text(/./s),
  claim_support: literal('supports', 'contradicts', 'mixed', 'insufficient_evidence', 'not_assessed'),
  source: object({ final_url: text(/./) }),
  checked_at: timestamp,
  payment: object({ mode: text(/./) }),
  receipt: object({ attestation: object({ serial: integer(1) }) }),
})

interface ResultHead {
  claim: string
  claim_support: keyof typeof VERDICTS
  source: { final_url: string }
  checked_at: string
  payment: { mode: string; simulated?: unknown }
  receipt: { attestation: { serial: number } }
}

function resultWords({ claim, claim_support, source, checked_at, payment, receipt }: ResultHead) {
  const paid = payment.simulated === true ? `${payment.mode} mode: no money moved` : `${payment.mode} mode`
  return {
    Claim: claim,
    Verdict: `${claim_support}: ${VERDICTS[claim_support]}`,
    Page: source.final_url,
    'Read on': inWords.format(new Date(checked_at)),
    Receipt: `serial ${receipt.attestation.serial}, ${paid}`,
  }
}

const VERDICTS = {
  supports: 'the page says so',
  contradicts: 'the page says otherwise',
  mixed: 'the page says both',
  insufficient_evidence: 'the page does not say enough about it',
  not_assessed: 'quotes only; nothing judged the claim',
} as const

/** A time in words, in UTC. */
export const inWords = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeStyle: 'long', timeZone: 'UTC' })
