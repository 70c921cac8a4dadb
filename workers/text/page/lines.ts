// Lays out pieces of text in lines, as a browser does.
import { withoutMarks } from '../characters.ts'
import { GrowingText } from '../growing-text.ts'
import { pieceLength } from '../pieces.ts'

/**
 * Collects pieces of text in lines. Breaks, tabs and blanks are pending until text follows, so no line and no text ends
 * with one, and there is never more than one empty line.
 */
export class Lines {
  #text = new GrowingText()
  /** How often text was written. */
  #count = 0
  /** Pending breaks before the next text. */
  #breaks = 0
  /** Pending borders of table cells before the next text. */
  #tabs = 0
  /** Pending blanks before the next text on the same line. */
  #gap = ''
  /** The text that the pending blank comes from. */
  #gapSource = ''
  /** Whether U+200B comes right before. */
  #afterZeroWidth = false
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

  /** The edge of a block, which needs at least this number of breaks. */
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
    this.#afterZeroWidth = false
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

  /** Tabs separate the cells of a row, unless blocks inside them have already begun a new line. */
  beginCell() {
    if (this.#row.cells++ > 0 && (this.#breaks === 0 || this.#row.empty)) this.#tabs++
    this.#gap = ''
    this.#atStart = true
  }

  /** A box within a line: blanks around it stay, those at its inner edges go. Returns what `endBox` needs. */
  beginBox() {
    const begun = { count: this.#count, breaks: this.#breaks, gap: this.#gap, atStart: this.#atStart }
    this.#atStart = true
    return begun
  }

  endBox(begun: ReturnType<Lines['beginBox']>) {
    const isEmpty = this.#count === begun.count
    // A block inside has ended the line already.
    if (this.#breaks > (isEmpty ? begun.breaks : 0)) return
    this.#gap = isEmpty ? begun.gap : ''
    this.#atStart = isEmpty && begun.atStart
  }

  /** An opportunity to break the line, as U+200B is. */
  zeroWidth() {
    this.#afterZeroWidth = this.#gap === ''
  }

  /** Text whose blanks collapse. Those with a line feed in them go where U+200B is beside them. */
  text(text: string) {
    if (this.#isCut) return
    const collapsed = collapse(text)
    const begin = collapsed.startsWith(' ') ? 1 : 0
    if (begin && !this.#atStart && !(this.#afterZeroWidth && isBreak(text, 1))) this.#setGap(text)
    if (collapsed.length === begin) return
    if (this.#gap !== '' && collapsed.charCodeAt(begin) === zeroWidth) {
      if (isBreak(this.#gapSource, -1) || isBreak(text, 1)) this.#gap = ''
    }
    const end = collapsed.endsWith(' ') ? collapsed.length - 1 : collapsed.length
    this.#add(collapsed.slice(begin, end))
    if (end < collapsed.length) this.#setGap(text)
  }

  #setGap(source: string) {
    if (this.#gap === '') this.#gapSource = source
    this.#gap = ' '
  }

  /** Text whose line ends break lines, and whose other blanks stay or collapse. */
  preformatted(source: string, blanks: 'keep' | 'keep-lines') {
    if (this.#isCut) return
    const text = withoutFormFeeds(source)
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
    if (this.#count++ > 0 && this.#breaks > 0) this.#text.add(this.#breaks === 2 ? '\n\n' : '\n')
    if (this.#tabs > 0) this.#text.add('\t'.repeat(this.#tabs))
    if (this.#gap !== '') this.#text.add(this.#gap)
    this.#text.add(text)
    this.#breaks = 0
    this.#tabs = 0
    this.#gap = ''
    this.#afterZeroWidth = text.charCodeAt(text.length - 1) === zeroWidth
    this.#atStart = false
    this.#row.empty = false
  }

  /** No line ends with a blank, and no text begins or ends with a break. */
  toString() {
    const text = this.#text.toString()
    const plain = withoutMarks(text)
    if (plain === text || !untidy.test(plain)) return plain
    return tidy(plain)
  }
}

/** Without blanks at the ends of lines, more than one empty line in a row, and breaks at the ends. */
function tidy(text: string) {
  const tidied = new GrowingText()
  let isEmpty = true
  let breaks = 0
  let start = 0
  while (start <= text.length) {
    const end = text.indexOf('\n', start)
    const next = end < 0 ? text.length : end
    const line = text.slice(start, next).trimEnd()
    if (line !== '') {
      if (!isEmpty) tidied.add(breaks > 1 ? '\n\n' : '\n')
      tidied.add(line)
      isEmpty = false
      breaks = 0
    }
    breaks++
    start = next + 1
  }
  return tidied.toString()
}

/**
 * A space for each. Run by run and by a function, in pieces: with a string in their place, the result is a chain of objects for each
 * place.
 */
function withoutFormFeeds(text: string) {
  if (!text.includes('\f')) return text
  let spaced = ''
  for (let at = 0; at < text.length; at += pieceLength)
    spaced += text.slice(at, at + pieceLength).replace(formFeeds, (run) => ' '.repeat(run.length))
  return spaced
}

function collapse(text: string) {
  if (!runOfBlanks.test(text)) return text
  if (text.includes('\u200b')) return text.replace(runsOfBlanks, blankBetween)
  return text.replace(runsOfBlanks, ' ')
}

function blankBetween(run: string, at: number, text: string) {
  const isBeside = text.charCodeAt(at - 1) === zeroWidth || text.charCodeAt(at + run.length) === zeroWidth
  return isBeside && run.includes('\n') ? '' : ' '
}

/** Whether a text begins (step 1) or ends (step -1) with blanks that have a line feed among them. */
function isBreak(text: string, step: 1 | -1) {
  for (let i = step === 1 ? 0 : text.length - 1; blankUnits.has(text.charCodeAt(i)); i += step) {
    if (text.charCodeAt(i) === lineFeed) return true
  }
  return false
}

const zeroWidth = 0x200b
const blankUnits = new Set([0x09, 0x0a, 0x0c, 0x0d, 0x20])
/** Blanks that can remain when marks are replaced. */
const untidy = /[ \t](?:\n|$)|\n{3}|^\n|\n$/

const runOfBlanks = /[\t\n\f\r]| {2}/
const runsOfBlanks = /[ \t\n\f\r]+/g
const formFeeds = /\f+/g
const lineFeed = 0x0a
const carriageReturn = 0x0d
