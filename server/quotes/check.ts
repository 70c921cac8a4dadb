// The job of one quote check: reads the page as for a verification, finds the quotes on a thread, and stores the answer.

import { judgePage } from '../../workers/assessment/page-quality.ts'
import { observeSource } from '../../workers/retrieval/observation.ts'
import { MAX_PAUSE_SECONDS, OriginBusyError } from '../../workers/retrieval/origin-wait.ts'
import { waitForTurn } from '../../workers/retrieval/origins.ts'
import { type FoundQuote, findQuotes } from '../../workers/text/quotes.ts'
import { linkTo } from '../../workers/text/text-fragment.ts'
import { isConnectionLoss } from '../db/connection-loss.ts'
import { enqueue, type Payload } from '../db/jobs.ts'
import { transact } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import type { Observation } from '../interface/observation.ts'
import { DEFAULT_MAX_AGE_SECONDS } from '../interface/result.ts'
import { sha256 } from '../receipts/format.ts'
import { isThreadShortage } from '../threads/pool.ts'
import { NO_THREAD, THREAD_SECONDS } from '../verification/failure.ts'
import { freeLane } from '../verification/lane.ts'
import type { JobAttempt, ReadingTools } from '../verification/stage-tools.ts'
import {
  checkJob,
  claimCheck,
  completeCheck,
  failCheck,
  holdsCheck,
  postponeChecks,
  type QuoteCheckResult,
  storeWait,
  type WorkingCheck,
} from './quote-check.ts'

/** Seconds after which a check is tried again if this process has no place for it. */
const ROOM_SECONDS = 2

export async function checkQuotes(
  { check_id }: Payload<'check_quotes'>,
  work: ReadingTools,
  job: JobAttempt,
): Promise<void> {
  const check = await claimCheck(work.db, check_id, work.id.make())
  if (!check) return
  try {
    if (!work.slowFetches.admitsFree()) return await handBack(check, work, ROOM_SECONDS)
    await readAndAnswer(check, work, job)
  } catch (error) {
    await handleFailure(error, check, work, job)
  }
}

/** A slow fetch continues without this job (see slow-fetches.ts), and answers the check itself. */
async function readAndAnswer(check: WorkingCheck, work: ReadingTools, job: JobAttempt): Promise<void> {
  const stopping = new AbortController()
  const signal = AbortSignal.any([job.signal, stopping.signal])
  const url = check.body.source_url
  const lane = freeLane(check.account_id, check.body.source_url, work)
  const visit = () => observeSource(url, work, { signal, jobKey: checkJob(check).key, lane })
  const fetching = work.cache.observe(url, DEFAULT_MAX_AGE_SECONDS, visit, signal)
  // The last attempt keeps its job, so that a page that crashes its worker cannot do that without end.
  if (job.attemptsLeft === 0 || (await work.slowFetches.isQuick(fetching)))
    return answer(check, (await fetching).observation, work, signal)
  // Until `fetching` is awaited again, a rejection has no other listener.
  fetching.catch(() => {})
  const left = { id: check.id, attempt: check.attempt, attemptsLeft: job.attemptsLeft }
  await work.slowFetches.keep(left, { postpone: postponeChecks, end: stopping }, async (settle) => {
    try {
      await answer(check, (await fetching).observation, work, signal)
      await settle()
    } catch (error) {
      await settle()
      await handleFailure(error, check, work, { signal, attemptsLeft: 0 })
    }
  })
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

/** Postpones the check or fails it. An error that the next attempt of the queue may not have is thrown again. */
async function handleFailure(error: unknown, check: WorkingCheck, work: ReadingTools, job: JobAttempt): Promise<void> {
  if (job.signal.aborted) return handBack(check, work, 0)
  if (error instanceof OriginBusyError) return waitForOrigin(error, check, work)
  if (isThreadShortage(error)) return waitForThread(check, work)
  if (error instanceof AppError) return fail(check, work, error)
  if (isConnectionLoss(error)) throw error
  work.log.error({ event: 'quote_check_error', check_id: check.id, err: error })
  if (job.attemptsLeft > 0) throw error
  await fail(check, work, new AppError('execution_failed', 'The work could not be done.'))
}

/** Waits for a free thread, in total at most as long as for a host. The page has no part in this, so it does not count. */
function waitForThread(check: WorkingCheck, work: ReadingTools): Promise<void> {
  if (secondsLeft(check) > THREAD_SECONDS) return handBack(check, work, THREAD_SECONDS)
  return fail(check, work, new AppError('capacity_exceeded', NO_THREAD), { counts: false })
}

/** Stores a new job in place of the running one: no attempt is spent, and no backoff applies. */
async function handBack(check: WorkingCheck, { db }: ReadingTools, seconds: number): Promise<void> {
  const runAt = new Date(Date.now() + seconds * 1000)
  await transact(db, async (tx) => {
    if (await holdsCheck(tx, check)) await enqueue(tx, [{ ...checkJob(check), runAt }])
  })
}

/** Waits in the line of the origin, in total at most as long as a host may ask for. */
async function waitForOrigin(busy: OriginBusyError, check: WorkingCheck, work: ReadingTools): Promise<void> {
  const { created_at: since, body } = check
  const wait = { job: checkJob(check), since, url: body.source_url, secondsLeft: secondsLeft(check) }
  const refusal = await waitForTurn(work.origins, busy, wait, async (tx, waiting) => {
    if (!(await holdsCheck(tx, check))) return false
    await storeWait(tx, check.id, waiting, busy.tried)
    return true
  })
  if (refusal) await fail(check, work, refusal, { counts: check.begun || busy.tried })
}

/** Seconds for which the check may still wait. */
const secondsLeft = (check: WorkingCheck) => MAX_PAUSE_SECONDS - (Date.now() - check.created_at.getTime()) / 1000

async function fail(
  check: WorkingCheck,
  work: ReadingTools,
  error: AppError,
  { counts } = { counts: true },
): Promise<void> {
  if (!(await transact(work.db, (tx) => failCheck(tx, check, error, { counts })))) return
  work.log.info({ event: 'quote_check_failed', check_id: check.id, code: error.code })
  await work.changeEvents.add(check.id)
}
