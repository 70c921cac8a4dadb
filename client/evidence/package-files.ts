// The files of a package against its own lists: datapackage.json, the index of the archive and the list of pages. No key signs these
// lists; they show damage, and what another reader of the package finds.
import { sha256Hex } from '../bytes.ts'
import { integer, list, literal, object, text } from '../shape.ts'
import { fileOf, type Manifest, readJson } from './manifest.ts'
import { Fault } from './steps.ts'
import type { WarcRecord } from './warc.ts'
import type { Files } from './zip.ts'

const LIST = 'datapackage.json'
const DIGEST = 'datapackage-digest.json'
const INDEX = 'indexes/index.cdx'
const PAGES = 'pages/pages.jsonl'
export const ARCHIVE = 'archive/data.warc.gz'

const sha = text(/^sha256:[0-9a-f]{64}$/)
const listShape = object({
  profile: literal('data-package'),
  wacz_version: literal('1.1.1'),
  resources: list(object({ path: text(/./), hash: sha, bytes: integer(0) }), 1000),
})
const digestShape = object({ path: literal(LIST), hash: sha })

interface Resource {
  path: string
  hash: string
  bytes: number
}

/** Throws a Fault for the first file that is not as it is listed. */
export function checkFiles(files: Files): undefined {
  const digest = shaped(files, DIGEST, digestShape) as { hash: string }
  const { resources } = shaped(files, LIST, listShape) as { resources: Resource[] }
  if (digest.hash !== hashOf(fileOf(files, LIST))) throw new Fault(`${LIST}: its SHA-256 differs from ${DIGEST}`)
  for (const { path, hash, bytes } of resources) {
    const file = fileOf(files, path)
    if (file.length !== bytes) throw new Fault(`${path}: it has ${file.length} bytes, and ${LIST} says ${bytes}`)
    if (hashOf(file) !== hash) throw new Fault(`${path}: its SHA-256 differs from ${LIST}`)
  }
  const listed = new Set([LIST, DIGEST, ...resources.map(({ path }) => path)])
  const stranger = [...files.keys()].find((name) => !listed.has(name))
  if (stranger !== undefined) throw new Fault(`${stranger}: ${LIST} does not list it`)
}

const hashOf = (bytes: Uint8Array) => `sha256:${sha256Hex(bytes)}`

function shaped(files: Files, name: string, shape: ReturnType<typeof object>): unknown {
  const value = readJson(files, name)
  const fault = shape(value, '')
  if (fault) throw new Fault(`${name}: ${fault}`)
  return value
}

const entryShape = object({ url: text(/./), offset: text(/^\d{1,9}$/), length: text(/^\d{1,9}$/), filename: text(/./) })

interface Entry {
  url: string
  offset: string
  length: string
  filename: string
  digest?: unknown
}

/** Throws a Fault for a line of the index that leads to no record of its address, or a list of pages without this page. */
export function checkLists(files: Files, records: readonly WarcRecord[], manifest: Manifest): undefined {
  const lines = linesOf(files, INDEX)
  if (lines.some((line, i) => i > 0 && line < (lines[i - 1] ?? '')))
    throw new Fault(`${INDEX}: its lines are not in order`)
  const found = lines.map((line, i) => indexed(line, records, `${INDEX}: line ${i + 1}`))
  const unfound = records.find((record) => record.type === 'response' && !found.includes(record))
  if (unfound) throw new Fault(`${INDEX}: no line leads to the response of ${unfound.fields.get('warc-target-uri')}`)
  const [header, ...pages] = linesOf(files, PAGES).map((line) => parsed(line, PAGES))
  if (object({ format: literal('json-pages-1.0') })(header, '')) throw new Fault(`${PAGES}: it has no header`)
  const { final_url, checked_at } = manifest
  const page = pages[0] as { url: string; ts: string } | undefined
  if (pages.length !== 1 || object({ url: literal(final_url), ts: text(/./) })(page, ''))
    throw new Fault(`${PAGES}: it does not name ${final_url} and no other page`)
  if (Date.parse(page?.ts ?? '') !== Date.parse(checked_at)) throw new Fault(`${PAGES}: its time is not ${checked_at}`)
}

function indexed(line: string, records: readonly WarcRecord[], at: string): WarcRecord {
  const [, json = ''] = /^\S+ \d{14}(?:\d{3})? (\{.*\})$/.exec(line) ?? []
  const value = parsed(json, at)
  if (entryShape(value, '')) throw new Fault(`${at} is not of the form of an index`)
  const { url, offset, length, filename } = value as Entry
  const record = records.find((one) => one.offset === Number(offset) && one.length === Number(length))
  const isThere = record?.fields.get('warc-target-uri') === url && ARCHIVE.endsWith(`/${filename.replace(/^.*\//, '')}`)
  if (!record || !isThere) throw new Fault(`${at} leads to no record of ${url}`)
  return record
}

function linesOf(files: Files, name: string): string[] {
  return new TextDecoder()
    .decode(fileOf(files, name))
    .split('\n')
    .filter((line) => line !== '')
}

function parsed(line: string, at: string): unknown {
  try {
    return JSON.parse(line)
  } catch (cause) {
    throw new Fault(`${at} is not JSON`, { cause })
  }
}

const DIGESTS = ['warc-block-digest', 'warc-payload-digest'] as const

/** Throws a Fault for a record that has another digest than its header names. `payloadsOf` gives what may count as its payload. */
export function checkDigests(
  records: readonly WarcRecord[],
  payloadsOf: (record: WarcRecord) => Iterable<Uint8Array>,
): undefined {
  for (const [i, record] of records.entries())
    for (const name of DIGESTS) {
      const given = record.fields.get(name)
      if (given === undefined) continue
      const allowed = name === 'warc-block-digest' ? [record.block] : [...payloadsOf(record)]
      if (!allowed.some((bytes) => hashOf(bytes) === given))
        throw new Fault(`record ${i + 1} (${record.type}): its bytes differ from its ${name}`)
    }
}
