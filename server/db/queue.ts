// The connection pool of graphile-worker. It is separate from slonik's pool, because one of its clients listens all the
// time.
import { Socket } from 'node:net'
import { setTimeout as sleepFor } from 'node:timers/promises'
import pg from 'pg'
import { isConnectionLoss } from './connection-loss.ts'

/** What a worker tells its pool, and learns from it. */
export interface Patience {
  /** Aborts when the worker has to stop. After that nothing is repeated. */
  stopping: AbortSignal
  /** Called at each failure that is followed by a repetition, and at each success of a repetition. */
  failed(error: unknown): void
  worked(): void
  /** Between two attempts; tests replace it. Rejects when the signal aborts. */
  pause?(ms: number, signal: AbortSignal): Promise<unknown>
}

/** Milliseconds between two attempts: the first pause, which doubles each time, and the longest pause. */
const PAUSES_MS = [50, 1000] as const

/**
 * How a worker tells graphile-worker to store the ends of its jobs: those that end within so many milliseconds in one statement, and a
 * worker that stops waits for them. Stored one by one, an error would be a rejection that no one handles. graphile-worker 0.18 repeats
 * no batch that fails, and stops (graphile/worker#636); the pool of a worker repeats it, so graphile-worker meets no such failure.
 */
export const JOB_ENDS = { completeJobBatchDelay: 10, failJobBatchDelay: 0 } as const

export interface QueuePool extends pg.Pool {
  /** Breaks every connection off, also those that are being made: every query that waits for an answer fails. */
  cut(): void
}

/**
 * The pool of a worker outlasts the database. It repeats a failed connect or statement until it succeeds or the worker has to stop,
 * because graphile-worker repeats few errors and nothing more than a hundred times: it keeps a failed look-up of its tasks for ever,
 * and would then take no job. Every statement of graphile-worker may run twice. It names the job's row, and the pool that holds it where
 * that matters. Statements in a transaction are not repeated, nor what graphile-worker sends on the connection that listens.
 * @param onError gets the error of a connection that broke; pg replaces the connection
 * @param patience given by a worker
 */
export function openQueuePool(
  url: string,
  maxConnections: number,
  onError: (error: unknown) => void,
  patience?: Patience,
): QueuePool {
  const sockets = new Set<Socket>()
  const pool = new pg.Pool({
    connectionString: url,
    max: maxConnections,
    application_name: 'countersign worker',
    stream: () => {
      const socket = new Socket()
      sockets.add(socket)
      return socket.once('close', () => sockets.delete(socket))
    },
  })
  pool.on('error', onError)
  pool.on('connect', (client) => client.on('error', onError))
  if (patience) repeatOn(pool, patience)
  return Object.assign(pool, {
    cut() {
      for (const socket of sockets) socket.destroy()
    },
  })
}

/** graphile-worker asks with a callback for the connection that listens, and for all others with a promise. */
function repeatOn(pool: pg.Pool, patience: Patience): void {
  const connect = pool.connect.bind(pool)
  const patient = async () => repeatingClient(patience, await repeat(patience, () => connect()), () => connect())
  pool.connect = ((whenConnected?: Parameters<typeof connect>[0]) =>
    // The cast is safe: each form answers what pg's overload for it answers.
    whenConnected ? connect(whenConnected) : patient()) as typeof pool.connect
}

/** A client whose statements are repeated, on another connection if theirs is lost. It has what graphile-worker uses: `query` and `release`. */
function repeatingClient(
  patience: Patience,
  first: pg.PoolClient,
  connect: () => Promise<pg.PoolClient>,
): pg.PoolClient {
  // Undefined between the loss of a connection and the next one: a lost client that is kept would take its place in the pool.
  let held: pg.PoolClient | undefined = first
  const query = (...given: unknown[]): Promise<unknown> => {
    if (held && /^[TE]$/.test(held.getTransactionStatus() ?? '')) return Reflect.apply(held.query, held, given)
    return repeat(patience, async () => {
      held ??= await connect()
      const client = held
      try {
        return await Reflect.apply(client.query, client, given)
      } catch (error) {
        if (isLost(error)) {
          held = undefined
          client.release(true)
        }
        throw error
      }
    })
  }
  const release = (destroy?: boolean) => held?.release(destroy)
  return Object.assign(Object.create(first), { query, release })
}

/** Repeats a failed attempt until it succeeds. Throws an error that comes again each time, and any error when the worker has to stop. */
async function repeat<T>({ stopping, failed, worked, pause = sleep }: Patience, attempt: () => Promise<T>) {
  for (let ms: number = PAUSES_MS[0], failures = 0; ; ms = Math.min(2 * ms, PAUSES_MS[1]), failures++) {
    try {
      const answer = await attempt()
      if (failures > 0) worked()
      return answer
    } catch (error) {
      if (comesAgain(error)) throw error
      if (!stopping.aborted) {
        failed(error)
        await pause(ms, stopping).catch(() => {})
      }
      if (stopping.aborted) throw new Error('The worker stops, and the database is away.', { cause: error })
    }
  }
}

const sleep = (ms: number, signal: AbortSignal) => sleepFor(ms, undefined, { signal })

/**
 * Of a value or a row that Postgres refuses, and of a queue that has no tables yet, which graphile-worker learns by asking for its
 * migrations, and then makes them. Any other table that is missing may come back, as in a restore.
 */
function comesAgain(error: unknown): boolean {
  if (!(error instanceof Error && 'code' in error)) return false
  return /^2[23]...$/.test(String(error.code)) || (error.code === '42P01' && /\bmigrations\b/.test(error.message))
}

/** pg's own errors of a closed connection have no code. */
function isLost(error: unknown): boolean {
  if (isConnectionLoss(error)) return true
  if (!(error instanceof Error)) return false
  return ('code' in error && error.code === '57P01') || /^Connection terminated|is not queryable$/.test(error.message)
}

/** Milliseconds that a connection has for its end, and that the pool has in all. */
const END_MS = { connection: 1000, pool: 3000 }

/**
 * Ends the pool, whose users have stopped. What is still under way on it then has a second; a frozen server gets no more. A connection
 * that is not given back even then would keep the pool from its end for ever, so it is left.
 */
export async function endQueuePool(pool: QueuePool): Promise<void> {
  const cutting = setInterval(() => pool.cut(), END_MS.connection)
  const left = new AbortController()
  try {
    await Promise.race([pool.end(), sleep(END_MS.pool, left.signal).catch(() => {})])
  } finally {
    left.abort()
    clearInterval(cutting)
    // The end of the pool does not wait for that of its connections, and each keeps the process alive.
    setTimeout(() => pool.cut(), END_MS.connection).unref()
  }
}
