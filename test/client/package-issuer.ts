// A second, independent writer of evidence packages, of real certificates and real bytes: a redirect, then a page in chunks under gzip.
// It shares no code with the client; of the service it uses the extraction of text, which a package must be true to.
import { X509Certificate } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Attestation, VerificationResult } from '../../client/verification.ts'
import { makeCa, makeCertificate } from '../../server/fixture-tls.ts'
import { OBSERVATION_PROCEDURE } from '../../workers/retrieval/procedure.ts'
import { extract } from '../../workers/text/page/text-thread.ts'
import { referenceTree } from '../receipts/rfc6962.ts'
import { attest, issueChain, issueResult, jcs, sha256 } from './issuer.ts'
import { issueCheckpoint } from './log-issuer.ts'
import { zipOf } from './zip.ts'

/** Short, because the verifier reads each passage of it in each test that makes a verdict again. */
export const PAGE_TEXT = `The harbour of Kelby 😀
The harbour of Kelby was opened in 1874 by the county engineer Agnes Moor.`
const PAGE = `<!doctype html><title>Kelby</title>${PAGE_TEXT.split('\n')
  .map((line) => `<div>${line}</div>`)
  .join('\n')}<p style="display:none">hidden</p>`

export interface Hop {
  url: string
  status: number
  request: Buffer
  head: Buffer
  body: Buffer
  complete: boolean
  /** DER, leaf first. */
  certificates: Buffer[]
}

export interface WarcDraft {
  type: string
  url: string
  block: Buffer
  fields: Record<string, string>
}

type Json = Record<string, unknown>
export type ResultDraft = Omit<VerificationResult, 'receipt'>

/** What is changed, by whom. Without any of these a package is honest. */
export interface Forgery {
  /** By the author of the page: what follows its text. */
  tail?: string
  /** By the service, before it takes digests and signs. */
  hops?(hops: Hop[]): void
  connections?(connections: Json[]): void
  manifest?(manifest: Json): void
  result?(draft: ResultDraft): void
  capture?: Partial<Attestation>
  /** By a holder of the package, who then writes the lists of the package again. */
  records?(records: WarcDraft[]): void
  files?(files: Map<string, Buffer>): void
  /** By a holder who leaves the lists as they are, or changes them. */
  afterwards?(files: Map<string, Buffer>): void
  zip?(bytes: Buffer): Buffer
}

export interface Issued {
  packaged: Buffer
  result: VerificationResult
  /** Before and after the two receipts of the package. */
  chain: Attestation[]
  files: Map<string, Buffer>
}

const root = await makeCa()
const intermediate = await makeCa({ name: 'Test intermediate', parent: root })
const derOf = (pem: string) =>
  pem.split(/(?=-----BEGIN)/).flatMap((one) => (one.includes('BEGIN') ? [new X509Certificate(one).raw] : []))

/** Leaf first, then the intermediate authority. */
export async function certificatesFor(...names: [string, ...string[]]): Promise<Buffer[]> {
  const [leaf] = derOf((await makeCertificate(intermediate, names)).cert)
  const [issuer] = derOf(intermediate.cert)
  return [leaf!, issuer!]
}

const crlf = (...lines: string[]) => Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')

/** In pieces of 64 bytes. */
export function inChunks(bytes: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.length; at += 64) {
    const piece = bytes.subarray(at, at + 64)
    parts.push(Buffer.from(`${piece.length.toString(16)};x=y\r\n`), piece, Buffer.from('\r\n'))
  }
  return Buffer.concat([...parts, Buffer.from('0\r\nTrailer: 1\r\n\r\n')])
}

const requestFor = (host: string, path: string) =>
  crlf(`GET ${path} HTTP/1.1`, `host: ${host}`, 'connection: close', 'accept-encoding: gzip, br')

const certificates = await Promise.all([certificatesFor('kelby.test'), certificatesFor('www.kelby.test')])

function honestHops(compressed: Buffer): Hop[] {
  return [
    {
      url: 'https://kelby.test/harbour',
      status: 301,
      request: requestFor('kelby.test', '/harbour'),
      head: crlf('HTTP/1.1 301 Moved', 'Location: https://www.kelby.test/harbour', 'Content-Length: 400'),
      body: Buffer.from('<a href'),
      complete: false,
      certificates: [...certificates[0]!],
    },
    {
      url: 'https://www.kelby.test/harbour',
      status: 200,
      request: requestFor('www.kelby.test', '/harbour'),
      head: Buffer.concat([
        crlf('HTTP/1.1 103 Early Hints', 'Link: </a.css>'),
        crlf(
          'HTTP/1.1 200 OK',
          'Content-Type: text/html; charset=utf-8',
          'Content-Encoding: gzip',
          'Transfer-Encoding: chunked',
          'Set-Cookie: of=the page',
        ),
      ]),
      body: inChunks(compressed),
      complete: true,
      certificates: [...certificates[1]!],
    },
  ]
}

/** The verdict of the local verifier on the page. */
export type Verdict = Pick<
  ResultDraft,
  'claim' | 'claim_support' | 'explanation' | 'risk_flags' | 'methodology_version'
> & {
  quotes: readonly { quote: string; start: number; end: number; stance: 'supports' | 'contradicts' | 'mentions' }[]
}

export function issuePackage(verdict: Verdict, forgery: Forgery = {}): Issued {
  const body = gzipSync(PAGE + (forgery.tail ?? ''))
  const hops = honestHops(body)
  const outcome = extract({
    body: Uint8Array.from(body),
    contentEncoding: 'gzip',
    contentType: 'text/html; charset=utf-8',
  })
  if (!outcome.ok) throw new Error(outcome.message)
  const { text, contentSha256, textSha256, decodedBytes } = outcome.extraction
  const checked_at = new Date().toISOString()
  const result = issueResult({
    attestation: { serial: 4, ts_ms: Date.now() },
    result(draft) {
      const { quotes, ...members } = verdict
      const digests = { source_sha256: contentSha256, text_sha256: textSha256 }
      Object.assign(draft, members, { checked_at })
      Object.assign(draft.source, {
        requested_url: hops[0]!.url,
        final_url: hops[1]!.url,
        content_type: 'text/html; charset=utf-8',
        content_sha256: contentSha256,
        text_sha256: textSha256,
        normalized_text: text,
        redirects: [{ url: hops[0]!.url, status: 301 }],
        wire_bytes: body.length,
        decoded_bytes: decodedBytes,
      })
      draft.source_identity.hostname = 'www.kelby.test'
      draft.cache = { hit: false, age_seconds: 0, original_checked_at: checked_at }
      draft.evidence = quotes.map((quote, i) => ({ evidence_id: `e${i + 1}`, ...quote, ...digests }))
      forgery.result?.(draft)
    },
  })
  const { source, source_identity, limits } = result
  const { requested_url, ...shared } = source
  forgery.hops?.(hops)
  const connected = hops.map((hop) => connectionOf(hop, checked_at))
  forgery.connections?.(connected)
  const connections = Buffer.from(jcs({ connections: connected }))
  const manifest: Json = {
    type: 'countersign.source-capture',
    version: 1,
    requested_url,
    final_url: source.final_url,
    checked_at,
    extraction: OBSERVATION_PROCEDURE,
    hops: hops.map(({ url, status, request, head, body, complete }) => ({
      url,
      status,
      request_sha256: sha256(request),
      response_head_sha256: sha256(head),
      response_body_sha256: sha256(body),
      body_complete: complete,
    })),
    connections_sha256: sha256(connections),
    certificates_sha256: hops.map((hop) => hop.certificates.map(sha256)),
    content_sha256: contentSha256,
    text_sha256: textSha256,
    wire_bytes: body.length,
    decoded_bytes: decodedBytes,
    observation_sha256: sha256(jcs({ source: shared, source_identity, limits, checked_at })),
    result_sha256: result.receipt.envelope.result_sha256,
  }
  forgery.manifest?.(manifest)
  const signed = Buffer.from(jcs(manifest))
  const { chain, receipts } = prove(result.receipt.attestation, signed, forgery.capture)

  const records = recordsOf(hops, checked_at, result.methodology_version)
  forgery.records?.(records)
  const members = records.map(packRecord)
  const files = new Map([
    ['archive/data.warc.gz', Buffer.concat(members)],
    ['indexes/index.cdx', indexOf(records, members)],
    [
      'pages/pages.jsonl',
      Buffer.from(
        `${JSON.stringify({ format: 'json-pages-1.0', id: 'pages' })}\n${JSON.stringify({ url: source.final_url, ts: checked_at })}\n`,
      ),
    ],
    ['evidence/manifest.json', signed],
    ['evidence/connections.json', connections],
    ['evidence/receipts.json', Buffer.from(JSON.stringify(receipts))],
  ])
  forgery.files?.(files)
  const all = withLists(files)
  forgery.afterwards?.(all)
  const zip = zipOf(all)
  return { packaged: forgery.zip?.(zip) ?? zip, result, chain, files: all }
}

function connectionOf({ url, certificates }: Hop, at: string): Json {
  const { hostname } = new URL(url)
  return {
    url,
    hostname,
    address: '192.0.2.7',
    port: 443,
    tls: {
      protocol: 'TLSv1.3',
      cipher: 'TLS_AES_256_GCM_SHA384',
      server_name: hostname,
      certificates: certificates.map((der) => der.toString('base64')),
      ocsp_response: null,
    },
    started_at: at,
    finished_at: at,
  }
}

/** Three receipts of others, that of the result, that of the manifest, one more. */
function prove(ofResult: Attestation, manifest: Buffer, capture: Partial<Attestation> = {}) {
  const before = issueChain(3)
  const own = attest({ ...ofResult, prev_hash: before.at(-1)!.receipt_hash })
  const ofCapture = attest({
    serial: 5,
    ts_ms: own.ts_ms,
    subject_sha256: sha256(manifest),
    requested_by: 'source-capture',
    prev_hash: own.receipt_hash,
    ...capture,
  })
  // The result carries its receipt as it is in the chain.
  Object.assign(ofResult, own)
  const chain = [...before, own, ofCapture, ...issueChain(1, 6, ofCapture.receipt_hash)]
  const tree = referenceTree(chain.map((one) => Buffer.from(one.receipt_hash, 'hex')))
  const checkpoint = issueCheckpoint(chain)
  const proved = (attestation: Attestation) => ({
    attestation,
    inclusion: {
      leaf_index: attestation.serial - 1,
      tree_size: chain.length,
      hashes: tree.path(attestation.serial - 1, chain.length).map((hash) => hash.toString('hex')),
    },
    checkpoint,
  })
  return { chain, receipts: { result: proved(own), capture: proved(ofCapture) } }
}

function recordsOf(hops: readonly Hop[], at: string, method: string): WarcDraft[] {
  const info = Buffer.from(
    `software: test\r\nextraction: ${OBSERVATION_PROCEDURE}\r\nmethodology_version: ${method}\r\n`,
  )
  return [
    { type: 'warcinfo', url: '', block: info, fields: { 'WARC-Date': at } },
    ...hops.flatMap(({ url, request, head, body, complete }) => {
      const fields = { 'WARC-Date': at, 'WARC-Target-URI': url, 'WARC-IP-Address': '192.0.2.7' }
      const cut = complete ? {} : { 'WARC-Truncated': 'disconnect' }
      return [
        { type: 'request', url, block: request, fields: { ...fields } },
        { type: 'response', url, block: Buffer.concat([head, body]), fields: { ...fields, ...cut } },
      ]
    }),
  ]
}

function packRecord({ type, block, fields }: WarcDraft): Buffer {
  const all = {
    'WARC-Type': type,
    'WARC-Block-Digest': `sha256:${sha256(block)}`,
    ...fields,
    'Content-Length': block.length,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return gzipSync(Buffer.concat([Buffer.from(`WARC/1.1\r\n${lines.join('')}\r\n`), block, Buffer.from('\r\n\r\n')]))
}

function indexOf(records: readonly WarcDraft[], members: readonly Buffer[]): Buffer {
  let offset = 0
  const lines = members.flatMap((member, i) => {
    const { type, url } = records[i]!
    const place = { offset: String(offset), length: String(member.length) }
    offset += member.length
    if (type !== 'response') return []
    const key = `${new URL(url).hostname.split('.').reverse().join(',')})${new URL(url).pathname}`
    return [`${key} 20261126224100 ${JSON.stringify({ url, ...place, filename: 'data.warc.gz' })}\n`]
  })
  return Buffer.from(lines.sort().join(''))
}

/** The lists of the package over these files. */
export function withLists(files: ReadonlyMap<string, Buffer>): Map<string, Buffer> {
  const resources = [...files].map(([path, bytes]) => ({
    name: path.split('/').at(-1),
    path,
    hash: `sha256:${sha256(bytes)}`,
    bytes: bytes.length,
  }))
  const list = Buffer.from(JSON.stringify({ profile: 'data-package', wacz_version: '1.1.1', resources }))
  const digest = { path: 'datapackage.json', hash: `sha256:${sha256(list)}` }
  return new Map([
    ['datapackage.json', list],
    ['datapackage-digest.json', Buffer.from(JSON.stringify(digest))],
    ...files,
  ])
}
