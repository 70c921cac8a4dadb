// The connection pool of graphile-worker. It is apart from slonik's, because one of its clients listens all the time.
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { isOutOfRoom } from '../errors.ts'
import { openBatcher } from './batch.ts'
import { isConnectionLoss } from './connection-loss.ts'

/**
 * graphile-worker repeats the end of a job only after errors with some codes, and this one it repeats soonest. Any other error there
 * is a rejection that no one handles and ends the process, as a lost connection would.
 */
const REPEATED = '40001'

/**
 * The statements that look up the numbers of the tasks, once in a process: one that adds what is missing, and one that reads. graphile-worker
 * keeps their outcome, also an error: a worker whose look-up failed would live on and never take a job. And it repeats no statement more
 * than a hundred times. So they are repeated here, until they succeed or the worker is to stop.
 */
const LOOK_UP = /\._private_tasks as tasks/

/** How the look-up of the tasks goes. */
export interface LookUp {
  /** Aborts when the worker is to stop: then nothing is repeated any more. */
  stopping: AbortSignal
  /** Called at each failure, and at each success. */
  failed(error: unknown): void
  worked(): void
  /** Between two attempts; tests replace it. Rejects when the signal aborts. */
  pause?(ms: number, signal: AbortSignal): Promise<unknown>
}

/** Milliseconds from one attempt of a look-up to the next; each time twice as long, up to the second number. */
const PAUSES_MS = [100, 5000] as const

/** graphile-worker ends each job that succeeded by a statement of its own with this name. */
const COMPLETION = /^complete_job\//

/**
 * Ends many jobs at once, without waiting for the disk: a job whose end a crash of the database loses is done again, as after the
 * crash of a worker, and finds its work done.
 */
const COMPLETE = `
  with relaxed as materialized (select set_config('synchronous_commit', 'off', true))
  delete from graphile_worker._private_jobs using relaxed where id = any($1::bigint[])`

interface CompletedJob {
  /** The connection that graphile-worker took for it. */
  query: pg.ClientBase['query']
  id: unknown
}

/** On the connection of the first: one more might not be free while each of the jobs holds one. */
async function completeJobs(jobs: CompletedJob[]) {
  await jobs[0]?.query({ name: 'complete_jobs', text: COMPLETE, values: [jobs.map(({ id }) => id)] })
  return jobs.map(() => ({ rows: [], rowCount: 1 }))
}

/**
 * A lost connection, or a database without room, is an error with the code REPEATED and the original as its cause. To end a job
 * twice changes nothing: its row names the pool that holds it.
 * @param onError gets the error of a connection that broke; pg replaces the connection
 * @param lookUp of a worker: the look-up of the tasks, and every connection until it has succeeded, are waited for
 */
export function openQueuePool(
  url: string,
  maxConnections: number,
  onError: (error: unknown) => void,
  lookUp?: LookUp,
): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: maxConnections, application_name: 'countersign worker' })
  pool.on('error', onError)
  let isLookedUp = lookUp === undefined
  const connect = pool.connect.bind(pool)
  pool.connect = repeatable(connect, (error) =>
    isLookedUp || !lookUp ? rethrow(error) : persist(lookUp, error, () => connect()),
  )
  const completions = openBatcher(completeJobs, { batch: 256, queue: Number.POSITIVE_INFINITY })
  pool.on('connect', (client) => {
    client.on('error', onError)
    const query = client.query.bind(client)
    const send = (...given: unknown[]): unknown => {
      const id = completedJobOf(given[0])
      return id === undefined ? Reflect.apply(query, undefined, given) : completions.add({ query, id })
    }
    client.query = repeatable(send as typeof query, async (error, given) => {
      if (!lookUp || !LOOK_UP.test(textOf(given[0]))) return rethrow(error)
      // By any connection: this one may be lost.
      const answer = await persist(lookUp, error, () => pool.query(...(given as [pg.QueryConfig])))
      isLookedUp = true
      return answer
    })
  })
  return pool
}

/** Repeats what failed until it succeeds. Throws when the worker is to stop. */
async function persist<T>(
  { stopping, failed, worked, pause = sleep }: LookUp,
  error: unknown,
  attempt: () => Promise<T>,
) {
  let latest = error
  for (let ms: number = PAUSES_MS[0]; ; ms = Math.min(2 * ms, PAUSES_MS[1])) {
    failed(latest)
    await pause(ms, stopping).catch(() => {})
    if (stopping.aborted) throw repeated(latest)
    try {
      const answer = await attempt()
      worked()
      return answer
    } catch (again) {
      latest = again
    }
  }
}

const sleep = (ms: number, signal: AbortSignal) => setTimeout(ms, undefined, { signal })

/** Keeps the overloads of pg; those with a callback answer no promise and stay as they are. */
function repeatable<Call>(
  call: Call & ((...given: never[]) => unknown),
  fail: (error: unknown, given: unknown[]) => unknown,
): Call {
  const wrapped = (...given: never[]) => {
    const answer = call(...given)
    return answer instanceof Promise ? answer.catch((error) => fail(error, given)) : answer
  }
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
  if (typeof query !== 'object' || query === null || !('name' in query) || !('values' in query)) return undefined
  return COMPLETION.test(String(query.name)) && Array.isArray(query.values) ? query.values[0] : undefined
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
