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
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && CONNECTION_CODES.has(error.code)
}

/** Broken and refused sockets, and a server that has crashed or is starting. */
const CONNECTION_CODES = new Set(['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ETIMEDOUT', '57P02', '57P03'])
