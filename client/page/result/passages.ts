// The quotes of a result in the text of its page: their places, the text around them, and links that open them on the live
// page.

import type { Evidence } from '../../result.ts'
import { findTextDirective, fragmentUrl } from '../../text-fragment.ts'

export interface Passage {
  id: string
  stance: string
  quote: string
  /** The text around the quote, cut at words. */
  before: string
  after: string
  /** Null for an address that is not http or https. */
  link: string | null
  fault: PassageFault | null
}

/** What is wrong with a quote of a changed file: the text has other words at its place, or it is from another text. */
export type PassageFault = { kind: 'misquoted'; quote: string; there: string } | { kind: 'foreign' }

/** A part of the text, and the quotes that it belongs to. */
export interface Part {
  text: string
  ids: string[]
}

/** Quotes with the text that they are from. */
export interface Quoted {
  source: { final_url: string; normalized_text: string; content_sha256?: unknown; text_sha256?: unknown }
  evidence: Evidence[]
}

/** Null for a value that is no result with quotes and text, and for more of both than a result has. */
export function quotedIn(value: unknown): Quoted | null {
  const { source, evidence } = (value ?? {}) as Partial<Quoted>
  const isQuoted =
    typeof source?.normalized_text === 'string' &&
    typeof source.final_url === 'string' &&
    source.normalized_text.length <= MAX_TEXT &&
    Array.isArray(evidence) &&
    evidence.length <= MAX_EVIDENCE &&
    evidence.every(isPlaced)
  return isQuoted ? { source, evidence } : null
}

function isPlaced(item: Evidence | null): boolean {
  const { start, end } = item ?? { start: -1, end: -1 }
  return Number.isSafeInteger(start) && Number.isSafeInteger(end) && start >= 0 && end - start <= MAX_QUOTE
}

/** No result of a service has more: the text in UTF-16 units, the quotes, and the code points of one. */
const MAX_TEXT = 200_000
const MAX_EVIDENCE = 24
const MAX_QUOTE = 1000

export function passagesOf({ source, evidence }: Quoted): Passage[] {
  const points = Array.from(source.normalized_text)
  return evidence.map((item) => {
    const { evidence_id, stance, start, end } = item
    const quote = String(item.quote)
    // As the text has it at that place.
    const there = points.slice(start, end).join('')
    const isForeign = item.source_sha256 !== source.content_sha256 || item.text_sha256 !== source.text_sha256
    return {
      id: String(evidence_id),
      stance: String(stance),
      quote: there || quote,
      ...around(points, start, end),
      link: liveLink(source, start, end),
      fault:
        there !== quote || end > points.length
          ? { kind: 'misquoted', quote, there }
          : isForeign
            ? { kind: 'foreign' }
            : null,
    }
  })
}

/** The text around a place, cut at words. @param points of the text, one a code point */
export function around(points: readonly string[], start: number, end: number): Pick<Passage, 'before' | 'after'> {
  return {
    before: points
      .slice(Math.max(0, start - AROUND), start)
      .join('')
      .replace(/^\S*\s/, start > AROUND ? '… ' : '$&'),
    after: cutWord(points.slice(end, end + AROUND).join(''), end + AROUND < points.length),
  }
}

/** In code points. */
const AROUND = 160

/** Without its last word, where the text goes on. */
function cutWord(text: string, goesOn: boolean): string {
  const blank = Math.max(text.lastIndexOf(' '), text.lastIndexOf('\n'), text.lastIndexOf('\t'))
  return goesOn && blank >= 0 ? `${text.slice(0, blank)} …` : text
}

function liveLink({ final_url, normalized_text }: Quoted['source'], start: number, end: number): string | null {
  const link = webAddress(final_url)
  if (link === null || end <= start) return link
  return fragmentUrl(link, findTextDirective(normalized_text, start, end))
}

/** The address, if a browser may safely open it. A file can hold `javascript:` as well. */
export function webAddress(url: string): string | null {
  return /^https?:\/\//i.test(url) && URL.canParse(url) ? url : null
}

/** The whole text in parts, each within the same quotes, so that overlapping quotes are all shown. */
export function partsOf({ source, evidence }: Quoted): Part[] {
  const points = Array.from(source.normalized_text)
  const places = new Set([0, points.length, ...evidence.flatMap(({ start, end }) => [start, end])])
  const cuts = [...places].filter((place) => place <= points.length).sort((a, b) => a - b)
  return cuts.slice(0, -1).map((from, index) => ({
    text: points.slice(from, cuts[index + 1]).join(''),
    ids: evidence.filter(({ start, end }) => start <= from && from < end).map(({ evidence_id }) => String(evidence_id)),
  }))
}
