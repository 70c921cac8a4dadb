// What every protocol over HTTP reads from a request in the same way: bearer token, joined headers, JSON in UTF-8, whether
// the client is still connected, and why the framework refused the request.
import type { ServerResponse } from 'node:http'

/** The token of an Authorization header of the scheme Bearer; undefined for any other header. */
export function bearerOf(header: string | undefined): string | undefined {
  return header?.match(/^Bearer +([\x21-\x7e]+) *$/i)?.[1]
}

/** A header that is sent more than once counts as one list (RFC 9110 section 5.2). */
export function joinHeader(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header.join(', ') : header
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Throws SyntaxError or TypeError for anything but JSON in UTF-8. */
export function parseJson(body: Buffer): unknown {
  return JSON.parse(utf8.decode(body))
}

/** Aborts when the connection closes before the answer is written. */
export function disconnected(response: ServerResponse): AbortSignal {
  const gone = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) gone.abort()
  })
  return gone.signal
}

/** Why the framework refused a request before it reached a route; null for an error that it did not raise. */
export function frameworkRefusal(error: unknown): 'content_type' | 'body_too_large' | 'unreadable' | null {
  if (typeof error !== 'object' || error === null) return null
  if ('code' in error && error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return 'content_type'
  if ('code' in error && error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') return 'body_too_large'
  if (!('statusCode' in error) || typeof error.statusCode !== 'number') return null
  return error.statusCode >= 400 && error.statusCode < 500 ? 'unreadable' : null
}
