// Pairs what a report says with the pages it cites for it: quotations, text fragments, sentences beside a link, bare links.

import { askedText, findQuotations, isQuotation, partsOf } from './quotations.ts'
import { findReferences, type References } from './references.ts'
import { type Block, type Link, lastAt, type Report, type Span } from './report.ts'
import { sentencesOf } from './sentences.ts'

/** Text that must be on the page. */
export interface Part {
  text: string
  location: Span
  /** The range of the file that a correction may replace; null where that would touch more than the text. */
  replaceable: Span | null
}

export interface Citation {
  /**
   * `quotation`: words in quotation marks or a block quotation. `fragment`: the text of a `#:~:text=` link. `claim`: a
   * sentence beside a link. `link`: a link with no sentence.
   */
  kind: 'quotation' | 'fragment' | 'claim' | 'link'
  /** As in the report. */
  url: string
  /** What the report says, for a verdict; null for a bare link. */
  sentence: string | null
  /** Of quotations and fragments. */
  parts: Part[]
  /** It may as well be the title of a page, which the text of the page need not have. */
  mayBeTitle: boolean
  /** Citations of one quotation for several pages have the same number. */
  group: number | null
  /** The quotation, or the link. */
  location: Span
  /** Style of the marks: the mark before a quotation, for replacements. */
  mark: string | null
}

/** In the order of the file. */
export function findCitations({ blocks }: Report): Citation[] {
  const finder = new Finder(blocks)
  for (const [n, block] of blocks.entries()) finder.visit(block, n)
  return finder.found.sort((a, b) => a.location.start - b.location.start || a.location.end - b.location.end)
}

interface Quotation extends Span {
  parts: Part[]
  mark: string | null
  location: Span
}

/** A page beside a text: the call or link that names it. */
interface Source {
  url: string
  link: Link
}

class Finder {
  readonly found: Citation[] = []
  readonly #blocks: readonly Block[]
  readonly #references: References
  readonly #called: Set<string>
  readonly #claims = new Set<string>()
  /** Links that attribute the block quotation before them. */
  readonly #used = new Set<Link>()
  #groups = 0

  constructor(blocks: readonly Block[]) {
    this.#blocks = blocks
    this.#references = findReferences(blocks)
    const calls = [...blocks.flatMap(({ links }) => links), ...[...this.#references.calls.values()].flat()]
    this.#called = new Set(calls.flatMap(({ note }) => note ?? []))
  }

  visit(block: Block, n: number): void {
    if (block.quotation === null) this.#text(block, n)
    else if (this.#blocks[n - 1]?.quotation !== block.quotation) this.#blockQuotation(n)
  }

  #linksOf(block: Block): Link[] {
    const calls = this.#references.calls.get(block) ?? []
    return [...block.links, ...calls].sort((a, b) => a.start - b.start || a.end - b.end)
  }

  #sourcesOf(link: Link): Source[] {
    const links = link.note === null ? [link] : (this.#references.targets.get(link.note) ?? [])
    return links.flatMap(({ url }) => (url !== null && isPage(url) ? [{ url, link }] : []))
  }

  #text(block: Block, n: number): void {
    const isEntry = this.#references.blocks.has(block)
    const mayBeTitle = block.note !== null || isEntry
    const links = this.#linksOf(block).filter((link) => !this.#used.has(link) && this.#sourcesOf(link).length > 0)
    const sentences = block.role === 'row' ? [{ start: 0, end: block.text.length }] : sentencesOf(block.text, links)
    const cited = new Set<Link>()
    const quotations = isEntry || block.role === 'heading' ? [] : quotationsIn(block)
    for (const [i, quotation] of quotations.entries()) {
      const reach = spanOf(sentences, quotation)
      const near = linksIn(links, reach)
      const inside = near.find((link) => within(quotation, link) && link.note === null)
      const chosen = inside ? [inside] : beside(quotation, near, quotations[i - 1], quotations[i + 1])
      const sources = chosen.length > 0 ? chosen : isLast(sentences, reach) ? this.#attribution(n) : []
      for (const link of sources) cited.add(link)
      this.#quotation(quotation, sources, block, { mayBeTitle: mayBeTitle || inside !== undefined })
    }
    for (const link of links) {
      for (const { url } of this.#sourcesOf(link)) this.#fragment(url, link, block, sentences)
      if (!cited.has(link)) this.#claim(link, block, sentences, mayBeTitle)
    }
  }

  /** The link of a next block that only attributes: `— Name`, `Source: Name`. */
  #attribution(n: number): Link[] {
    const next = this.#blocks[n + 1]
    if (!next || next.quotation !== null || !ATTRIBUTION.test(next.text)) return []
    const link = this.#linksOf(next).find((one) => this.#sourcesOf(one).length > 0)
    if (link) this.#used.add(link)
    return link ? [link] : []
  }

  #quotation(quotation: Quotation, links: readonly Link[], block: Block, { mayBeTitle = false } = {}): void {
    const sources = distinct(links.flatMap((link) => this.#sourcesOf(link)))
    const group = sources.length > 1 ? ++this.#groups : null
    const { parts, mark, location } = quotation
    const sentence = clean(block.text.slice(quotation.start, quotation.end), [], 0)
    for (const { url } of sources)
      this.found.push({ kind: 'quotation', url, sentence, parts, mayBeTitle, group, location, mark })
  }

  #fragment(url: string, link: Link, block: Block, sentences: Span[]): void {
    const texts = fragmentTexts(url)
    if (texts.length === 0) return
    const parts = texts.map((text) => ({ text, location: link.source, replaceable: null }))
    const sentence = this.#sentence(link, block, sentences)
    this.found.push({ ...BARE, kind: 'fragment', url, sentence, parts, location: link.source })
  }

  #claim(link: Link, block: Block, sentences: Span[], isNote: boolean): void {
    // What is called from the text is cited there.
    const entry = block.note ?? this.#references.entries.get(link)
    if (isNote && entry !== undefined && this.#called.has(entry)) return
    const sentence = isNote || block.role === 'heading' ? null : this.#sentence(link, block, sentences)
    for (const { url } of this.#sourcesOf(link)) {
      const key = JSON.stringify([sentence ?? link.source.start, url])
      if (this.#claims.has(key) || fragmentTexts(url).length > 0) continue
      this.#claims.add(key)
      this.found.push({ ...BARE, kind: sentence === null ? 'link' : 'claim', url, sentence, location: link.source })
    }
  }

  #sentence(link: Link, { text, links }: Block, sentences: Span[]): string | null {
    const before = sentences[lastAt(sentences, link.start - 1, ({ start }) => start)]
    const span =
      before && within(link, before) ? before : sentences[lastAt(sentences, link.start, ({ start }) => start)]
    const sentence = span ? clean(text.slice(span.start, span.end), links, span.start) : ''
    // What ends in a colon only leads to something else.
    return isQuotation(sentence) && !sentence.endsWith(':') ? sentence : null
  }

  /** A block quotation with the blocks that belong to it, from this one on. */
  #blockQuotation(n: number): void {
    const first = this.#blocks[n]!
    if (/^\s*\[!\w+\]/.test(first.text)) return
    const blocks: Block[] = []
    for (let i = n; this.#blocks[i]?.quotation === first.quotation; i++) blocks.push(this.#blocks[i]!)
    const after = n + blocks.length
    const { quoted, links } = splitAttribution(blocks, (block) => this.#linksOf(block))
    const own = first.quotationUrl !== null && isPage(first.quotationUrl) ? [named(first, first.quotationUrl)] : []
    const sources =
      [own, links, this.#attribution(after - 1), this.#introduction(n)].find((some) => this.#have(some)) ?? []
    const parts = quoted.flatMap(({ block, span }) => partsIn(block, span))
    if (parts.length === 0 || sources.length === 0 || !isQuotation(parts.map(({ text }) => text).join(' '))) {
      for (const [i, block] of blocks.entries()) this.#text(block, n + i)
      return
    }
    const location = { start: parts[0]!.location.start, end: parts.at(-1)!.location.end }
    const mark = null
    const sentence = parts.map(({ text }) => text).join(' ')
    const pages = distinct(sources.flatMap((link) => this.#sourcesOf(link)))
    const group = pages.length > 1 ? ++this.#groups : null
    for (const { url } of pages)
      this.found.push({ ...BARE, kind: 'quotation', url, sentence, parts, group, location, mark })
    for (const block of blocks)
      for (const link of this.#linksOf(block))
        for (const { url } of this.#sourcesOf(link)) this.#fragment(url, link, block, [])
  }

  #have(links: readonly Link[]): boolean {
    return links.some((link) => this.#sourcesOf(link).length > 0)
  }

  /** The last link of the sentence that leads to a block quotation. */
  #introduction(n: number): Link[] {
    const before = this.#blocks[n - 1]
    if (before?.role !== 'text' || before.quotation !== null || this.#references.blocks.has(before)) return []
    const links = this.#linksOf(before)
    const last = sentencesOf(before.text, links).at(-1)
    const near = (last ? linksIn(links, last) : []).filter((link) => this.#sourcesOf(link).length > 0)
    return /:\s*$/.test(withoutLinks(before, links)) ? near.slice(-1) : []
  }
}

const BARE: Omit<Citation, 'kind' | 'url' | 'location'> = {
  sentence: null,
  parts: [],
  mayBeTitle: false,
  group: null,
  mark: null,
}

function quotationsIn(block: Block): Quotation[] {
  const marked = block.quoted.map((span) => ({ ...span, mark: null }))
  const free = findQuotations(block.text)
    .filter((span) => !marked.some((one) => span.start < one.end && span.end > one.start))
    .map((span) => ({ ...span, mark: block.text[span.start - 1] ?? null }))
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

function partsIn({ text, map }: Block, span: Span): Part[] {
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
function beside(quotation: Span, links: readonly Link[], previous: Span | undefined, next: Span | undefined): Link[] {
  const before = lastAt(links, quotation.start - 1, ({ start }) => start)
  const last = links[before]
  const after = lastAt(links, quotation.end - 1, ({ start }) => start) + 1
  const first = links[after]
  if (first && (!next || first.start < next.start)) return run(links, after)
  if (last && (!previous || last.start >= previous.end)) return [last]
  return first ? run(links, after) : last ? [last] : []
}

/** A number after a number, with nothing between: all name the source. A link with words stands for itself. */
function run(all: readonly Link[], from: number): Link[] {
  const links = all.slice(from, from + 1)
  for (let n = from + 1; n < all.length; n++) {
    const [link, last] = [all[n]!, links.at(-1)!]
    if (link.start - last.end > 2 || link.note === null || last.note === null) break
    links.push(link)
  }
  return links
}

function spanOf(sentences: readonly Span[], { start, end }: Span): Span {
  const first = sentences[lastAt(sentences, start, (one) => one.start)]
  const last = sentences[lastAt(sentences, end - 1, (one) => one.start)]
  return { start: first?.start ?? start, end: last?.end ?? end }
}

/** @param links in their order */
function linksIn(links: readonly Link[], span: Span): Link[] {
  const from = lastAt(links, span.start - 1, ({ start }) => start) + 1
  const to = lastAt(links, span.end, ({ start }) => start)
  return links.slice(from, to + 1).filter((link) => within(link, span))
}

const within = (inner: Span, outer: Span) => inner.start >= outer.start && inner.end <= outer.end

const isLast = (sentences: readonly Span[], { end }: Span) => (sentences.at(-1)?.end ?? 0) <= end

/** The text of a block quotation, and the links of its last line where that only attributes. */
function splitAttribution(blocks: readonly Block[], linksOf: (block: Block) => Link[]) {
  const quoted = blocks.map((block) => ({ block, span: { start: 0, end: block.text.length } }))
  const last = quoted.at(-1)!
  const links = linksOf(last.block)
  const line = last.block.text.lastIndexOf('\n') + 1
  const begin = ATTRIBUTION.test(last.block.text) ? 0 : ATTRIBUTION.test(last.block.text.slice(line)) ? line : null
  if (begin !== null && (begin > 0 || quoted.length > 1))
    return { quoted: [...quoted.slice(0, -1), cut(last, begin)], links: links.filter(({ start }) => start >= begin) }
  // `Text [1]`: the call at the end is not part of the text.
  const tail = links.filter(({ end }) => !/[\p{L}\p{N}]/u.test(last.block.text.slice(end)))
  const [first] = tail
  return first ? { quoted: [...quoted.slice(0, -1), cut(last, first.start)], links: tail } : { quoted, links: [] }
}

/** The text before a place, without the quotation marks and dashes at its ends. */
function cut({ block }: { block: Block }, end: number) {
  const kept = block.text.slice(0, end).replace(/[\s([{—–―-]+$/u, '')
  return { block, span: { start: 0, end: kept.length } }
}

/** A link for an address that an element names without showing a link. */
function named({ map, text }: Block, url: string): Link {
  const span = { start: 0, end: text.length }
  return { ...span, url, note: null, source: map.locate(span) }
}

function withoutLinks({ text }: Block, links: readonly Link[]): string {
  return links
    .filter(({ note }) => note !== null)
    .reduceRight((left, { start, end }) => left.slice(0, start) + left.slice(end), text)
}

/** A sentence as a person would say it: without the calls of notes and bare addresses, white space as single spaces. */
function clean(sentence: string, links: readonly Link[], offset: number): string {
  const near = linksIn(links, { start: offset, end: offset + sentence.length })
  const calls = near.filter(({ note }) => note !== null)
  const said = calls.reduceRight(
    (left, { start, end }) => left.slice(0, start - offset) + left.slice(end - offset),
    sentence,
  )
  return said
    .replace(/https?:\/\/\S+/g, '')
    .replace(/\s*\[\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\]/g, '')
    .replace(/\s+/g, ' ')
    .replace(/^[\s|]+|(?<=[^\s|])[\s|]{1,99}$/g, '')
    .toWellFormed()
}

function distinct(sources: readonly Source[]): Source[] {
  return [...new Map(sources.toReversed().map((source) => [source.url, source])).values()].reverse()
}

/** Whether an address is that of a page of the web. */
function isPage(url: string): boolean {
  return /^https?:\/\//i.test(url) && URL.canParse(url)
}

/** The texts that the text directives of an address name: of each its start, and its end. */
export function fragmentTexts(url: string): string[] {
  const directive = url.split(':~:')[1]
  if (directive === undefined) return []
  return directive.split('&').flatMap((one) => {
    if (!one.startsWith('text=')) return []
    const terms = one.slice(5).split(',')
    const named = terms.filter(
      (term, n) => !(n === 0 && term.endsWith('-')) && !(n === terms.length - 1 && term.startsWith('-')),
    )
    return named.slice(0, 2).flatMap((term) => {
      const text = decode(term).replace(/\s+/g, ' ').trim()
      return text === '' ? [] : [[...text].slice(0, 1000).join('').toWellFormed()]
    })
  })
}

function decode(term: string): string {
  try {
    return decodeURIComponent(term)
  } catch {
    return term
  }
}

const ATTRIBUTION = /^\s*(?:[—–―]|--?-?\s|\(?\s*(?:sources?|via|from|quelle|fuente|fonte)\b\s*:?)/iu
