// Which errors mean that the connection to Postgres is gone.
import {
  BackendTerminatedError,
  BackendTerminatedUnexpectedlyError,
  ConnectionError,
  IdleTransactionTimeoutError,
} from 'slonik'
import { UnavailableError } from '../errors.ts'

/** Whether the connection was lost or could not be made. The outcome of a COMMIT under way is then unknown. */
export function isConnectionLoss(error: unknown): boolean {
  if (
    error instanceof UnavailableError ||
    error instanceof BackendTerminatedError ||
    error instanceof BackendTerminatedUnexpectedlyError ||
    error instanceof ConnectionError ||
    // Postgres ended the session of a process that was frozen in a transaction.
    error instanceof IdleTransactionTimeoutError
  )
    return true
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return false
  return CONNECTION_CODES.has(error.code) || (error.code === POOLER_CODE && isFatal(error))
}

/**
 * PgBouncer answers this code when it lost its connection to Postgres or cannot make one. Postgres itself uses it for an
 * invalid message, and then the error is not fatal.
 */
const POOLER_CODE = '08P01'

function isFatal(error: Error): boolean {
  return 'severity' in error && error.severity === 'FATAL'
}

/** Broken and refused sockets, and a server that has crashed or is starting. */
const CONNECTION_CODES = new Set(['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ETIMEDOUT', '57P02', '57P03'])
