// Slow fetches and settlements, which continue without a slot of the queue. A worker has a few dozen slots, and a page that sends a
// byte every few seconds, or a payment over which the facilitator takes its time, would hold one for a minute. So the job of slow work
// ends while the work continues here. When it has ended, its verification continues in a new job, or its quote check or free look
// continues at once.
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

/** Work whose job has ended. */
export interface LeftWork {
  /** Id of the row of its request or check, and the attempt that holds it. */
  id: string
  attempt: string
  /** Attempts of other workers if this process is killed. */
  attemptsLeft: number
}

/** Lets the jobs of the rows that these attempts still hold run at a later time. */
export type Postpone = (tx: Tx, left: readonly LeftWork[], runAt: Date) => Promise<void>

export interface SlowWork extends AsyncDisposable {
  readonly size: number
  /**
   * Whether the work ends within the time after which its kind is slow; true without waiting if there is no place for it here. If this
   * process is busy, the work waits for the process and not for the far side, and does not count as slow: another job would make all of
   * it slower, and would not be done sooner.
   */
  isQuick(work: Promise<unknown>, kind: keyof typeof SLOW_MS): Promise<boolean>
  /**
   * Whether a fetch free of charge may begin. All but those of verifications may take FREE_SHARE of the places, so that paid
   * fetches always find one. True if there are no places at all.
   */
  admitsFree(): boolean
  /**
   * Holds the work until `rest` has ended. The caller's job may end as soon as this resolves. `rest` is called with
   * `release`, which must be awaited before the row gets another job.
   * @param options `end` is aborted when the process has to stop; that does not end work that still has its job.
   */
  keep(
    left: LeftWork,
    options: { postpone: Postpone; end: AbortController },
    rest: (release: () => Promise<void>) => Promise<void>,
  ): Promise<void>
  /** Ends all work, waits until its rows are handed back, and takes no more. */
  drain(): Promise<void>
  /** Takes work again after a drain, when the queue of this process was opened again. */
  reopen(): void
}

export interface SlowWorkOptions {
  db: Database
  log: Logger
  /** Most fetches and settlements at the same time. */
  room: number
  /** Milliseconds after which either kind is slow. */
  slowMs?: number
  /**
   * Begins to measure how busy this process is; returns a function that gives the busy share of the time since then,
   * from 0 to 1.
   */
  measureLoad?: () => () => number
}

/** Milliseconds after which work is slow. A settlement usually takes up to four seconds (see `settleSeconds`). */
const SLOW_MS = { fetch: 500, settlement: 5000 }
/** Share of time at which a process counts as busy. */
const BUSY = 0.9
/** Share of the room. */
const FREE_SHARE = 0.25
/** Seconds after its last postponement at which the job of a killed process's work becomes due. */
const RESCUE_SECONDS = 15
const POSTPONE_MS = 5000

function measureLoop(): () => number {
  const before = performance.eventLoopUtilization()
  return () => performance.eventLoopUtilization(before).utilization
}

export function openSlowWork({ db, log, room, slowMs, measureLoad = measureLoop }: SlowWorkOptions): SlowWork {
  const kept = new Map<LeftWork, { ended: Promise<void>; postpone: Postpone }>()
  /** The work whose job this process still postpones. */
  const postponed = new Map<LeftWork, Postpone>()
  let closing = new AbortController()
  const stopping = new AbortController()
  let postponing: Promise<void> = Promise.resolve()

  const postponeBy = (postpone: Postpone, left: LeftWork[]) =>
    transact(db, (tx) => postpone(tx, left, new Date(Date.now() + RESCUE_SECONDS * 1000)))
  async function postponeAll() {
    const groups = Map.groupBy(postponed, ([, postpone]) => postpone)
    for (const [postpone, group] of groups)
      await postponeBy(
        postpone,
        group.map(([left]) => left),
      )
  }
  const loop = (async () => {
    try {
      for await (const _ of every(POSTPONE_MS, undefined, { signal: stopping.signal, ref: false })) {
        if (postponed.size === 0) continue
        postponing = postponeAll().catch((error) => log.warn({ event: 'slow_work_sign_failed', err: error }))
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
    async isQuick(work, kind) {
      if (kept.size >= room || closing.signal.aborted) return true
      const settled = work.then(
        () => true,
        () => true,
      )
      for (;;) {
        const load = measureLoad()
        using pause = openPause(slowMs ?? SLOW_MS[kind])
        const isEnded = await Promise.race([settled, pause.over])
        if (isEnded || load() < BUSY) return isEnded
      }
    },
    admitsFree() {
      if (room === 0) return true
      const free = [...kept.values()].filter(({ postpone }) => postpone !== postponeRequests).length
      return kept.size < room && free < Math.max(1, room * FREE_SHARE)
    },
    async keep(left, { postpone, end }, rest) {
      const { signal } = closing
      const stop = () => end.abort(signal.reason)
      if (signal.aborted) stop()
      else signal.addEventListener('abort', stop, { once: true })
      postponed.set(left, postpone)
      try {
        await postponeBy(postpone, [left])
      } catch (error) {
        postponed.delete(left)
        throw error
      }
      const release = async () => {
        postponed.delete(left)
        // A postponement under way could postpone the next job too.
        await postponing
      }
      const ended = rest(release)
        .catch((error) => log.error({ event: 'slow_work_failed', id: left.id, err: error }))
        .finally(() => {
          signal.removeEventListener('abort', stop)
          postponed.delete(left)
          kept.delete(left)
        })
      kept.set(left, { ended, postpone })
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

/** Disposing cancels the timer; an abort would create an error for every fast one. */
function openPause(milliseconds: number): Disposable & { over: Promise<false> } {
  const { promise, resolve } = Promise.withResolvers<false>()
  const timer = setTimeout(resolve, milliseconds, false)
  return { over: promise, [Symbol.dispose]: () => clearTimeout(timer) }
}

const heldRow = z.object({ id: z.string(), attempts: z.int() })

/** For the work of verifications. */
export const postponeRequests: Postpone = async (tx, left, runAt) => {
  const held = await tx.any(sql.type(heldRow)`
    select r.id::text, t.attempts from verification_requests r
    join unnest(${column(left, 'text', ({ id }) => id)}, ${column(left, 'text', ({ attempt }) => attempt)},
                ${column(left, 'int4', ({ attemptsLeft }) => attemptsLeft)})
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
