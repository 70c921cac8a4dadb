// Slow fetches, which continue without a slot of the queue. A worker has a few dozen slots, and a page that sends a byte
// every few seconds would hold one for a minute. So the job of a slow fetch ends while the fetch continues here. When the
// fetch has ended, its verification continues in a new job, or its quote check or free look continues at once.
//
// Meanwhile the row of the request or check has a job that is due in a few seconds, and this process postpones it again and
// again. If the process is killed, the job becomes due and another worker takes the row.
import { performance } from 'node:perf_hooks'
import { setInterval as every } from 'node:timers/promises'
import { z } from 'zod'
import { enqueue } from '../../db/jobs.ts'
import { column, type Database, sql, type Tx, transact } from '../../db/pool.ts'
import type { Logger } from '../../telemetry.ts'
import { jobKeyOf } from './job.ts'

/** A fetch whose job has ended. */
export interface LeftFetch {
  /** Id of the row of its request or check, and the attempt that holds it. */
  id: string
  attempt: string
  /** Attempts of other workers if this process is killed. */
  attemptsLeft: number
}

/** Lets the jobs of the rows that these attempts still hold run at a later time. */
export type Postpone = (tx: Tx, fetches: readonly LeftFetch[], runAt: Date) => Promise<void>

export interface SlowFetches extends AsyncDisposable {
  readonly size: number
  /**
   * Whether the fetch ends within `slowMs`; true without waiting if there is no place for it here. If this process is busy,
   * the fetch waits for the process and not for its origin, and does not count as slow: another job would make all of them
   * slower, and would not be done sooner.
   */
  isQuick(fetch: Promise<unknown>): Promise<boolean>
  /**
   * Whether a fetch free of charge may begin. All but those of verifications may take FREE_SHARE of the places, so that paid
   * fetches always find one. True if there are no places at all.
   */
  admitsFree(): boolean
  /**
   * Holds the fetch until `work` has ended. The caller's job may end as soon as this resolves. `work` is called with
   * `settle`, which must be awaited before the row gets another job.
   * @param options `end` is aborted when the process has to stop; that does not end a fetch that still has its job.
   */
  keep(
    fetch: LeftFetch,
    options: { postpone: Postpone; end: AbortController },
    work: (settle: () => Promise<void>) => Promise<void>,
  ): Promise<void>
  /** Ends all fetches, waits until their rows are handed back, and takes no more fetches. */
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
  /**
   * Begins to measure how busy this process is; returns a function that gives the busy share of the time since then,
   * from 0 to 1.
   */
  measureLoad?: () => () => number
}

const SLOW_MS = 500
/** Share of time at which a process counts as busy. */
const BUSY = 0.9
/** Share of the room. */
const FREE_SHARE = 0.25
/** Seconds after its last postponement at which the job of a killed process's fetch becomes due. */
const RESCUE_SECONDS = 15
const POSTPONE_MS = 5000

function measureLoop(): () => number {
  const before = performance.eventLoopUtilization()
  return () => performance.eventLoopUtilization(before).utilization
}

export function openSlowFetches({
  db,
  log,
  room,
  slowMs = SLOW_MS,
  measureLoad = measureLoop,
}: SlowFetchesOptions): SlowFetches {
  const kept = new Map<LeftFetch, { ended: Promise<void>; postpone: Postpone }>()
  /** The fetches whose job this process still postpones. */
  const postponed = new Map<LeftFetch, Postpone>()
  let closing = new AbortController()
  const stopping = new AbortController()
  let postponing: Promise<void> = Promise.resolve()

  const postponeBy = (postpone: Postpone, fetches: LeftFetch[]) =>
    transact(db, (tx) => postpone(tx, fetches, new Date(Date.now() + RESCUE_SECONDS * 1000)))
  async function postponeAll() {
    const groups = Map.groupBy(postponed, ([, postpone]) => postpone)
    for (const [postpone, group] of groups)
      await postponeBy(
        postpone,
        group.map(([fetch]) => fetch),
      )
  }
  const loop = (async () => {
    try {
      for await (const _ of every(POSTPONE_MS, undefined, { signal: stopping.signal, ref: false })) {
        if (postponed.size === 0) continue
        postponing = postponeAll().catch((error) => log.warn({ event: 'slow_fetch_sign_failed', err: error }))
        await postponing
      }
    } catch (error) {
      if (!stopping.signal.aborted) throw error
    }
  })()

  async function drain() {
    closing.abort(new Error('The worker is stopping.'))
    await Promise.all([...kept.values()].map(({ ended }) => ended))
  }

  return {
    get size() {
      return kept.size
    },
    async isQuick(fetch) {
      if (kept.size >= room || closing.signal.aborted) return true
      const settled = fetch.then(
        () => true,
        () => true,
      )
      for (;;) {
        const load = measureLoad()
        using pause = openPause(slowMs)
        const isEnded = await Promise.race([settled, pause.over])
        if (isEnded || load() < BUSY) return isEnded
      }
    },
    admitsFree() {
      if (room === 0) return true
      const free = [...kept.values()].filter(({ postpone }) => postpone !== postponeRequests).length
      return kept.size < room && free < Math.max(1, room * FREE_SHARE)
    },
    async keep(fetch, { postpone, end }, work) {
      const { signal } = closing
      const stop = () => end.abort(signal.reason)
      if (signal.aborted) stop()
      else signal.addEventListener('abort', stop, { once: true })
      postponed.set(fetch, postpone)
      try {
        await postponeBy(postpone, [fetch])
      } catch (error) {
        postponed.delete(fetch)
        throw error
      }
      const settle = async () => {
        postponed.delete(fetch)
        // A postponement under way could postpone the next job too.
        await postponing
      }
      const ended = work(settle)
        .catch((error) => log.error({ event: 'slow_fetch_failed', id: fetch.id, err: error }))
        .finally(() => {
          signal.removeEventListener('abort', stop)
          postponed.delete(fetch)
          kept.delete(fetch)
        })
      kept.set(fetch, { ended, postpone })
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

/** Disposing cancels the timer; an abort would create an error for every fast fetch. */
function openPause(milliseconds: number): Disposable & { over: Promise<false> } {
  const { promise, resolve } = Promise.withResolvers<false>()
  const timer = setTimeout(resolve, milliseconds, false)
  return { over: promise, [Symbol.dispose]: () => clearTimeout(timer) }
}

const heldRow = z.object({ id: z.string(), attempts: z.int() })

/** For the fetches of verifications. */
export const postponeRequests: Postpone = async (tx, fetches, runAt) => {
  const held = await tx.any(sql.type(heldRow)`
    select r.id::text, t.attempts from verification_requests r
    join unnest(${column(fetches, 'text', ({ id }) => id)}, ${column(fetches, 'text', ({ attempt }) => attempt)},
                ${column(fetches, 'int4', ({ attemptsLeft }) => attemptsLeft)})
      as t (id, attempt, attempts) on r.id = t.id::uuid and r.attempt = t.attempt::uuid
    order by r.id for update of r`)
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
