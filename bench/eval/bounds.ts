// `node bench/eval/bounds.ts`: what the literal assessment quotes and leaves out for each possible bound (`ENOUGH` in
// workers/assessment/relevance.ts). Only the part `tune` of the pages is read. Silent pages are pages of claims without
// annotated evidence. Because these are few, the pages of the other claims are also used without the annotated lines, which is
// harder, because they still have the same subject.
import { openThreads } from '../../server/threads/pool.ts'
import { rankPassages } from '../../workers/assessment/passages.ts'
import { readClaim } from '../../workers/assessment/query.ts'
import { isPageRelevant } from '../../workers/assessment/relevance.ts'
import { searchText } from '../../workers/assessment/search.ts'
import { sentencesOf } from '../../workers/assessment/sentences.ts'
import { readCall } from '../program.ts'
import { printRows } from '../table.ts'
import { type Item, readLabels, withoutSpans } from './labels.ts'
import { holds, partOfPage } from './marked.ts'

/** How a page is quoted: up to which bound, and whether one of the first three quotes holds marked evidence. */
interface Page {
  quotedUpTo: number
  isHit: boolean
}

async function run(): Promise<void> {
  const { operands } = await readCall('node bench/eval/bounds.ts', {
    summary: 'print what the literal assessment quotes and leaves out for each possible bound',
    operands: ['SET', '[SET...]'],
    about: 'SET is a .jsonl or .jsonl.gz file with annotated evidence. Only the part `tune` of its pages is read.',
    examples: ['node bench/eval/bounds.ts wice.jsonl.gz scifact.jsonl.gz'],
    exitStatus: '0 good, 2 wrong usage.',
    options: {},
  })
  await using threads = openThreads()
  const items = (await readLabels(operands, threads)).filter((item) => partOfPage(item) === 'tune')
  for (const set of new Set(items.map((item) => item.set))) {
    const own = items.filter((item) => item.set === set)
    const marked = own.filter(({ gold }) => gold.length > 0)
    const pages = marked.map((item) => assess(item, textOf(item)))
    const silent = own.filter(({ gold }) => gold.length === 0).map((item) => assess(item, textOf(item)))
    const emptied = marked.flatMap((item) => {
      const rest = withoutSpans(textOf(item), item.gold.flat())
      return rest.length > SHORT ? [assess(item, rest)] : []
    })
    console.log(`\n${set}: ${pages.length} with marked evidence, ${silent.length} silent, ${emptied.length} emptied`)
    printRows([
      ['bound', 'top-3', 'not quoted: marked', 'silent', 'emptied'],
      ...BOUNDS.map((bound): [string, ...string[]] => {
        const unquoted = (those: readonly Page[]) =>
          percent(
            those.filter((one) => one.quotedUpTo < bound),
            those,
          )
        const hits = pages.filter((one) => one.isHit && one.quotedUpTo >= bound)
        return [bound.toFixed(2), percent(hits, pages), unquoted(pages), unquoted(silent), unquoted(emptied)]
      }),
    ])
  }
}

const textOf = ({ observation }: Item) => observation.source.normalized_text

function assess({ claim, gold }: Item, text: string): Page {
  const query = readClaim(claim)
  const sentences = sentencesOf(text)
  const findings = searchText(query, text, sentences)
  const reached = BOUNDS.filter((bound) => isPageRelevant(query, findings, text.length, bound))
  const quotes = rankPassages(claim, query, { text, sentences }, findings, 3, true)
  const isWhole = quotes[0] !== undefined && quotes[0].wording !== 'partial'
  return {
    quotedUpTo: isWhole ? Number.POSITIVE_INFINITY : Math.max(0, ...reached),
    isHit: quotes.some((quote) => gold.flat().some((span) => holds(quote, span))),
  }
}

const percent = (part: readonly Page[], whole: readonly Page[]) =>
  whole.length === 0 ? '-' : `${((100 * part.length) / whole.length).toFixed(1)} %`

const BOUNDS = Array.from({ length: 13 }, (_, i) => 0.36 + i * 0.02)
/** UTF-16 units; a page that is hardly longer than a quotation need not reach the bound. */
const SHORT = 450

await run()
