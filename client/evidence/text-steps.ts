// The steps of a replay from the bytes of the page to its text, and from the text to the result.
import { sha256Hex } from '../bytes.ts'
import { type Check, Note } from '../checks.ts'
import { canonicalJson } from '../json.ts'
import type { PurchaseResult } from '../result.ts'
import { type VerificationOptions, verifyResult } from '../verification.ts'
import type { Captured } from './capture-steps.ts'
import { contentCoding, type Response, single, unframed } from './http-message.ts'
import type { Manifest } from './manifest.ts'
import { Fault, type Steps, Unchecked } from './steps.ts'

/** The way from bytes to text, as `countersign-verifier/page` exports it. */
export interface PageReader {
  /** Names the procedure. */
  pageProcedure: string
  readPage(page: {
    body: Uint8Array
    contentEncoding: 'identity' | 'gzip' | 'br'
    contentType: string
  }): { ok: true; page: PageText } | { ok: false; code: string; message: string }
}

export interface PageText {
  text: string
  contentSha256: string
  textSha256: string
  decodedBytes: number
}

/** Makes the verdicts of a result again, from its text. Unchecked where another assessor gave them or something is missing. */
export type VerdictCheck = (result: PurchaseResult) => Promise<Check | Unchecked>

/** The page as it was read again. */
export interface Reread {
  page?: PageText
}

/**
 * The bytes of the page, decoded, and their text.
 * @param reader or why there is none
 */
export async function takeText(
  steps: Steps,
  { hops }: Captured,
  manifest: Manifest | undefined,
  result: PurchaseResult | undefined,
  reader: PageReader | Unchecked,
): Promise<void> {
  const last = manifest?.hops.length ?? 0
  const response = hops?.at(-1)?.parts
  const reread: Reread = {}
  await steps.take(
    'page_bytes',
    'the body of the last hop, decoded, has the digest content_sha256',
    ['archive', `head_of_hop_${last}`, `body_of_hop_${last}`],
    () => {
      if (reader instanceof Unchecked) return reader
      return readAgain(response!, manifest!, reader, reread)
    },
  )
  await steps.take(
    'page_text',
    'these bytes give the text of the result, byte for byte',
    ['page_bytes', 'result'],
    () => checkText(reread.page!, manifest!, result!, reader as PageReader),
  )
}

function readAgain(response: Response, manifest: Manifest, reader: PageReader, reread: Reread) {
  const { body, contentEncoding, contentType } = inLastHop(() => ({
    body: unframed(response),
    contentEncoding: contentCoding(response),
    contentType: single(response, 'content-type') ?? '',
  }))
  if (body.length !== manifest.wire_bytes)
    throw new Fault(`the body has ${body.length} bytes without framing, and the manifest says ${manifest.wire_bytes}`)
  const reading = reader.readPage({ body, contentEncoding, contentType })
  if (!reading.ok) {
    if (!isSameProcedure(manifest, reader)) return otherProcedure(manifest, reader)
    throw new Fault(`the service would have refused these bytes: ${reading.code}: ${reading.message}`)
  }
  const { contentSha256, decodedBytes } = reading.page
  if (contentSha256 !== manifest.content_sha256)
    throw new Fault(`decoded body: SHA-256 is ${contentSha256}, and the manifest says ${manifest.content_sha256}`)
  if (decodedBytes !== manifest.decoded_bytes)
    throw new Fault(`decoded body: it has ${decodedBytes} bytes, and the manifest says ${manifest.decoded_bytes}`)
  reread.page = reading.page
  return null
}

function inLastHop<T>(read: () => T): T {
  try {
    return read()
  } catch (cause) {
    if (cause instanceof Fault) throw new Fault(`the response of the last hop ${cause.message}`, { cause })
    throw cause
  }
}

const isSameProcedure = ({ extraction }: Manifest, { pageProcedure }: PageReader) =>
  extraction === pageProcedure || extraction.endsWith(`+${pageProcedure}`)

const otherProcedure = ({ extraction }: Manifest, { pageProcedure }: PageReader) =>
  new Unchecked(
    `another version made the text: the manifest names ${extraction}, and the installed countersign-verifier reads by ${pageProcedure}; that is no forgery. Install the version of countersign-verifier that reads as the manifest says`,
    'missing',
  )

function checkText(page: PageText, manifest: Manifest, { source }: PurchaseResult, reader: PageReader) {
  const isSame = isSameProcedure(manifest, reader)
  if (page.textSha256 !== manifest.text_sha256) {
    if (!isSame) return otherProcedure(manifest, reader)
    throw new Fault(
      `text made from the bytes: SHA-256 is ${page.textSha256}, and the manifest says ${manifest.text_sha256}`,
    )
  }
  if (page.text !== source.normalized_text) throw new Fault(firstDifference(page.text, source.normalized_text))
  return isSame
    ? null
    : new Note(`read by ${reader.pageProcedure}, and the manifest names ${manifest.extraction}: the text is the same`)
}

function firstDifference(made: string, given: string): string {
  const [ours, theirs] = [Array.from(made), Array.from(given)]
  const at = ours.findIndex((char, i) => char !== theirs[i])
  const place = at < 0 ? ours.length : at
  const shown = (chars: string[]) => JSON.stringify(chars.slice(place, place + 20).join(''))
  return `source.normalized_text of the result differs from the text of the bytes from code point ${place} on: ${shown(theirs)}, not ${shown(ours)}`
}

/** The checks of `verifyResult` by the step that they belong to; the other ones are about consistency. */
const READABLE = ['plain_json', 'well_formed_unicode', 'shape']
const SIGNED = [
  'trusted_key',
  'signature',
  'receipt_hash',
  'attested_time',
  'purchase_attestation',
  'subject_sha256',
  'canonical_envelope',
  'result_sha256',
  'envelope_agrees',
]
const QUOTED = ['text_sha256', 'evidence_quotes', 'evidence_digests']

/** The result can be read, and is signed. Later steps use its parts. */
export async function takeResult(
  steps: Steps,
  result: unknown,
  options: VerificationOptions,
): Promise<readonly Check[]> {
  const { checks } = verifyResult(result, options)
  const of = (names: readonly string[]) => checks.filter(({ name }) => names.includes(name))
  await steps.take('result', 'the file holds a completed result', [], () => requireAll(of(READABLE)))
  await steps.take('result_signed', 'the service signed exactly this result', ['result'], () => requireAll(of(SIGNED)))
  return checks
}

/** What the result says, against itself: its quotes, and what its verdict needs. */
export async function takeQuotes(steps: Steps, checks: readonly Check[]): Promise<void> {
  await steps.take('quotes', 'each quote is in that text, at its place', ['result'], () => {
    // Without the reader the quotes are still held against the text that was signed.
    if (steps.isRefuted('page_text')) return new Unchecked(steps.reasonOf('page_text'), 'blocked')
    requireAll(checks.filter(({ name }) => QUOTED.includes(name)))
    return steps.holds('page_text')
      ? null
      : new Note('in the text of the result, which was not made again from the bytes')
  })
  await steps.take('consistency', 'verdict, quotes and status of the result agree', ['result'], () =>
    requireAll(checks.filter(({ name }) => ![...READABLE, ...SIGNED, ...QUOTED].includes(name))),
  )
}

/** Throws a Fault for the first check that failed. */
export function requireAll(checks: readonly Check[]): null {
  const failed = checks.find(({ ok }) => !ok)
  if (failed) throw new Fault(`${failed.name}: ${failed.detail}`)
  return null
}

/** The part of the result that each purchase of one observation shares. */
export async function takeObservation(
  steps: Steps,
  { hops }: Captured,
  manifest: Manifest | undefined,
  result: PurchaseResult | undefined,
): Promise<void> {
  const head = `head_of_hop_${manifest?.hops.length ?? 0}`
  await steps.take(
    'source',
    "the result's source part is what was captured",
    ['result', 'manifest_signed', head],
    () => {
      checkSource(result!, manifest!)
      const { content_type, redirects } = result!.source
      const response = hops?.at(-1)?.parts
      if (response && single(response, 'content-type') !== content_type)
        throw new Fault(`content_type of the result is not that of the response`)
      const route = manifest!.hops.slice(0, -1).map(({ url, status }) => ({ url, status }))
      if (canonicalJson(redirects) !== canonicalJson(route)) throw new Fault('redirects of the result are not the hops')
      return null
    },
  )
  await steps.take(
    'first_result',
    'the manifest was made with this result',
    ['result_signed', 'manifest_signed'],
    () => {
      if (manifest!.result_sha256 === result!.receipt.envelope.result_sha256) return null
      return new Unchecked('another purchase shares this observation, and the manifest was made with its result')
    },
  )
}

function checkSource(
  { source, source_identity, limits, checked_at }: PurchaseResult & { limits: unknown },
  manifest: Manifest,
) {
  const { requested_url: _, ...shared } = source
  const repeated = ['final_url', 'content_sha256', 'text_sha256', 'wire_bytes', 'decoded_bytes'] as const
  for (const name of repeated)
    if (source[name] !== manifest[name])
      throw new Fault(`${name} of the result is ${source[name]}, and the manifest says ${manifest[name]}`)
  if (checked_at !== manifest.checked_at)
    throw new Fault(`checked_at of the result is ${checked_at}, and the manifest says ${manifest.checked_at}`)
  const found = sha256Hex(canonicalJson({ source: shared, source_identity, limits, checked_at }))
  if (found !== manifest.observation_sha256)
    throw new Fault(
      `source, source_identity, limits or checked_at of the result differ: SHA-256 is ${found}, and the manifest says ${manifest.observation_sha256}`,
    )
}

export async function takeVerdict(
  steps: Steps,
  result: PurchaseResult | undefined,
  check: VerdictCheck,
): Promise<void> {
  await steps.take(
    'verdict',
    'the verifier gives the same verdict and quotes for that text',
    ['page_text'],
    async () => {
      const found = await check(result!)
      if (found instanceof Unchecked) return found
      if (!found.ok) throw new Fault(found.detail ?? 'it differs')
      return found.detail === undefined ? null : new Note(found.detail)
    },
  )
}
