// The steps of a replay about what was captured: the records of the archive, each hop, the connections and their certificates.
import { decodeBase64, sha256Hex } from '../bytes.ts'
import { Note } from '../checks.ts'
import { type Response, splitResponse, unframed } from './http-message.ts'
import { CONNECTIONS, type Connection, fileOf, type Hop, type Manifest, readConnections } from './manifest.ts'
import { ARCHIVE, checkDigests, checkLists } from './package-files.ts'
import { Fault, type Steps, Unchecked } from './steps.ts'
import { readWarc, type WarcRecord } from './warc.ts'
import type { Files } from './zip.ts'

/**
 * Judges the certificates of one connection. Throws a Fault; a note says what was not judged.
 * @param chain DER, leaf first
 * @param at when they must have been valid
 */
export type CertificateCheck = (chain: readonly Uint8Array[], hostname: string, at: Date) => Note | null

export interface CapturedHop {
  request: WarcRecord
  response: WarcRecord
  /** Undefined where the response cannot be split. */
  parts: Response | undefined
}

/** What was read so far; each member only where the step for it holds. */
export interface Captured {
  records?: WarcRecord[]
  hops?: CapturedHop[]
  connections?: Connection[]
}

/** The records of the archive, and each hop against the manifest. `manifest` is undefined where it is not signed. */
export async function takeHops(steps: Steps, files: Files, manifest: Manifest | undefined): Promise<Captured> {
  const captured: Captured = {}
  await steps.take('archive', 'the archive holds a request and a response for each hop', ['manifest_signed'], () => {
    const records = inArchive(() => readWarc(fileOf(files, ARCHIVE)))
    captured.hops = pairsOf(records, manifest?.hops ?? [])
    captured.records = records
    return null
  })
  for (const [i, hop] of (manifest?.hops ?? []).entries()) await takeHop(steps, i + 1, hop, captured.hops?.[i])
  const heads = (manifest?.hops ?? []).map((_, i) => `head_of_hop_${i + 1}`)
  await steps.take('route', 'the hops lead from the requested URL to the page', ['archive', ...heads], () =>
    checkRoute(manifest!, captured.hops!),
  )
  await steps.take('record_digests', 'each record of the archive has the digest in its header', ['archive'], () =>
    checkDigests(captured.records!, payloadsOf),
  )
  await steps.take('lists', 'the index leads to each response, and the list of pages to the page', ['archive'], () =>
    checkLists(files, captured.records!, manifest!),
  )
  return captured
}

function inArchive<T>(read: () => T): T {
  try {
    return read()
  } catch (cause) {
    if (cause instanceof Fault) throw new Fault(`${ARCHIVE}: ${cause.message}`, { cause })
    throw cause
  }
}

/** A first record of the crawler, then a request and a response for each hop. */
function pairsOf([info, ...records]: WarcRecord[], hops: readonly Hop[]): CapturedHop[] {
  if (info?.type !== 'warcinfo') throw new Fault(`${ARCHIVE}: it does not begin with a warcinfo record`)
  if (records.length !== 2 * hops.length)
    throw new Fault(`${ARCHIVE}: it has ${records.length} records for ${hops.length} hops, not two for each`)
  return hops.map(({ url }, i) => {
    const [request, response] = [records[2 * i]!, records[2 * i + 1]!]
    for (const [record, type] of [
      [request, 'request'],
      [response, 'response'],
    ] as const)
      if (record.type !== type || record.fields.get('warc-target-uri') !== url)
        throw new Fault(`${ARCHIVE}: there is no ${type} record for hop ${i + 1}, ${url}, in its place`)
    return { request, response, parts: tried(() => splitResponse(response.block)) }
  })
}

function tried<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}

async function takeHop(steps: Steps, n: number, hop: Hop, captured: CapturedHop | undefined): Promise<void> {
  const needs = ['manifest_signed', 'archive']
  await steps.take(`request_of_hop_${n}`, `the request of hop ${n} is the one in the manifest`, needs, () =>
    mustBe(hop.request_sha256, captured!.request.block, `request of hop ${n}`),
  )
  await steps.take(`head_of_hop_${n}`, `the response head of hop ${n} is the one in the manifest`, needs, () => {
    const { parts, response } = captured!
    if (!parts) splitResponse(response.block)
    mustBe(hop.response_head_sha256, parts!.head, `response head of hop ${n}`)
    if (parts!.status !== hop.status)
      throw new Fault(`response head of hop ${n}: its status is ${parts!.status}, and the manifest says ${hop.status}`)
  })
  await steps.take(`body_of_hop_${n}`, `the response body of hop ${n} is the one in the manifest`, needs, () => {
    const { parts, response } = captured!
    // Without a head its place is unknown; the head is what differs.
    if (!parts) return new Unchecked('the head before it cannot be read', 'blocked')
    mustBe(hop.response_body_sha256, parts.body, `response body of hop ${n}`)
    const truncated = response.fields.get('warc-truncated')
    if ((truncated !== undefined) === hop.body_complete)
      throw new Fault(`response body of hop ${n}: WARC-Truncated and body_complete contradict each other`)
    return hop.body_complete ? null : new Note('as far as it arrived: the body of a redirect is not awaited')
  })
}

function mustBe(expected: string, bytes: Uint8Array, what: string): undefined {
  const found = sha256Hex(bytes)
  if (found !== expected)
    throw new Fault(
      `${what}: SHA-256 differs from the manifest: ${found} of its ${bytes.length} bytes, not ${expected}`,
    )
}

/** The payload of a response is its body; readers differ in whether framing belongs to it. */
function* payloadsOf({ type, block }: WarcRecord): Generator<Uint8Array> {
  const parts = type === 'response' ? tried(() => splitResponse(block)) : undefined
  yield parts?.body ?? block
  const plain = parts && tried(() => unframed(parts))
  if (plain) yield plain
}

function checkRoute({ requested_url, final_url, hops }: Manifest, captured: readonly CapturedHop[]): undefined {
  if (hops[0]?.url !== requested_url && !isSameUrl(hops[0]?.url, requested_url))
    throw new Fault(`hop 1 asked for ${hops[0]?.url}, and ${requested_url} was requested`)
  if (hops.at(-1)?.url !== final_url)
    throw new Fault(`the last hop asked for ${hops.at(-1)?.url}, and the page is ${final_url}`)
  for (const [i, { parts, request }] of captured.entries()) {
    const asked = requestTarget(request.block)
    if (!isSameUrl(asked, hops[i]?.url)) throw new Fault(`the request of hop ${i + 1} asks for ${asked}`)
    const next = hops[i + 1]
    if (!next) continue
    const location = parts?.fields.find(([name]) => name === 'location')?.[1] ?? ''
    const target = parsedUrl(fromBytes(location), hops[i]?.url)?.href
    if (!isSameUrl(target, next.url))
      throw new Fault(`hop ${i + 1} redirects to ${target}, and hop ${i + 2} asks for ${next.url}`)
  }
}

/** The URL that a request asks for, by its first line and its Host field. */
function requestTarget(request: Uint8Array): string {
  const head = new TextDecoder('latin1').decode(request)
  const path = /^GET (\S+) HTTP\/1\.1\r\n/.exec(head)?.[1]
  const host = /(?:^|[\r\n])host:[ \t]*(\S+)[ \t]*\r(?![^\r\n])/i.exec(head)?.[1]
  return `https://${host}${path}`
}

/** Servers write Locations in UTF-8 too. */
function fromBytes(latin1: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(latin1, (char) => char.charCodeAt(0)))
  } catch {
    return latin1
  }
}

/** The same but for the fragment, which is not sent, and for characters that one of them escapes. */
function isSameUrl(one: string | undefined, other: string | undefined): boolean {
  const plain = (url: string | undefined) => {
    const parsed = parsedUrl(url ?? '')
    if (parsed) parsed.hash = ''
    return parsed && decoded(parsed.href)
  }
  return plain(one) !== null && plain(one) === plain(other)
}

function parsedUrl(url: string, base?: string): URL | null {
  return URL.canParse(url, base) ? new URL(url, base) : null
}

function decoded(text: string): string {
  return text.replace(/%[0-9A-Fa-f]{2}/g, (escaped) => String.fromCharCode(Number.parseInt(escaped.slice(1), 16)))
}

/** The connections and their certificates. */
export async function takeConnections(
  steps: Steps,
  files: Files,
  manifest: Manifest | undefined,
  captured: Captured,
  check: CertificateCheck,
): Promise<void> {
  await steps.take(
    'connections',
    'the connections are those in the manifest, one for each hop, to the host of its URL',
    ['manifest_signed'],
    () => {
      mustBe(manifest!.connections_sha256, fileOf(files, CONNECTIONS), CONNECTIONS)
      const connections = readConnections(files)
      checkConnections(connections, manifest!.hops, captured.hops)
      captured.connections = connections
      return null
    },
  )
  for (const i of (manifest?.hops ?? []).keys())
    await steps.take(
      `certificates_of_hop_${i + 1}`,
      `the certificates of hop ${i + 1} are those in the manifest, name the host, were valid, and each is signed by the next`,
      ['connections'],
      () => checkCertificates(captured.connections![i]!, manifest!.certificates_sha256[i] ?? [], check),
    )
}

function checkConnections(connections: readonly Connection[], hops: readonly Hop[], captured?: readonly CapturedHop[]) {
  if (connections.length !== hops.length)
    throw new Fault(`${CONNECTIONS}: it has ${connections.length} connections for ${hops.length} hops`)
  for (const [i, { url, hostname, address, tls }] of connections.entries()) {
    const at = `${CONNECTIONS}: connection ${i + 1}`
    if (url !== hops[i]?.url) throw new Fault(`${at} is for ${url}, and hop ${i + 1} for ${hops[i]?.url}`)
    if (parsedUrl(url)?.hostname.replace(/^\[|\]$/g, '') !== hostname)
      throw new Fault(`${at} names the host ${hostname}`)
    if (tls.server_name !== null && tls.server_name !== hostname)
      throw new Fault(`${at} asked for the certificate of ${tls.server_name}`)
    const recorded = captured?.[i]?.response.fields.get('warc-ip-address')
    if (recorded !== undefined && recorded !== address)
      throw new Fault(`${at} went to ${address}, and its record in ${ARCHIVE} says ${recorded}`)
  }
}

function checkCertificates(
  { hostname, tls, started_at }: Connection,
  expected: readonly string[],
  check: CertificateCheck,
) {
  const chain = tls.certificates.map((text) => decodeBase64(text) ?? new Uint8Array())
  if (chain.length !== expected.length)
    throw new Fault(`there are ${chain.length} certificates, and the manifest has ${expected.length}`)
  const wrong = chain.findIndex((der, i) => sha256Hex(der) !== expected[i])
  if (wrong >= 0) throw new Fault(`certificate ${wrong + 1}: SHA-256 differs from the manifest`)
  return check(chain, hostname, new Date(started_at))
}
