// Fetches that go on without a slot of the queue. A worker has a few dozen slots, and a page that drips a byte every
// few seconds would hold one for a minute. So a fetch that is not done after a moment leaves its job: the job ends, and
// the fetch goes on here. When it has ended, the request gets a job again, which carries on from what was stored.
//
// A request whose fetch goes on here has a job all the same, a few seconds ahead, and this process moves it on while it
// lives. A process that is killed moves nothing on, so another worker takes the request up.
import { setInterval as every, setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { enqueue } from '../server/db/jobs.ts'
import { column, type Database, sql, type Tx, transact } from '../server/db/pool.ts'
import type { Logger } from '../server/telemetry.ts'
import { jobKeyOf } from '../server/verification/admission.ts'
import type { WorkingRequest } from '../server/verification/request.ts'

export interface SlowFetches extends AsyncDisposable {
  readonly size: number
  /** Whether the fetch is done within a moment; true without waiting where there is no room for it here. */
  isQuick(fetch: Promise<unknown>): Promise<boolean>
  /**
   * Takes the request over until `work` has ended. The caller's job may end as soon as this resolves. `work` is called
   * with `settle`, which must be awaited before the request is given another job.
   * @param options `attemptsLeft`: times that another worker may take the request up, should this process be killed.
   * `end` ends the fetch when the process is to stop; a fetch that still has its job is not ended by that.
   */
  keep(
    request: WorkingRequest,
    options: { attemptsLeft: number; end: AbortController },
    work: (settle: () => Promise<void>) => Promise<void>,
  ): Promise<void>
  /** Ends all fetches, waits until their requests are handed back, and takes no more. */
  drain(): Promise<void>
  /** Takes fetches again after a drain: the queue of this process has been opened anew. */
  reopen(): void
}

export interface SlowFetchesOptions {
  db: Database
  log: Logger
  /** Fetches held at the same time. */
  room: number
  /** Milliseconds after which a fetch is slow. */
  slowMs?: number
}

const SLOW_MS = 500
/** A killed process's requests are taken up again this many seconds after its last sign of life. */
const RESCUE_SECONDS = 15
const SIGN_MS = 5000

export function openSlowFetches({ db, log, room, slowMs = SLOW_MS }: SlowFetchesOptions): SlowFetches {
  const kept = new Map<WorkingRequest, Promise<void>>()
  /** Those whose job this process still moves on. */
  const insured = new Map<WorkingRequest, number>()
  let closing = new AbortController()
  const stopping = new AbortController()
  let signing: Promise<void> = Promise.resolve()

  const sign = (requests: Insured[]) => transact(db, (tx) => postponeJobs(tx, requests))
  const signs = (async () => {
    try {
      for await (const _ of every(SIGN_MS, undefined, { signal: stopping.signal, ref: false })) {
        if (insured.size === 0) continue
        signing = sign([...insured]).catch((error) => log.warn({ event: 'slow_fetch_sign_failed', err: error }))
        await signing
      }
    } catch (error) {
      if (!stopping.signal.aborted) throw error
    }
  })()

  async function drain() {
    closing.abort(new Error('The worker is stopping.'))
    await Promise.all(kept.values())
  }

  return {
    get size() {
      return kept.size
    },
    async isQuick(fetch) {
      if (kept.size >= room || closing.signal.aborted) return true
      const done = new AbortController()
      const settled = fetch.then(
        () => true,
        () => true,
      )
      try {
        return await Promise.race([settled, pause(slowMs, false, { signal: done.signal })])
      } finally {
        done.abort()
      }
    },
    async keep(request, { attemptsLeft, end }, work) {
      const { signal } = closing
      const stop = () => end.abort(signal.reason)
      if (signal.aborted) stop()
      else signal.addEventListener('abort', stop, { once: true })
      insured.set(request, attemptsLeft)
      try {
        await sign([[request, attemptsLeft]])
      } catch (error) {
        insured.delete(request)
        throw error
      }
      const settle = async () => {
        insured.delete(request)
        // A sign under way could put off the job that is made next.
        await signing
      }
      const ended = work(settle)
        .catch((error) => log.error({ event: 'slow_fetch_failed', request_id: request.id, err: error }))
        .finally(() => {
          signal.removeEventListener('abort', stop)
          insured.delete(request)
          kept.delete(request)
        })
      kept.set(request, ended)
    },
    drain,
    reopen() {
      if (closing.signal.aborted) closing = new AbortController()
    },
    async [Symbol.asyncDispose]() {
      await drain()
      stopping.abort()
      await signs
    },
  }
}

const heldRow = z.object({ id: z.string(), attempts: z.int() })

/** A request, and how often it may be taken up again. */
type Insured = readonly [WorkingRequest, number]

/** Moves the jobs of the requests that are still held by these attempts a few seconds on. */
async function postponeJobs(tx: Tx, insured: readonly Insured[]): Promise<void> {
  const held = await tx.any(sql.type(heldRow)`
    select r.id::text, t.attempts from verification_requests r
    join unnest(${column(insured, 'text', ([r]) => r.id)}, ${column(insured, 'text', ([r]) => r.attempt)},
                ${column(insured, 'int4', ([, attempts]) => attempts)})
      as t (id, attempt, attempts) on r.id = t.id::uuid and r.attempt = t.attempt::uuid
    order by r.id for update of r`)
  const runAt = new Date(Date.now() + RESCUE_SECONDS * 1000)
  await enqueue(
    tx,
    held.map(({ id, attempts }) => ({
      name: 'verify_request',
      payload: { request_id: id },
      key: jobKeyOf(id),
      maxAttempts: attempts,
      runAt,
    })),
  )
}
