// Watches whether the database answers, and ends the waits of callers while it does not. A query on a socket whose other
// end is frozen or gone gets no error for minutes, and the queue of slonik's pool has no time limit. So after a silence
// this file probes the database on a separate connection, and if the probe gets no answer either, it ends every wait. While
// the database is away, work is refused at once, and a probe runs twice a second until the database is back.
//
// Time-outs of driver and pool do not replace it. Measured with 20 calls on 10 connections to a server that is frozen: here each was
// refused within 3.4 s; on a pool of slonik whose time-outs are all 4 s, none had an answer after 60 s, because a frozen server does not
// end a statement, either. A time-out of our own for each query would have to exceed the longest statement that may run, 30 s.
import { performance } from 'node:perf_hooks'
import { createPgDriverFactory } from '@slonik/pg-driver'
import pg from 'pg'
import { BackendTerminatedError, type Driver, type DriverClient, type DriverFactory } from 'slonik'
import { UnavailableError } from '../errors.ts'
import { isConnectionLoss } from './connection-loss.ts'
import type { RoomWatch } from './room.ts'

const TICK_MS = 250
/** Milliseconds of silence after which the database is probed. */
const SILENCE_MS = 1250
/**
 * Longest wait for the answer to a probe. With SILENCE_MS and two ticks it stays below the 5 s in which callers get an
 * answer.
 */
const PROBE_MS = 2000
/** Between two probes while the database is away. */
const PAUSE_MS = 500
/** A tick that is later than this shows that this process was busy. Silence then proves nothing. */
const MAX_LAG_MS = 250

export interface AvailabilityOptions {
  url: string
  /** Whether prepared statements keep their names. */
  named: boolean
  /** Connections of the pool: the number of calls that can run at the same time. */
  places: number
  /** Longest wait for a place in milliseconds; beyond it the work is refused as `capacity_exceeded`. */
  acquireTimeoutMs: number
  /** Called at each probe that finds the database away, with the reason, and when it is back. */
  onChange: (change: AvailabilityChange) => void
  /** Is informed how each call ended. */
  room?: RoomWatch
}

export type AvailabilityChange = { away: true; reason: unknown } | { away: false }

/** Something that waits for the database: a query, or a connection that is being made. */
interface Outstanding {
  since: number
  cut(reason: Error): void
}

interface Waiter {
  since: number
  resolve(): void
  reject(reason: Error): void
}

export class Availability implements Disposable {
  readonly #options: AvailabilityOptions
  readonly #timer: NodeJS.Timeout
  readonly #outstanding = new Set<Outstanding>()
  readonly #waiting = new Set<Waiter>()
  readonly #clients = new Set<WatchedClient>()
  #free: number
  #lastAnswer = performance.now()
  #expectedTick = performance.now() + TICK_MS
  #lastProbe = 0
  #probing = false
  /** Since when the database is away; null while it answers. */
  #awaySince: number | null = null

  constructor(options: AvailabilityOptions) {
    this.#options = options
    this.#free = options.places
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref()
  }

  /**
   * Runs work that needs one connection. Throws UnavailableError: while the database is away, when the connection was lost (the
   * outcome of a COMMIT under way is then unknown), and after `acquireTimeoutMs` without a place.
   */
  async run<T>(work: () => Promise<T>): Promise<T> {
    await this.#enter()
    try {
      const result = await work()
      this.#options.room?.worked()
      return result
    } catch (error) {
      this.#options.room?.failed(error)
      throw isConnectionLoss(error) ? away(error) : error
    } finally {
      this.#leave()
    }
  }

  /** The Postgres driver, whose connections this file can close. */
  driverFactory(): DriverFactory {
    return async (input) => {
      const driver = await createPgDriverFactory()(input)
      return { createClient: () => this.#connect(driver) }
    }
  }

  [Symbol.dispose]() {
    clearInterval(this.#timer)
  }

  #enter(): Promise<void> | void {
    if (this.#awaySince !== null) throw away()
    if (this.#free > 0) {
      this.#free--
      return
    }
    return new Promise((resolve, reject) => this.#waiting.add({ since: performance.now(), resolve, reject }))
  }

  #leave() {
    for (const next of this.#waiting) {
      this.#waiting.delete(next)
      next.resolve()
      return
    }
    this.#free++
  }

  async #connect(driver: Driver): Promise<DriverClient> {
    if (this.#awaySince !== null) throw lost(away())
    const connecting = driver.createClient()
    let abandoned = false
    try {
      const client = await this.#await(connecting)
      return new WatchedClient(client, this.#clients, (query) => this.#await(query), this.#options.named).client
    } catch (error) {
      abandoned = true
      this.#suspect()
      throw error
    } finally {
      // A connection that is made after the wait has ended must not stay open.
      connecting.then(
        (client) => void (abandoned && client.destroy()),
        () => {},
      )
    }
  }

  /** Waits for one answer of the database. The wait also ends when the connections are closed. */
  #await<T>(answer: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const outstanding: Outstanding = { since: performance.now(), cut: reject }
      this.#outstanding.add(outstanding)
      const answered = () => {
        this.#outstanding.delete(outstanding)
        this.#lastAnswer = performance.now()
      }
      answer.then(
        (value) => {
          answered()
          resolve(value)
        },
        (error) => {
          answered()
          reject(error)
        },
      )
    })
  }

  #tick() {
    const now = performance.now()
    const lag = now - this.#expectedTick
    this.#expectedTick = now + TICK_MS
    // Answers that have arrived in the sockets are read only after this tick.
    if (lag > MAX_LAG_MS) return
    this.#refuseTimedOut(now)
    if (this.#awaySince !== null) {
      if (now - this.#lastProbe >= PAUSE_MS) this.#probe()
      return
    }
    const [oldest] = this.#outstanding
    if (oldest && now - Math.max(oldest.since, this.#lastAnswer) > SILENCE_MS) this.#probe()
  }

  /** Waiters are in order of arrival. */
  #refuseTimedOut(now: number) {
    for (const waiter of this.#waiting) {
      if (now - waiter.since < this.#options.acquireTimeoutMs) return
      this.#waiting.delete(waiter)
      waiter.reject(busy())
    }
  }

  /** A connection could not be made: the database is asked without waiting for silence. */
  #suspect() {
    if (this.#awaySince === null) this.#probe()
  }

  #probe() {
    if (this.#probing) return
    this.#probing = true
    this.#lastProbe = performance.now()
    probe(this.#options.url, PROBE_MS)
      .then(
        () => this.#isThere(),
        (reason) => this.#isAway(reason),
      )
      .finally(() => {
        this.#probing = false
      })
  }

  #isThere() {
    this.#lastAnswer = performance.now()
    if (this.#awaySince === null) return
    this.#awaySince = null
    this.#options.onChange({ away: false })
  }

  #isAway(reason: unknown) {
    this.#awaySince ??= performance.now()
    this.#options.onChange({ away: true, reason })
    const error = away(reason)
    for (const waiter of this.#waiting) waiter.reject(error)
    this.#waiting.clear()
    // Idle connections may be as broken as busy ones.
    for (const client of this.#clients) client.end(lost(error))
    for (const { cut } of this.#outstanding) cut(lost(error))
    this.#outstanding.clear()
  }
}

/** A connection of the pool. After `end` every query on it fails at once. */
class WatchedClient {
  readonly client: DriverClient
  #ended: Error | undefined

  constructor(
    inner: DriverClient,
    all: Set<WatchedClient>,
    wait: <T>(answer: Promise<T>) => Promise<T>,
    named: boolean,
  ) {
    all.add(this)
    // slonik stops listening while it still waits for the end of a connection, and what the server says then would end the process.
    inner.on('error', () => {})
    inner.on('destroy', () => all.delete(this))
    this.client = {
      ...inner,
      query: (text, values, options) => {
        // slonik's own error for a connection that is being closed says nothing of a loss.
        const ended = this.#ended ?? (isClosing(inner) ? lost(away()) : undefined)
        return ended ? Promise.reject(ended) : wait(inner.query(text, values, named ? options : undefined))
      },
    }
  }

  /** Closes an idle connection. The pool closes a busy one when its query has failed. */
  end(reason: Error) {
    this.#ended = reason
    if (this.client.state() === 'IDLE') this.client.destroy().catch(() => {})
  }
}

function isClosing(client: DriverClient): boolean {
  return client.state() === 'PENDING_DESTROY' || client.state() === 'DESTROYED'
}

/** Resolves when the server answers. A refusal that only a running server makes, like that of a full server, is an answer. */
async function probe(url: string, ms: number): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: ms,
    query_timeout: ms,
    application_name: 'countersign probe',
  })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('select 1')
  } catch (error) {
    if (!isAnswer(error)) throw error
  } finally {
    // Waits for the server's end of the connection, which a frozen one never closes.
    client.end().catch(() => {})
  }
}

/**
 * An error with an SQLSTATE comes from the server; class 57P means that the server stops, starts or has crashed. An error
 * of PgBouncer about a server that it cannot reach is no answer of that server.
 */
function isAnswer(error: unknown): boolean {
  if (isConnectionLoss(error)) return false
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('57P') && code !== 'EPIPE'
}

const away = (cause?: unknown) =>
  new UnavailableError('provider_unavailable', 'The database of the service does not answer.', { cause })

const busy = () => new UnavailableError('capacity_exceeded', 'The database of the service is busy.')

/** The pool takes a connection with this error for lost, and sends no ROLLBACK. */
const lost = (cause: Error) => new BackendTerminatedError(cause)
