// Signed heads of the tree: C2SP checkpoints, which are signed notes.
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, concatBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { decodeBase64 } from './bytes.ts'
import { readPublicKey } from './keys.ts'
import type { TreeHead } from './merkle.ts'
import { isSigned, type SignatureCheck } from './signature.ts'

export interface Checkpoint extends TreeHead {
  /** The log's name. */
  origin: string
}

const ED25519 = 1

/** What a checkpoint says, whoever signed it; null for what is none. */
export function readCheckpoint(note: string): Checkpoint | null {
  const end = note.lastIndexOf('\n\n')
  const [origin, size = '', root = '', rest, ...more] = note.slice(0, end + 1).split('\n')
  const bytes = decodeBase64(root)
  if (end < 0 || !origin || rest !== '' || more.length > 0 || bytes?.length !== 32) return null
  if (!/^(0|[1-9][0-9]{0,15})$/.test(size) || !Number.isSafeInteger(Number(size))) return null
  return { origin, tree_size: Number(size), root_hash: bytesToHex(bytes) }
}

/**
 * Why a checkpoint is not signed by the key of a pinned verifier key (`name+hash+base64`), or null when it is. Lines of
 * other keys are passed over: a log may be changing its key, and witnesses sign beside it. Throws a TypeError for a
 * malformed pin.
 */
export function checkpointFault(note: string, vkey: string, check?: SignatureCheck): string | null {
  return noteFault(note, readVerifierKey(vkey), check)
}

export interface VerifierKey {
  name: string
  keyId: string
  publicKey: Uint8Array
}

export function noteFault(note: string, key: VerifierKey, check: SignatureCheck = isSigned): string | null {
  const checkpoint = readCheckpoint(note)
  if (!checkpoint) return 'is not a checkpoint'
  if (checkpoint.origin !== key.name) return `is of the log ${checkpoint.origin}, not of ${key.name}`
  const end = note.lastIndexOf('\n\n')
  if (!note.endsWith('\n')) return 'does not end with a newline'
  const lines = note
    .slice(end + 2, -1)
    .split('\n')
    .map(readSignatureLine)
  if (lines.includes(null)) return 'has a signature line that cannot be read'
  const ours = lines.filter((line) => line?.name === key.name && line.keyId === key.keyId)
  if (ours.length === 0) return 'is not signed by the pinned key'
  const text = utf8ToBytes(note.slice(0, end + 1))
  const good = ours.every((line) => line!.signature.length === 64 && check(text, line!.signature, key.publicKey))
  return good ? null : 'has a wrong signature by the pinned key'
}

function readSignatureLine(line: string) {
  const [, name = '', base64 = ''] = /^\u2014 (\S+) (\S+)$/.exec(line) ?? []
  const bytes = decodeBase64(base64)
  if (!name || !bytes || bytes.length < 5) return null
  return { name, keyId: bytesToHex(bytes.subarray(0, 4)), signature: bytes.subarray(4) }
}

/** Throws a TypeError for anything but the verifier key of an Ed25519 key. */
export function readVerifierKey(vkey: string): VerifierKey {
  const [, name = '', keyId = '', base64 = ''] = /^([^\s+]+)\+([0-9a-f]{8})\+(\S+)$/.exec(vkey) ?? []
  const bytes = decodeBase64(base64)
  if (bytes?.length !== 33 || bytes[0] !== ED25519)
    throw new TypeError(`${vkey || 'The verifier key'} is not of the form name+hash+base64, for Ed25519`)
  if (bytesToHex(sha256(concatBytes(utf8ToBytes(`${name}\n`), bytes)).subarray(0, 4)) !== keyId)
    throw new TypeError(`The verifier key of ${name} does not have its own key id`)
  return { name, keyId, publicKey: readPublicKey({ key_id: 0, pubkey_hex: bytesToHex(bytes.subarray(1)) }) }
}
