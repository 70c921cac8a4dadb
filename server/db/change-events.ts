// Change events by LISTEN and NOTIFY: workers notify a channel of finished requests after their commit, many at a time, and
// each API process listens on one connection. An event is only a hint and is lost with the connection, so every waiter also
// reads its row once a second. The row decides, not the event.
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { type Logger, openOutage } from '../telemetry.ts'
import { type Batcher, openBatcher } from './batch.ts'
import { endClient } from './ending.ts'
import { type Database, nothing, relaxed, sql } from './pool.ts'

const CHANNEL = 'countersign_finished'
const FALLBACK_MS = 1000
const RECONNECT_MS = 1000
const CONNECT_MS = 10_000
/** NOTIFY takes 8,000 bytes; an id and its comma are 37. */
const IDS_PER_MESSAGE = 200

export interface ChangeListener extends AsyncDisposable {
  /** Resolves at an event for this id, after `ms` (a second without), or when the signal aborts; read the row then. */
  waitForChange(id: string, signal: AbortSignal, ms?: number): Promise<void>
}

/** Opens the one listening connection of an API process. A connection that breaks is opened again. */
export function openChangeListener(url: string, log: Logger): ChangeListener {
  const waiters = new Map<string, Set<() => void>>()
  const closing = new AbortController()
  const listening = listen(url, log, closing.signal, (ids) => {
    for (const id of ids) for (const wake of waiters.get(id) ?? []) wake()
  })
  return {
    async waitForChange(id, signal, ms = FALLBACK_MS) {
      const changed = new AbortController()
      const wake = () => changed.abort()
      const group = waiters.get(id) ?? new Set()
      waiters.set(id, group.add(wake))
      try {
        await pause(ms, undefined, { signal: AbortSignal.any([changed.signal, signal, closing.signal]) })
      } catch {
        // An event or an abort: the caller reads the row either way.
      } finally {
        group.delete(wake)
        if (group.size === 0) waiters.delete(id)
      }
    },
    async [Symbol.asyncDispose]() {
      closing.abort()
      await listening
    },
  }
}

async function listen(url: string, log: Logger, closing: AbortSignal, onEvent: (ids: string[]) => void) {
  const outage = openOutage(log, 'change events')
  while (!closing.aborted) {
    const client = new pg.Client({
      connectionString: url,
      application_name: 'countersign waiting',
      connectionTimeoutMillis: CONNECT_MS,
      keepAlive: true,
    })
    const { promise: lost, resolve: lose } = Promise.withResolvers<void>()
    const { promise: stopped, resolve: stop } = Promise.withResolvers<void>()
    client.on('error', () => lose())
    client.on('end', () => lose())
    client.on('notification', ({ payload }) => onEvent(payload?.split(',') ?? []))
    const onAbort = () => stop()
    closing.addEventListener('abort', onAbort, { once: true })
    try {
      const listening = client.connect().then(() => client.query(`listen ${CHANNEL}`))
      await Promise.race([listening, stopped])
      if (!closing.aborted) outage.worked()
      await Promise.race([lost, stopped])
    } catch (error) {
      outage.failed(error)
    }
    closing.removeEventListener('abort', onAbort)
    await endClient(client)
    if (!closing.aborted) await pause(RECONNECT_MS, undefined, { signal: closing }).catch(() => {})
  }
}

/** The workers' side. `add` takes the id of a request and never rejects: a lost event costs a waiter a second and no more. */
export function openChangeNotifier(db: Database, log: Logger): Batcher<string, void> {
  return openBatcher<string, void>(
    async (ids) => {
      try {
        // A notification has a commit of its own, which would wait for the disk.
        await db.query(sql.prepared('notify_finished', nothing)`
          with ${relaxed} select from relaxed, pg_notify(${CHANNEL}, ${ids.join(',')})`)
      } catch (error) {
        log.warn({ event: 'announce_failed', err: error })
      }
      return ids.map(() => undefined)
    },
    { batch: IDS_PER_MESSAGE, queue: Number.POSITIVE_INFINITY },
  )
}
