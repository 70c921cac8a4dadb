// Checks the status and headers of a response before its body is read.
import { isUtf8 } from 'node:buffer'
import { AppError, isPassingStatus } from '../../server/errors.ts'
import { asUri } from '../../server/interface/uri.ts'
import { retryAfterOf } from '../../server/outbound/retry-after.ts'
import type { Fixtures } from '../../server/outbound/url-policy.ts'
import { parsePublicUrl } from '../../server/outbound/url-policy.ts'

/** As undici gives them: lower-case names, latin1 values, an array where a header came more than once. */
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>

export type ContentEncoding = 'identity' | 'gzip' | 'br'

export interface PageHead {
  contentType: string
  contentEncoding: ContentEncoding
  /** Octets announced; null when the end is marked otherwise. */
  contentLength: number | null
  /** Whether the end of the body differs from a connection that was cut off. */
  delimited: boolean
}

const REDIRECTS = [301, 302, 303, 307, 308] as const
export type RedirectStatus = (typeof REDIRECTS)[number]

export function isRedirect(status: number): status is RedirectStatus {
  return REDIRECTS.some((redirect) => redirect === status)
}

/**
 * The target of a redirect, checked like a URL from a caller. Throws `source_redirect_invalid` if it cannot be followed,
 * `source_blocked` if it must not be followed.
 */
export function redirectTarget(from: URL, headers: ResponseHeaders, fixtures: Fixtures): URL {
  const location = headers.location
  if (typeof location !== 'string' || location === '')
    throw new AppError('source_redirect_invalid', `A redirect by "${from.hostname}" does not name one target.`)
  const target = URL.parse(utf8OrLatin1(location), from.href)
  try {
    const url = asUri(parsePublicUrl(target?.href ?? '', fixtures, MAX_TARGET_CHARS))
    if (url.href.length > MAX_TARGET_CHARS)
      throw new AppError('invalid_request', `The URL is longer than ${MAX_TARGET_CHARS} characters.`)
    return url
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'invalid_request') throw error
    throw new AppError('source_redirect_invalid', `A redirect cannot be followed. ${error.message}`, { cause: error })
  }
}

/** The interface's maximum for final_url and redirects[].url. */
const MAX_TARGET_CHARS = 49_152

/** Servers write non-ASCII Locations in UTF-8, which undici hands over as latin1. */
function utf8OrLatin1(value: string): string {
  const bytes = Buffer.from(value, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : value
}

/**
 * The turns that the hops of one fetch take at their origins. Only tests fetch without turns.
 */
export interface Hops {
  /** Waits for a turn at the URL's origin; a turn at the same origin is kept. Throws OriginBusyError. */
  enter(url: URL): Promise<void>
  /** Records the pause that the answer of this URL asked for; returns the error to throw. */
  postpone(url: URL, answer: RetryLaterError): Promise<Error>
}

/** The source answered with Retry-After. */
export class RetryLaterError extends AppError {
  override name = 'RetryLaterError'
  readonly status: number
  /** As the source gave them, without a cap. */
  readonly retryAfterSeconds: number
  /** 429 and 503 are about the host; 404, 410 and 451 about the URL alone. */
  readonly about: 'host' | 'url'

  constructor(status: number, retryAfterSeconds: number, about: 'host' | 'url') {
    super('source_http_status', `The source answered with status ${status}.`, { retryable: isPassingStatus(status) })
    this.status = status
    this.retryAfterSeconds = retryAfterSeconds
    this.about = about
  }
}

/** What the Retry-After of this status is about; null where it has no meaning here. */
function askedBy(status: number): 'host' | 'url' | null {
  if (status === 429 || status === 503) return 'host'
  return status === 404 || status === 410 || status === 451 ? 'url' : null
}

/**
 * Throws what is wrong with a final response: `source_http_status`, `_unsupported_type`, `_encoding_invalid` and
 * others.
 */
export function checkHead(status: number, headers: ResponseHeaders, maxBytes: number): PageHead {
  if (status !== 200) {
    const about = askedBy(status)
    const seconds = about && retryAfterOf(headers['retry-after'], Date.now())
    if (about !== null && seconds !== null) throw new RetryLaterError(status, seconds, about)
    throw new AppError('source_http_status', `The source answered with status ${status}.`, {
      retryable: isPassingStatus(status),
    })
  }
  const transferEncoding = single(headers, 'transfer-encoding')
  if (transferEncoding !== undefined && transferEncoding.toLowerCase() !== 'chunked')
    throw new AppError('source_protocol_error', 'The only transfer coding accepted is chunked.')
  const contentLength = single(headers, 'content-length')
  if (Number(contentLength) > maxBytes)
    throw new AppError('source_too_large', `The source is ${contentLength} bytes, more than ${maxBytes}.`)
  return {
    contentType: contentTypeOf(single(headers, 'content-type')),
    contentEncoding: contentEncodingOf(headers['content-encoding']),
    contentLength: contentLength === undefined ? null : Number(contentLength),
    delimited: contentLength !== undefined || transferEncoding !== undefined,
  }
}

/** A header that decides how a body is read may occur only once, because programs differ in which of two they use. */
function single(headers: ResponseHeaders, name: string): string | undefined {
  const value = headers[name]
  if (!Array.isArray(value)) return value
  throw new AppError('source_protocol_error', `The response has more than one ${name} header.`)
}

const MAX_CONTENT_TYPE_CHARS = 32_768

function contentTypeOf(value: string | undefined): string {
  if (value !== undefined && value.length <= MAX_CONTENT_TYPE_CHARS && /^text\/(html|plain)\s*(;.*)?$/is.test(value))
    return value
  const met = value === undefined ? 'The source has no Content-Type.' : `The source is ${quoted(value)}.`
  throw new AppError('source_unsupported_type', `${met} Only text/html and text/plain are read.`)
}

/** Accepts one coding only: with a list of them a small response can decode to any size. */
function contentEncodingOf(value: string | string[] | undefined): ContentEncoding {
  const coding = typeof value === 'string' ? value.trim().toLowerCase() : value
  if (coding === undefined || coding === '' || coding === 'identity') return 'identity'
  if (coding === 'gzip' || coding === 'x-gzip') return 'gzip'
  if (coding === 'br') return 'br'
  throw new AppError(
    'source_encoding_invalid',
    `The content coding ${quoted(String(value))} is not one of gzip and br.`,
  )
}

/** Foreign text in a message: short, and printable ASCII only. */
function quoted(text: string): string {
  return `"${text.slice(0, 80).replace(/[^\x20-\x7e]/g, '?')}"`
}
