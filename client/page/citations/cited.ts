// The answers of quote checks and report checks as one list of citations, for the page in chat hosts. A host hands them over, so
// their form is checked before anything is drawn.
import { timestamp } from '../../chain/attestation.ts'
import { inWords } from '../../document-words.ts'
import type { CheckedQuote } from '../../operations/quote-check.ts'
import { either, integer, list, literal, object, type Shape, text } from '../../shape.ts'
import { inFigures, type Tone } from '../parts.ts'

/** One quotation that was looked for in the text of a page. Offsets are in code points, the end exclusive. */
export interface LookedFor extends Omit<CheckedQuote, 'nearest'> {
  nearest: { text: string; start: number; end: number } | null
  /** Of the page's text in UTF-8. */
  text_sha256: string
}

export interface Citation {
  /** In a few words. */
  finding: string
  tone: Tone
  /** What the report says there; the quote itself. */
  says: string
  /** Where it stands in the report; null for a quote. */
  line: number | null
  url: string
  /** What is wrong, or known; empty where the finding says it all. */
  message: string
  quotes: LookedFor[]
}

/** Where a text is, and the text itself where the answer brought it. */
export interface PageText {
  text_sha256: string
  uri: string
  text?: string
}

export interface Cited {
  kind: 'quotes' | 'report'
  /** What holds and what does not, in words. */
  outcome: string
  holds: boolean
  facts: (readonly [name: string, value: string])[]
  citations: Citation[]
  texts: PageText[]
}

/** Null for an answer of another kind. @param meta of the result */
export function readCited(value: unknown, meta: unknown): Cited | null {
  const given = (meta as Record<string, unknown> | undefined)?.['service/page-texts']
  const texts = pageTexts(given, '') === null ? (given as PageText[]) : []
  if (quoteCheck(value, '') === null) return quotesCited(value as QuoteCheck, texts)
  if (reportCheck(value, '') === null) return reportCited(value as ReportCheck, texts)
  return null
}

const orNull = (shape: Shape) => either(literal(null), shape)
const match = literal('exact', 'typographic', 'near', 'absent')
const sha256 = text(/^[0-9a-f]{64}$/)
const nearest = orNull(object({ text: text(), start: integer(0), end: integer(0) }))
const place = { start: orNull(integer(0)), end: orNull(integer(0)), quote_sha256: sha256, nearest, match }
const link = orNull(text())

/** No answer of the service has more. */
const MOST = 10_000

const pageTexts = list(object({ text_sha256: sha256, uri: text() }), MOST)

const quoteCheck = object({
  source: object({ final_url: text(), text_sha256: sha256, checked_at: timestamp }),
  quotes: list(object({ quote: text(), fragment_url: link, ...place }), MOST),
})

interface QuoteCheck {
  source: { final_url: string; text_sha256: string; checked_at: string }
  quotes: Omit<LookedFor, 'text_sha256'>[]
}

const reportCheck = object({
  ok: literal(true, false),
  pages: integer(0),
  checked_at: timestamp,
  citations: list(
    object({
      status: text(),
      level: literal('none', 'note', 'warning', 'error'),
      message: text(),
      line: integer(1),
      source_url: text(),
      sentence: orNull(text()),
      parts: list(object({ text: text() }), MOST),
    }),
    MOST,
  ),
})

interface ReportCheck {
  ok: boolean
  pages: number
  checked_at: string
  citations: {
    status: string
    level: 'none' | 'note' | 'warning' | 'error'
    message: string
    line: number
    source_url: string
    sentence: string | null
    parts: ({ text: string } & Partial<Omit<LookedFor, 'quote'>>)[]
  }[]
}

const foundPart = object({ fragment_url: link, text_sha256: sha256, ...place })

const FINDINGS: Readonly<Record<string, string>> = {
  exact: 'On the page',
  typographic: 'On the page, typography aside',
  near: 'Not on the page',
  absent: 'Not on the page',
  ok: 'Holds',
  moved: 'The page moved',
  unverified: 'Not verified',
  unreadable: 'The page cannot be read',
  wrong: 'Not on the page',
  dead: 'The page is dead',
  unchecked: 'Not checked',
}

const TONES: Readonly<Record<string, Tone>> = { none: 'good', note: 'plain', warning: 'open', error: 'bad' }

function quotesCited({ source, quotes }: QuoteCheck, texts: PageText[]): Cited {
  const { final_url, text_sha256, checked_at } = source
  const citations = quotes.map((quote): Citation => {
    const isThere = quote.match === 'exact' || quote.match === 'typographic'
    return {
      finding: FINDINGS[quote.match] ?? quote.match,
      tone: isThere ? 'good' : 'bad',
      says: quote.quote,
      line: null,
      url: final_url,
      message: quote.match === 'near' ? 'The page has a similar passage.' : '',
      quotes: [{ ...quote, text_sha256 }],
    }
  })
  const there = citations.filter(({ tone }) => tone === 'good').length
  return {
    kind: 'quotes',
    outcome: sumOf(there, quotes.length, QUOTES),
    holds: there === quotes.length,
    facts: [
      ['Page', final_url],
      ['Read on', inWords.format(new Date(checked_at))],
    ],
    citations,
    texts,
  }
}

function reportCited({ ok, pages, checked_at, citations: all }: ReportCheck, texts: PageText[]): Cited {
  const citations = all.map(({ status, level, message, line, source_url, sentence, parts }): Citation => {
    const found = parts.filter((part) => foundPart(part, '') === null)
    return {
      finding: FINDINGS[status] ?? status,
      tone: TONES[level] ?? 'plain',
      says: parts.map(({ text }) => text).join(' … ') || sentence || source_url,
      line,
      url: source_url,
      message: level === 'none' ? '' : message,
      // The cast is safe: the shape was checked above.
      quotes: found.map((part) => ({ ...part, quote: part.text }) as LookedFor),
    }
  })
  const holding = all.filter(({ level }) => level !== 'error').length
  return {
    kind: 'report',
    outcome: all.length === 0 ? 'The report cites nothing' : sumOf(holding, all.length, CITATIONS),
    holds: ok,
    facts: [
      ['Pages', inFigures(pages)],
      ['Checked on', inWords.format(new Date(checked_at))],
    ],
    citations,
    texts,
  }
}

interface Words {
  one: string
  notOne: string
  many: string
}

function sumOf(good: number, all: number, { one, notOne, many }: Words): string {
  if (all === 1) return good === 1 ? one : notOne
  return good === all ? `All ${inFigures(all)} ${many}` : `${inFigures(good)} of ${inFigures(all)} ${many}`
}

const QUOTES: Words = {
  one: 'The quote is on the page',
  notOne: 'The quote is not on the page',
  many: 'quotes are on the page',
}
const CITATIONS: Words = {
  one: 'The citation holds',
  notOne: 'The citation does not hold',
  many: 'citations hold',
}
