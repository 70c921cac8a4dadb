// The format of a receipt, byte by byte. Imports node:crypto and a canonicaliser and nothing else of this service, so that
// the format can be read and checked on its own.
import { hash, type KeyObject, sign } from 'node:crypto'
import canonicalize from 'canonicalize'
import type { Attestation, Envelope } from '../interface/attestation.ts'

/** prev_hash of the first receipt. */
export const GENESIS = '0'.repeat(64)

/** Lowercase hex SHA-256 of text in UTF-8, or of bytes. */
export function sha256(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex')
}

/**
 * RFC 8785 canonical JSON. Throws on what has no canonical form: lone surrogates (which would hash like U+FFFD),
 * non-finite numbers, and undefined at the root.
 */
export function canonicalJson(value: unknown): string {
  const text = canonicalize(value)
  if (text === undefined) throw new TypeError('this value has no canonical JSON form')
  return text
}

/** A key the service signs with. `keyId` is unique over all uses. */
export interface SigningKey {
  keyId: number
  publicKeyHex: string
  privateKey: KeyObject
}

/** What is attested, and its place in the chain. */
export interface ChainEntry {
  subjectSha256: string
  label: string | null
  requestedBy: string
  serial: number
  prevHash: string
  tsMs: number
}

/** A receipt linked to the chain and not yet signed. `preimage` is the canonical text to sign. */
export interface Linked {
  unsigned: Omit<Attestation, 'sig_ed25519_hex'>
  preimage: string
}

/** Links one receipt. Hash and signature cover the same text: all fields but these two. */
export function linkEntry(entry: ChainEntry, key: SigningKey): Linked {
  const hashed = {
    v: 1 as const,
    serial: entry.serial,
    subject_sha256: entry.subjectSha256,
    label: entry.label,
    requested_by: entry.requestedBy,
    key_id: key.keyId,
    ts_ms: entry.tsMs,
    ts_utc: new Date(entry.tsMs).toISOString(),
    prev_hash: entry.prevHash,
    pubkey_hex: key.publicKeyHex,
  }
  const preimage = attestationPreimage(hashed)
  return { unsigned: { ...hashed, receipt_hash: sha256(preimage) }, preimage }
}

/** Ed25519 over the text in UTF-8, in hex. */
export function signText(text: string, key: KeyObject): string {
  return sign(null, Buffer.from(text), key).toString('hex')
}

/** Links and signs one receipt. */
export function attest(entry: ChainEntry, key: SigningKey): Attestation {
  const { unsigned, preimage } = linkEntry(entry, key)
  return { ...unsigned, sig_ed25519_hex: signText(preimage, key.privateKey) }
}

/**
 * The canonical text that is hashed and signed, with its members in the order of RFC 8785. Written out because it runs for
 * every receipt and a fixed shape needs no general canonicaliser; a test compares it with `canonicalJson`.
 */
export function attestationPreimage(a: Omit<Attestation, 'receipt_hash' | 'sig_ed25519_hex'>): string {
  return `{"key_id":${a.key_id},"label":${JSON.stringify(a.label)},"prev_hash":"${a.prev_hash}","pubkey_hex":"${a.pubkey_hex}","requested_by":${JSON.stringify(a.requested_by)},"serial":${a.serial},"subject_sha256":"${a.subject_sha256}","ts_ms":${a.ts_ms},"ts_utc":"${a.ts_utc}","v":1}`
}

/** The envelope's canonical bytes: in base64 for the result, and their hash for the chain. */
export function sealEnvelope(envelope: Envelope) {
  const bytes = Buffer.from(canonicalJson(envelope))
  return { base64: bytes.toString('base64'), sha256: sha256(bytes) }
}
