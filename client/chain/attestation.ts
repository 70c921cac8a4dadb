// Verifies one link of the receipt chain, a signed digest, only with pinned keys.
import { hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { sha256Hex } from '../bytes.ts'
import { type Check, examine, type Rule, type Verification } from '../checks.ts'
import { canonicalJson } from '../json.ts'
import { closed, either, integer, literal, text } from '../shape.ts'
import { buildKeyRing, type KeyRing, NOT_PINNED, type PinnedKey } from './keys.ts'
import { isSigned, type SignatureCheck } from './signature.ts'

export interface Attestation {
  v: 1
  serial: number
  subject_sha256: string
  label: string | null
  requested_by: string
  key_id: number
  ts_ms: number
  ts_utc: string
  prev_hash: string
  pubkey_hex: string
  receipt_hash: string
  sig_ed25519_hex: string
}

export interface AttestationOptions {
  keys: readonly PinnedKey[]
  /** Replaces the included check of Ed25519 signatures, which takes 2 ms. */
  signatureCheck?: SignatureCheck
}

/** `prev_hash` of serial 1. */
export const GENESIS_HASH = '0'.repeat(64)
export const hex256 = text(/^[0-9a-f]{64}$/)
export const timestamp = text(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z$/)

export const attestationShape = closed({
  v: literal(1),
  serial: integer(1),
  subject_sha256: hex256,
  label: either(text(), literal(null)),
  requested_by: text(/./),
  key_id: integer(0),
  ts_ms: integer(0),
  ts_utc: timestamp,
  prev_hash: hex256,
  pubkey_hex: hex256,
  receipt_hash: hex256,
  sig_ed25519_hex: text(/^[0-9a-f]{128}$/),
})

/**
 * Verifies one attestation by itself: key, signature, hash. It proves that the service signed this digest at this time
 * by its own clock. It does not prove what the digest was made from. Throws a TypeError for a malformed pin, never for
 * a bad attestation.
 */
export function verifyAttestation(attestation: unknown, { keys, signatureCheck }: AttestationOptions): Verification {
  return examine(attestation, attestationShape, attestationRules(buildKeyRing(keys), signatureCheck))
}

export function attestationRules(keyRing: KeyRing, signatureCheck?: SignatureCheck): Rule<Attestation>[] {
  return [
    ['trusted_key', (attestation) => distrust(attestation, keyRing)],
    ['signature', (attestation) => signatureFault(attestation, keyRing, signatureCheck)],
    ['receipt_hash', receiptHashFault],
    ['attested_time', attestedTimeFault],
  ]
}

export function distrust(attestation: Attestation, keyRing: KeyRing): string | null {
  const found = keyRing(attestation)
  return 'distrust' in found ? found.distrust : null
}

export function signatureFault(
  attestation: Attestation,
  keyRing: KeyRing,
  check: SignatureCheck = isSigned,
): string | null {
  const found = keyRing(attestation)
  const signature = hexToBytes(attestation.sig_ed25519_hex)
  const isBy = (key: Uint8Array) => check(utf8ToBytes(signedText(attestation)), signature, key)
  if ('distrust' in found)
    return isByOwnKey(attestation, isBy) ? NOT_CHECKED : 'it is not by the key that the receipt names'
  return isBy(found.publicKey) ? null : 'sig_ed25519_hex is not the signature of these fields by the pinned key'
}

const NOT_CHECKED = 'not checked: there is no trusted key to check it with'

/** Whether the receipt is at least unchanged since it was signed, by anyone. A check may throw for what is no key. */
function isByOwnKey({ pubkey_hex }: Attestation, isBy: (key: Uint8Array) => boolean): boolean {
  try {
    return isBy(hexToBytes(pubkey_hex))
  } catch {
    return false
  }
}

/**
 * Whether nothing is wrong but that the pins do not know the key, as after a rotation of keys: no tampering was found, and
 * nothing is proved.
 */
export function isUnknownKey({ checks }: Verification): boolean {
  const failed = checks.filter(({ ok }) => !ok)
  const isOfKey = ({ name, detail }: Check) =>
    name === 'trusted_key' ? detail?.endsWith(NOT_PINNED) : name === 'signature' && detail === NOT_CHECKED
  return failed.length === 2 && failed.every(isOfKey)
}

export function receiptHashFault(attestation: Attestation): string | null {
  return sha256Hex(signedText(attestation)) === attestation.receipt_hash
    ? null
    : 'receipt_hash is not the SHA-256 of these fields'
}

/** `ts_utc` may be coarser than `ts_ms`, by less than a second. */
export function attestedTimeFault({ ts_ms, ts_utc }: Attestation): string | null {
  return Math.abs(Date.parse(ts_utc) - ts_ms) < 1000 ? null : 'ts_utc and ts_ms are different times'
}

/** The text that is signed and hashed: the canonical attestation without the hash and the signature. */
function signedText({ receipt_hash: _hash, sig_ed25519_hex: _signature, ...signed }: Attestation): string {
  return canonicalJson(signed)
}
