// Pairs the statements of a report with the pages that it cites for them: quotations, text fragments, sentences beside a
// link, bare links.

import { fragmentTexts, isPage } from './addresses.ts'
import {
  ATTRIBUTION,
  beside,
  clean,
  distinct,
  isLast,
  linksIn,
  named,
  type Part,
  partsIn,
  type Quotation,
  quotationsIn,
  type Source,
  spanOf,
  splitAttribution,
  within,
  withoutCalls,
} from './pairing.ts'
import { isQuotation } from './quotations.ts'
import { findReferences, type References } from './references.ts'
import { type Block, type Link, lastAt, type Report, type Span } from './report.ts'
import { sentencesOf } from './sentences.ts'

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
  /** It may also be the title of a page, which the text of the page need not contain. */
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

class Finder {
  readonly found: Citation[] = []
  readonly #blocks: readonly Block[]
  readonly #references: References
  readonly #called: Set<string>
  readonly #claims = new Set<string>()
  readonly #sentences = new Map<Span, string | null>()
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
    const leading = this.#introduction(n + 1)
    const cited = new Set(leading.length > 0 ? this.#quotationAt(n + 1).sources : [])
    const quotations = isEntry || block.role === 'heading' ? [] : quotationsIn(block)
    for (const [i, quotation] of quotations.entries()) {
      const reach = spanOf(sentences, quotation)
      const near = linksIn(links, around(reach, quotation))
      const inside = near.find((link) => within(quotation, link) && link.note === null)
      const chosen = inside ? [inside] : beside(quotation, near, quotations[i - 1], quotations[i + 1])
      const sources = chosen.length > 0 ? chosen : isLast(sentences, reach) ? this.#attribution(n) : []
      for (const link of sources) this.#used.add(link)
      this.#quotation(quotation, sources, block, { mayBeTitle: mayBeTitle || inside !== undefined })
    }
    for (const link of links) {
      for (const { url } of this.#sourcesOf(link)) this.#fragment(url, link, block, sentences)
      if (!cited.has(link) && !this.#used.has(link)) this.#claim(link, block, sentences, mayBeTitle)
    }
  }

  /** The link of a next block that only attributes: `— Name`, `Source: Name`. */
  #attribution(n: number): Link[] {
    const next = this.#blocks[n + 1]
    if (!next || next.quotation !== null || !ATTRIBUTION.test(next.text)) return []
    const link = this.#linksOf(next).find((one) => this.#sourcesOf(one).length > 0)
    return link ? [link] : []
  }

  #quotation(quotation: Quotation, links: readonly Link[], block: Block, { mayBeTitle = false } = {}): void {
    const sources = distinct(links.flatMap((link) => this.#sourcesOf(link)))
    if (sources.length === 0) return
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
    // A note or entry that the text refers to is cited at that place.
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

  /** Of the links of one sentence, only the first reads it. */
  #sentence(link: Link, block: Block, sentences: Span[]): string | null {
    const before = sentences[lastAt(sentences, link.start - 1, ({ start }) => start)]
    const span =
      before && within(link, before) ? before : sentences[lastAt(sentences, link.start, ({ start }) => start)]
    // Longer than a claim can be, and than any sentence.
    if (!span || span.end - span.start > MAX_SENTENCE) return null
    const known = this.#sentences.get(span)
    if (known !== undefined) return known
    const sentence = clean(block.text.slice(span.start, span.end), block.links, span.start)
    // A sentence that ends with a colon only introduces something else.
    const found = isQuotation(sentence) && !sentence.endsWith(':') ? sentence : null
    this.#sentences.set(span, found)
    return found
  }

  #blockQuotation(n: number): void {
    const { blocks, parts, sources } = this.#quotationAt(n)
    if (sources.length === 0) {
      for (const [i, block] of blocks.entries()) this.#text(block, n + i)
      return
    }
    for (const link of this.#attribution(n + blocks.length - 1)) if (sources.includes(link)) this.#used.add(link)
    const location = { start: parts[0]!.location.start, end: parts.at(-1)!.location.end }
    const sentence = parts.map(({ text }) => text).join(' ')
    const pages = distinct(sources.flatMap((link) => this.#sourcesOf(link)))
    const group = pages.length > 1 ? ++this.#groups : null
    for (const { url } of pages) this.found.push({ ...BARE, kind: 'quotation', url, sentence, parts, group, location })
    for (const block of blocks)
      for (const link of this.#linksOf(block))
        for (const { url } of this.#sourcesOf(link)) this.#fragment(url, link, block, [])
  }

  /** The block quotation that begins with this block: its blocks, what it quotes, and from where; no source, no quotation. */
  #quotationAt(n: number): { blocks: Block[]; parts: Part[]; sources: readonly Link[] } {
    const first = this.#blocks[n]
    const blocks: Block[] = []
    for (let i = n; first && this.#blocks[i]?.quotation === first.quotation; i++) blocks.push(this.#blocks[i]!)
    if (!first || first.quotation === null || /^\s*\[!\w+\]/.test(first.text)) return { blocks, parts: [], sources: [] }
    const { quoted, links } = splitAttribution(blocks, (block) => this.#linksOf(block))
    const parts = quoted.flatMap(({ block, span }) => partsIn(block, span))
    const isLong = isQuotation(parts.map(({ text }) => text).join(' '))
    const own = first.quotationUrl !== null && isPage(first.quotationUrl) ? [named(first, first.quotationUrl)] : []
    const places = [own, links, this.#attribution(n + blocks.length - 1), this.#introduction(n)]
    const sources = places.find((some) => some.some((link) => this.#sourcesOf(link).length > 0)) ?? []
    return { blocks, parts, sources: isLong ? sources : [] }
  }

  /** The last link of the sentence that leads to a block quotation. */
  #introduction(n: number): Link[] {
    const before = this.#blocks[n - 1]
    if ((this.#blocks[n]?.quotation ?? null) === null) return []
    if (before?.role !== 'text' || before.quotation !== null || this.#references.blocks.has(before)) return []
    const links = this.#linksOf(before)
    const last = sentencesOf(before.text, links).at(-1)
    const near = (last ? linksIn(links, last) : []).filter((link) => this.#sourcesOf(link).length > 0)
    return /:\s*$/.test(withoutCalls(before.text, links)) ? near.slice(-1) : []
  }
}

const BARE: Omit<Citation, 'kind' | 'url' | 'location'> = {
  sentence: null,
  parts: [],
  mayBeTitle: false,
  group: null,
  mark: null,
}

/** The part of a sentence in which the source of a quotation is looked for. */
function around(sentence: Span, { start, end }: Span): Span {
  return { start: Math.max(sentence.start, start - MAX_SENTENCE), end: Math.min(sentence.end, end + MAX_SENTENCE) }
}

/** In UTF-16 units. */
const MAX_SENTENCE = 2000
