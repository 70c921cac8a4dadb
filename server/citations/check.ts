// The job that checks one citation watch. The outcome is written together with the time of the next check, and a change of
// state together with its alert. After a crash before that, the check is made again.
import { OriginBusyError, planWait } from '../../workers/retrieval/origin-wait.ts'
import { type Origins, waitForTurn } from '../../workers/retrieval/origins.ts'
import type { Core } from '../context.ts'
import type { Payload } from '../db/jobs.ts'
import { transact } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { Refused } from '../receipts/chain.ts'
import { isThreadShortage } from '../threads/pool.ts'
import { draftChange, mayAlertChange, raiseCitationAlert } from './alerts.ts'
import { checkPage, type PageTools } from './page-check.ts'
import {
  type Check,
  type CheckResult,
  type CitationState,
  type CitationWatch,
  findWatchById,
  noteCheck,
  postponeCheck,
  watchJob,
} from './watch.ts'

const HOUR = 3600
/** Failed checks in a row after which the quote counts as vanished. */
export const MAX_FAILURES = 3
/** Each pause is up to this share shorter or longer, so that watches made together are not always checked together. */
const JITTER = 0.05
/** Delay after a fault of the service. */
const POSTPONE_SECONDS = 900

/** What a check needs. */
type Tools = Pick<Core, 'db' | 'log' | 'now' | 'chain'> & PageTools & { origins: Origins }

export async function checkCitation(
  { watch_id }: Payload<'check_citation'>,
  tools: Tools,
  signal: AbortSignal,
): Promise<void> {
  const watch = await findWatchById(tools.db, watch_id)
  if (!watch?.due) return
  try {
    await conclude(watch, await checkOrFail(watch, tools, signal), tools)
  } catch (error) {
    // The watch is still due, so the next worker process takes it up.
    if (signal.aborted) return
    if (error instanceof OriginBusyError && !(await waitForTurn(tools.origins, error, waitOf(error, watch, tools))))
      return
    await transact(tools.db, (tx) => postponeCheck(tx, watch.id, POSTPONE_SECONDS))
    // No fault: the threads had other work.
    if (!isThreadShortage(error)) throw error
  }
}

/** Seconds that a check may wait for a turn at a busy origin. After that it is put off. */
const MAX_WAIT_SECONDS = HOUR

/**
 * The watch stays due, and its job waits for a turn at the origin. A host that asks for a pause must not delay the checks of its own
 * pages for ever, so for that the check does not wait.
 */
function waitOf(busy: OriginBusyError, watch: CitationWatch, tools: Tools) {
  const since = new Date(watch.next_check_at)
  const overdue = (tools.now() - since.getTime()) / 1000
  return {
    job: watchJob(watch.id),
    since,
    url: watch.source_url,
    secondsLeft: busy.asked ? 0 : MAX_WAIT_SECONDS - overdue,
  }
}

/** A page that cannot be read is an outcome too; one that this service found no time to read is not. */
async function checkOrFail(watch: CitationWatch, tools: Tools, signal: AbortSignal): Promise<Check> {
  try {
    return await checkPage(watch, tools, signal)
  } catch (error) {
    const failure = error instanceof OriginBusyError && error.asked ? planWait(error, watch.source_url, 0) : error
    if (signal.aborted || !(failure instanceof AppError)) throw error
    const checked_at = new Date(tools.now()).toISOString()
    return { outcome: 'unreadable', checked_at, code: failure.code, message: failure.message }
  }
}

async function conclude(watch: CitationWatch, check: Check, tools: Tools): Promise<void> {
  const failures = check.outcome === 'unreadable' ? watch.failures + 1 : 0
  const pending = failures > 0 && failures < MAX_FAILURES
  const hours = pending ? 1 : watch.every_hours
  const result: CheckResult = {
    check,
    failures,
    nextInSeconds: Math.round(hours * HOUR * (1 + JITTER * (2 * Math.random() - 1))),
  }
  const state = stateAfter(watch, check, failures)
  tools.log.info({ event: 'citation_checked', outcome: check.outcome, state })
  if (state !== watch.state && (await mayAlertChange(tools.db, watch))) {
    const raised = await raiseCitationAlert(tools.chain, draftChange(watch, { state, result }))
    if (!(raised instanceof Refused)) return
    tools.log.info({ event: 'citation_refused', reason: raised.reason })
  }
  // After `overtaken` this writes nothing, because `event_seq` has changed.
  await transact(tools.db, (tx) => noteCheck(tx, watch, result))
}

function stateAfter(watch: CitationWatch, check: Check, failures: number): CitationState {
  if (check.outcome !== 'unreadable') return check.outcome
  return failures >= MAX_FAILURES ? 'vanished' : watch.state
}
