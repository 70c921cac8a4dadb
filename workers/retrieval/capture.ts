// What is kept of one visit to a page beside its text: the bytes of each hop as they crossed the connection, and who answered. The room
// server/evidence stores it; an observation carries only the digests.
import { z } from 'zod'
import { sha256Hex } from '../../server/interface/scalars.ts'
import type { Connection } from '../../server/outbound/connection.ts'
import type { WireRecord } from '../../server/outbound/wire-record.ts'

/** One request and its response. */
export interface CapturedHop {
  url: string
  hostname: string
  status: number
  /** The address that was reached, and its port. */
  address: string
  port: number
  tls: {
    protocol: string
    cipher: string
    serverName: string | null
    /** DER, leaf first. */
    certificates: Buffer[]
    /** DER, as it was stapled; nothing was checked in it. */
    ocspResponse: Buffer | null
  }
  startedAt: Date
  finishedAt: Date
  /** As it was written. */
  request: Buffer
  /** From the first byte to the blank line of the final response; 1xx responses before it included. */
  head: Buffer
  /** All bytes after the head, framing included. */
  body: Buffer
  /** False for a redirect whose body was not awaited. */
  bodyComplete: boolean
  /** Whether the body has a content coding, and so does not get smaller by another compression. */
  bodyCoded: boolean
}

/** What an exchange knows of itself when it ends. */
export interface Exchange {
  url: string
  hostname: string
  status: number
  connection: Connection
  startedAt: Date
  /** Bytes of the head. */
  headBytes: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  /** Whether the whole body was read; for a redirect it follows from its length. */
  bodyRead: boolean
}

/** Takes what a record holds at the end of its exchange, while the connection is still open. */
export function captureHop(record: WireRecord, exchange: Exchange): CapturedHop {
  const { url, hostname, status, connection, startedAt, headBytes, headers } = exchange
  const { address, tls, shown } = connection
  if (!shown) throw new Error('the connection did not keep what the server showed')
  const response = record.response()
  const body = response.subarray(headBytes)
  const length = headers['content-length']
  return {
    url,
    hostname,
    status,
    address,
    port: shown.port,
    tls: {
      protocol: tls.protocol,
      cipher: tls.cipher,
      serverName: shown.serverName,
      certificates: shown.certificates,
      ocspResponse: shown.ocspResponse,
    },
    startedAt,
    finishedAt: new Date(),
    request: record.request(),
    head: response.subarray(0, headBytes),
    body,
    bodyComplete: exchange.bodyRead || (length !== undefined && String(body.length) === length),
    bodyCoded: headers['content-encoding'] !== undefined,
  }
}

/** The digests of a capture, SHA-256 in hex, as an observation carries them; the manifest is made of them. */
export const captureDigests = z.strictObject({
  /** Of the row in `captures`. */
  id: z.uuid(),
  hops: z
    .array(
      z.strictObject({
        url: z.string(),
        status: z.int(),
        request_sha256: sha256Hex,
        response_head_sha256: sha256Hex,
        response_body_sha256: sha256Hex,
        body_complete: z.boolean(),
      }),
    )
    .min(1),
  /** Of the bytes that describe the connections. */
  connections_sha256: sha256Hex,
  /** For each hop, of the DER of each certificate, leaf first. */
  certificates_sha256: z.array(z.array(sha256Hex)),
})
export type CaptureDigests = z.output<typeof captureDigests>
