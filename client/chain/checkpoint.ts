// Signed heads of the tree: C2SP checkpoints, which are signed notes.
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, concatBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { decodeBase64 } from '../bytes.ts'
import { type PinnedKey, readPublicKey } from './keys.ts'
import type { TreeHead } from './merkle.ts'
import { isSigned, type SignatureCheck } from './signature.ts'

export interface Checkpoint extends TreeHead {
  /** The log's name. */
  origin: string
}

const ED25519 = 1
/** As many as the reference implementation of signed notes takes. */
const MAX_SIGNATURES = 100

/** The contents of a checkpoint, without a check of its signatures; null for a malformed one. */
export function readCheckpoint(note: string): Checkpoint | null {
  const end = note.lastIndexOf('\n\n')
  const [origin, size = '', root = '', rest, ...more] = note.slice(0, end + 1).split('\n')
  const bytes = decodeBase64(root)
  if (end < 0 || !origin || rest !== '' || more.length > 0 || bytes?.length !== 32) return null
  if (!/^(0|[1-9][0-9]{0,15})$/.test(size) || !Number.isSafeInteger(Number(size))) return null
  return { origin, tree_size: Number(size), root_hash: bytesToHex(bytes) }
}

/**
 * Why a checkpoint is not signed by the key of a pinned verifier key (`name+hash+base64`), or null when it is.
 * Signatures of other keys are ignored: a log may be changing its key, and witnesses add theirs. Throws a TypeError for
 * a malformed pin.
 */
export function checkpointFault(note: string, vkey: string, check?: SignatureCheck): string | null {
  return noteFault(note, [readVerifierKey(vkey)], check)
}

export interface VerifierKey {
  name: string
  keyId: string
  publicKey: Uint8Array
}

/** As `checkpointFault`, for several keys of one log: at least one must have signed, and no signature may be wrong. */
export function noteFault(note: string, keys: readonly VerifierKey[], check: SignatureCheck = isSigned): string | null {
  const checkpoint = readCheckpoint(note)
  if (!checkpoint) return 'is not a checkpoint'
  const stranger = keys.find(({ name }) => name !== checkpoint.origin)
  if (stranger) return `is of the log ${checkpoint.origin}, not of ${stranger.name}`
  const end = note.lastIndexOf('\n\n')
  if (!note.endsWith('\n')) return 'does not end with a newline'
  const lines = note
    .slice(end + 2, -1)
    .split('\n')
    .map(readSignatureLine)
  if (lines.includes(null)) return 'has a signature line that cannot be read'
  if (lines.length > MAX_SIGNATURES) return `has more than ${MAX_SIGNATURES} signature lines`
  const text = utf8ToBytes(note.slice(0, end + 1))
  const verdicts = keys.flatMap((key) =>
    lines
      .filter((line) => line?.name === key.name && line.keyId === key.keyId)
      .map((line) => line!.signature.length === 64 && check(text, line!.signature, key.publicKey)),
  )
  if (verdicts.length === 0) return 'is not signed by the pinned key'
  return verdicts.every(Boolean) ? null : 'has a wrong signature by the pinned key'
}

function readSignatureLine(line: string) {
  const [, name = '', base64 = ''] = /^\u2014 (\S+) (\S+)$/.exec(line) ?? []
  const bytes = decodeBase64(base64)
  if (!name || !bytes || bytes.length < 5) return null
  return { name, keyId: bytesToHex(bytes.subarray(0, 4)), signature: bytes.subarray(4) }
}

/**
 * The pinned verifier key and the log's other trusted checkpoint keys: after a rotation the new key signs the
 * checkpoints. Throws a TypeError for a malformed pin.
 */
export function readVerifierKeys(vkey: string, trusted: readonly PinnedKey[]): VerifierKey[] {
  const pinned = readVerifierKey(vkey)
  const ours = trusted.filter(({ use }) => use === 'checkpoint')
  const hex = bytesToHex(pinned.publicKey)
  const disowned = ours.some(({ pubkey_hex, status }) => status === 'compromised' && pubkey_hex.toLowerCase() === hex)
  const others = ours.filter(({ pubkey_hex, status }) => status !== 'compromised' && pubkey_hex.toLowerCase() !== hex)
  return [...(disowned ? [] : [pinned]), ...others.map((key) => verifierKeyOf(pinned.name, readPublicKey(key)))]
}

/** The key of a log under its name. */
function verifierKeyOf(name: string, publicKey: Uint8Array): VerifierKey {
  return { name, keyId: noteKeyId(name, publicKey), publicKey }
}

function noteKeyId(name: string, publicKey: Uint8Array): string {
  return bytesToHex(sha256(concatBytes(utf8ToBytes(`${name}\n`), Uint8Array.of(ED25519), publicKey)).subarray(0, 4))
}

/** Throws a TypeError for anything but the verifier key of an Ed25519 key. */
export function readVerifierKey(vkey: string): VerifierKey {
  const [, name = '', keyId = '', base64 = ''] = /^([^\s+]+)\+([0-9a-f]{8})\+(\S+)$/.exec(vkey) ?? []
  const bytes = decodeBase64(base64)
  if (bytes?.length !== 33 || bytes[0] !== ED25519)
    throw new TypeError(`${vkey || 'The verifier key'} is not of the form name+hash+base64, for Ed25519`)
  if (noteKeyId(name, bytes.subarray(1)) !== keyId)
    throw new TypeError(`The verifier key of ${name} does not have its own key id`)
  return verifierKeyOf(name, readPublicKey({ key_id: 0, pubkey_hex: bytesToHex(bytes.subarray(1)) }))
}
