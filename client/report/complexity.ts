// Refuses Markdown that no person writes and that takes a parser more than linear time, or more memory than a small machine has: deep
// nesting, very many marks of emphasis or brackets in one paragraph, and very many parts in all.
import { UnreadableReportError } from './report.ts'

/** UTF-16 units of a report. */
export const MAX_REPORT = 4_194_304
/** Characters in front of the text of a line: marks of lists and quotations with their indentation. */
const MAX_PREFIX = 160
/** In one paragraph. The time that emphasis takes grows with their square. */
const MAX_MARKS = 2000
const MAX_OPEN_BRACKETS = 200
const MAX_BRACKETS = 5000
/** That close nothing: for each the parser looks through the whole paragraph. */
const MAX_CLOSING_BRACKETS = 200
const MAX_TAGS = 10_000
/**
 * Characters that are neither letters nor digits, letters of ASCII after others, at each of which an address of mail may begin, and lines,
 * which count for as many as LINE says. Each may begin a part of the report, and the parser makes objects of one to two thousand bytes for
 * it. Prose in short paragraphs has so many in 470,000 (Japanese, Vietnamese) to 790,000 (German) characters.
 */
const MAX_PARTS = 250_000
const LINE = 8
/** The sum of the places at which lists and quotations end: at each, the parser copies what it has read so far. */
const MAX_COPIED = 40_000_000
/** A line that goes on with a quotation's paragraph without its mark: the parser searches the paragraph, which is slower than to copy. */
const LAZY_LINE = 10

/** Throws UnreadableReportError, which names the line. */
export function checkSize(text: string): void {
  if (text.length > MAX_REPORT)
    throw new UnreadableReportError(`The report has more than ${MAX_REPORT.toLocaleString('en')} characters.`)
}

/** Throws UnreadableReportError, which names the line. Linear. */
export function checkMarkdown(text: string): void {
  checkSize(text)
  let marks = 0
  let open = 0
  let brackets = 0
  let closing = 0
  let tags = 0
  let copied = 0
  let parts = 0
  let before = ''
  let paragraph = 0
  for (const { line, number, start } of linesOf(text)) {
    const refuse = (what: string) => {
      throw new UnreadableReportError(`Line ${number} ${what}, which takes too long to read.`)
    }
    const charge = (more: number) => {
      parts += more
      if (parts > MAX_PARTS) refuse('comes after too many words, marks and lines')
    }
    charge(LINE)
    for (const { 0: mark } of line.matchAll(BESIDE_WORDS)) charge(mark.length)
    const [prefix = ''] = PREFIX.exec(line) ?? []
    if (prefix.length > MAX_PREFIX && /[-+*>.)]/.test(prefix)) refuse('is nested too deeply')
    const isBlank = prefix.length === line.length
    const begins = BEGINS.test(line)
    if (begins) paragraph = start
    if (isBlank ? before.includes('>') && prefix === '' : prefix.length < before.length)
      copied += start + LAZY_LINE * (start - paragraph)
    if (copied > MAX_COPIED) refuse('ends one of very many lists or quotations')
    if (!isBlank || prefix !== '') before = prefix
    if (begins) {
      marks = 0
      open = 0
      brackets = 0
      closing = 0
      tags = 0
    }
    for (const [mark] of line.matchAll(/\*+|_+|~+|[[\]<]/g)) {
      if (mark === '[') {
        open++
        brackets++
      } else if (mark === '<') tags++
      else if (mark === ']') {
        if (open > 0) open--
        else closing++
      } else marks++
      if (open > MAX_OPEN_BRACKETS) refuse('opens too many brackets')
      if (closing > MAX_CLOSING_BRACKETS) refuse('belongs to a paragraph that closes too many brackets')
      if (brackets > MAX_BRACKETS) refuse('belongs to a paragraph with too many brackets')
      if (tags > MAX_TAGS) refuse('belongs to a paragraph with too many tags')
      if (marks > MAX_MARKS) refuse('belongs to a paragraph with too many marks of emphasis')
    }
  }
}

function* linesOf(text: string) {
  let start = 0
  for (let number = 1; start <= text.length; number++) {
    LINE_END.lastIndex = start
    const { index, 0: end } = LINE_END.exec(text) ?? { index: text.length, 0: ' ' }
    yield { line: text.slice(start, index), number, start }
    start = index + end.length
  }
}

const BESIDE_WORDS = /[^\p{L}\p{N}\p{M}]|(?<=\P{ASCII})[\dA-Za-z]/gu
const LINE_END = /\r\n|\n|\r/g
const PREFIX = /^(?:[ \t>]|[-+*](?=[ \t])|\d{1,9}[.)](?=[ \t]))*/
/** A line at which a new paragraph, item, row or heading begins. */
const BEGINS = /^[ \t>]*(?:$|[-+*][ \t]|#{1,6}[ \t]|\||\d{1,9}[.)][ \t])/
