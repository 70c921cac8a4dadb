// Slow fetches, which continue without a slot of the queue. A worker has a few dozen slots, and a page that sends a byte every
// few seconds would hold one for a minute. So the job of a slow fetch ends while the fetch continues here. When the fetch has
// ended, the request gets a new job, which continues from what was stored.
//
// Meanwhile the request has a job that is due in a few seconds, and this process keeps postponing it. If the process is
// killed, the job becomes due and another worker takes the request.
import { setInterval as every, setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { enqueue } from '../server/db/jobs.ts'
import { column, type Database, sql, type Tx, transact } from '../server/db/pool.ts'
import type { Logger } from '../server/telemetry.ts'
import { jobKeyOf } from '../server/verification/job.ts'
import type { WorkingRequest } from '../server/verification/request.ts'

export interface SlowFetches extends AsyncDisposable {
  readonly size: number
  /** Whether the fetch ends within `slowMs`; true without waiting if there is no room for it here. */
  isQuick(fetch: Promise<unknown>): Promise<boolean>
  /**
   * Takes the request over until `work` has ended. The caller's job may end as soon as this resolves. `work` is called with
   * `settle`, which must be awaited before the request gets another job.
   * @param options `attemptsLeft`: attempts of other workers if this process is killed. `end` is aborted when the process is
   * to stop; that does not end a fetch that still has its job.
   */
  keep(
    request: WorkingRequest,
    options: { attemptsLeft: number; end: AbortController },
    work: (settle: () => Promise<void>) => Promise<void>,
  ): Promise<void>
  /** Ends all fetches, waits until their requests are handed back, and takes no more fetches. */
  drain(): Promise<void>
  /** Takes fetches again after a drain, when the queue of this process was opened again. */
  reopen(): void
}

export interface SlowFetchesOptions {
  db: Database
  log: Logger
  /** Maximal number of fetches at the same time. */
  room: number
  /** Milliseconds after which a fetch is slow. */
  slowMs?: number
}

const SLOW_MS = 500
/** Seconds after its last postponement at which the job of a killed process's request becomes due. */
const RESCUE_SECONDS = 15
const POSTPONE_MS = 5000

export function openSlowFetches({ db, log, room, slowMs = SLOW_MS }: SlowFetchesOptions): SlowFetches {
  const kept = new Map<WorkingRequest, Promise<void>>()
  /** The requests whose job this process still postpones, with their attempts. */
  const postponed = new Map<WorkingRequest, number>()
  let closing = new AbortController()
  const stopping = new AbortController()
  let postponing: Promise<void> = Promise.resolve()

  const postpone = (requests: Postponed[]) => transact(db, (tx) => postponeJobs(tx, requests))
  const loop = (async () => {
    try {
      for await (const _ of every(POSTPONE_MS, undefined, { signal: stopping.signal, ref: false })) {
        if (postponed.size === 0) continue
        postponing = postpone([...postponed]).catch((error) =>
          log.warn({ event: 'slow_fetch_sign_failed', err: error }),
        )
        await postponing
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
      postponed.set(request, attemptsLeft)
      try {
        await postpone([[request, attemptsLeft]])
      } catch (error) {
        postponed.delete(request)
        throw error
      }
      const settle = async () => {
        postponed.delete(request)
        // A postponement under way could postpone the next job too.
        await postponing
      }
      const ended = work(settle)
        .catch((error) => log.error({ event: 'slow_fetch_failed', request_id: request.id, err: error }))
        .finally(() => {
          signal.removeEventListener('abort', stop)
          postponed.delete(request)
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
      await loop
    },
  }
}

const heldRow = z.object({ id: z.string(), attempts: z.int() })

/** A request, and the attempts that its job has left. */
type Postponed = readonly [WorkingRequest, number]

/** Postpones the jobs of the requests that these attempts still own by a few seconds. */
async function postponeJobs(tx: Tx, postponed: readonly Postponed[]): Promise<void> {
  const held = await tx.any(sql.type(heldRow)`
    select r.id::text, t.attempts from verification_requests r
    join unnest(${column(postponed, 'text', ([r]) => r.id)}, ${column(postponed, 'text', ([r]) => r.attempt)},
                ${column(postponed, 'int4', ([, attempts]) => attempts)})
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
