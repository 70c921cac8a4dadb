// An evidence package: a WACZ 1.1.1 file, which is a ZIP with a fixed layout that readers of web archives know, and beside the archive what
// proves it: the manifest, the connections and the receipts.
import { zipSync } from 'fflate'
import { canonicalJson, sha256 } from '../receipts/format.ts'
import type { UnpackedCapture } from './packing.ts'
import { buildWarc, type Warc } from './warc.ts'

export interface PackageParts {
  captureId: string
  capture: UnpackedCapture
  /** The bytes that were signed. */
  manifest: Buffer
  receipts: unknown
  /** Replies of time-stamp authorities, each with the head of the log that it is about. */
  stamps: readonly { note: string; reply: Buffer }[]
  /** Of the result that the package is served for. */
  result: { final_url: string; checked_at: string; extraction: string; methodology_version: string }
}

const SOFTWARE = 'Countersign-Source-Verification/1.0'

/** For threads. The same bytes for the same parts. */
export function buildPackage(parts: PackageParts): Uint8Array {
  const { capture, manifest, receipts, stamps, result } = parts
  const fields = {
    software: SOFTWARE,
    format: 'WARC File Format 1.1',
    extraction: result.extraction,
    methodology_version: result.methodology_version,
  }
  const warc = buildWarc(parts.captureId, result.checked_at, fields, capture.hops)
  const files: Record<string, Buffer> = {
    [ARCHIVE]: warc.bytes,
    'indexes/index.cdx': Buffer.from(indexOf(warc)),
    'pages/pages.jsonl': Buffer.from(pagesOf(parts)),
    'evidence/manifest.json': manifest,
    'evidence/connections.json': capture.connections,
    'evidence/receipts.json': Buffer.from(JSON.stringify(receipts)),
  }
  for (const [n, { note, reply }] of stamps.entries()) {
    files[`evidence/timestamps/${n + 1}.tsr`] = reply
    files[`evidence/timestamps/${n + 1}.note`] = Buffer.from(note)
  }
  const description = Buffer.from(
    JSON.stringify({
      profile: 'data-package',
      wacz_version: '1.1.1',
      created: result.checked_at,
      software: SOFTWARE,
      mainPageUrl: result.final_url,
      mainPageDate: result.checked_at,
      resources: Object.entries(files).map(([path, bytes]) => ({
        name: path.slice(path.lastIndexOf('/') + 1),
        path,
        hash: `sha256:${sha256(bytes)}`,
        bytes: bytes.length,
      })),
    }),
  )
  const digest = { path: 'datapackage.json', hash: `sha256:${sha256(description)}` }
  const all = {
    'datapackage.json': description,
    'datapackage-digest.json': Buffer.from(JSON.stringify(digest)),
    ...files,
  }
  return zipSync(all, { level: 0, mtime: inZip(result.checked_at) })
}

const ARCHIVE = 'archive/data.warc.gz'

/** ZIP has local times without a zone; its writer takes them from the local time of a date. */
function inZip(iso: string): Date {
  const date = new Date(iso)
  return new Date(date.getTime() + date.getTimezoneOffset() * 60_000)
}

/** CDXJ: a line for each response, sorted by the reversed host, the path and the time. */
function indexOf({ responses }: Warc): string {
  const lines = responses.map(({ hop, offset, length, payloadDigest }) => {
    const about = {
      url: hop.url,
      mime: mimeOf(hop.head),
      status: String(hop.status),
      digest: payloadDigest,
      length: String(length),
      offset: String(offset),
      filename: 'data.warc.gz',
    }
    return `${sortKey(hop.url)} ${hop.started_at.replace(/\D/g, '').slice(0, 14)} ${JSON.stringify(about)}\n`
  })
  return lines.sort().join('')
}

/** The key of a URL in an index (SURT): `https://www.kelby.test/a?b=C` is `test,kelby)/a?b=c`. */
function sortKey(url: string): string {
  const { hostname, port, pathname, search } = new URL(url)
  const isName = !/^[\d.]+$|^\[/.test(hostname)
  const host = isName
    ? hostname
        .replace(/^www\d*\./, '')
        .split('.')
        .reverse()
        .join(',')
    : hostname
  return `${host}${port ? `:${port}` : ''})${pathname}${search}`.toLowerCase()
}

function mimeOf(head: Buffer): string {
  const type = /^content-type:[ \t]*([^\s;]+)/im.exec(head.toString('latin1'))?.[1]
  return type?.toLowerCase() ?? 'unk'
}

function pagesOf({ captureId, result }: PackageParts): string {
  const header = { format: 'json-pages-1.0', id: 'pages', title: 'Pages' }
  const page = { id: captureId, url: result.final_url, title: result.final_url, ts: result.checked_at }
  return `${canonicalJson(header)}\n${canonicalJson(page)}\n`
}
