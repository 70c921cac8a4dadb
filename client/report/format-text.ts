// The outcome of a check for people: each citation with its mark, and for a failed one the report's line and the
// difference.
import { visible } from '../arguments.ts'
import { nearestWords } from './correction.ts'
import { differenceOf } from './difference.ts'
import type { JudgedPart, Level, Status } from './judgement.ts'
import { allHold, countByStatus, type Outcome, type Placed, saidBy, type VerdictSums } from './outcome.ts'
import type { Lines } from './report.ts'

export type Paint = (colour: 'green' | 'red' | 'yellow' | 'bold', text: string) => string

export function formatText(outcome: Outcome, lines: Lines, paint: Paint): string {
  const { file, citations, pages } = outcome
  const all = citations.map((one) => describe(one, lines, paint)).join('')
  const counts = Object.entries(countByStatus(citations)).map(([status, count]) => `${count} ${status}`)
  const sum = `${visible(file)}: ${plural(citations.length, 'citation')}, ${plural(pages, 'page')}`
  const verdict = allHold(outcome) ? paint('green', 'all hold') : paint('red', 'some do not hold')
  const bought = outcome.verdicts ? `${verdictLine(outcome.verdicts)}\n` : ''
  if (citations.length === 0) return `${sum}. There is nothing to check.\n`
  return `${all}\n${bought}${sum}: ${counts.join(', ')}. ${verdict}\n`
}

/** What was bought, for people. */
function verdictLine({ wanted, bought, kept, missing, spentUsd, folder }: VerdictSums): string {
  if (wanted === 0) return 'No citation was left for a verdict.'
  const parts = [`${bought} bought for ${spentUsd} USDC`]
  if (kept > 0) parts.push(`${kept} from earlier runs`)
  if (missing > 0) parts.push(`${missing} missing`)
  return `${plural(wanted, 'verdict')}: ${parts.join(', ')}.${folder ? ` Results and receipts are in ${visible(folder)}.` : ''}`
}

const plural = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`

const COLOURS = { error: 'red', warning: 'yellow', note: 'bold', none: 'green' } as const satisfies Record<
  Level,
  string
>

function describe(one: Placed, lines: Lines, paint: Paint): string {
  const mark = paint(COLOURS[one.level], one.status.padEnd(12))
  const head = `${mark} ${`${one.line}:${one.column}`.padEnd(8)} ${shorten(visible(saidBy(one)), 70)}\n`
  const url = `    ${visible(linkOf(one))}\n`
  if (one.level === 'none' || one.level === 'note') return head + quoteOf(one) + url
  const wrong =
    one.status === 'wrong'
      ? one.parts.filter(({ found }) => found?.match !== 'exact' && found?.match !== 'typographic')
      : []
  const details =
    wrong.length > 0 ? wrong.map((part) => explain(part, paint)).join('') : `    ${visible(one.message)}\n`
  return `${head}${excerpt(one, lines, paint)}${details}${quoteOf(one)}${url}`
}

/** The best quote of a verdict, and the serial of its receipt. */
function quoteOf({ verdict }: Placed): string {
  if (!verdict) return ''
  const { claimSupport, quote, receiptSerial } = verdict
  const words = quote === null ? '' : ` “${shorten(visible(quote.replace(/\s+/g, ' ')), 100)}”`
  return `    verdict: ${visible(claimSupport)}${words} (receipt ${receiptSerial})\n`
}

/** The address that leads to the words where they were found. */
function linkOf({ parts, url, verdict }: Placed): string {
  return verdict?.fragmentUrl ?? parts.find(({ found }) => found?.fragment_url)?.found?.fragment_url ?? url
}

/** The report's line around the citation, with marks under it. */
function excerpt({ line, column, endLine, endColumn }: Placed, lines: Lines, paint: Paint): string {
  const text = lines.line(line)
  const from = Math.max(0, column - 1 - BEFORE)
  const to = Math.min(text.length, from + WIDTH)
  const end = Math.min(endLine === line ? endColumn - 1 : text.length, to)
  const show = (start: number, stop: number) => visible(text.slice(start, stop).replace(/\t/g, ' '))
  const number = String(line).padStart(6)
  const lead = from > 0 ? '…' : ''
  const before = lead + show(from, column - 1)
  const marked = show(column - 1, end)
  const rest = `${show(end, to)}${to < text.length ? '…' : ''}`
  const marks = paint('red', '^'.repeat(Math.max(1, marked.length)))
  return `${number} | ${before}${marked}${rest}\n       | ${' '.repeat(before.length)}${marks}\n`
}

const BEFORE = 24
const WIDTH = 104

/** The words of the report and of the page, with what differs. */
function explain({ text, found }: JudgedPart, paint: Paint): string {
  const words = found && (nearestWords(found) ?? found.nearest?.text.replace(/\s+/g, ' '))
  if (!words) return `    report: ${visible(text)}\n    page:   has no such passage\n`
  const runs = differenceOf(text, words)
  const side = (mine: 'first' | 'second', wrap: (text: string) => string) =>
    runs
      .flatMap((run) => (run.in === 'both' ? [visible(run.text)] : run.in === mine ? [wrap(visible(run.text))] : []))
      .join(' ')
  const report = side('first', (words) => paint('red', `[-${words}-]`))
  const page = side('second', (words) => paint('green', `{+${words}+}`))
  return `    report: ${report}\n    page:   ${page}\n`
}

function shorten(text: string, most: number): string {
  const points = [...text]
  return points.length <= most ? text : `${points.slice(0, most - 1).join('')}…`
}

/** A table in Markdown, for the summary of a job of continuous integration. */
export function formatMarkdown(outcome: Outcome): string {
  const { file, citations, pages } = outcome
  const counts = Object.entries(countByStatus(citations)) as [Status, number][]
  const failing = citations.filter(({ level }) => level === 'error' || level === 'warning')
  const cell = (text: string) => visible(text).replace(/[\\|<>`*_[\]]/g, '\\$&')
  const rows = failing.map(
    (one) =>
      `| ${one.line}:${one.column} | ${one.status} | ${cell(shorten(saidBy(one), 120))} | ${cell(shorten(one.message, 300))} | ${cell(one.url)} |\n`,
  )
  const head = '| place | status | report | finding | page |\n| --- | --- | --- | --- | --- |\n'
  return (
    `### Citations of ${cell(file)}: ${allHold(outcome) ? 'all hold' : 'some do not hold'}\n\n` +
    `${plural(citations.length, 'citation')} on ${plural(pages, 'page')}: ${counts.map(([status, n]) => `${n} ${status}`).join(', ') || 'none'}.\n` +
    (rows.length > 0 ? `\n${head}${rows.join('')}` : '')
  )
}
