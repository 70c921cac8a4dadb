// The connection pool of graphile-worker. It is apart from slonik's, because one of its clients listens all the time.
import pg from 'pg'
import { isOutOfRoom } from '../errors.ts'
import { isConnectionLoss } from './connection-loss.ts'

/**
 * graphile-worker repeats the end of a job only after errors with some codes, and this one it repeats soonest. Any other error there
 * is a rejection that no one handles and ends the process, as a lost connection would.
 */
const REPEATED = '40001'

/**
 * A lost connection, or a database without room, is an error with the code REPEATED and the original as its cause. To end a job
 * twice changes nothing: its row names the pool that holds it.
 * @param onError gets the error of a connection that broke; pg replaces the connection
 */
export function openQueuePool(url: string, maxConnections: number, onError: (error: Error) => void): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: maxConnections, application_name: 'countersign worker' })
  pool.on('error', onError)
  pool.connect = repeatable(pool.connect.bind(pool))
  pool.on('connect', (client) => {
    client.on('error', onError)
    client.query = repeatable(client.query.bind(client))
  })
  return pool
}

/** Keeps the overloads of pg; those with a callback answer no promise and stay as they are. */
function repeatable<Call>(call: Call & ((...given: never[]) => unknown)): Call {
  const wrapped = (...given: never[]) => {
    const answer = call(...given)
    return answer instanceof Promise ? answer.catch(rethrow) : answer
  }
  return wrapped as Call
}

function rethrow(error: unknown): never {
  if (!(error instanceof Error) || !(isLost(error) || isOutOfRoom(error))) throw error
  throw Object.assign(new Error(error.message, { cause: error }), { code: REPEATED })
}

/** pg's own errors of a closed connection have no code. */
function isLost(error: Error): boolean {
  const code = 'code' in error ? error.code : undefined
  return isConnectionLoss(error) || code === '57P01' || /^Connection terminated|is not queryable$/.test(error.message)
}
