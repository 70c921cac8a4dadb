// Answers in words, for models: a host gives `content` to its model, and a whole result with its page would fill the context.
import { withheldInWords } from '../../client/verdict-words.ts'
import { linkTo, textDirective } from '../../workers/text/text-fragment.ts'
import type { ClaimsResult } from '../interface/claims.ts'
import type { CompletedResult } from '../interface/result.ts'
import { explainedFlags } from '../verification/offer/risk-flag-advice.ts'

/** Most Unicode code points of a text. */
export const MAX_TEXT = 2000

export function isShort(text: string): boolean {
  return text.length <= MAX_TEXT || codePoints(text) <= MAX_TEXT
}

const VERDICTS: Record<CompletedResult['claim_support'], string> = {
  supports: 'the text of the page supports the claim',
  contradicts: 'the text of the page contradicts the claim',
  mixed: 'the text of the page supports and contradicts the claim',
  insufficient_evidence: 'the text of the page does not decide the claim',
  not_assessed: 'no verdict was asked for; passages are quoted',
}

/** Room for the address of the page, for all flags, and at least for an explanation. */
const ROOM = { address: 200, flags: 360, explanation: 260 }

/** Of a result of several claims: the verdict on each, with what room allows of claim and explanation. */
export function summarizeClaims({ claims, source, receipt, checked_at }: ClaimsResult): string {
  const { serial, key_id } = receipt.attestation
  const page = `Page: ${cut(source.final_url, ROOM.address)}, read ${checked_at}`
  const end = `${page}\nReceipt ${serial}, signed by key ${key_id}. Quotes and flags are in structuredContent.`
  const room = Math.floor((MAX_TEXT - codePoints(end)) / claims.length) - 1
  const lines = claims.map(({ claim, claim_support, explanation }, i) =>
    cut(`${i + 1}. ${claim_support}: ${cut(claim, Math.floor(room / 2))} - ${explanation}`, room),
  )
  return [...lines, end].join('\n')
}

/** Verdict, explanation, quotes with their links, flags, and how to check the receipt: at most MAX_TEXT code points. */
export function summarizeResult(result: CompletedResult, baseUrl: string): string {
  const { claim_support, source, evidence, risk_flags, receipt, checked_at } = result
  const { serial, key_id } = receipt.attestation
  const head = `claim_support: ${claim_support} (${withheldInWords(result) ?? VERDICTS[claim_support]})`
  const page = `Page: ${cut(source.final_url, ROOM.address)}, read ${checked_at}`
  const proof =
    `Receipt ${serial}, signed by key ${key_id}. To verify: check structuredContent at ${cut(baseUrl, ROOM.address)}/verify or ` +
    'with `countersign verify`, offline, against a pinned key.'
  const flags = cut(describeFlags(risk_flags), ROOM.flags)
  const fixed = [head, page, flags, proof].filter(Boolean)
  const room = MAX_TEXT - fixed.reduce((sum, line) => sum + codePoints(line) + 1, 0) - 'Quotes:\n'.length
  const quotes = evidence.map((quote, index) => ({ ...quote, number: index + 1 }))
  const wanted = quotes.reduce((sum, quote) => sum + codePoints(describeQuote(quote, source, Infinity)) + 1, 0)
  const explanation = cut(result.explanation, Math.max(ROOM.explanation, room - wanted - 1))
  let left = room - codePoints(explanation) - 1
  const lines = quotes.map((quote, index) => {
    const line = describeQuote(quote, source, Math.floor(left / (quotes.length - index)) - 1)
    left -= codePoints(line) + 1
    return line
  })
  return [head, explanation, ...(lines.length > 0 ? ['Quotes:', ...lines] : []), page, flags, proof]
    .filter(Boolean)
    .join('\n')
}

type Quote = CompletedResult['evidence'][number] & { number: number }

/** A link that takes more than this part of the room is left out: it is in the whole result. */
const LINK_PART = 0.75

function describeQuote({ number, stance, quote, start, end }: Quote, source: CompletedResult['source'], room: number) {
  const head = `${number}. ${stance}: `
  const link = linkOf(source, start, end, Math.floor(room * LINK_PART) - head.length)
  return `${head}“${cut(quote, room - head.length - link.length - 2)}”${link}`
}

function linkOf({ final_url, normalized_text }: CompletedResult['source'], start: number, end: number, room: number) {
  const from = unitsOf(normalized_text, 0, start)
  const to = unitsOf(normalized_text, from, end - start)
  for (const until of [to, Math.min(to, from + BEGINNING)]) {
    const link = ` ${linkTo(final_url, textDirective(normalized_text, from, until))}`
    if (link.length <= room) return link
  }
  return final_url.length < room ? ` ${final_url}` : ''
}

/** UTF-16 units of the beginning of a quote, which a shorter link marks. */
const BEGINNING = 24

/** The place, in UTF-16 units, that many code points after another. */
function unitsOf(text: string, from: number, points: number): number {
  let at = from
  for (let n = 0; n < points; n++) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
  return at
}

function describeFlags(flags: readonly string[]): string {
  if (flags.length === 0) return ''
  let left = ROOM.flags - flags.join(', ').length - 'Flags: '.length
  const told = flags.map((flag) => {
    const meaning = explainedFlags.find(({ name }) => name === flag)?.meaning
    const words = meaning === undefined ? '' : ` (${meaning.replace(/\.$/, '')})`
    if (words.length > left) return flag
    left -= words.length
    return flag + words
  })
  return `Flags: ${told.join(', ')}`
}

/** Of a body too long for its JSON: what it holds, by name. */
export function summarizeBody(body: object): string {
  const parts = Object.entries(body).map(([name, value]) => {
    if (Array.isArray(value)) return `${name}: ${value.length} items`
    const text = JSON.stringify(value) ?? 'undefined'
    return `${name}: ${text.length > 200 ? `${text.length} characters` : text}`
  })
  return cut(`The whole answer is in structuredContent. ${parts.join('; ')}.`, MAX_TEXT)
}

export function cut(text: string, points: number): string {
  if (text.length <= points) return text
  const all = [...text]
  return all.length <= points ? text : `${all.slice(0, Math.max(0, points - 1)).join('')}…`
}

function codePoints(text: string): number {
  let n = 0
  for (const _ of text) n++
  return n
}
