// A lock that exists as long as its connection, and so shows whether a process is alive. When a process is killed, Postgres
// ends its session within milliseconds, and with it the lock. So others detect the death without waiting until its last
// beat is too old.
//
// Behind a pooler a connection is not a session: the lock could stay with the pooler, or end while the process is alive. So
// no lock is taken there.
import { randomInt } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { endClient } from './ending.ts'

/** First key of the advisory locks of workers; the second names the worker. */
export const WORKER_LOCKS = 8_402_003
const RETRY_MS = 200
const CONNECT_MS = 3000
/** How long the first lock is tried for, so that a server that is slow or restarts just then does not end a worker's start. */
const FIRST_MS = 30_000
/** Longest wait for the answer to a query of this connection; each is one row. */
const QUERY_MS = 3000

export interface SessionLock extends AsyncDisposable {
  /** The second key while the lock is held; null while it is not. */
  readonly key: number | null
}

export interface SessionLockOptions {
  /** Called each time the lock was taken again, with a function that writes on the connection that holds the lock. */
  onRenewed: (key: number, query: (text: string, values: unknown[]) => Promise<number>) => Promise<void>
  /**
   * Called when the connection is lost, and with it the lock. The lock is taken again, under another key, as soon as
   * possible.
   */
  onLost: (error: unknown) => void
}

interface Held {
  client: pg.Client
  key: number
}

/**
 * Takes a lock with a new key. Behind a pooler it resolves without a lock. Rejects if the database cannot be reached for half a
 * minute.
 */
export async function openSessionLock(url: string, { onRenewed, onLost }: SessionLockOptions): Promise<SessionLock> {
  const closing = new AbortController()
  let held: Held | null = null
  let renewing: Promise<void> | null = null

  /** Answers what is held from then on; null behind a pooler. */
  async function take(): Promise<Held | null> {
    const client = new pg.Client({
      connectionString: url,
      application_name: 'countersign lock',
      keepAlive: true,
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: QUERY_MS,
    })
    const lost = (error?: unknown) => {
      if (held?.client !== client) return
      held = null
      if (closing.signal.aborted) return
      onLost(error)
      renewing ??= renew().finally(() => {
        renewing = null
      })
    }
    client.on('error', lost).on('end', lost)
    try {
      await client.connect()
      const key = await lock(client)
      if (key !== null) held = { client, key }
      else await endClient(client)
      return held
    } catch (error) {
      client.end().catch(() => {})
      throw error
    }
  }

  async function renew() {
    while (!closing.signal.aborted && !held) {
      try {
        const taken = await take()
        if (!taken) return
        const { client, key } = taken
        await onRenewed(key, async (text, values) => (await client.query(text, values)).rowCount ?? 0).catch(
          (error) => {
            held = null
            client.end().catch(() => {})
            throw error
          },
        )
      } catch {
        await pause(RETRY_MS, undefined, { signal: closing.signal }).catch(() => {})
      }
    }
  }

  async function takeFirst() {
    const deadline = performance.now() + FIRST_MS
    for (;;) {
      try {
        return await take()
      } catch (error) {
        if (performance.now() > deadline) throw error
        await pause(RETRY_MS)
      }
    }
  }

  await takeFirst()
  return {
    get key() {
      return held?.key ?? null
    },
    async [Symbol.asyncDispose]() {
      closing.abort()
      await renewing
      if (held) await endClient(held.client)
    },
  }
}

/** Answers the second key of a lock that is now this session's; null behind a pooler. */
async function lock(client: pg.Client): Promise<number | null> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() pid')
  // A pooler gives its clients other process ids than Postgres. The types of pg leave the id out.
  if (!('processID' in client) || rows[0]?.pid !== client.processID) return null
  // With these settings the server soon probes a silent client (TCP keep-alive), and never ends this session for being
  // idle.
  await client.query(`select set_config('tcp_keepalives_idle', '3', false), set_config('tcp_keepalives_interval', '2', false),
    set_config('tcp_keepalives_count', '3', false), set_config('idle_session_timeout', '0', false)`)
  for (;;) {
    const key = randomInt(1, 2 ** 31)
    const { rows: taken } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1, $2) taken', [
      WORKER_LOCKS,
      key,
    ])
    if (taken[0]?.taken) return key
  }
}
