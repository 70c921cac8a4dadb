// The connection pool of graphile-worker. It is apart from slonik's, because one of its clients listens all the time.
import pg from 'pg'

/** @param onError gets the error of a connection that broke; pg replaces the connection */
export function openQueuePool(url: string, maxConnections: number, onError: (error: Error) => void): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: maxConnections, application_name: 'countersign worker' })
  pool.on('error', onError)
  pool.on('connect', (client) => client.on('error', onError))
  return pool
}
