// JSON-RPC errors that this endpoint writes itself, without the SDK: refusals before a message is understood.
import { AppError, publicError, UnavailableError } from '../errors.ts'
import { frameworkRefusal } from '../http-request.ts'

export type RequestId = string | number | null

/** A refused request, with its HTTP status. The message is for the caller. */
export class RpcError extends Error {
  override name = 'RpcError'
  readonly status: number
  readonly code: number
  readonly data?: unknown
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: number,
    code: number,
    message: string,
    more: { data?: unknown; headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause })
    this.status = status
    this.code = code
    this.data = more.data
    this.headers = more.headers ?? {}
  }
}

export const CODES = {
  parse: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  internal: -32_603,
  server: -32_000,
} as const

/** Anything thrown before a message is understood. An internal error becomes a 500 without details. */
export function toRpcError(error: unknown): RpcError {
  if (error instanceof RpcError) return error
  if (error instanceof AppError || error instanceof UnavailableError) {
    const { status, headers, error: body } = publicError(error)
    return new RpcError(status, CODES.server, body.message, { data: { error: body }, headers: { ...headers } })
  }
  switch (frameworkRefusal(error)) {
    case 'content_type':
      return new RpcError(415, CODES.server, 'Content-Type must be application/json.')
    case 'body_too_large':
      return new RpcError(413, CODES.server, 'The request body is too large.')
    case 'unreadable':
      return new RpcError(400, CODES.invalidRequest, 'The request cannot be read.')
    case null:
      return new RpcError(500, CODES.internal, 'The service failed unexpectedly. Try again.', { cause: error })
  }
}

export function errorText({ code, message, data }: RpcError, id: RequestId = null): string {
  return JSON.stringify({ jsonrpc: '2.0', error: { code, message, ...(data !== undefined && { data }) }, id })
}

/** The id to repeat in an error, where the body has one. */
export function idOf(body: unknown): RequestId {
  return isRecord(body) && typeof body.method === 'string' && isRequestId(body.id) ? body.id : null
}

export function isRequestId(value: unknown): value is string | number {
  return typeof value === 'string' || Number.isSafeInteger(value)
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
