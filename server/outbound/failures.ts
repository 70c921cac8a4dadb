// Maps errors of a connection to another server to AppErrors that a caller can act on. Messages name the requested host and
// never an address: how names resolve inside this network stays private.
import type { TLSSocket } from 'node:tls'
import { errors } from 'undici'
import { AppError, type ErrorCode } from '../errors.ts'

/** The network refused, or the peer closed before its answer was complete. */
const BROKEN = new Set([
  // No address of the family on this machine, or an egress firewall: the next address may work.
  ...['EACCES', 'EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EPERM'],
  ...['EHOSTDOWN', 'EHOSTUNREACH', 'ENETDOWN', 'ENETRESET', 'ENETUNREACH'],
  ...['ECONNABORTED', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'],
  'UND_ERR_SOCKET',
])

/**
 * The AppError for an error of a connection to the host. An error that neither the network nor the peer caused is a fault of
 * this service and is returned as it is.
 *
 * @param socket the socket of the connection, if there was one
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

/** A response that ends too early is malformed too, but only because the peer closed. */
function isCutShort(error: Error, socket: TLSSocket | undefined): boolean {
  return isMalformed(error) && socket?.readableEnded === true
}

/** Errors of OpenSSL have the name of its library. */
function isTls(error: Error, code: string): boolean {
  return 'library' in error || code === 'EPROTO' || /^ERR_(SSL|TLS)_/.test(code)
}

/** Attempts on several addresses fail with one error: an error from the network is preferred to a timeout. */
function codeOf(error: Error & { code?: string }): string {
  if (!(error instanceof AggregateError)) return error.code ?? ''
  const codes = error.errors.map(codeOf)
  return codes.find((code) => BROKEN.has(code)) ?? codes[0] ?? ''
}
