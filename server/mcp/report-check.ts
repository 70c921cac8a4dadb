// The check of a whole report: every quotation of its text is looked for on the page that is cited for it. Each page is a quote
// check of its own, which is stored, so that a call that ends early loses nothing.

import { CountersignError } from '../../client/error.ts'
import type { Citation } from '../../client/report/citations.ts'
import { toJson } from '../../client/report/format-data.ts'
import { judge, wantedOf } from '../../client/report/judgement.ts'
import { allHold, countByStatus, type Outcome, place, saidBy } from '../../client/report/outcome.ts'
import { askPages, type PageAnswer, pageOf } from '../../client/report/pages.ts'
import { Lines } from '../../client/report/report.ts'
import { AppError, publicError } from '../errors.ts'
import type { Call } from '../operation.ts'
import { checkQuotesOf } from '../quotes/address-checks.ts'
import { type QuoteCheckResult, quoteCheckResult } from '../quotes/quote-check.ts'
import type { AnsweredCheck } from './page-texts.ts'
import { readInThread } from './reading.ts'
import { cut, MAX_TEXT } from './summary.ts'

/** Most characters of a report. */
export const MAX_REPORT = 100_000
/** Most pages of one report: more than an address may have read on a day. */
const MAX_PAGES = 100

/** How far the check is, and its outcome when all pages are answered. */
export interface ReportCheck {
  done: number
  pages: number
  outcome: Outcome | null
  /** What was found on the pages that were read. */
  checks: readonly AnsweredCheck[]
}

/**
 * Throws AppError `invalid_request`, and `daily_limit` if no page could be asked for.
 * @param options `wait`: milliseconds to go on for. `owner`: whose checks they are; by default those of the caller's address
 */
export async function checkReport(
  markdown: string,
  call: Call,
  { wait, onPage, owner }: { wait: number; onPage?: (done: number, pages: number) => void; owner?: string },
): Promise<ReportCheck> {
  const citations = await readInThread<Citation[]>('readReport', markdown, 'markdown', call)
  const wanted = wantedOf(citations)
  const pages = wanted.size
  if (pages > MAX_PAGES) throw new AppError('invalid_request', `markdown: cites more than ${MAX_PAGES} pages.`)
  const signal = AbortSignal.any([AbortSignal.timeout(wait), call.options.signal, call.api.draining])
  let done = 0
  const onProgress = (count: number) => {
    done = count
    onPage?.(done, pages)
  }
  const checks: AnsweredCheck[] = []
  const checkQuotes = async (input: { source_url: string; quotes: string[] }) => {
    const check = await askPage(input, call, { signal, owner })
    checks.push(check)
    return check.answer
  }
  let answers: Map<string, PageAnswer>
  try {
    answers = await askPages({ checkQuotes }, wanted, { signal, onProgress })
  } catch (error) {
    if (signal.aborted) return { done, pages, outcome: null, checks }
    throw error
  }
  const failures = [...answers.values()].map(({ failure }) => failure)
  const limited = failures.find((failure) => failure?.code === 'daily_limit')
  if (limited && failures.every((failure) => failure?.code === 'daily_limit'))
    throw new AppError('daily_limit', limited.message, { headers: { 'retry-after': '3600' } })
  const outcome: Outcome = {
    file: 'report',
    service: call.api.baseUrl,
    checkedAt: new Date(call.api.now()).toISOString(),
    citations: place(judge(citations, answers), new Lines(markdown)),
    pages,
    verdicts: null,
  }
  return { done: pages, pages, outcome, checks }
}

/** As the client asks the service, without a connection between them. */
async function askPage(
  input: { source_url: string; quotes: string[] },
  call: Call,
  { signal, owner }: { signal: AbortSignal; owner: string | undefined },
): Promise<AnsweredCheck> {
  const options = { ...call.options, signal, waitSeconds: 25 }
  for (;;) {
    signal.throwIfAborted()
    try {
      const { id, reply } = await checkQuotesOf(input, { ...call, options }, owner)
      if (reply.status === 200) return { id, answer: quoteCheckResult.parse(JSON.parse(String(reply.body))) }
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      const { status, retryAfterSeconds, error: said } = publicError(error)
      throw new CountersignError({
        ...said,
        status,
        retryAfterMs: retryAfterSeconds === undefined ? null : retryAfterSeconds * 1000,
        cause: error,
      })
    }
  }
}

/**
 * The outcome as JSON: of `countersign check --format json`, without what only a command line knows. Each quotation that was looked
 * for has its place in the text of its page, and the digests of both.
 */
export function describeOutcome(outcome: Outcome, checks: readonly AnsweredCheck[]) {
  const { file: _file, verdicts: _verdicts, ...rest } = toJson(outcome)
  const found = new Map<string, FoundQuote>()
  for (const { answer } of checks)
    for (const quote of answer.quotes)
      found.set(placeKey(answer.source.requested_url, quote.quote), { ...quote, source: answer.source })
  const citations = rest.citations.map(({ verdict: _, ...one }) => ({
    ...one,
    parts: one.parts.map((part) => {
      const quote = found.get(placeKey(pageOf(one.source_url) ?? '', part.text))
      if (!quote) return part
      const { source, nearest, start, end, quote_sha256 } = quote
      return { ...part, nearest, start, end, quote_sha256, text_sha256: source.text_sha256 }
    }),
  }))
  return { ...rest, citations }
}

type FoundQuote = QuoteCheckResult['quotes'][number] & { source: QuoteCheckResult['source'] }

const placeKey = (page: string, quote: string) => JSON.stringify([page, quote])

/** The outcome in words: what is wrong first. */
export function summarizeOutcome(outcome: Outcome): string {
  const { citations, pages } = outcome
  const counts = Object.entries(countByStatus(citations)).map(([status, count]) => `${count} ${status}`)
  const sum = `${citations.length} citations of ${pages} pages: ${counts.join(', ') || 'nothing to check'}. `
  const head = `${sum}${allHold(outcome) ? 'All hold.' : 'Some do not hold.'}`
  const order = ['error', 'warning', 'note', 'none']
  const sorted = [...citations].sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level))
  const lines = sorted.map((one) => {
    const link = one.parts.find(({ found }) => found?.fragment_url)?.found?.fragment_url ?? one.url
    const url = cut(link, 200)
    return `${one.status}, line ${one.line}: “${cut(saidBy(one), 120)}” ${url}${one.level === 'none' ? '' : ` ${cut(one.message, 160)}`}`
  })
  const shown: string[] = []
  let left = MAX_TEXT - [...head].length - 60
  for (const line of lines) {
    left -= [...line].length + 1
    if (left < 0) break
    shown.push(line)
  }
  const more = lines.length - shown.length
  return [head, ...shown, ...(more > 0 ? [`${more} more in structuredContent.`] : [])].join('\n')
}
