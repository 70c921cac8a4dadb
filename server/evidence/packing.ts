// The stored form of a capture: all hops of one visit in one block of bytes, compressed where that makes it smaller, and the digests of its
// parts, which the manifest repeats.
import { promisify } from 'node:util'
import { deflateRaw, inflateRawSync } from 'node:zlib'
import { z } from 'zod'
import type { CaptureDigests, CapturedHop } from '../../workers/retrieval/capture.ts'
import { canonicalJson, sha256 } from '../receipts/format.ts'

/** A capture as it was packed. */
export interface UnpackedCapture {
  /** RFC 8785 JSON of the connections, as its digest is in the manifest. */
  connections: Buffer
  hops: StoredHop[]
}

export interface StoredHop {
  url: string
  status: number
  address: string
  started_at: string
  body_complete: boolean
  request: Buffer
  head: Buffer
  body: Buffer
}

const hopIndex = z.strictObject({
  url: z.string(),
  status: z.int(),
  address: z.string(),
  started_at: z.string(),
  body_complete: z.boolean(),
  /** Bytes. */
  request: z.int(),
  head: z.int(),
  body: z.int(),
  /** Whether the body lies outside the compressed part. */
  coded: z.boolean(),
})
const index = z.strictObject({ connections: z.int(), hops: z.array(hopIndex) })

/** The lowest level: a higher one takes several times the processor time for a tenth of the size. */
const FAST = { level: 1 }
const LENGTH_BYTES = 4

/**
 * Packs the hops: the length of the compressed part, that part (a line of JSON that says how to cut it; connections, requests, heads and
 * plain bodies), then the bodies that have a content coding, as they are.
 */
export async function packCapture(
  hops: readonly CapturedHop[],
): Promise<{ bytes: Buffer; digests: Omit<CaptureDigests, 'id'> }> {
  const connections = Buffer.from(canonicalJson({ connections: hops.map(describeConnection) }))
  const line = JSON.stringify({
    connections: connections.length,
    hops: hops.map((hop) => ({
      url: hop.url,
      status: hop.status,
      address: hop.address,
      started_at: hop.startedAt.toISOString(),
      body_complete: hop.bodyComplete,
      request: hop.request.length,
      head: hop.head.length,
      body: hop.body.length,
      coded: hop.bodyCoded,
    })),
  } satisfies z.output<typeof index>)
  const plain = hops.flatMap(({ request, head, body, bodyCoded }) => [request, head, ...(bodyCoded ? [] : [body])])
  const coded = hops.flatMap(({ body, bodyCoded }) => (bodyCoded ? [body] : []))
  const compressed = await promisify(deflateRaw)(Buffer.concat([Buffer.from(`${line}\n`), connections, ...plain]), FAST)
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeUInt32BE(compressed.length)
  return {
    bytes: Buffer.concat([length, compressed, ...coded]),
    digests: {
      hops: hops.map(({ url, status, request, head, body, bodyComplete }) => ({
        url,
        status,
        request_sha256: sha256(request),
        response_head_sha256: sha256(head),
        response_body_sha256: sha256(body),
        body_complete: bodyComplete,
      })),
      connections_sha256: sha256(connections),
      certificates_sha256: hops.map(({ tls }) => tls.certificates.map((der) => sha256(der))),
    },
  }
}

/** For threads. Throws for bytes that packCapture did not make. */
export function unpackCapture(bytes: Buffer): UnpackedCapture {
  const end = LENGTH_BYTES + bytes.readUInt32BE(0)
  const plain: Buffer = inflateRawSync(bytes.subarray(LENGTH_BYTES, end))
  const newline = plain.indexOf('\n')
  const { connections, hops } = index.parse(JSON.parse(plain.toString('utf8', 0, newline)))
  const packed = { from: plain, at: newline + 1 }
  const outside = { from: bytes, at: end }
  const take = (part: typeof packed, length: number) => {
    if (part.at + length > part.from.length) throw new Error('a stored capture ends early')
    part.at += length
    return part.from.subarray(part.at - length, part.at)
  }
  return {
    connections: take(packed, connections),
    hops: hops.map(({ request, head, body, coded, ...about }) => ({
      ...about,
      request: take(packed, request),
      head: take(packed, head),
      body: take(coded ? outside : packed, body),
    })),
  }
}

function describeConnection(hop: CapturedHop) {
  const { protocol, cipher, serverName, certificates, ocspResponse } = hop.tls
  return {
    url: hop.url,
    hostname: hop.hostname,
    address: hop.address,
    port: hop.port,
    tls: {
      protocol,
      cipher,
      server_name: serverName,
      certificates: certificates.map((der) => der.toString('base64')),
      ocsp_response: ocspResponse?.toString('base64') ?? null,
    },
    started_at: hop.startedAt.toISOString(),
    finished_at: hop.finishedAt.toISOString(),
  }
}
