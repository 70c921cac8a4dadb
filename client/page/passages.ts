// The quotes of a result in the text of its page: their places, the text around them, and links that open them on the live
// page.

import type { Evidence } from '../result.ts'
import { findTextDirective, fragmentUrl } from '../text-fragment.ts'

export interface Passage {
  id: string
  stance: string
  quote: string
  /** The text around the quote, cut at words. */
  before: string
  after: string
  /** Null for an address that is not http or https. */
  link: string | null
}

/** A part of the text, and the quotes that it belongs to. */
export interface Part {
  text: string
  ids: string[]
}

interface Quoted {
  source: { final_url: string; normalized_text: string }
  evidence: Evidence[]
}

/** Null for a value that is no result with quotes and text. */
export function quotedIn(value: unknown): Quoted | null {
  const { source, evidence } = (value ?? {}) as Partial<Quoted>
  const isQuoted =
    typeof source?.normalized_text === 'string' &&
    typeof source.final_url === 'string' &&
    Array.isArray(evidence) &&
    evidence.every((item) => Number.isSafeInteger(item?.start) && Number.isSafeInteger(item?.end) && item.start >= 0)
  return isQuoted ? { source, evidence } : null
}

export function passagesOf({ source, evidence }: Quoted): Passage[] {
  const points = Array.from(source.normalized_text)
  return evidence.map(({ evidence_id, quote, stance, start, end }) => ({
    id: String(evidence_id),
    stance: String(stance),
    // As the text has it at that place: the check of quotes says whether that is the quote.
    quote: points.slice(start, end).join('') || String(quote),
    before: points
      .slice(Math.max(0, start - AROUND), start)
      .join('')
      .replace(/^\S*\s/, start > AROUND ? '… ' : '$&'),
    after: points
      .slice(end, end + AROUND)
      .join('')
      .replace(/\s\S*$/, end + AROUND < points.length ? ' …' : '$&'),
    link: liveLink(source, start, end),
  }))
}

/** In code points. */
const AROUND = 160

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
