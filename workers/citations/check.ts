// One check of a citation watch. What it comes to is written together with the time of the next, and where the state
// changes, together with the alert. Killed before that, it is made again.

import { mayFlip, tellFlip } from '../../server/citations/flips.ts'
import {
  type Check,
  type CitationState,
  type CitationWatch,
  findWatchById,
  noteCheck,
  postponeCheck,
} from '../../server/citations/watch.ts'
import type { Payload } from '../../server/db/jobs.ts'
import { transact } from '../../server/db/pool.ts'
import { AppError } from '../../server/errors.ts'
import { Refused } from '../../server/receipts/chain.ts'
import type { Work } from '../context.ts'
import { OriginBusy } from '../retrieval/origins.ts'
import { lookAgain } from './look.ts'

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
    const wait = error instanceof OriginBusy ? error.retryAfterSeconds : POSTPONE_SECONDS
    await transact(work.db, (tx) => postponeCheck(tx, watch.id, wait))
    if (!(error instanceof OriginBusy)) throw error
  }
}

/** A page that cannot be read is an outcome too. */
async function lookOrFail(watch: CitationWatch, work: Work, signal: AbortSignal): Promise<Check> {
  try {
    return await lookAgain(watch, work, signal)
  } catch (error) {
    const told = error instanceof OriginBusy ? error.cause : error
    if (signal.aborted || !(told instanceof AppError)) throw error
    const checked_at = new Date(work.now()).toISOString()
    return { outcome: 'unreadable', checked_at, code: told.code, message: told.message }
  }
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
