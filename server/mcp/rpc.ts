// JSON-RPC as this endpoint speaks it where the SDK is not asked: refusals before a message is understood.
import { AppError, publicError } from '../errors.ts'

export type RequestId = string | number | null

/** A request that is not taken, with the HTTP status it gets. Its message is for the caller. */
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

/** What may be said of anything thrown before a message is understood. Faults of ours are a 500 that says nothing. */
export function refusalOf(error: unknown): RpcError {
  if (error instanceof RpcError) return error
  if (error instanceof AppError) {
    const { status, headers, error: body } = publicError(error)
    return new RpcError(status, CODES.server, body.message, { data: { error: body }, headers: { ...headers } })
  }
  switch ((error as { code?: unknown }).code) {
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new RpcError(415, CODES.server, 'Content-Type must be application/json.')
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new RpcError(413, CODES.server, 'The request body is too large.')
  }
  const status = (error as { statusCode?: unknown }).statusCode
  if (typeof status === 'number' && status >= 400 && status < 500)
    return new RpcError(400, CODES.invalidRequest, 'The request cannot be read.')
  return new RpcError(500, CODES.internal, 'Something went wrong here. Try again.', { cause: error })
}

export function errorText(refusal: RpcError, id: RequestId = null): string {
  const { code, message, data } = refusal
  return JSON.stringify({ jsonrpc: '2.0', error: { code, message, ...(data !== undefined && { data }) }, id })
}

/** The id to repeat in an error, where one can be read. */
export function idOf(body: unknown): RequestId {
  const { id, method } = (body ?? {}) as { id?: unknown; method?: unknown }
  return typeof method === 'string' && (typeof id === 'string' || Number.isSafeInteger(id)) ? (id as RequestId) : null
}
