// Asks a time-stamp authority (RFC 3161) once, over HTTP, and verifies its reply. pkijs is loaded at the first question: no process that
// asks nothing loads it.
import { createHash, randomBytes } from 'node:crypto'
import { getCACertificates } from 'node:tls'
import { readBody } from '../../client/bytes.ts'
import type { Timestamp, TimestampVerifier } from '../../client/timestamp.ts'
import { openDeadline } from '../deadline.ts'
import { errorMessage } from '../errors.ts'

export interface StampReply {
  /** The whole reply as it came. */
  reply: Buffer
  stamp: Timestamp
}

/** The authority gave no reply that can be used. Its message is the exact cause, for operators. */
export class TimestampError extends Error {
  override name = 'TimestampError'
}

export const ANSWER_TIMEOUT_MS = 15_000
/** How far the time of an authority and that of this machine may differ. */
const MAX_SKEW_MS = 300_000
const NONCE_BYTES = 16
const SHA_256 = '2.16.840.1.101.3.4.2.1'

/** Verifies replies against these roots. @param ca PEM; undefined: the roots that Node trusts, NODE_EXTRA_CA_CERTS included */
export async function openReplyVerifier(ca: string | undefined): Promise<TimestampVerifier> {
  const { openTimestampVerifier } = await import('../../client/timestamp.ts')
  return openTimestampVerifier(ca ?? getCACertificates('default').join('\n'))
}

/**
 * Asks for a timestamp of these bytes. Throws a TimestampError.
 * @param options `signal` ends the wait; `timeoutMs` is the longest wait for the whole reply
 */
export async function askAuthority(
  url: string,
  data: Buffer,
  verifier: TimestampVerifier,
  { signal, timeoutMs = ANSWER_TIMEOUT_MS }: { signal?: AbortSignal; timeoutMs?: number } = {},
): Promise<StampReply> {
  const nonce = makeNonce()
  const query = await buildQuery(data, nonce)
  const reply = await post(url, query, { signal, timeoutMs })
  const verdict = await verifier.verify(reply, data, { nonce })
  if (!verdict.ok) throw new TimestampError(verdict.problem)
  const { stamp } = verdict
  const skew = Math.round(Math.abs(Date.parse(stamp.time) - Date.now()) / 1000)
  if (skew * 1000 > MAX_SKEW_MS)
    throw new TimestampError(`its time, ${stamp.time}, and that of this machine differ by ${skew} s`)
  return { reply, stamp }
}

/** A positive number of its full length, so that it has one form in DER. */
function makeNonce(): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  nonce[0] = (nonce[0]! & 0x7f) | 0x40
  return nonce
}

async function buildQuery(data: Buffer, nonce: Buffer): Promise<Buffer> {
  const [{ AlgorithmIdentifier, MessageImprint, TimeStampReq }, { Integer, OctetString }] = await Promise.all([
    import('pkijs'),
    import('asn1js'),
  ])
  const digest = createHash('sha256').update(data).digest()
  const query = new TimeStampReq({
    version: 1,
    messageImprint: new MessageImprint({
      hashAlgorithm: new AlgorithmIdentifier({ algorithmId: SHA_256 }),
      hashedMessage: new OctetString({ valueHex: new Uint8Array(digest) }),
    }),
    nonce: new Integer({ valueHex: new Uint8Array(nonce) }),
    certReq: true,
  })
  return Buffer.from(query.toSchema().toBER())
}

async function post(
  url: string,
  query: Buffer,
  { signal, timeoutMs }: { signal: AbortSignal | undefined; timeoutMs: number },
): Promise<Buffer> {
  using deadline = openDeadline(timeoutMs)
  const { MAX_REPLY_BYTES } = await import('../../client/timestamp.ts')
  try {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/timestamp-query', accept: 'application/timestamp-reply' },
      body: query as BodyInit,
      redirect: 'error',
      signal: signal ? AbortSignal.any([signal, deadline.signal]) : deadline.signal,
    })
    const body = Buffer.from(await readBody(answer, MAX_REPLY_BYTES))
    if (answer.status !== 200) throw new TimestampError(`it answered ${answer.status}${textOf(body)}`)
    return body
  } catch (error) {
    if (error instanceof TimestampError) throw error
    if (deadline.signal.aborted)
      throw new TimestampError(`no whole reply came within ${timeoutMs / 1000} s`, { cause: error })
    throw new TimestampError(causeOf(error), { cause: error })
  }
}

/** The beginning of an answer that is text. */
function textOf(body: Buffer): string {
  const text = body.toString('utf8', 0, 200).replace(/\s+/g, ' ').trim()
  return text !== '' && !/[\p{Cc}\ufffd]/u.test(text) ? `: ${text}` : ''
}

/** `fetch failed` says nothing: its cause does. */
function causeOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const code = cause instanceof Error && 'code' in cause ? ` (${cause.code})` : ''
  return `${errorMessage(cause) || 'the connection failed'}${code}`
}
