// What may go wrong between here and a foreign server, in terms a caller can act on. Messages name the host that was asked
// for, never an address: what a name resolves to in here is nobody's business.
import type { TLSSocket } from 'node:tls'
import { errors } from 'undici'
import { AppError, type ErrorCode } from '../errors.ts'

/** The network said no, or the peer went away before its answer was complete. */
const BROKEN = new Set([
  // No address of the family here, or an egress firewall: the next address may do.
  ...['EACCES', 'EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EPERM'],
  ...['EHOSTDOWN', 'EHOSTUNREACH', 'ENETDOWN', 'ENETRESET', 'ENETUNREACH'],
  ...['ECONNABORTED', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'],
  'UND_ERR_SOCKET',
])

/**
 * The AppError for an error of a connection to the host. What is neither the network's nor the peer's doing comes back as
 * it is, being a fault of ours.
 *
 * @param socket what the connection was over, if it came so far
 */
export function outboundFailure(error: unknown, hostname: string, socket?: TLSSocket): unknown {
  if (!(error instanceof Error) || error instanceof AppError) return error
  const code = codeOf(error)
  const failure = (as: ErrorCode, message: string) => new AppError(as, message, { cause: error })
  if (socket?.authorizationError)
    return failure(
      'source_tls_invalid',
      `The certificate of "${hostname}" is not valid (${socket.authorizationError}).`,
    )
  if (isTls(error, code)) return failure('source_tls_invalid', `TLS with "${hostname}" failed (${code}).`)
  if (BROKEN.has(code) || isCutShort(error, socket))
    return failure('source_unreachable', `The connection to "${hostname}" failed or broke off.`)
  if (code === 'ETIMEDOUT') return failure('source_timeout', `"${hostname}" does not answer.`)
  if (error instanceof errors.HeadersOverflowError)
    return failure('source_headers_too_large', `The headers of the response by "${hostname}" are too large.`)
  if (isMalformed(error)) return failure('source_protocol_error', `"${hostname}" does not answer in valid HTTP/1.1.`)
  return error
}

/** undici reports a mismatch of length for anything malformed after a Content-Length, too. */
function isMalformed(error: Error): boolean {
  return error instanceof errors.HTTPParserError || error instanceof errors.ResponseContentLengthMismatchError
}

/** A response that ends too early is malformed as well, but only because the peer went away. */
function isCutShort(error: Error, socket: TLSSocket | undefined): boolean {
  return isMalformed(error) && socket?.readableEnded === true
}

/** Errors of OpenSSL say which of its libraries they are from. */
function isTls(error: Error, code: string): boolean {
  return 'library' in error || code === 'EPROTO' || /^ERR_(SSL|TLS)_/.test(code)
}

/** Attempts on several addresses fail together, each in its way: what the network said goes before what timed out. */
function codeOf(error: Error & { code?: string }): string {
  if (!(error instanceof AggregateError)) return error.code ?? ''
  const codes = error.errors.map(codeOf)
  return codes.find((code) => BROKEN.has(code)) ?? codes[0] ?? ''
}
