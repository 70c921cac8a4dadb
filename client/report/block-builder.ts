// Builds one block: its text, and the place in the file of each part of the text.
import { type Block, type Link, SourceMap, type Span } from './report.ts'

/** How text is written in a file: the parts that a pattern finds, and what each part shows. */
export interface Spelling {
  /** With the flags `g` and `y`; must match at every place. */
  part: RegExp
  /** What a part shows; null where it shows itself. */
  shown(part: string): string | null
  /** White space is shown as one space. */
  collapses: boolean
}

/** More than there are. */
const MOST_NAMES = 2500

/**
 * What references to characters show. One that is decoded wrongly, such as one of a name too many, is not the text that the parser has, so
 * it counts as text that cannot be replaced. @param decode decodes a name, at a cost
 */
export function decoderOf(decode: (reference: string) => string): (reference: string) => string {
  const known = new Map<string, string>()
  return (reference) => {
    const [number, hex] = /^&#(?:x([\da-f]+)|\d+)/i.exec(reference) ?? []
    if (number !== undefined) return characterOf(Number.parseInt(hex ?? number.slice(2), hex === undefined ? 10 : 16))
    const before = known.get(reference)
    if (before !== undefined || known.size === MOST_NAMES) return before ?? reference
    const found = decode(reference)
    known.set(reference, found)
    return found
  }
}

const characterOf = (point: number) =>
  point > 0 && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff) ? String.fromCodePoint(point) : '\ufffd'

export interface BlockContext {
  quotation: number | null
  quotationUrl: string | null
  note: string | null
  item: Block['item']
}

export class BlockBuilder {
  readonly #map = new SourceMap()
  readonly #links: Link[] = []
  readonly #quoted: Span[] = []
  readonly #file: string
  readonly #spelling: Spelling
  readonly #parents = [0]
  #last = 0
  #text: string[] = []
  #length = 0
  #endsInSpace = true

  constructor(file: string, spelling: Spelling) {
    this.#file = file
    this.#spelling = spelling
  }

  get length(): number {
    return this.#length
  }

  enter(): void {
    this.#parents.push(++this.#last)
  }

  leave(): void {
    this.#parents.pop()
  }

  /**
   * Adds text that the file spells out in this range. If the range does not contain this text in the known spelling, the
   * text counts as one part that cannot be replaced.
   */
  text(value: string, range: Span | null): void {
    const parts = range ? this.#partsOf(value, range) : null
    if (!parts) this.fixed(value, range ?? { start: 0, end: 0 })
    for (const { text, from, to, isLiteral } of parts ?? []) {
      const isRepeated = this.#spelling.collapses && this.#endsInSpace && text.startsWith(' ')
      if (!isRepeated) this.#add(text, { from, to, isLiteral })
      else if (isLiteral) this.#add(text.slice(1), { from: from + 1, to, isLiteral })
    }
  }

  /** Adds text that a replacement must not touch. */
  fixed(value: string, { start, end }: Span): void {
    this.#add(value, { from: start, to: end, isLiteral: false, isFixed: true })
  }

  /** Adds text that is not in the file, such as the separator of two cells. */
  gap(value: string): void {
    this.#endsInSpace = /\s$/.test(value)
    this.#text.push(value)
    this.#length += value.length
  }

  fence(): void {
    this.#map.fence(this.#length)
  }

  /** @param from the length at which the text of the link began, where the caller has put a fence */
  link(from: number, link: Pick<Link, 'url' | 'note' | 'source'>): void {
    this.#links.push({ start: from, end: this.#length, ...link })
    this.fence()
  }

  quote(from: number): void {
    this.#quoted.push({ start: from, end: this.#length })
  }

  build(role: Block['role'], context: BlockContext): Block {
    const links = this.#links.sort((a, b) => a.start - b.start || a.end - b.end)
    return { role, text: this.#text.join(''), map: this.#map, links, quoted: this.#quoted, ...context }
  }

  #add(value: string, piece: { from: number; to: number; isLiteral: boolean; isFixed?: boolean }): void {
    if (value === '') return
    if (this.#spelling.collapses && value === ' ' && this.#endsInSpace) return
    this.#map.add({
      isFixed: false,
      ...piece,
      at: this.#length,
      length: value.length,
      parent: this.#parents.at(-1) ?? 0,
    })
    this.#text.push(value)
    this.#length += value.length
    this.#endsInSpace = value.endsWith(' ')
  }

  /** Runs of what is shown unit by unit, which may be very long, and between them what is shown in another way. */
  #partsOf(value: string, { start, end }: Span): Part[] | null {
    const { part, shown: show, collapses } = this.#spelling
    const parts: Part[] = []
    const source = this.#file.slice(start, end)
    let compared = 0
    /** Where the open run begins, in the value and in the source. */
    let run = { value: 0, source: 0 }
    const shownOf = (from: number, to: number) => {
      const text = value.slice(from, to)
      return collapses ? text.split(LINE_OR_TAB).join(' ') : text
    }
    const endRun = (at: number) => {
      if (compared > run.value)
        parts.push({ text: shownOf(run.value, compared), from: start + run.source, to: start + at, isLiteral: true })
    }
    part.lastIndex = 0
    while (part.lastIndex < source.length) {
      const from = part.lastIndex
      const [found] = part.exec(source) ?? []
      if (!found) return null
      const text = show(found) ?? found
      if (!value.startsWith(text, compared)) return null
      const to = from + found.length
      const isSpace = collapses && BLANKS.test(text)
      // A line break that is shown as a space is one unit for one.
      const isLiteral = isSpace ? found.length === 1 : text === found
      if (!isLiteral) {
        endRun(from)
        parts.push({ text: isSpace ? ' ' : text, from: start + from, to: start + to, isLiteral: false })
        run = { value: compared + text.length, source: to }
      }
      compared += text.length
    }
    endRun(source.length)
    return compared === value.length ? parts : null
  }
}

interface Part {
  text: string
  from: number
  to: number
  isLiteral: boolean
}

const BLANKS = /^[ \t\n\f\r]+$/
const LINE_OR_TAB = /[\t\n\f\r]/
