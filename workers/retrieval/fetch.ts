// Fetches one page: GET over verified TLS. Each redirect is checked, resolved and pinned like the first URL. The body
// stays content-coded; the text thread decodes it.
import { isIP } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { errors } from 'undici'
import type { z } from 'zod'
import { openDeadline } from '../../server/deadline.ts'
import { AppError } from '../../server/errors.ts'
import { LIMITS } from '../../server/interface/limits.ts'
import type { limits as limitsSchema } from '../../server/interface/result.ts'
import { asUri } from '../../server/interface/uri.ts'
import type { Connection, Destination, Outbound } from '../../server/outbound/connection.ts'
import { outboundFailure } from '../../server/outbound/failures.ts'
import { meterSocket } from '../../server/outbound/meter.ts'
import { parsePublicUrl } from '../../server/outbound/url-policy.ts'
import { recordSocket } from '../../server/outbound/wire-record.ts'
import { type CapturedHop, captureHop } from './capture.ts'
import type { HeldMemory } from './memory.ts'
import {
  type ContentEncoding,
  checkHead,
  type Hops,
  isRedirect,
  type PageHead,
  type RedirectStatus,
  type ResponseHeaders,
  RetryLaterError,
  redirectTarget,
} from './response.ts'
import type { RetrievalRiskFlag } from './risk-flags.ts'
import { findSignature } from './signatures.ts'

export interface FetchedSource {
  finalUrl: string
  /** The host of `finalUrl`: A-labels, or an address without brackets. */
  hostname: string
  /** Each URL that answered with a redirect, in order. */
  redirects: { url: string; status: RedirectStatus }[]
  /** The Content-Type header as sent. */
  contentType: string
  contentEncoding: ContentEncoding
  /** Content-coded octets after de-chunking. Owns its ArrayBuffer, so that it can be transferred. */
  body: Uint8Array<ArrayBuffer>
  /** Octets in `body`. */
  wireBytes: number
  tlsVerified: true
  /** Whether any hop went to a fixture host. */
  fixture: boolean
  riskFlags: RetrievalRiskFlag[]
  /** When the last octet had arrived. */
  checkedAt: Date
  /** The limits in force, as results state them. */
  limits: z.output<typeof limitsSchema>
  /** The address of each hop: for logs, never for results. */
  hops: { url: string; address: string; tls: Connection['tls'] }[]
  /** Every hop as it crossed the connection, in order; only where `capture` asked for it. */
  capture?: CapturedHop[]
}

export interface FetchLimits {
  redirects: number
  headerBytes: number
  /** Content-coded octets of the body. */
  wireBytes: number
  /** For everything, from the first DNS query to the last octet. */
  timeoutMs: number
  /** For connecting, and for each time without data after that. */
  socketTimeoutMs: number
}

const FETCH_LIMITS: FetchLimits = {
  redirects: LIMITS.redirects,
  headerBytes: LIMITS.headerBytes,
  wireBytes: LIMITS.wireBytes,
  timeoutMs: LIMITS.timeoutSeconds * 1000,
  socketTimeoutMs: LIMITS.socketTimeoutSeconds * 1000,
}

export interface FetchOptions {
  /** Aborts the fetch, which then throws the signal's reason. */
  signal?: AbortSignal
  now?: () => Date
  openDeadline?: typeof openDeadline
  limits?: Partial<FetchLimits>
  /** The turn that each hop takes at its origin. */
  hops?: Hops
  /** Counts the bytes of the body while it arrives, and those of the capture. */
  memory?: HeldMemory
  /** Keeps every hop as it crossed the connection. Without it nothing is recorded. */
  capture?: boolean
}

/**
 * Fetches one page. Throws what `hops` throws, and AppError: `invalid_request` for an invalid URL, otherwise one of the
 * `source_...` codes. No message names the address of a host.
 */
export async function fetchSource(url: string, outbound: Outbound, options: FetchOptions = {}): Promise<FetchedSource> {
  const limits = { ...FETCH_LIMITS, ...options.limits }
  using deadline = (options.openDeadline ?? openDeadline)(limits.timeoutMs)
  const ends = [deadline.signal, options.signal, options.memory?.signal].filter((signal) => signal !== undefined)
  const signal = AbortSignal.any(ends)
  try {
    const start = asUri(parsePublicUrl(url, outbound.fixtures))
    const { hops, memory, capture = false } = options
    const route = await followRedirects(start, { outbound, limits, signal, hops, memory, capture })
    return describe(route, limits, options.now?.() ?? new Date())
  } catch (error) {
    if (!deadline.signal.aborted || error instanceof AppError) throw error
    const message = `The source was not complete within ${limits.timeoutMs / 1000} seconds.`
    throw new AppError('source_timeout', message, { cause: error })
  }
}

interface Journey {
  outbound: Outbound
  limits: FetchLimits
  signal: AbortSignal
  hops: Hops | undefined
  memory: HeldMemory | undefined
  capture: boolean
}

interface Visit {
  destination: Destination
  address: string
  tls: Connection['tls']
  status: number
  headers: ResponseHeaders
  /** Null for a redirect, whose body is not read. */
  page: { head: PageHead; body: Uint8Array<ArrayBuffer> } | null
  captured: CapturedHop | null
}

type PageVisit = Visit & { page: NonNullable<Visit['page']> }

const isPage = (visit: Visit): visit is PageVisit => visit.page !== null

/** The visits that ended in a redirect, in order, and the one that brought the page. */
interface Route {
  redirects: Visit[]
  last: PageVisit
}

async function followRedirects(start: URL, journey: Journey): Promise<Route> {
  const { outbound, limits } = journey
  const redirects: Visit[] = []
  for (let url = start; ; ) {
    const visit = await visitInTurn(url, journey)
    if (isPage(visit)) return { redirects, last: visit }
    redirects.push(visit)
    if (redirects.length > limits.redirects)
      throw new AppError('source_too_many_redirects', `The source redirects more than ${limits.redirects} times.`)
    url = redirectTarget(url, visit.headers, outbound.fixtures)
  }
}

/** A Retry-After applies to the host, or the URL, that sent it, which may differ from the first one after a redirect. */
async function visitInTurn(url: URL, journey: Journey): Promise<Visit> {
  const { hops } = journey
  await hops?.enter(url)
  try {
    return await visitOnce(url, journey)
  } catch (error) {
    if (!(hops && error instanceof RetryLaterError)) throw error
    const postponed = await hops.postpone(url, error)
    // An answer about the URL alone is final for this request; the next one waits.
    throw error.about === 'url' ? error : postponed
  }
}

/** One hop: one DNS query, and a second try over the same addresses if no byte of a response had arrived. */
async function visitOnce(url: URL, journey: Journey): Promise<Visit> {
  const { outbound, limits, signal, capture } = journey
  const destination = await outbound.resolve(url, signal)
  for (let attempt = 1; ; attempt++) {
    let socket: TLSSocket | undefined
    try {
      const startedAt = new Date()
      const options = { signal, timeoutMs: limits.socketTimeoutMs, keepShown: capture }
      await using connection = await outbound.connect(destination, options)
      socket = connection.socket
      return await exchange(connection, destination, journey, startedAt)
    } catch (thrown) {
      const error = outboundFailure(thrown, destination.hostname, socket)
      const lost = error instanceof AppError && error.code === 'source_unreachable' && !socket?.bytesRead
      if (!lost || attempt > 1) throw error
    }
  }
}

/** One request and its response. */
async function exchange(
  connection: Connection,
  destination: Destination,
  journey: Journey,
  startedAt: Date,
): Promise<Visit> {
  const { outbound, limits, signal } = journey
  const { socket, address, tls } = connection
  const { url, hostname } = destination
  const totalBytes = limits.headerBytes + limits.wireBytes + FRAMING_ALLOWANCE_BYTES
  const record = journey.capture ? recordSocket(socket, totalBytes) : null
  const meter = meterSocket(socket, hostname, { headerBytes: limits.headerBytes, totalBytes }, record)
  // undici's own timers are started again by every 1xx response, and are half a second coarse.
  const silent = () => new AppError('source_timeout', `"${hostname}" stopped answering.`)
  socket.setTimeout(limits.socketTimeoutMs, () => socket.destroy(silent()))
  const client = connection.buildClient({ maxHeaderSize: limits.headerBytes, headersTimeout: 0, bodyTimeout: 0 })
  const headers = { ...REQUEST_HEADERS, 'user-agent': outbound.userAgent }
  const response = await client.request({ method: 'GET', path: url.pathname + url.search, headers, signal })
  // A body that is not read to its end fails when the connection closes. That error is irrelevant.
  response.body.on('error', () => {})
  if (!meter.headersDone) throw new Error('undici read headers that the meter did not see')
  const { statusCode: status, headers: answered } = response
  const visit = { destination, address, tls, status, headers: answered }
  const seen = { url: url.href, hostname, status, connection, startedAt, headers: answered }
  const captured = (bodyRead: boolean) =>
    record && captureHop(record, { ...seen, headBytes: meter.headBytes, bodyRead })
  if (isRedirect(status)) return { ...visit, page: null, captured: captured(false) }
  const head = checkHead(status, answered, limits.wireBytes)
  const body = await collect(response.body, limits.wireBytes, (bytes) =>
    journey.memory?.take(bytes + (record?.grown() ?? 0)),
  )
  // undici takes a reset as the end of a body without a declared length, and raises an InformationalError only then.
  if (!head.delimited && socket.errored && !(socket.errored instanceof errors.InformationalError)) throw socket.errored
  checkFormat(head, body)
  return { ...visit, page: { head, body }, captured: captured(true) }
}

const REQUEST_HEADERS = {
  accept: 'text/html, text/plain;q=0.9',
  'accept-encoding': 'gzip, br',
}

/** Chunk sizes, chunk extensions and trailers of a body of the full size, in chunks of a hundred octets and more. */
const FRAMING_ALLOWANCE_BYTES = 262_144

/** Copies each chunk: an array of one-octet chunks would take a hundred times the size of the body. */
async function collect(
  stream: AsyncIterable<Uint8Array>,
  maxBytes: number,
  hold: (bytes: number) => Promise<void> | undefined,
): Promise<Uint8Array<ArrayBuffer>> {
  const buffer = new ArrayBuffer(0, { maxByteLength: maxBytes })
  for await (const chunk of stream) {
    const length = buffer.byteLength
    if (length + chunk.byteLength > maxBytes)
      throw new AppError('source_too_large', `The source is larger than ${maxBytes} bytes.`)
    await hold(chunk.byteLength)
    buffer.resize(length + chunk.byteLength)
    new Uint8Array(buffer, length).set(chunk)
  }
  return new Uint8Array(buffer.transferToFixedLength())
}

/** A coded body shows its format only when decoded. */
function checkFormat(head: PageHead, body: Uint8Array): void {
  const format = head.contentEncoding === 'identity' ? findSignature(body) : null
  if (format)
    throw new AppError('source_unsupported_type', `The source is ${format}, although its Content-Type says otherwise.`)
}

function describe({ redirects, last }: Route, limits: FetchLimits, checkedAt: Date): FetchedSource {
  const { head, body } = last.page
  const visits = [...redirects, last]
  const fixture = visits.some(({ destination }) => destination.fixture)
  return {
    finalUrl: last.destination.url.href,
    hostname: last.destination.hostname,
    redirects: redirects.map(({ destination, status }) => ({
      url: destination.url.href,
      status: status as RedirectStatus,
    })),
    contentType: head.contentType,
    contentEncoding: head.contentEncoding,
    body,
    wireBytes: body.byteLength,
    tlsVerified: true,
    fixture,
    riskFlags: riskFlagsOf({ redirects, last }, checkedAt),
    checkedAt,
    limits: limitsInForce(limits, fixture),
    hops: visits.map(({ destination, address, tls }) => ({ url: destination.url.href, address, tls })),
    ...(last.captured && { capture: visits.flatMap(({ captured }) => captured ?? []) }),
  }
}

const NEAR_EXPIRY_MS = 48 * 3_600_000

function riskFlagsOf({ redirects, last }: Route, now: Date): RetrievalRiskFlag[] {
  const { destination, headers, tls, page } = last
  const first = redirects[0] ?? last
  const raised: Record<RetrievalRiskFlag, boolean> = {
    cross_host_redirect: destination.hostname !== first.destination.hostname,
    internationalized_host: /(^|\.)xn--/.test(destination.hostname),
    ip_address_host: isIP(destination.hostname) !== 0,
    certificate_near_expiry: tls.validTo.getTime() - now.getTime() < NEAR_EXPIRY_MS,
    no_content_length: !page.head.delimited,
    refresh_header: headers.refresh !== undefined,
    attachment: /^\s*attachment\b/i.test(String(headers['content-disposition'])),
  }
  return (Object.keys(raised) as RetrievalRiskFlag[]).filter((flag) => raised[flag])
}

function limitsInForce(limits: FetchLimits, fixture: boolean): FetchedSource['limits'] {
  return {
    ...(fixture ? { fixture } : {}),
    max_decoded_bytes: LIMITS.decodedBytes,
    max_header_bytes: limits.headerBytes,
    max_redirects: limits.redirects,
    max_text_chars: LIMITS.textChars,
    max_wire_bytes: limits.wireBytes,
    socket_timeout_seconds: inSeconds(limits.socketTimeoutMs),
    timeout_seconds: inSeconds(limits.timeoutMs),
  }
}

/** Whole seconds as a number, anything else as the interface's decimal string. */
function inSeconds(milliseconds: number): number | string {
  return milliseconds % 1000 === 0 ? milliseconds / 1000 : (milliseconds / 1000).toFixed(3)
}
