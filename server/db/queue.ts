// The connection pool of graphile-worker. It is separate from slonik's pool, because one of its clients listens all the
// time.
import { Socket } from 'node:net'
import { setTimeout as sleepFor } from 'node:timers/promises'
import pg from 'pg'
import { isOutOfRoom } from '../errors.ts'
import { openBatcher } from './batch.ts'
import { isConnectionLoss } from './connection-loss.ts'
import { singleFlight } from './single-flight.ts'

/**
 * graphile-worker repeats the statement that ends a job only after errors with certain codes; after this code it repeats
 * soonest. Any other error there, such as a lost connection, is an unhandled rejection, which ends the process.
 */
const REPEATED = '40001'

/**
 * Matches the two statements that look up the ids of the tasks, once per process: one adds missing tasks, one reads all.
 * graphile-worker caches their outcome, even an error, so a worker whose look-up failed would stay alive and never take a
 * job. It also repeats no statement more than a hundred times. So this file repeats them until they succeed or the worker
 * has to stop.
 */
const LOOK_UP = /\._private_tasks as tasks/

/** What the pool asks of its worker, and reports to it. */
export interface LookUp {
  /** Aborts when the worker has to stop. After that nothing is repeated. */
  stopping: AbortSignal
  /** Called at each failure of the look-up, and at each success of a repeated one. */
  failed(error: unknown): void
  worked(): void
  /** Between two attempts; tests replace it. Rejects when the signal aborts. */
  pause?(ms: number, signal: AbortSignal): Promise<unknown>
}

/** Milliseconds between two attempts of a look-up: the first pause, which doubles each time, and the longest pause. */
const PAUSES_MS = [100, 5000] as const
/** The same for attempts to connect after a loss. */
const CONNECT_PAUSES_MS = [50, 1000] as const

/** graphile-worker ends each successful job with a statement of this name. */
const COMPLETION = /^complete_job\//

/**
 * Ends many jobs at once, without waiting for the disk. If a crash of the database loses the end of a job, the job runs
 * again, as after the crash of a worker, and finds its work done.
 */
const COMPLETE = `
  with relaxed as materialized (select set_config('synchronous_commit', 'off', true))
  delete from graphile_worker._private_jobs using relaxed where id = any($1::bigint[])`

interface CompletedJob {
  /** The connection that graphile-worker took for it. */
  query: pg.ClientBase['query']
  id: unknown
}

/** graphile-worker returns each failed job to the queue with a statement of this name. Its values are the pool and a list in JSON. */
const FAILURE = /^fail_job\//
/** The start of the message of an InterruptedError. */
const INTERRUPTED = 'The database was away: '

/** A job throws this error if it failed because the database was away. The queue then runs the job again soon. */
export class InterruptedError extends Error {
  override name = 'InterruptedError'
  constructor(cause: unknown) {
    super(`${INTERRUPTED}${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

/**
 * Returns interrupted jobs to the queue. The attempt does not count, and the pause is a quarter of the age of the job, so that a slow
 * database does not make a job fetch its page or ask the model every second. For a job older than ten minutes the attempt counts, as
 * after any other error, so that a job that itself breaks the connection is not repeated for ever.
 */
const INTERRUPT = `
  update graphile_worker._private_jobs as jobs
  set last_error = el ->> 'message', locked_by = null, locked_at = null,
      attempts = case when created_at > now() - interval '10 minutes' then greatest(0, attempts - 1) else attempts end,
      run_at = greatest(now(), run_at) + case when created_at > now() - interval '10 minutes' then (now() - created_at) / 4
                                              else exp(least(attempts, 10)) * interval '1 second' end
  from json_array_elements($2::json) as els(el)
  where id = (el ->> 'jobId')::bigint and locked_by = $1::text`

/** Uses the connection of the first job, because no other may be free while each of the jobs holds one. */
async function completeJobs(jobs: CompletedJob[]) {
  await jobs[0]?.query({ name: 'complete_jobs', text: COMPLETE, values: [jobs.map(({ id }) => id)] })
  return jobs.map(() => ({ rows: [], rowCount: 1 }))
}

export interface QueuePool extends pg.Pool {
  /** Breaks every connection off, also those that are being made: every query that waits for an answer fails. */
  cut(): void
}

/**
 * A lost connection, or a database without room, is an error with the code REPEATED and the original as its cause. Ending a job
 * twice changes nothing, because its row names the pool that holds it. The pool of a worker waits for a connection until the
 * database answers.
 *
 * graphile-worker does not wait until the end of a job is stored, and repeats a failed attempt even after the worker has stopped.
 * Once the worker has to stop, the pool therefore answers a failed connect with `stoppedClient`, which stops these repetitions.
 * @param onError gets the error of a connection that broke; pg replaces the connection
 * @param lookUp given by a worker: the pool retries the look-up of the tasks, and every connection until the look-up has
 * succeeded
 */
export function openQueuePool(
  url: string,
  maxConnections: number,
  onError: (error: unknown) => void,
  lookUp?: LookUp,
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
  let isLookedUp = lookUp === undefined
  const connect = pool.connect.bind(pool)
  // All callers share the attempts to connect.
  const reconnected = lookUp && singleFlight(() => reconnect(lookUp, connect), 0)
  pool.connect = repeatable(connect, async (error) => {
    if (pool.ending || lookUp?.stopping.aborted) return stoppedClient(error)
    if (!lookUp) return rethrow(error)
    if (!isLookedUp) return persist(lookUp, error, () => connect())
    if (error instanceof Error && isLost(error)) await reconnected?.()
    return rethrow(error)
  })
  const completions = openBatcher(completeJobs, { batch: 256, queue: Number.POSITIVE_INFINITY })
  pool.on('connect', (client) => {
    client.on('error', onError)
    const query = client.query.bind(client)
    const send = (...given: unknown[]): unknown => {
      const id = completedJobOf(given[0])
      if (id !== undefined) return completions.add({ query, id })
      const interrupted = interruptedJobsOf(given[0])
      return interrupted ? query(interrupted) : Reflect.apply(query, undefined, given)
    }
    client.query = repeatable(
      // The cast is safe: `send` takes what `query` takes, and answers what that answers. pg's overloads cannot be written for it.
      send as typeof query,
      async (error, given) => {
        if (!lookUp || !LOOK_UP.test(textOf(given[0]))) return rethrow(error)
        // Any connection may run it, because this one may be lost.
        return persist(lookUp, error, async (): Promise<unknown> => Reflect.apply(pool.query, pool, given))
      },
      (given) => {
        if (LOOK_UP.test(textOf(given[0]))) isLookedUp = true
      },
    )
  })
  return Object.assign(pool, {
    cut() {
      for (const socket of sockets) socket.destroy()
    },
  })
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

/** Resolves when a connection was made, or the worker has to stop. */
async function reconnect({ stopping, pause = sleep }: LookUp, connect: () => Promise<pg.PoolClient>): Promise<void> {
  for (let ms: number = CONNECT_PAUSES_MS[0]; !stopping.aborted; ms = Math.min(2 * ms, CONNECT_PAUSES_MS[1])) {
    await pause(ms, stopping).catch(() => {})
    try {
      return (await connect()).release()
    } catch {
      // The loop tries again.
    }
  }
}

/**
 * A worker that has to stop gets this in place of a connection. A statement that ends a job never settles: graphile-worker would
 * repeat it after one error, and not handle the rejection after another. The job stays locked by a stopped worker, and another worker
 * runs it again. Every other statement fails with an error that graphile-worker does not repeat.
 */
function stoppedClient(cause: unknown): pg.PoolClient {
  const query = (given: unknown) =>
    isEndOfJob(given)
      ? new Promise(() => {})
      : Promise.reject(new Error('The worker stops, and the database is away.', { cause }))
  return Object.assign(new pg.Client(), { query, release() {} })
}

/** Repeats a failed call until it succeeds. Throws when the worker has to stop. */
async function persist<T>(
  { stopping, failed, worked, pause = sleep }: LookUp,
  error: unknown,
  attempt: () => Promise<T>,
) {
  let latest = error
  for (let ms: number = PAUSES_MS[0]; ; ms = Math.min(2 * ms, PAUSES_MS[1])) {
    failed(latest)
    await pause(ms, stopping).catch(() => {})
    if (stopping.aborted) throw new Error('The worker stops, and its tasks were not looked up.', { cause: latest })
    try {
      const answer = await attempt()
      worked()
      return answer
    } catch (again) {
      latest = again
    }
  }
}

const sleep = (ms: number, signal: AbortSignal) => sleepFor(ms, undefined, { signal })

/** Keeps the overloads of pg; those with a callback answer no promise and stay as they are. */
function repeatable<Call>(
  call: Call & ((...given: never[]) => unknown),
  fail: (error: unknown, given: unknown[]) => unknown,
  worked: (given: unknown[]) => void = () => {},
): Call {
  const wrapped = (...given: never[]) => {
    const answer = call(...given)
    if (!(answer instanceof Promise)) return answer
    return answer.then(
      (value) => {
        worked(given)
        return value
      },
      (error) => fail(error, given),
    )
  }
  // The cast is safe: `wrapped` passes on what it is given, and `fail` answers as `call` does, or throws.
  return wrapped as Call
}

function rethrow(error: unknown): never {
  throw error instanceof Error && (isLost(error) || isOutOfRoom(error)) ? repeated(error) : error
}

function repeated(error: unknown): Error {
  const message = error instanceof Error ? error.message : String(error)
  return Object.assign(new Error(message, { cause: error }), { code: REPEATED })
}

/** Undefined for every other query. */
function completedJobOf(query: unknown): unknown {
  return COMPLETION.test(nameOf(query)) ? valuesOf(query)[0] : undefined
}

/** The statement that gives interrupted jobs back; null where the query does not fail such jobs alone. */
function interruptedJobsOf(query: unknown): pg.QueryConfig | null {
  if (!FAILURE.test(nameOf(query))) return null
  const values = valuesOf(query)
  const failures: { message: string }[] = JSON.parse(String(values[1]))
  const isInterrupted = failures.every(({ message }) => message.startsWith(INTERRUPTED))
  return isInterrupted ? { name: 'interrupt_jobs', text: INTERRUPT, values } : null
}

function isEndOfJob(query: unknown): boolean {
  return COMPLETION.test(nameOf(query)) || FAILURE.test(nameOf(query))
}

function nameOf(query: unknown): string {
  return typeof query === 'object' && query !== null && 'name' in query ? String(query.name) : ''
}

function valuesOf(query: unknown): unknown[] {
  return typeof query === 'object' && query !== null && 'values' in query && Array.isArray(query.values)
    ? query.values
    : []
}

/** Of a query as pg takes it. */
function textOf(query: unknown): string {
  if (typeof query === 'string') return query
  return typeof query === 'object' && query !== null && 'text' in query ? String(query.text) : ''
}

/** pg's own errors of a closed connection have no code. */
function isLost(error: Error): boolean {
  const code = 'code' in error ? error.code : undefined
  return isConnectionLoss(error) || code === '57P01' || /^Connection terminated|is not queryable$/.test(error.message)
}
