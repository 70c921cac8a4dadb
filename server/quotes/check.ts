// The job of one quote check: reads the page as for a verification, finds the quotes on a thread, and stores the answer.

import { observeSource } from '../../workers/retrieval/observation.ts'
import { judgePage } from '../../workers/retrieval/page-quality.ts'
import { type FoundQuote, findQuotes } from '../../workers/text/quotes.ts'
import { linkTo } from '../../workers/text/text-fragment.ts'
import type { Payload } from '../db/jobs.ts'
import { transact } from '../db/pool.ts'
import { attempt, type FreeWork } from '../free-work/attempt.ts'
import { postpone } from '../free-work/jobs.ts'
import type { Observation } from '../interface/observation.ts'
import { DEFAULT_MAX_AGE_SECONDS } from '../interface/result.ts'
import { sha256 } from '../receipts/format.ts'
import { freeLane } from '../verification/lane.ts'
import type { JobAttempt, ReadingTools } from '../verification/stages/stage-tools.ts'
import {
  checkJob,
  claimCheck,
  completeCheck,
  failCheck,
  holdsCheck,
  type QuoteCheckResult,
  storeWait,
  type WorkingCheck,
} from './quote-check.ts'

export const QUOTE_CHECKS: FreeWork<WorkingCheck, ReadingTools> = {
  table: 'quote_checks',
  event: 'quote_check',
  job: checkJob,
  claim: claimCheck,
  holds: holdsCheck,
  fail: (db, check, error, counts) => transact(db, (tx) => failCheck(tx, check, error, { counts })),
  since: (check) => check.created_at,
  begun: (check) => check.begun,
  postpone: (tx, fetches, runAt) => postpone(QUOTE_CHECKS, tx, fetches, runAt),
  read,
  answer,
  storeWait,
}

export function checkQuotes({ check_id }: Payload<'check_quotes'>, work: ReadingTools, job: JobAttempt): Promise<void> {
  return attempt(QUOTE_CHECKS, check_id, work, job)
}

async function read(check: WorkingCheck, work: ReadingTools, signal: AbortSignal): Promise<Observation> {
  const url = check.body.source_url
  const lane = freeLane(check.account_id, url, work)
  const visit = () => observeSource(url, work, { signal, jobKey: checkJob(check).key, lane })
  return (await work.cache.observe(url, DEFAULT_MAX_AGE_SECONDS, visit, signal)).observation
}

async function answer(
  check: WorkingCheck,
  { source, checked_at }: Observation,
  work: ReadingTools,
  signal: AbortSignal,
) {
  const { source_url, quotes } = check.body
  const wanted = quotes.map((quote) => ({ quote, near: 0 }))
  const found = await findQuotes(
    work.threads,
    { text: source.normalized_text, quotes: wanted },
    { signal, lane: freeLane(check.account_id, check.body.source_url, work) },
  )
  // If a quote is found, the page is the one that was asked for.
  if (found.every(({ match }) => match === 'absent')) judgePage(quotes.join('\n'), { source })
  const { final_url, content_sha256, text_sha256 } = source
  const result: QuoteCheckResult = {
    source: { requested_url: source_url, final_url, content_sha256, text_sha256, checked_at },
    // `findQuotes` answers for each quote, in the order given.
    quotes: found.map((one, n) => describeFound(quotes[n]!, one, final_url)),
  }
  if (!(await completeCheck(work.db, check, result, source.normalized_text))) return
  const matches = Object.groupBy(found, ({ match }) => match)
  work.log.info({ event: 'quotes_checked', check_id: check.id, ...countEach(matches) })
  await work.changeEvents.add(check.id)
}

const countEach = (groups: Partial<Record<string, unknown[]>>) =>
  Object.fromEntries(Object.entries(groups).map(([name, group]) => [name, group?.length]))

function describeFound(quote: string, found: FoundQuote, url: string): QuoteCheckResult['quotes'][number] {
  const asked = { quote, match: found.match, quote_sha256: sha256(quote) }
  if (found.match === 'absent') return { ...asked, start: null, end: null, fragment_url: null, nearest: null }
  const { text, start, end, similarity, directive } = found.passage
  const fragment_url = linkTo(url, directive)
  if (found.match !== 'near') return { ...asked, start, end, fragment_url, nearest: null }
  return { ...asked, start: null, end: null, fragment_url, nearest: { text, start, end, similarity } }
}
