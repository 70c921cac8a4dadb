// Lets a caller wait for a request to move on. Workers announce finished requests on a channel after their commit, many
// at a time; each API process listens once. An announcement is only a hint: it can be lost with the connection, so every
// waiter also looks for itself once a second, and what it finds in the table is what counts.
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from '../telemetry.ts'
import { type Batcher, openBatcher } from './batch.ts'
import { type Database, nothing, sql } from './pool.ts'

const CHANNEL = 'countersign_finished'
const FALLBACK_MS = 1000
const RECONNECT_MS = 1000
/** NOTIFY takes 8,000 bytes; an id and its comma are 37. */
const IDS_PER_MESSAGE = 200

export interface Waiting extends AsyncDisposable {
  /** Resolves when the id was announced, after a second (or `ms`), or when the signal aborts; look at the row then. */
  nextSign(id: string, signal: AbortSignal, ms?: number): Promise<void>
}

/** Opens the one listening connection of an API process; it comes back by itself when it breaks. */
export function openWaiting(url: string, log: Logger): Waiting {
  const waiters = new Map<string, Set<() => void>>()
  const closing = new AbortController()
  const listening = listen(url, log, closing.signal, (ids) => {
    for (const id of ids) for (const wake of waiters.get(id) ?? []) wake()
  })
  return {
    async nextSign(id, signal, ms = FALLBACK_MS) {
      const sign = new AbortController()
      const wake = () => sign.abort()
      const group = waiters.get(id) ?? new Set()
      waiters.set(id, group.add(wake))
      try {
        await pause(ms, undefined, { signal: AbortSignal.any([sign.signal, signal, closing.signal]) })
      } catch {
        // Woken, or told to stop waiting: the caller looks either way.
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

async function listen(url: string, log: Logger, closing: AbortSignal, announce: (ids: string[]) => void) {
  while (!closing.aborted) {
    const client = new pg.Client({ connectionString: url, application_name: 'countersign waiting' })
    const { promise: lost, resolve: lose } = Promise.withResolvers<void>()
    const stop = () => lose()
    client.on('error', stop)
    client.on('end', stop)
    client.on('notification', ({ payload }) => announce(payload?.split(',') ?? []))
    closing.addEventListener('abort', stop, { once: true })
    try {
      await client.connect()
      await client.query(`listen ${CHANNEL}`)
      await lost
    } catch (error) {
      log.warn({ event: 'listen_failed', err: error })
    }
    closing.removeEventListener('abort', stop)
    await client.end().catch(() => {})
    if (!closing.aborted) await pause(RECONNECT_MS, undefined, { signal: closing }).catch(() => {})
  }
}

/** The workers' side. `add` never rejects: a lost announcement costs a waiter a second and nothing else. */
export function openAnnouncements(db: Database, log: Logger): Batcher<string, void> {
  return openBatcher<string, void>(
    async (ids) => {
      try {
        await db.query(sql.type(nothing)`select from pg_notify(${CHANNEL}, ${ids.join(',')})`)
      } catch (error) {
        log.warn({ event: 'announce_failed', err: error })
      }
      return ids.map(() => undefined)
    },
    { batch: IDS_PER_MESSAGE, queue: Number.POSITIVE_INFINITY },
  )
}
