// Access to Postgres, except for graphile-worker's pool. Every query that returns rows names a zod schema, and every row is
// checked against it.
import {
  createBigintTypeParser,
  createPool,
  type DatabasePool,
  type DatabaseTransactionConnection,
  type Interceptor,
  type PrimitiveValueExpression,
  SchemaValidationError,
  sql as slonikSql,
} from 'slonik'
import { z } from 'zod'
import { Availability, type AvailabilityChange } from './availability.ts'
import { openRoomWatch } from './room.ts'

export type { AvailabilityChange } from './availability.ts'
export { isConnectionLoss } from './connection-loss.ts'

/** A pool: each query is a transaction of its own. */
export type Database = DatabasePool
/** A connection inside an open transaction. Only `transact` makes one, so a function that takes it runs in a transaction. */
export type Tx = DatabaseTransactionConnection
export const sql = slonikSql

/** One column of many rows as an array parameter, for `unnest`: a batch of any size is one statement. */
export function column<Row>(rows: readonly Row[], type: string, pick: (row: Row) => PrimitiveValueExpression) {
  return sql.array(rows.map(pick), type)
}

/**
 * A CTE for a statement that does not wait for the disk: `with ${relaxed} insert into ... select ... from relaxed`. The statement
 * must read from `relaxed`. Its effect is seen at once, and may be lost when the database crashes; it is never torn.
 */
export const relaxed = sql.fragment`relaxed as materialized (select set_config('synchronous_commit', 'off', true))`

/** For statements that return no rows. */
export const nothing = z.object({}).strict()

/** int8 as a number: serials and counters stay far below 2^53. */
const int8 = { ...createBigintTypeParser(), parse: Number }

/** Fails a query whose rows do not fit their schema, so that a changed column is found here. */
const checkRows: Interceptor = {
  name: 'check-rows',
  transformRow: (context, query, row) => {
    const parser = context.resultParser
    if (!parser) return row
    const outcome = parser['~standard'].validate(row)
    if (outcome instanceof Promise) throw new TypeError('row schemas are synchronous')
    if (outcome.issues) throw new SchemaValidationError(query, row, outcome.issues)
    // The type is that of the driver's rows. The query's own schema types what the caller gets.
    return outcome.value as typeof row
  },
}

const STATEMENT_MS = 30_000
/**
 * For a transaction that waits for its next statement. A frozen process keeps the locks of its transactions until then, that of the
 * chain's head included, and every other process waits for it.
 */
const IDLE_TRANSACTION_MS = 10_000

export interface PoolOptions {
  /** Of this process. */
  maxConnections: number
  /** What Postgres and its views call the connections, at most 63 characters. A name in the URL takes precedence. */
  name?: string
  /** Longest wait for a free connection in milliseconds; default: without limit. */
  acquireTimeoutMs?: number
  /**
   * Whether the URL is of a pooler in transaction mode. Statements then have no names, because the next one may run on another
   * connection, and the server must set the time limits of sessions.
   */
  pooled?: boolean
  /** Called when the database stops answering and when it answers again. */
  onChange?: (change: AvailabilityChange) => void
  /**
   * Called at each error which says that the database has no space, for example on a full disk, and when it has space
   * again.
   */
  onRoom?: (change: AvailabilityChange) => void
}

/**
 * Opens the pool. It connects on demand, so the first query shows whether the database answers. While it does not, every call
 * rejects with UnavailableError within 4 seconds, and at once as soon as that is known (see availability.ts).
 */
export async function openDatabase(url: string, options: PoolOptions): Promise<Database> {
  const availability = new Availability({
    url,
    named: options.pooled !== true,
    places: options.maxConnections,
    acquireTimeoutMs: options.acquireTimeoutMs ?? Number.POSITIVE_INFINITY,
    onChange: options.onChange ?? (() => {}),
    ...(options.onRoom && { room: openRoomWatch(options.onRoom) }),
  })
  try {
    const pool = await createPool(withName(url, options.name), {
      maxPoolSize: options.maxConnections,
      minPoolSize: 1,
      typeParsers: [int8],
      interceptors: [checkRows],
      captureStackTrace: false,
      driverFactory: availability.driverFactory(),
      connectionTimeout: 10_000,
      idleTimeout: 60_000,
      statementTimeout: options.pooled ? 'DISABLE_TIMEOUT' : STATEMENT_MS,
      idleInTransactionSessionTimeout: options.pooled ? 'DISABLE_TIMEOUT' : IDLE_TRANSACTION_MS,
      // The pool does not wait for a lost connection. A working connection has no query running when it is closed.
      gracefulTerminationTimeout: 100,
      // Sessions carry no state, and DISCARD ALL would cost a round trip per query and drop every prepared statement.
      resetConnection: async () => {},
    })
    return withPlaces(pool, availability)
  } catch (error) {
    availability[Symbol.dispose]()
    throw error
  }
}

function withName(url: string, name: string | undefined): string {
  const named = URL.parse(url)
  if (!named) return url
  // Other connections accept several `verify-` modes. This driver accepts only one, which also verifies certificate and
  // host.
  if (/^verify-/.test(named.searchParams.get('sslmode') ?? '')) named.searchParams.set('sslmode', 'require')
  if (name !== undefined && !named.searchParams.has('application_name'))
    named.searchParams.set('application_name', name.slice(0, 63))
  return named.href
}

/** The pool, with a wait for a free place before each call. So the queue of the pool itself stays empty. */
function withPlaces(pool: DatabasePool, availability: Availability): Database {
  const run =
    <Call extends unknown[], Result>(method: (...call: Call) => Promise<Result>) =>
    (...call: Call) =>
      availability.run(() => method(...call))
  const { end } = pool
  // `assign` keeps the pool an emitter of events.
  return Object.assign(pool, {
    any: run(pool.any),
    anyFirst: run(pool.anyFirst),
    exists: run(pool.exists),
    many: run(pool.many),
    manyFirst: run(pool.manyFirst),
    maybeOne: run(pool.maybeOne),
    maybeOneFirst: run(pool.maybeOneFirst),
    one: run(pool.one),
    oneFirst: run(pool.oneFirst),
    query: run(pool.query),
    transaction: run(pool.transaction),
    connect: run(pool.connect),
    end: async () => {
      availability[Symbol.dispose]()
      await end()
    },
  })
}

/**
 * Runs `work` in one transaction. After a serialization failure or a deadlock it runs again, so it must do only SQL.
 * A read-only transaction refuses writes (SQLSTATE 25006).
 */
export function transact<T>(db: Database, work: (tx: Tx) => Promise<T>, options: { readOnly?: boolean } = {}) {
  return db.transaction(async (tx) => {
    if (options.readOnly) await tx.query(sql.type(nothing)`set transaction read only`)
    return work(tx)
  })
}
