// Lays out pieces of text in lines, as a browser does.

/**
 * Collects pieces of text in lines. Breaks, tabs and blanks are pending until text follows, so no line and no text ends
 * with one, and there is never more than one empty line.
 */
export class Lines {
  #parts: string[] = []
  /** Pending breaks before the next text. */
  #breaks = 0
  /** Pending borders of table cells before the next text. */
  #tabs = 0
  /** Pending blanks before the next text on the same line. */
  #gap = ''
  /** Whether blanks collapse into nothing here, because a line or a box has just begun. */
  #atStart = true
  #row = { cells: 0, empty: true }
  #rows: { cells: number; empty: boolean }[] = []
  #room: number
  #isCut = false

  /** Text beyond `limit` UTF-16 units is dropped. */
  constructor(limit = Number.POSITIVE_INFINITY) {
    this.#room = limit
  }

  /** Whether text was dropped. */
  get isCut() {
    return this.#isCut
  }

  /** The edge of a block, which is at least so many breaks. */
  edge(breaks: 1 | 2) {
    if (breaks > this.#breaks) this.#breaks = breaks
    this.#startLine()
  }

  /** A break in addition to the pending ones. */
  lineBreak() {
    if (this.#breaks < 2) this.#breaks++
    this.#startLine()
  }

  #startLine() {
    this.#tabs = 0
    this.#gap = ''
    this.#atStart = true
  }

  beginTable() {
    this.#rows.push(this.#row)
    this.#row = { cells: 0, empty: true }
  }

  endTable() {
    this.#row = this.#rows.pop() ?? this.#row
    this.#row.empty = false
  }

  beginRow() {
    this.edge(1)
    this.#row = { cells: 0, empty: true }
  }

  /** Cells of a row are parted by tabs, unless blocks inside them have already begun a new line. */
  beginCell() {
    if (this.#row.cells++ > 0 && (this.#breaks === 0 || this.#row.empty)) this.#tabs++
    this.#gap = ''
    this.#atStart = true
  }

  /** A box within a line: blanks around it stay, those at its inner edges go. Returns what `endBox` needs. */
  beginBox() {
    const begun = { parts: this.#parts.length, breaks: this.#breaks, gap: this.#gap, atStart: this.#atStart }
    this.#atStart = true
    return begun
  }

  endBox(begun: ReturnType<Lines['beginBox']>) {
    const isEmpty = this.#parts.length === begun.parts
    // A block inside has ended the line already.
    if (this.#breaks > (isEmpty ? begun.breaks : 0)) return
    this.#gap = isEmpty ? begun.gap : ''
    this.#atStart = isEmpty && begun.atStart
  }

  /** Text whose blanks collapse. */
  text(text: string) {
    const collapsed = runOfBlanks.test(text) ? text.replace(runsOfBlanks, ' ') : text
    const begin = collapsed.startsWith(' ') ? 1 : 0
    if (begin && !this.#atStart) this.#gap = ' '
    if (collapsed.length === begin) return
    const end = collapsed.endsWith(' ') ? collapsed.length - 1 : collapsed.length
    this.#add(collapsed.slice(begin, end))
    if (end < collapsed.length) this.#gap = ' '
  }

  /** Text whose line ends break lines, and whose other blanks stay or collapse. */
  preformatted(source: string, blanks: 'keep' | 'keep-lines') {
    const text = source.includes('\f') ? source.replaceAll('\f', ' ') : source
    let start = 0
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i)
      if (unit !== lineFeed && unit !== carriageReturn) continue
      this.#line(text.slice(start, i), blanks)
      this.lineBreak()
      if (unit === carriageReturn && text.charCodeAt(i + 1) === lineFeed) i++
      start = i + 1
    }
    this.#line(text.slice(start), blanks)
  }

  #line(line: string, blanks: 'keep' | 'keep-lines') {
    if (blanks === 'keep') this.#keep(line)
    else this.text(line)
  }

  #keep(line: string) {
    const indented = line.trimStart()
    this.#gap += line.slice(0, line.length - indented.length)
    if (indented === '') return
    const content = indented.trimEnd()
    this.#add(content)
    this.#gap = indented.slice(content.length)
  }

  /** Writes the pending breaks and blanks, then the text, which is not empty and has no blank at either end. */
  #add(text: string) {
    if (this.#room <= 0) this.#isCut = true
    if (this.#isCut) return
    this.#room -= text.length + this.#gap.length + this.#tabs + 2
    if (this.#parts.length > 0 && this.#breaks > 0) this.#parts.push(this.#breaks === 2 ? '\n\n' : '\n')
    if (this.#tabs > 0) this.#parts.push('\t'.repeat(this.#tabs))
    if (this.#gap !== '') this.#parts.push(this.#gap)
    this.#parts.push(text)
    this.#breaks = 0
    this.#tabs = 0
    this.#gap = ''
    this.#atStart = false
    this.#row.empty = false
  }

  toString() {
    return this.#parts.join('')
  }
}

const runOfBlanks = /[\t\n\f\r]| {2}/
const runsOfBlanks = /[ \t\n\f\r]+/g
const lineFeed = 0x0a
const carriageReturn = 0x0d
