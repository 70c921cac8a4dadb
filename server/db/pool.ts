// Access to Postgres, except for graphile-worker's pool. Every query that returns rows names a zod schema, and every row is
// checked against it.
import {
  BackendTerminatedError,
  BackendTerminatedUnexpectedlyError,
  ConnectionError,
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

/** A pool: each query is a transaction of its own. */
export type Database = DatabasePool
/** A connection inside an open transaction. Only `transact` makes one, so a function that takes it runs in a transaction. */
export type Tx = DatabaseTransactionConnection
export const sql = slonikSql

/** One column of many rows as an array parameter, for `unnest`: a batch of any size is one statement. */
export function column<Row>(rows: readonly Row[], type: string, pick: (row: Row) => PrimitiveValueExpression) {
  return sql.array(rows.map(pick), type)
}

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

/**
 * Opens the pool. It connects on demand, so the first query shows whether the database answers.
 * @param options `maxConnections`: of this process
 */
export async function openDatabase(url: string, options: { maxConnections: number }): Promise<Database> {
  return createPool(url, {
    maxPoolSize: options.maxConnections,
    minPoolSize: 1,
    typeParsers: [int8],
    interceptors: [checkRows],
    captureStackTrace: false,
    connectionTimeout: 10_000,
    idleTimeout: 60_000,
    statementTimeout: 30_000,
    idleInTransactionSessionTimeout: 30_000,
    // Sessions carry no state, and DISCARD ALL would cost a round trip per query and drop every prepared statement.
    resetConnection: async () => {},
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

/** Whether the connection was lost or could not be made. The outcome of a COMMIT under way is then unknown. */
export function isConnectionLoss(error: unknown): boolean {
  if (
    error instanceof BackendTerminatedError ||
    error instanceof BackendTerminatedUnexpectedlyError ||
    error instanceof ConnectionError
  )
    return true
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && CONNECTION_CODES.has(error.code)
}

/** Broken and refused sockets, and a server that has crashed or is starting. */
const CONNECTION_CODES = new Set(['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ETIMEDOUT', '57P02', '57P03'])
