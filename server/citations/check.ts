// One check of a citation watch. What it comes to is written together with the time of the next, and where the state
// changes, together with the alert. Killed before that, it is made again.

import type { Work } from '../../workers/context.ts'
import { describeAsked, OriginBusyError } from '../../workers/retrieval/origins.ts'
import { enqueue, type Payload } from '../db/jobs.ts'
import { transact } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { Refused } from '../receipts/chain.ts'
import { mayFlip, tellFlip } from './flips.ts'
import { lookAgain } from './look.ts'
import {
  type Check,
  type CitationState,
  type CitationWatch,
  findWatchById,
  noteCheck,
  postponeCheck,
  watchJob,
} from './watch.ts'

const HOUR = 3600
/** A page that could not be read so often in a row, is gone. */
export const MAX_FAILURES = 3
/** Watches that were made together are not to be checked together for ever. */
const JITTER = 0.05
/** After a fault of ours. */
const POSTPONE_SECONDS = 900

export async function checkCitation(
  { watch_id }: Payload<'check_citation'>,
  work: Work,
  signal: AbortSignal,
): Promise<void> {
  const watch = await findWatchById(work.db, watch_id)
  if (!watch?.due) return
  try {
    await conclude(watch, await lookOrFail(watch, work, signal), work)
  } catch (error) {
    // Still due, so the next worker takes it up.
    if (signal.aborted) return
    if (error instanceof OriginBusyError) return standInLine(error, watch, work)
    await transact(work.db, (tx) => postponeCheck(tx, watch.id, POSTPONE_SECONDS))
    throw error
  }
}

/** A job in the line of an origin is woken; should the wake be lost, it looks for itself this much later. */
const LOOK_SECONDS = 60

/** Only our own limits are in the way. The watch stays due, and its job waits for a turn at the origin. */
async function standInLine(busy: OriginBusyError, watch: CitationWatch, work: Work): Promise<void> {
  const job = { ...watchJob(watch.id), runAt: new Date(Date.now() + LOOK_SECONDS * 1000) }
  await transact(work.db, async (tx) => {
    await work.origins.join(tx, busy, new Date(watch.next_check_at), job)
    await enqueue(tx, [job])
  })
  await work.origins.wake(busy.line)
}

/** Seconds that a check may wait for a turn at a busy origin. Then it counts as one in which the page was not readable. */
const MAX_WAIT_SECONDS = HOUR

/**
 * A page that cannot be read is an outcome too, and so is a host that asks to be left alone: it must not keep its own pages
 * from being looked at.
 */
async function lookOrFail(watch: CitationWatch, work: Work, signal: AbortSignal): Promise<Check> {
  try {
    return await lookAgain(watch, work, signal)
  } catch (error) {
    const failure = error instanceof OriginBusyError ? refusedTurn(error, watch, work) : error
    if (signal.aborted || !(failure instanceof AppError)) throw error
    const checked_at = new Date(work.now()).toISOString()
    return { outcome: 'unreadable', checked_at, code: failure.code, message: failure.message }
  }
}

/** Null while the check may still wait for its turn. */
function refusedTurn({ asked }: OriginBusyError, watch: CitationWatch, work: Work): AppError | null {
  if (asked) return new AppError('source_rate_limited', describeAsked(asked))
  const overdueMs = work.now() - Date.parse(watch.next_check_at)
  if (overdueMs < MAX_WAIT_SECONDS * 1000) return null
  return new AppError('source_rate_limited', 'The host had no turn free for this check within an hour.')
}

async function conclude(watch: CitationWatch, check: Check, work: Work): Promise<void> {
  const failures = check.outcome === 'unreadable' ? watch.failures + 1 : 0
  const pending = failures > 0 && failures < MAX_FAILURES
  const hours = pending ? 1 : watch.every_hours
  const result = { check, failures, nextInSeconds: Math.round(hours * HOUR * (1 + JITTER * (2 * Math.random() - 1))) }
  const state = stateAfter(watch, check, failures)
  work.log.info({ event: 'citation_checked', outcome: check.outcome, state })
  if (state !== watch.state && (await mayFlip(work.db, watch))) {
    const appended = await work.chain.append(tellFlip(watch, state, result))
    if (!(appended instanceof Refused)) return
    work.log.info({ event: 'citation_refused', reason: appended.reason })
  }
  // After `overtaken` this writes nothing: the number of the event is another by then.
  await transact(work.db, (tx) => noteCheck(tx, watch, result))
}

function stateAfter(watch: CitationWatch, check: Check, failures: number): CitationState {
  if (check.outcome !== 'unreadable') return check.outcome
  return failures >= MAX_FAILURES ? 'vanished' : watch.state
}
