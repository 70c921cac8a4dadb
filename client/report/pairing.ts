// Pairs the parts of a block: the quotations, the links that name their sources, and the sentences around them.
import { askedText, findQuotations, isQuotation, partsOf, singleSpaced } from './quotations.ts'
import { type Block, type Link, lastAt, type Span } from './report.ts'

/** Text that must be on the page. */
export interface Part {
  text: string
  location: Span
  /** The range of the file that a correction may replace; null where that would touch more than the text. */
  replaceable: Span | null
}

export interface Quotation extends Span {
  parts: Part[]
  mark: string | null
  location: Span
}

/** A page beside a text: the call or link that names it. */
export interface Source {
  url: string
  link: Link
}

export function quotationsIn(block: Block): Quotation[] {
  const marked = block.quoted.map((span) => ({ ...span, mark: null }))
  const free = apartFrom(marked, findQuotations(block.text)).map((span) => ({
    ...span,
    mark: block.text[span.start - 1] ?? null,
  }))
  return [...marked, ...free]
    .sort((a, b) => a.start - b.start)
    .filter(({ start, end }) => isQuotation(block.text.slice(start, end)))
    .map(({ start, end, mark }) => ({
      start,
      end,
      mark,
      parts: partsIn(block, { start, end }),
      location: block.map.locate({ start, end }),
    }))
    .filter(({ parts }) => parts.length > 0)
}

/** The spans that overlap none of the others. They are apart from each other and in their order. */
function apartFrom(others: readonly Span[], spans: readonly Span[]): Span[] {
  const sorted = others.toSorted((a, b) => a.start - b.start)
  let next = 0
  let reached = 0
  return spans.filter(({ start, end }) => {
    for (; next < sorted.length && sorted[next]!.start < end; next++) reached = Math.max(reached, sorted[next]!.end)
    return reached <= start
  })
}

export function partsIn({ text, map }: Block, span: Span): Part[] {
  return partsOf(text, span).map((part) => ({
    text: askedText(text.slice(part.start, part.end)),
    location: map.locate(part),
    replaceable: map.replaceable(part),
  }))
}

/**
 * The links that name the source of a quotation: those that follow it one upon another, before the next quotation; else the
 * last one before it, after the previous quotation; else the next one of all.
 */
export function beside(
  quotation: Span,
  links: readonly Link[],
  previous: Span | undefined,
  next: Span | undefined,
): Link[] {
  const before = lastAt(links, quotation.start - 1, ({ start }) => start)
  const last = links[before]
  const after = lastAt(links, quotation.end - 1, ({ start }) => start) + 1
  const first = links[after]
  if (first && (!next || first.start < next.start)) return run(links, after)
  if (last && (!previous || last.start >= previous.end)) return [last]
  return first ? run(links, after) : last ? [last] : []
}

/** A number after a number, with nothing between: all name the source. A link with words counts alone. */
function run(all: readonly Link[], from: number): Link[] {
  const links = all.slice(from, from + 1)
  for (let n = from + 1; n < all.length; n++) {
    const [link, last] = [all[n]!, links.at(-1)!]
    if (link.start - last.end > 2 || link.note === null || last.note === null) break
    links.push(link)
  }
  return links
}

export function spanOf(sentences: readonly Span[], { start, end }: Span): Span {
  const first = sentences[lastAt(sentences, start, (one) => one.start)]
  const last = sentences[lastAt(sentences, end - 1, (one) => one.start)]
  return { start: first?.start ?? start, end: last?.end ?? end }
}

/** @param links in their order */
export function linksIn(links: readonly Link[], span: Span): Link[] {
  const from = lastAt(links, span.start - 1, ({ start }) => start) + 1
  const to = lastAt(links, span.end, ({ start }) => start)
  return links.slice(from, to + 1).filter((link) => within(link, span))
}

export const within = (inner: Span, outer: Span) => inner.start >= outer.start && inner.end <= outer.end

export const isLast = (sentences: readonly Span[], { end }: Span) => (sentences.at(-1)?.end ?? 0) <= end

/** The text of a block quotation, and the links of its last line where that only attributes. */
export function splitAttribution(blocks: readonly Block[], linksOf: (block: Block) => Link[]) {
  const quoted = blocks.map((block) => ({ block, span: { start: 0, end: block.text.length } }))
  const last = quoted.at(-1)!
  const links = linksOf(last.block)
  const line = last.block.text.lastIndexOf('\n') + 1
  const begin = ATTRIBUTION.test(last.block.text) ? 0 : ATTRIBUTION.test(last.block.text.slice(line)) ? line : null
  if (begin !== null && (begin > 0 || quoted.length > 1))
    return { quoted: [...quoted.slice(0, -1), cut(last, begin)], links: links.filter(({ start }) => start >= begin) }
  // `Text [1]`: the call at the end is not part of the text.
  const words = lengthWithout(last.block.text, /[^\p{L}\p{N}]/u)
  const tail = links.filter(({ end }) => end >= words)
  const [first] = tail
  return first ? { quoted: [...quoted.slice(0, -1), cut(last, first.start)], links: tail } : { quoted, links: [] }
}

/** The text before a place, without the quotation marks and dashes at its ends. */
function cut({ block }: { block: Block }, end: number) {
  return { block, span: { start: 0, end: lengthWithout(block.text.slice(0, end), /[\s([{—–―-]/u) } }
}

/** The length of a text without such characters at its end. Linear. */
function lengthWithout(text: string, trailing: RegExp): number {
  let length = text.length
  while (length > 0) {
    const point = text.codePointAt(length - 2) ?? 0
    const size = point > 0xffff ? 2 : 1
    if (!trailing.test(text.slice(length - size, length))) break
    length -= size
  }
  return length
}

/** A link for an address that an element names without showing a link. */
export function named({ map, text }: Block, url: string): Link {
  const span = { start: 0, end: text.length }
  return { ...span, url, note: null, source: map.locate(span) }
}

/** The text without the calls of notes. Linear. */
export function withoutCalls(text: string, links: readonly Link[], offset = 0): string {
  const parts: string[] = []
  let at = 0
  for (const { note, start, end } of links) {
    if (note === null || start - offset < at) continue
    parts.push(text.slice(at, start - offset))
    at = end - offset
  }
  return [...parts, text.slice(at)].join('')
}

/** A sentence as a person would say it: without the calls of notes and bare addresses, white space as single spaces. */
export function clean(sentence: string, links: readonly Link[], offset: number): string {
  const near = linksIn(links, { start: offset, end: offset + sentence.length })
  return singleSpaced(withoutCalls(sentence, near, offset).replace(/https?:\/\/\S+/g, ''))
    .replace(/ ?\[\d{1,3}(?: ?[,;–-] ?\d{1,3})*\]/g, '')
    .replace(/^[\s|]+|(?<=[^\s|])[\s|]{1,99}$/g, '')
    .toWellFormed()
}

export function distinct(sources: readonly Source[]): Source[] {
  return [...new Map(sources.toReversed().map((source) => [source.url, source])).values()].reverse()
}

export const ATTRIBUTION = /^\s*(?:[—–―]|--?-?\s|(?:\(\s*)?(?:sources?|via|from|quelle|fuente|fonte)\b\s*:?)/iu
