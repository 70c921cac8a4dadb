// `countersign cite`: a completed result as links, selectors, a BibTeX entry or Markdown footnotes.
import { UsageError } from '../arguments.ts'
import { attestationShape, timestamp } from '../chain/attestation.ts'
import { bibtexEntry, citableResults, markdownFootnote, textFragmentUrl, textSelectors } from '../citation.ts'
import { describeDocument } from '../document-words.ts'
import type { PurchaseResult, VerificationResult } from '../result.ts'
import { integer, list, object, text } from '../shape.ts'
import { parseJson } from '../verification.ts'
import { command } from './command.ts'
import { readInput } from './input-file.ts'
import { json, print } from './output.ts'

const citableShape = object({
  claim: text(/./s),
  claim_support: text(/^[a-z_]+$/),
  checked_at: timestamp,
  source: object({ final_url: text(/^https:\/\/\S+$/), normalized_text: text() }),
  source_identity: object({ hostname: text(/^\S+$/) }),
  evidence: list(
    object({
      evidence_id: text(/^e([1-9]|[1-5][0-9]|60)$/),
      quote: text(/./s),
      start: integer(0),
      end: integer(1),
      stance: text(),
    }),
    6,
  ),
  payment: object({}),
  receipt: object({ attestation: attestationShape }),
})

interface Format {
  /** Output for programs. */
  data(result: VerificationResult, number: number | null): unknown
  /** Output for people. @param number of a claim among several; else null */
  text(result: VerificationResult, number: number | null): string
}

const formats: Record<string, Format> = {
  'text-fragment': {
    data: (result) =>
      result.evidence.map((item) => {
        const { evidence_id, quote } = item
        return { evidence_id, quote, url: textFragmentUrl(result, item) }
      }),
    text: (result) => lines(result.evidence.map((item) => textFragmentUrl(result, item))),
  },
  selector: {
    data: (result) => result.evidence.map((item) => textSelectors(result, item)),
    text: (result) => json(result.evidence.map((item) => textSelectors(result, item))),
  },
  bibtex: {
    data: (result, number) => ({ bibtex: bibtexEntry(result, number) }),
    text: (result, number) => lines([bibtexEntry(result, number)]),
  },
  markdown: {
    data: (result) =>
      result.evidence.map((item) => {
        const { evidence_id } = item
        return { evidence_id, markdown: markdownFootnote(result, item) }
      }),
    text: (result) => lines(result.evidence.map((item) => markdownFootnote(result, item))),
  },
}

const lines = (all: string[]) => all.map((line) => `${line}\n`).join('')

/** Checks the form of the result and not its signature: `verify` does that. */
export const cite = command({
  summary: 'a result as links, selectors, BibTeX or footnotes',
  operands: ['FILE'],
  usage: '--format FORMAT',
  about: 'Reads a completed result, and does not verify it. - reads standard input.',
  examples: ['countersign cite result.json --format text-fragment', 'countersign cite - < result.json >> notes.md'],
  options: {
    format: {
      type: 'string',
      value: 'FORMAT',
      default: 'markdown',
      help:
        'text-fragment (links that mark each quote on its page), selector (W3C Web Annotation), bibtex,\n' +
        'or markdown (footnotes; the default)',
    },
  },
  async run([file = ''], { format, json: asJson }) {
    const chosen = Object.hasOwn(formats, format) ? formats[format] : undefined
    if (!chosen) throw new UsageError(`--format ${format} is none of ${Object.keys(formats).join(', ')}.`)
    const results = readResults(file, (await readInput(file)).toString())
    const [only] = results.length === 1 ? results : []
    if (only) return print(asJson ? json(chosen.data(only, null)) : chosen.text(only, null))
    if (asJson) return print(json(results.map((result, i) => chosen.data(result, i + 1))))
    return print(results.map((result, i) => chosen.text(result, i + 1)).join(''))
  },
})

/** A result for each claim. */
function readResults(file: string, document: string): VerificationResult[] {
  const { failure } = describeDocument(document)
  if (failure) throw new UsageError(`${file} holds ${failure}.`)
  try {
    const value = parseJson(document)
    const isOfClaims = typeof value === 'object' && value !== null && 'claims' in value && Array.isArray(value.claims)
    // Each is checked before it is used.
    const results = isOfClaims ? citableResults(value as unknown as PurchaseResult) : [value as VerificationResult]
    const wrong = results.map((result) => citableShape(result, '')).find((fault) => fault !== null)
    if (wrong) throw new SyntaxError(wrong)
    return results
  } catch (cause) {
    throw new UsageError(`${file} does not hold a completed result: ${(cause as Error).message}`, { cause })
  }
}
