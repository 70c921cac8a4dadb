// One POST of an alert, over a new connection. The receiver's address is checked at each attempt; redirects are not
// followed, and only the head of the answer counts.

import type { TLSSocket } from 'node:tls'
import { openDeadline } from '../deadline.ts'
import { AppError } from '../errors.ts'
import type { Outbound } from '../outbound/connection.ts'
import { outboundFailure } from '../outbound/failures.ts'
import { meterSocket } from '../outbound/meter.ts'
import { retryAfterOf } from '../outbound/retry-after.ts'

/** The head of the receiver's answer. */
export interface Answer {
  status: number
  /** From `Retry-After`; null without a valid one. */
  retryAfterSeconds: number | null
  /** The header `webhook-delivery: disable` was there. */
  disable: boolean
}

export interface Message {
  url: string
  headers: Record<string, string>
  body: Uint8Array
}

/** Milliseconds for a whole attempt, from the first DNS query to the end of the answer. */
export const TIMEOUT_MS = 15_000
/**
 * For the first attempt at a host. It is shorter, so that a new account's first alert does not wait long behind others whose
 * receivers hang. A receiver that needs more time gets it with the retry, seconds later.
 */
export const FIRST_TIMEOUT_MS = 5000
const MAX_HEADER_BYTES = 16_384
const MAX_BODY_BYTES = 16_384

/** Throws AppError. Its message never contains an address that a name resolves to. */
export async function postAlert(message: Message, outbound: Outbound, timeoutMs = TIMEOUT_MS): Promise<Answer> {
  using deadline = openDeadline(timeoutMs)
  const { signal } = deadline
  const { hostname } = new URL(message.url)
  let socket: TLSSocket | undefined
  try {
    const destination = await outbound.resolve(new URL(message.url), signal)
    await using connection = await outbound.connect(destination, { signal, timeoutMs })
    socket = connection.socket
    meterSocket(socket, hostname, { headerBytes: MAX_HEADER_BYTES, totalBytes: MAX_HEADER_BYTES + MAX_BODY_BYTES })
    const { url } = destination
    const client = connection.buildClient({ maxHeaderSize: MAX_HEADER_BYTES, headersTimeout: 0, bodyTimeout: 0 })
    const { headers, body } = message
    const response = await client.request({ method: 'POST', path: url.pathname + url.search, headers, body, signal })
    await drain(response.body)
    return readHead(response.statusCode, response.headers)
  } catch (thrown) {
    const failure = outboundFailure(thrown, hostname, socket)
    if (failure instanceof AppError || !signal.aborted) throw failure
    throw new AppError('source_timeout', `"${hostname}" did not answer within ${timeoutMs / 1000} seconds.`)
  }
}

/** Reads the body, up to the limits, and discards it, so that the receiver can finish its answer. */
async function drain(body: AsyncIterable<unknown>): Promise<void> {
  try {
    for await (const _ of body);
  } catch {
    // The body broke off, was too long or too slow. The status says whether the alert was accepted.
  }
}

function readHead(status: number, headers: Record<string, string | string[] | undefined>): Answer {
  return {
    status,
    retryAfterSeconds: retryAfterOf(headers['retry-after'], Date.now()),
    disable: String(headers['webhook-delivery']).trim().toLowerCase() === 'disable',
  }
}
