// Runs the queue in this process: graphile-worker with the tasks, the beat, the rescue of other pools' jobs, the delivery of
// alerts and the scan of watchdogs. Nothing would restart a pool that dies while its process is alive, so `died` reports it
// and the process exits.
import { EventEmitter } from 'node:events'
import { Logger as QueueLogger, run, type WorkerEvents } from 'graphile-worker'
import { openDeliveryLoop, openRounds } from '../server/alerts/delivery-loop.ts'
import { every } from '../server/db/interval.ts'
import { endQueuePool, JOB_ENDS, openQueuePool } from '../server/db/queue.ts'
import { openSessionLock, type SessionLock } from '../server/db/session-lock.ts'
import type { Presence } from '../server/operate/presence.ts'
import { type Logger, openOutage } from '../server/telemetry.ts'
import { openScanner } from '../server/watchdogs/scan.ts'
import { BEAT_SECONDS, beat, endBeat, RENEW, renounceLock, rescue, seesLostLock, WATCH } from './beat.ts'
import type { Work } from './context.ts'
import { buildTasks, crontab } from './tasks.ts'

export interface Runner extends AsyncDisposable {
  /** Rejects when the queue stops by itself. */
  died: Promise<never>
}

/**
 * Milliseconds after which running jobs are aborted and hand their requests back, and after which the queue is left. What is closed
 * after it may take three seconds, before the hard stop of the process.
 */
const DRAIN_MS = { abort: 18_000, kill: 24_000 }
/** graphile-worker's own connections: listening, fetching jobs, completing them. */
export const QUEUE_CONNECTIONS = 6

/** Starts taking jobs. Disposing takes no new ones, lets running ones finish or hand their requests back, then ends the beat. */
export async function openRunner(work: Work, options: { concurrency?: number } = {}): Promise<Runner> {
  await using opened = new AsyncDisposableStack()
  const concurrency = options.concurrency ?? work.config.workerConcurrency
  const halt = new AbortController()
  const pool = openQueuePool(
    work.directUrl,
    QUEUE_CONNECTIONS,
    (error) => work.log.warn({ event: 'queue_connection_lost', err: error }),
    { ...openOutage(work.log, 'tasks of the queue'), stopping: halt.signal },
  )
  opened.defer(() => endQueuePool(pool))
  opened.defer(() => halt.abort())
  const events: WorkerEvents = new EventEmitter()
  const poolId = Promise.withResolvers<string>()
  work.slowWork.reopen()
  const deliveries = opened.use(openDeliveryLoop(work))
  events.once('pool:create', ({ workerPool }) => poolId.resolve(workerPool.id))
  // Opened before the first job is taken, and closed after the beat has been deleted.
  const lock = opened.use(await openWorkerLock(work, poolId.promise))
  const runner = await run({
    pgPool: pool,
    events,
    taskList: buildTasks(work, deliveries, halt.signal),
    parsedCronItems: crontab(),
    noHandleSignals: true,
    logger: queueLogger(work.log),
    preset: {
      worker: {
        concurrentJobs: concurrency,
        pollInterval: 1000,
        gracefulShutdownAbortTimeout: DRAIN_MS.abort,
        ...JOB_ENDS,
        // Jobs that are fetched ahead are locked to this pool; if it is killed, the rescue frees them like running ones.
        localQueue: { size: concurrency + 1, refetchDelay: { durationMs: 20 } },
      },
    },
  })
  const id = await poolId.promise
  await beat(work, id, lock.key)
  // Where the database is away, the beat grows old.
  opened.defer(() => endBeat(work, id).catch((error) => work.log.warn({ event: 'drain_failed', err: error })))
  opened.use(openPulse(work, id, lock))
  // The first beat said that the assessor is not ready; callers need not wait for the next one to learn that it is.
  work.assessor.ready
    ?.then(() => beat(work, id, lock.key))
    .catch((error) => work.log.debug({ event: 'beat_failed', err: error }))
  opened.use(openWatch(work))
  opened.use(openRounds(deliveries, work.log))
  let stopping = false
  const queueDied = runner.promise.then(
    () => (stopping ? new Promise<never>(() => {}) : Promise.reject(new Error('the queue stopped by itself'))),
    (error) => (stopping ? new Promise<never>(() => {}) : Promise.reject(error)),
  )
  queueDied.catch(() => {})
  const scanner = openScanner(work)
  opened.defer(async () => {
    stopping = true
    halt.abort()
    // In parallel: each may take all the time that the process has left, and none starts anything new.
    await Promise.all([
      drain(runner, work.log),
      work.slowWork.drain(),
      deliveries[Symbol.asyncDispose](),
      scanner[Symbol.asyncDispose](),
    ])
  })
  const closing = opened.move()
  return { died: queueDied, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

/**
 * Starts taking jobs, and obeys the presence of this process until disposed: a drain closes the runner, as at the end of the
 * process, and it is opened again when the operator wants the process to take jobs again. The process itself keeps running.
 */
export async function openDrainableRunner(work: Work, presence: Pick<Presence, 'follow'>): Promise<Runner> {
  const died = Promise.withResolvers<never>()
  died.promise.catch(() => {})
  let runner: Runner | undefined
  const begin = async () => {
    runner = await openRunner(work)
    runner.died.catch(died.reject)
  }
  await begin()
  const following = presence.follow(async (drains) => {
    work.log.info({ event: drains ? 'drain_asked' : 'resume_asked' })
    if (drains) {
      const stopping = runner
      runner = undefined
      await stopping?.[Symbol.asyncDispose]()
    } else if (!runner) await begin()
  })
  return {
    died: died.promise,
    async [Symbol.asyncDispose]() {
      await following[Symbol.asyncDispose]()
      await runner?.[Symbol.asyncDispose]()
    },
  }
}

/** Ends before graphile-worker has stopped when that takes too long: its own `kill` does nothing once it was asked to stop. */
async function drain(runner: Awaited<ReturnType<typeof run>>, log: Logger) {
  const stopped = runner.stop('asked to stop').catch((error) => log.warn({ event: 'drain_failed', err: error }))
  const { promise: killed, resolve } = Promise.withResolvers<void>()
  const kill = setTimeout(resolve, DRAIN_MS.kill)
  await Promise.race([stopped, killed.then(() => log.error({ event: 'drain_timeout' }))])
  clearTimeout(kill)
}

/**
 * The lock whose end shows others that this worker has died. When its connection is lost while the worker is alive, the
 * worker reports that at once on any connection, and takes the lock again, both within GRACE_SECONDS.
 */
function openWorkerLock(work: Work, poolId: Promise<string>): Promise<SessionLock> {
  const { log } = work
  return openSessionLock(work.directUrl, {
    async onRenewed(key, query) {
      const known = await query(RENEW, [key, await poolId])
      log.info({ event: 'worker_lock_renewed' })
      if (known === 0) takenForDead(work)
    },
    onLost(error) {
      log.warn({ event: 'worker_lock_lost', err: error ?? new Error('the connection was closed') })
      // If this write fails, the renewal of the lock reports the same.
      void poolId.then((id) => renounceLock(work, id)).catch(() => {})
    },
  })
}

function takenForDead({ log, liveness }: Work) {
  log.error({ event: 'taken_for_dead' })
  liveness.lose()
}

/** Beats until disposed. A database error is logged, and the next beat tries again. */
function openPulse(work: Work, poolId: string, lock: SessionLock): AsyncDisposable {
  const outage = openOutage(work.log, 'beat')
  const pulse = async () => {
    if (await beat(work, poolId, lock.key)) takenForDead(work)
    outage.worked()
  }
  return every(BEAT_SECONDS * 1000, pulse, outage.failed)
}

/** Watches the other workers until disposed. */
function openWatch(work: Work): AsyncDisposable {
  const outage = openOutage(work.log, 'watch of workers')
  let looks = 0
  const look = async () => {
    const rescues = looks++ % WATCH.beatsEvery === 0 || (await seesLostLock(work))
    if (!rescues) return
    await rescue(work)
    outage.worked()
  }
  return every(WATCH.ms, look, outage.failed)
}

/** Logs the queue's own messages without payloads: the message about a failed job contains its whole payload. */
function queueLogger(log: Logger) {
  return new QueueLogger((scope) => (level, message, meta) => {
    // This warning asks for a connection per job; these jobs hold none while they run.
    if (message.includes('having maxPoolSize')) return
    if (level === 'debug' || (level === 'info' && !log.isLevelEnabled('debug'))) return
    const error = meta?.error
    const line = { event: 'queue', scope: scope.label, ...(error instanceof Error ? { err: error } : {}) }
    log[level === 'warning' ? 'warn' : level === 'error' ? 'error' : 'debug'](line, message)
  })
}
