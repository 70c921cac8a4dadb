// What a package says of a capture: the manifest that the service signed, the connections, and the receipts, as they are checked.
import { type Attestation, hex256, timestamp } from '../chain/attestation.ts'
import { canonicalJson, jsonFaults, parseJson } from '../json.ts'
import { closed, either, integer, list, literal, object, type Shape, text } from '../shape.ts'
import { Fault } from './steps.ts'
import type { Files } from './zip.ts'

export interface Hop {
  url: string
  status: number
  request_sha256: string
  /** From the first byte to the blank line of the final response. */
  response_head_sha256: string
  /** All bytes after it, framing included. */
  response_body_sha256: string
  /** False for a redirect whose body was not read to its end. */
  body_complete: boolean
}

export interface Manifest {
  requested_url: string
  final_url: string
  checked_at: string
  /** Names the procedure from the bytes to the text. */
  extraction: string
  hops: Hop[]
  connections_sha256: string
  certificates_sha256: string[][]
  content_sha256: string
  text_sha256: string
  wire_bytes: number
  decoded_bytes: number
  observation_sha256: string
  result_sha256: string
}

export interface Connection {
  url: string
  hostname: string
  address: string
  port: number
  tls: {
    protocol: string
    cipher: string
    /** Null for a host that is an IP address. */
    server_name: string | null
    certificates: string[]
    ocsp_response: string | null
  }
  started_at: string
  finished_at: string
}

/** A receipt of the package whose attestation holds. */
export interface ProvedReceipt {
  attestation: Attestation
  checkpoint: string
}

/** More than the service follows. */
const MOST_HOPS = 10
const MOST_CERTIFICATES = 20
const some = text(/./s)

const manifestShape = object({
  type: literal('countersign.source-capture'),
  version: literal(1),
  requested_url: some,
  final_url: some,
  checked_at: timestamp,
  extraction: some,
  hops: list(
    object({
      url: some,
      status: integer(100),
      request_sha256: hex256,
      response_head_sha256: hex256,
      response_body_sha256: hex256,
      body_complete: literal(true, false),
    }),
    MOST_HOPS,
    1,
  ),
  connections_sha256: hex256,
  certificates_sha256: list(list(hex256, MOST_CERTIFICATES, 1), MOST_HOPS, 1),
  content_sha256: hex256,
  text_sha256: hex256,
  wire_bytes: integer(0),
  decoded_bytes: integer(0),
  observation_sha256: hex256,
  result_sha256: hex256,
})

const connectionsShape = object({
  connections: list(
    object({
      url: some,
      hostname: some,
      address: some,
      port: integer(1),
      tls: object({
        protocol: some,
        cipher: some,
        server_name: either(some, literal(null)),
        certificates: list(text(/^[A-Za-z0-9+/]+={0,2}$/), MOST_CERTIFICATES, 1),
        ocsp_response: either(text(), literal(null)),
      }),
      started_at: timestamp,
      finished_at: timestamp,
    }),
    MOST_HOPS,
    1,
  ),
})

export const MANIFEST = 'evidence/manifest.json'
export const CONNECTIONS = 'evidence/connections.json'
export const RECEIPTS = 'evidence/receipts.json'

/** The bytes of a file of the package. Throws a Fault where it is missing. */
export function fileOf(files: Files, name: string): Uint8Array {
  const bytes = files.get(name)
  if (!bytes) throw new Fault(`the package has no ${name}`)
  return bytes
}

export const readManifest = (files: Files): Manifest => readCanonical(files, MANIFEST, manifestShape) as Manifest

export const readConnections = (files: Files): Connection[] =>
  (readCanonical(files, CONNECTIONS, connectionsShape) as { connections: Connection[] }).connections

/** Both receipts as the service answers them, unverified. */
export function readReceipts(files: Files): { result: unknown; capture: unknown } {
  const value = readJson(files, RECEIPTS)
  const fault = closed({ result: object({}), capture: object({}) })(value, '')
  if (fault) throw new Fault(`${RECEIPTS}: ${fault}`)
  return value as { result: unknown; capture: unknown }
}

/** JSON that only one spelling can have, so that its digest is that of its contents. */
function readCanonical(files: Files, name: string, shape: Shape): unknown {
  const value = readJson(files, name)
  const fault = shape(value, '')
  if (fault) throw new Fault(`${name}: ${fault}`)
  const written = jsonFaults(value).length > 0 ? null : canonicalJson(value)
  if (written !== new TextDecoder('utf-8', { ignoreBOM: true }).decode(fileOf(files, name)))
    throw new Fault(`${name} is not written as canonical JSON`)
  return value
}

export function readJson(files: Files, name: string): unknown {
  const bytes = fileOf(files, name)
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch (cause) {
    throw new Fault(`${name} is not JSON: ${(cause as Error).message}`, { cause })
  }
}
