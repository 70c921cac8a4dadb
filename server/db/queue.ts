// The connection pool graphile-worker works with. Its own, apart from slonik's: one of its clients listens for good.
import pg from 'pg'

/** @param onError told of connections that broke; pg replaces them by itself */
export function openQueuePool(url: string, maxConnections: number, onError: (error: Error) => void): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: maxConnections, application_name: 'countersign worker' })
  pool.on('error', onError)
  pool.on('connect', (client) => client.on('error', onError))
  return pool
}
