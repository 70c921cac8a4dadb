// A WARC/1.1 file of one capture (ISO 28500): a record of the crawler, then request and response of each hop, each record a gzip member.
// Written here because a record is a dozen lines, and the libraries for it parse and fetch much more than is needed.
import { hash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { sha256 } from '../receipts/format.ts'
import type { StoredHop } from './packing.ts'

/** Where a record lies in the file. */
export interface RecordPlace {
  hop: StoredHop
  /** Bytes. */
  offset: number
  length: number
  /** `sha256:` and the digest of the payload in hex. */
  payloadDigest: string
}

export interface Warc {
  bytes: Buffer
  /** The response of each hop. */
  responses: RecordPlace[]
}

/**
 * For threads. The same bytes for the same capture and the same fields.
 * @param id of the capture; the ids of the records follow from it
 * @param date of the record of the crawler, ISO 8601
 * @param fields of that record
 */
export function buildWarc(
  id: string,
  date: string,
  fields: Readonly<Record<string, string>>,
  hops: readonly StoredHop[],
): Warc {
  const about = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  const info = record(
    { 'WARC-Type': 'warcinfo', 'WARC-Record-ID': recordId(id, 'warcinfo'), 'WARC-Date': date },
    'application/warc-fields',
    [Buffer.from(about.join(''))],
  )
  const members = [info]
  const responses: RecordPlace[] = []
  let end = info.length
  for (const [n, hop] of hops.entries()) {
    const asked = recordId(id, `request ${n}`)
    const answered = recordId(id, `response ${n}`)
    const of = (type: string, self: string, other: string) => ({
      'WARC-Type': type,
      'WARC-Record-ID': self,
      'WARC-Date': hop.started_at,
      'WARC-Target-URI': hop.url,
      'WARC-IP-Address': hop.address,
      'WARC-Warcinfo-ID': recordId(id, 'warcinfo'),
      'WARC-Concurrent-To': other,
    })
    const payloadDigest = `sha256:${sha256(hop.body)}`
    const request = record(of('request', asked, answered), 'application/http; msgtype=request', [hop.request])
    const response = record(
      {
        ...of('response', answered, asked),
        'WARC-Payload-Digest': payloadDigest,
        ...(!hop.body_complete && { 'WARC-Truncated': 'disconnect' }),
      },
      'application/http; msgtype=response',
      [hop.head, hop.body],
    )
    members.push(request, response)
    end += request.length
    responses.push({ hop, offset: end, length: response.length, payloadDigest })
    end += response.length
  }
  return { bytes: Buffer.concat(members), responses }
}

const FAST = { level: 1 }

function record(headers: Record<string, string>, type: string, parts: readonly Buffer[]): Buffer {
  const block = Buffer.concat(parts)
  const lines = Object.entries({
    ...headers,
    'WARC-Block-Digest': `sha256:${sha256(block)}`,
    'Content-Type': type,
    'Content-Length': String(block.length),
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  const whole = Buffer.concat([Buffer.from(`WARC/1.1\r\n${lines.join('')}\r\n`), block, Buffer.from('\r\n\r\n')])
  return gzipSync(whole, FAST)
}

/** A URN that is the same for the same part of the same capture (RFC 9562, version 8). */
function recordId(capture: string, part: string): string {
  const digits = hash('sha256', `${capture} ${part}`, 'hex')
  const groups = [digits.slice(0, 8), digits.slice(8, 12), `8${digits.slice(13, 16)}`, `8${digits.slice(17, 20)}`]
  return `<urn:uuid:${groups.join('-')}-${digits.slice(20, 32)}>`
}
