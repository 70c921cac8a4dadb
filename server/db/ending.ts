// The end of connections that pg's own client makes.
import type pg from 'pg'

/** Longest wait for the server's end of a connection, in milliseconds. */
const CLOSE_TIMEOUT_MS = 1000

/**
 * Ends a connection. pg waits for the server to close it, which a server that is frozen or cut off never does; then it is cut. Never
 * rejects.
 */
export async function endClient(client: pg.Client): Promise<void> {
  const cutting = setTimeout(() => cut(client), CLOSE_TIMEOUT_MS)
  try {
    await client.end()
  } catch {
    // It is over in any case.
  } finally {
    clearTimeout(cutting)
  }
}

/** Breaks a connection off: every query that waits for an answer on it fails. */
function cut(client: pg.Client): void {
  // pg has no method for it, and its own pool reaches for the socket in this way, too.
  client.connection.stream.destroy()
}
