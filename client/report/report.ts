// What the readers of Markdown and HTML make of a report: blocks of text in which every character knows its place in the file.

/** A range in UTF-16 units, end exclusive: of a block's text, or of the file. */
export interface Span {
  start: number
  end: number
}

/** A link or the call of a note. Its range is that of the text it shows, which may be empty. */
export interface Link extends Span {
  /** Where it leads, as written; null for the call of a note. */
  url: string | null
  /** The note it calls; null for a link to a page. */
  note: string | null
  /** The whole link in the file. */
  source: Span
}

/** A paragraph, a heading or a row of a table. */
export interface Block {
  role: 'text' | 'heading' | 'row'
  text: string
  map: SourceMap
  /** In their order. */
  links: Link[]
  /** Ranges that are marked as quotations by an element. */
  quoted: Span[]
  /** The block quotation that the block is in: equal numbers mean the same one. */
  quotation: number | null
  /** The address that the block quotation names itself (`cite` in HTML). */
  quotationUrl: string | null
  /** The note that the block is part of. */
  note: string | null
  /** The item of an ordered list that the block begins. */
  item: { list: number; number: number } | null
}

export interface Report {
  blocks: Block[]
  syntax: 'markdown' | 'html'
}

/** The file cannot be read as a report. The message says why, for people. */
export class UnreadableReportError extends Error {}

/** A run of a block's text and where it comes from. */
interface Piece {
  at: number
  length: number
  from: number
  to: number
  /** Each unit of the text shows the unit of the file at the same distance. */
  isLiteral: boolean
  /** Cannot be replaced, such as code. */
  isFixed: boolean
  /** The element that holds the text. */
  parent: number
}

/** Leads from a block's text to the file. Pieces and fences are added in the order of the text. */
export class SourceMap {
  readonly #pieces: Piece[] = []
  readonly #fences: number[] = []

  add(piece: Piece): void {
    if (piece.length > 0) this.#pieces.push(piece)
  }

  /** In their order. Something stands here that a replacement of the text around it would lose: a picture, the call of a note, an element. */
  fence(at: number): void {
    this.#fences.push(at)
  }

  /** The range of the file that shows this text, roughly where the text is not literal. */
  locate({ start, end }: Span): Span {
    const first = this.#pieceAt(start)
    const last = this.#pieceAt(Math.max(start, end - 1))
    if (!first || !last) return { start: 0, end: 0 }
    const from = first.isLiteral ? Math.min(first.to, first.from + Math.max(0, start - first.at)) : first.from
    const to = last.isLiteral ? Math.min(last.to, last.from + Math.max(0, end - last.at)) : last.to
    return { start: from, end: Math.max(from, to) }
  }

  /** The range of the file that can be replaced without touching anything else; null if there is none. */
  replaceable({ start, end }: Span): Span | null {
    const first = this.#indexAt(start)
    const last = this.#indexAt(end - 1)
    const pieces = this.#pieces.slice(first, last + 1)
    const [one] = pieces
    const other = pieces.at(-1)
    if (!one || !other || one.parent !== other.parent || pieces.some(({ isFixed }) => isFixed)) return null
    if (one.at > start || other.at + other.length < end) return null
    if (!one.isLiteral && one.at !== start) return null
    if (!other.isLiteral && other.at + other.length !== end) return null
    // Between two pieces of the text there must be no text of another origin.
    if (pieces.some((piece, n) => n > 0 && pieces[n - 1]!.at + pieces[n - 1]!.length !== piece.at)) return null
    const fence = this.#fences[lastAt(this.#fences, end - 1, (at) => at)]
    if (fence !== undefined && fence > start) return null
    return this.locate({ start, end })
  }

  #pieceAt(place: number): Piece | undefined {
    return this.#pieces[this.#indexAt(place)]
  }

  /** The last piece that begins at or before the place, or the first one. */
  #indexAt(place: number): number {
    return Math.max(
      0,
      lastAt(this.#pieces, place, ({ at }) => at),
    )
  }
}

/** The index of the last item that is not above the place, in a list that ascends; -1 for none. */
export function lastAt<T>(items: readonly T[], place: number, placeOf: (item: T) => number): number {
  let low = -1
  let high = items.length - 1
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (placeOf(items[middle]!) <= place) low = middle
    else high = middle - 1
  }
  return low
}

/** Lines and columns of a file, both from 1, columns in UTF-16 units. */
export class Lines {
  readonly #starts: number[] = [0]
  readonly #text: string

  constructor(text: string) {
    this.#text = text
    for (const { index, 0: end } of text.matchAll(/\r\n|\n|\r/g)) this.#starts.push(index + end.length)
  }

  at(offset: number): { line: number; column: number } {
    const line = lastAt(this.#starts, offset, (start) => start)
    return { line: line + 1, column: offset - this.#starts[line]! + 1 }
  }

  /** The text of a line without its end. */
  line(number: number): string {
    return this.#text.slice(this.#starts[number - 1] ?? 0, this.#starts[number]).replace(/\r?\n$|\r$/, '')
  }
}
