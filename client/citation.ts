// Exports of a completed result for other texts: links that highlight each quote on its page, W3C selectors, a BibTeX entry
// and Markdown footnotes. Pure functions; verify the result first, because they only repeat its contents.
import type { Evidence, PurchaseResult, VerificationResult } from './result.ts'
import { findTextDirective, fragmentUrl } from './text-fragment.ts'

export { findTextDirective, fragmentUrl, type TextDirective } from './text-fragment.ts'

/** Two selectors of the W3C Web Annotation Data Model, of one and the same quote. */
export interface SpecificResource {
  type: 'SpecificResource'
  source: string
  selector: [TextQuoteSelector, TextPositionSelector]
}

export interface TextQuoteSelector {
  type: 'TextQuoteSelector'
  exact: string
  prefix: string
  suffix: string
}

/** Offsets in Unicode code points of `source.normalized_text`; `end` is exclusive. */
export interface TextPositionSelector {
  type: 'TextPositionSelector'
  start: number
  end: number
}

/** The address of the page with a text fragment: a browser scrolls to the quote and highlights it. */
export function textFragmentUrl({ source }: Pick<PurchaseResult, 'source'>, { start, end }: Evidence): string {
  return fragmentUrl(source.final_url, findTextDirective(source.normalized_text, start, end))
}

/** The quote with 32 code points of context on each side. */
export function textSelectors({ source }: VerificationResult, { quote, start, end }: Evidence): SpecificResource {
  const points = Array.from(source.normalized_text)
  const prefix = points.slice(Math.max(0, start - CONTEXT), start).join('')
  const suffix = points.slice(end, end + CONTEXT).join('')
  return {
    type: 'SpecificResource',
    source: source.final_url,
    selector: [
      { type: 'TextQuoteSelector', exact: quote, prefix, suffix },
      { type: 'TextPositionSelector', start, end },
    ],
  }
}

const CONTEXT = 32

/**
 * A result of several claims as a result of each, for what is written of one claim. Such a result cannot be verified: the receipt
 * is for all claims.
 */
export function citableResults(result: PurchaseResult): VerificationResult[] {
  if (!('claims' in result)) return [result]
  const { claims, context: _, ...page } = result
  return claims.map(({ claim_as_read: _read, ...one }) => ({ ...page, verification_type: 'source', ...one }))
}

/** One `@misc` entry with the claim, the verdict, the quotes and the receipt. Its key is `countersign-`, the serial and, of one of several claims, its number. */
export function bibtexEntry(result: VerificationResult, number: number | null = null): string {
  const { serial, receipt_hash } = result.receipt.attestation
  const quotes = result.evidence.map(({ quote, stance }) => `${stance}: \`\`${latex(quote)}''`)
  const receipt = `Countersign receipt ${serial}, \\texttt{${latex(receipt_hash)}}`
  const fields = {
    key: latex(result.source_identity.hostname),
    title: `{Source verification: ${latex(result.claim)}}`,
    howpublished: `\\url{${address(result.source.final_url)}}`,
    url: address(result.source.final_url),
    urldate: latex(result.checked_at.slice(0, 10)),
    note: [latex(verdictOf(result)), ...quotes, receipt].join('; '),
  }
  const lines = Object.entries(fields).map(([name, value]) => `  ${name} = {${value}},`)
  return [`@misc{countersign-${serial}${number === null ? '' : `-${number}`},`, ...lines, '}'].join('\n')
}

/** The footnote of one quote, one line: put `[^countersign-17-e1]` into the text, as the line begins. */
export function markdownFootnote(result: VerificationResult, evidence: Evidence): string {
  const { serial, receipt_hash } = result.receipt.attestation
  const { quote, stance, evidence_id } = evidence
  // A name between an ampersand and a semicolon would be read as a character reference.
  const destination = address(textFragmentUrl(result, evidence)).replace(/&(?=#?\w+;)/g, '&amp;')
  const link = `[${markdown(result.source_identity.hostname)}](${destination})`
  const read = `read ${markdown(result.checked_at.slice(0, 10))}`
  const said = `${markdown(stance)} “${markdown(result.claim)}”; verdict: ${markdown(verdictOf(result))}`
  const receipt = `Countersign receipt ${serial}, \`${receipt_hash}\``
  return `[^countersign-${serial}-${evidence_id}]: “${markdown(quote)}” ${link}, ${read}. It ${said}. ${receipt}.`
}

/** In words, and whether money moved. */
function verdictOf({ claim_support, payment }: VerificationResult): string {
  return claim_support.replaceAll('_', ' ') + (payment.simulated ? ' (simulated payment)' : '')
}

/** What has a meaning in LaTeX becomes its name. Braces too: BibTeX counts them even after a backslash. */
function latex(text: string): string {
  return oneLine(text).replace(/[\\{}$&#%_^~]/g, (char) => LATEX[char] ?? `\\${char}`)
}

const LATEX: Readonly<Record<string, string>> = {
  '\\': '\\textbackslash{}',
  '{': '\\textbraceleft{}',
  '}': '\\textbraceright{}',
  '^': '\\textasciicircum{}',
  '~': '\\textasciitilde{}',
}

/** Markup, entities, mathematics and addresses that would become links are escaped. */
function markdown(text: string): string {
  return oneLine(text)
    .replace(/[\\`*_{}[\]()<>#+!|~&^$:@=-]/g, '\\$&')
    .replace(/\bwww\./gi, (www) => `${www.slice(0, -1)}\\.`)
}

/** An address inside brackets of another language. */
function address(url: string): string {
  return url
    .replace(/[\s\p{Cc}\\{}<>()[\]"`^|]/gu, encodeURIComponent)
    .replace(/[()]/g, (char) => (char === '(' ? '%28' : '%29'))
}

/** White space and control characters become one space: a quote must not begin a line of its own. */
function oneLine(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\s\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
}
