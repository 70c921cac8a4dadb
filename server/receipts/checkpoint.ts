// Signed heads of the tree in the formats C2SP tlog-checkpoint and signed-note, which the tools and witnesses of
// transparency logs read.
import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto'
import type { SigningKey } from './format.ts'

/** Signature types of signed-note: Ed25519 over the note's text, and over a witness's timestamped form of it. */
export const NOTE_ED25519 = 1
export const COSIGNATURE_ED25519 = 4

/** Key id of signed-note, four bytes: it tells apart the signatures of one name. */
export function noteKeyId(name: string, type: number, publicKey: Uint8Array): Buffer {
  return createHash('sha256').update(`${name}\n`).update(Buffer.of(type)).update(publicKey).digest().subarray(0, 4)
}

/** @param raw the 32 bytes of an Ed25519 public key */
export function publicKeyOf(raw: Buffer): KeyObject {
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: raw.toString('base64url') }, format: 'jwk' })
}

/** Verifier key of signed-note: name, key id and key in one line, which a monitor pins. */
export function verifierKey(name: string, publicKeyHex: string): string {
  const publicKey = Buffer.from(publicKeyHex, 'hex')
  const encoded = Buffer.concat([Buffer.of(NOTE_ED25519), publicKey]).toString('base64')
  return `${name}+${noteKeyId(name, NOTE_ED25519, publicKey).toString('hex')}+${encoded}`
}

/** Name of the log in its checkpoints: the URL of its tiles without the scheme, as transparency logs are named. */
export function logOrigin(baseUrl: string | undefined): string {
  return baseUrl ? baseUrl.replace(/^https?:\/\//, '').replaceAll('+', '%2B') : 'countersign/log'
}

/** The signed text: the log's name, the tree's size and its root. */
export function checkpointText(origin: string, size: number, root: Buffer): string {
  return `${origin}\n${size}\n${root.toString('base64')}\n`
}

/**
 * @param origin name of the log and of its signing keys; it never changes
 * @param keys one signature line each
 */
export function signCheckpoint(origin: string, size: number, root: Buffer, keys: readonly SigningKey[]): string {
  const text = checkpointText(origin, size, root)
  const lines = keys.map((key) => {
    const keyId = noteKeyId(origin, NOTE_ED25519, Buffer.from(key.publicKeyHex, 'hex'))
    return signatureLine(origin, keyId, sign(null, Buffer.from(text), key.privateKey))
  })
  return `${text}\n${lines.join('')}`
}

export function signatureLine(name: string, keyId: Uint8Array, signature: Uint8Array): string {
  return `\u2014 ${name} ${Buffer.concat([keyId, signature]).toString('base64')}\n`
}

/** The log's name in a checkpoint, or null for the empty text before the first one. */
export function originOf(checkpoint: string): string | null {
  return checkpoint === '' ? null : checkpoint.slice(0, checkpoint.indexOf('\n'))
}

export interface NoteSignature {
  name: string
  keyId: Buffer
  signature: Buffer
}

/** Text and signatures of a signed note, or null for text of another form. Verifies nothing. */
export function readNote(note: string): { text: string; signatures: NoteSignature[] } | null {
  const end = note.lastIndexOf('\n\n')
  if (end < 0 || !note.endsWith('\n')) return null
  const signatures = note
    .slice(end + 2, -1)
    .split('\n')
    .map(readSignatureLine)
  return signatures.every((one) => one !== null) ? { text: note.slice(0, end + 1), signatures } : null
}

export function readSignatureLine(line: string): NoteSignature | null {
  const [, name, base64 = ''] = line.match(/^\u2014 (\S+) ([A-Za-z0-9+/]+={0,2})$/) ?? []
  const bytes = Buffer.from(base64, 'base64')
  if (!name || bytes.length < 5 || bytes.toString('base64') !== base64) return null
  return { name, keyId: bytes.subarray(0, 4), signature: bytes.subarray(4) }
}
