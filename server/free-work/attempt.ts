// One attempt at free work that reads a page: the order of its steps, what it waits for, and what its failures mean. A quote check
// and a free look differ in what they do with the page.
import { AssessorBusyError } from '../../workers/assessment/semantic/circuit.ts'
import { MAX_PAUSE_SECONDS, OriginBusyError } from '../../workers/retrieval/origin-wait.ts'
import { waitForTurn } from '../../workers/retrieval/origins.ts'
import { isConnectionLoss } from '../db/connection-loss.ts'
import { enqueue } from '../db/jobs.ts'
import { type Tx, transact } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import type { Observation } from '../interface/observation.ts'
import { isThreadShortage } from '../threads/pool.ts'
import type { Waiting } from '../verification/request.ts'
import { NO_THREAD, THREAD_SECONDS } from '../verification/stages/failure.ts'
import type { Postpone } from '../verification/stages/slow-work.ts'
import { inSeconds } from '../verification/stages/snooze.ts'
import type { JobAttempt, ReadingTools } from '../verification/stages/stage-tools.ts'
import type { FreeWorkKind, Held } from './jobs.ts'

/** Seconds after which work is tried again if this process has no place for it. */
const ROOM_SECONDS = 2

export interface Row extends Held {
  priority: number
  body: { source_url: string }
}

/** How a kind of free work is done. `T` is what its steps use of the worker process. */
export interface FreeWork<W extends Row, T> extends FreeWorkKind<W> {
  /** When the work began to wait. */
  since(work: W): Date
  /** Whether a request was sent to the host by an earlier attempt. */
  begun(work: W): boolean
  /** `postpone` of this kind; always the same function, so that slow fetches are postponed together. */
  postpone: Postpone
  /** Reads the page. */
  read(work: W, tools: T, signal: AbortSignal): Promise<Observation>
  /** Stores the answer and announces it. */
  answer(work: W, observation: Observation, tools: T, signal: AbortSignal): Promise<void>
  /** Records what the work waits for. @param tried whether a request was sent to the host */
  storeWait(tx: Tx, work: W, wait: Waiting, tried: boolean): Promise<void>
  /** Of a failure that was stored. */
  failed?(tools: T): void
}

/** Takes the work of this id, and does nothing if none is left. Resolves early for a slow fetch, which goes on without its job. */
export async function attempt<W extends Row, T extends ReadingTools>(
  kind: FreeWork<W, T>,
  id: string,
  tools: T,
  job: JobAttempt,
): Promise<void> {
  const work = await kind.claim(tools.db, id, tools.id.make())
  if (!work) return
  const { slowWork } = tools

  async function readAndAnswer(held: W): Promise<void> {
    const stopping = new AbortController()
    const signal = AbortSignal.any([job.signal, stopping.signal])
    const fetching = kind.read(held, tools, signal)
    // The last attempt keeps its job, so that a page that crashes its worker cannot do that without end.
    if (job.attemptsLeft === 0 || (await slowWork.isQuick(fetching, 'fetch')))
      return kind.answer(held, await fetching, tools, signal)
    // Until `fetching` is awaited again, a rejection has no other listener.
    fetching.catch(() => {})
    const left = { id, attempt: held.attempt, attemptsLeft: job.attemptsLeft }
    const options = { postpone: kind.postpone, end: stopping }
    await slowWork.keep(left, options, async (release) => {
      try {
        await kind.answer(held, await fetching, tools, signal)
        await release()
      } catch (error) {
        await release()
        await handleFailure(error, kind, held, tools, { signal, attemptsLeft: 0 })
      }
    })
  }

  try {
    if (!slowWork.admitsFree()) return await handBack(kind, work, tools, ROOM_SECONDS)
    await readAndAnswer(work)
  } catch (error) {
    await handleFailure(error, kind, work, tools, job)
  }
}

/** Postpones the work or fails it. An error that the next attempt of the queue may not have is thrown again. */
async function handleFailure<W extends Row, T extends ReadingTools>(
  error: unknown,
  kind: FreeWork<W, T>,
  work: W,
  tools: T,
  job: JobAttempt,
): Promise<void> {
  /** Seconds for which the work may still wait: in total at most as long as a host may ask for. */
  const secondsLeft = MAX_PAUSE_SECONDS - (Date.now() - kind.since(work).getTime()) / 1000
  const fail = async (reason: AppError, counts: boolean) => {
    if (!(await kind.fail(tools.db, work, reason, counts))) return
    kind.failed?.(tools)
    tools.log.info({ event: `${kind.event}_failed`, ...logged(kind, work), code: reason.code })
    await tools.changeEvents.add(work.id)
  }
  // The page has no part in a wait for a thread or a model, so a failure after it does not count.
  const waitFor = (seconds: number, refusal: string, wait?: Waiting) =>
    secondsLeft > seconds
      ? handBack(kind, work, tools, seconds, wait)
      : fail(new AppError('capacity_exceeded', refusal), false)

  if (job.signal.aborted) return handBack(kind, work, tools, 0)
  if (error instanceof OriginBusyError) {
    const wait = { job: kind.job(work), since: kind.since(work), url: work.body.source_url, secondsLeft }
    const refusal = await waitForTurn(tools.origins, error, wait, async (tx, waiting) => {
      if (!(await kind.holds(tx, work))) return false
      await kind.storeWait(tx, work, waiting, error.tried)
      return true
    })
    return refusal ? fail(refusal, kind.begun(work) || error.tried) : undefined
  }
  if (error instanceof AssessorBusyError) {
    const seconds = error.retryAfterSeconds
    return waitFor(seconds, 'The assessing model did not answer in time.', { for: 'model', until: inSeconds(seconds) })
  }
  if (isThreadShortage(error)) return waitFor(THREAD_SECONDS, NO_THREAD)
  if (error instanceof AppError) return fail(error, true)
  if (isConnectionLoss(error)) throw error
  tools.log.error({ event: `${kind.event}_error`, ...logged(kind, work), err: error })
  if (job.attemptsLeft > 0) throw error
  await fail(new AppError('execution_failed', 'The work could not be done.'), true)
}

/** The id of the work as its log lines have it. */
const logged = <W extends Row>({ table }: FreeWorkKind<W>, { id }: W) =>
  table === 'looks' ? { look_id: id } : { check_id: id }

/** Stores a new job in place of the running one: no attempt is spent, and no backoff applies. */
async function handBack<W extends Row, T extends ReadingTools>(
  kind: FreeWork<W, T>,
  work: W,
  { db }: T,
  seconds: number,
  wait?: Waiting,
): Promise<void> {
  const runAt = new Date(Date.now() + seconds * 1000)
  await transact(db, async (tx) => {
    if (!(await kind.holds(tx, work))) return
    if (wait) await kind.storeWait(tx, work, wait, false)
    await enqueue(tx, [{ ...kind.job(work), runAt }])
  })
}
