// Bounds the connections of a web process. When there are too many, one on which nothing happens makes room for the new one, taken
// from the address that has most. So a single address cannot take them all, and a new caller is served.
import { readFileSync } from 'node:fs'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { addressKey } from '../accounts/address-key.ts'
import type { Logger } from '../telemetry.ts'

/** Of one process. A call that waits holds one, and at most `waiting_calls_per_process` do. An idle one costs some 20 kB. */
const MAX_CONNECTIONS = 4096
/** Longer than any call may wait. An answer that takes longer waits for a caller who does not read it. */
const MAX_ANSWER_MS = 60_000
const LOG_EVERY_MS = 60_000

export interface Connections {
  /** Closes the connections on which no request has begun, as browsers open ahead of time. */
  closeUnused(): void
}

interface Connection {
  readonly socket: Socket
  readonly holder: string
  /** The last request, whose answer may have been sent. */
  request: IncomingMessage | undefined
  /** Answers that are not sent. More than one where requests came ahead of answers. */
  open: number
  /** Since when it is idle, or has an answer to send, by the clock. */
  since: number
}

/**
 * To be called before the server listens. Behind a proxy the address of a connection is the proxy's, with TRUST_PROXY too:
 * headers belong to requests, and connections of a proxy carry those of many callers. The rule then only chooses among proxies.
 * @param limits `maxConnections`: at a time; `now`: a clock in milliseconds
 */
export function boundConnections(
  server: Server,
  log: Pick<Logger, 'warn'>,
  limits: { maxConnections?: number; now?: () => number } = {},
): Connections {
  const { maxConnections = affordableConnections(), now = () => performance.now() } = limits
  const connections = new Map<Socket, Connection>()
  /** The same by address. */
  const holders = new Map<string, Set<Connection>>()
  let closed = 0
  let loggedAt = Number.NEGATIVE_INFINITY

  server.on('connection', (socket) => {
    const holder = addressKey(socket.remoteAddress ?? '')
    const connection: Connection = { socket, holder, request: undefined, open: 0, since: now() }
    connections.set(socket, connection)
    holders.set(holder, (holders.get(holder) ?? new Set()).add(connection))
    socket.once('close', () => forget(connection))
    if (connections.size > maxConnections) makeRoom(connection)
  })

  function forget(connection: Connection) {
    if (!connections.delete(connection.socket)) return
    const held = holders.get(connection.holder)
    held?.delete(connection)
    if (held?.size === 0) holders.delete(connection.holder)
  }

  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const connection = connections.get(request.socket)
    if (!connection) return
    connection.request = request
    connection.open++
    connection.since = now()
    response.once('close', () => {
      connection.open--
      connection.since = now()
    })
  })

  function makeRoom(newest: Connection) {
    const dispensable = findDispensable([...holders.values()], now()) ?? newest
    // At once, because more may come before its event `close`.
    forget(dispensable)
    dispensable.socket.destroy()
    closed++
    if (now() - loggedAt < LOG_EVERY_MS) return
    loggedAt = now()
    log.warn({ event: 'connections_full', connections: maxConnections, closed })
    closed = 0
  }

  return {
    closeUnused() {
      for (const { socket, request } of connections.values()) if (!request) socket.destroy()
    },
  }
}

/** Of the addresses with most connections, else of all. Undefined where each has an answer to send. */
function findDispensable(holders: readonly ReadonlySet<Connection>[], now: number): Connection | undefined {
  const most = holders.reduce((most, { size }) => Math.max(most, size), 0)
  const largest = holders.filter(({ size }) => size === most)
  return mostDispensable(largest, now) ?? mostDispensable(holders, now)
}

function mostDispensable(holders: readonly ReadonlySet<Connection>[], now: number): Connection | undefined {
  let found: Connection | undefined
  let rank = Number.POSITIVE_INFINITY
  for (const connections of holders)
    for (const connection of connections) {
      const its = rankOf(connection, now)
      if (its > rank || its === Number.POSITIVE_INFINITY) continue
      if (its === rank && found && found.since <= connection.since) continue
      found = connection
      rank = its
    }
  return found
}

function rankOf({ open, request, since }: Connection, now: number): number {
  if (open === 0) return 0
  if (!request?.complete) return 1
  return now - since > MAX_ANSWER_MS ? 2 : Number.POSITIVE_INFINITY
}

/** A quarter of the files that the process may have open stays for the database, Redis and all else. */
function affordableConnections(): number {
  return Math.min(MAX_CONNECTIONS, Math.floor(allowedFiles() * 0.75))
}

function allowedFiles(): number {
  try {
    const [, soft] = readFileSync('/proc/self/limits', 'utf8').match(/^Max open files\s+(\d+)/m) ?? []
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    // Not Linux.
    return Number.POSITIVE_INFINITY
  }
}
