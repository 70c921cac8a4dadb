// Refuses Markdown that no person writes and that takes a parser more than linear time: deep nesting, and very many marks of
// emphasis or brackets in one paragraph.
import { UnreadableReportError } from './report.ts'

/** UTF-16 units of a report. */
export const MAX_REPORT = 4_194_304
/** Characters in front of the text of a line: marks of lists and quotations with their indentation. */
const MAX_PREFIX = 160
/** In one paragraph. The time that emphasis takes grows with their square. */
const MAX_MARKS = 2000
const MAX_OPEN_BRACKETS = 200
const MAX_BRACKETS = 5000

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
  let number = 0
  for (const line of text.split(/\r\n|\n|\r/)) {
    number++
    const refuse = (what: string) => {
      throw new UnreadableReportError(`Line ${number} ${what}, which takes too long to read.`)
    }
    const [prefix = ''] = PREFIX.exec(line) ?? []
    if (prefix.length > MAX_PREFIX && /[-+*>.)]/.test(prefix)) refuse('is nested too deeply')
    if (BEGINS.test(line)) {
      marks = 0
      open = 0
      brackets = 0
    }
    for (const [mark] of line.matchAll(/[*_~]+|[[\]]/g)) {
      if (mark === '[') {
        open++
        brackets++
      } else if (mark === ']') open = Math.max(0, open - 1)
      else marks++
      if (open > MAX_OPEN_BRACKETS) refuse('opens too many brackets')
      if (brackets > MAX_BRACKETS) refuse('belongs to a paragraph with too many brackets')
      if (marks > MAX_MARKS) refuse('belongs to a paragraph with too many marks of emphasis')
    }
  }
}

const PREFIX = /^(?:[ \t>]|[-+*](?=[ \t])|\d{1,9}[.)](?=[ \t]))*/
/** A line at which a new paragraph, item, row or heading begins. */
const BEGINS = /^[ \t>]*(?:$|[-+*][ \t]|#{1,6}[ \t]|\||\d{1,9}[.)][ \t])/
