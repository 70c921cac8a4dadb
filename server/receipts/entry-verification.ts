// Verifies a receipt in its place in the chain, and the head after the last receipt.
import { type KeyObject, verify } from 'node:crypto'
import type { Attestation } from '../interface/attestation.ts'
import { checkpointText, NOTE_ED25519, noteKeyId, originOf, readNote } from './checkpoint.ts'
import { attestationPreimage, sha256 } from './format.ts'
import type { Head } from './head.ts'
import type { KeyUse } from './keys.ts'
import { keyRecord, ROTATION_REQUESTER, subjectOfRecord } from './rotation.ts'
import { type Growth, rootHash } from './tree.ts'

/** A receipt as the table holds it. */
export type StoredReceipt = Omit<Attestation, 'v' | 'ts_utc' | 'pubkey_hex' | 'sig_ed25519_hex'> & { signature: Buffer }

export interface KnownKey {
  key_id: number
  use: KeyUse
  pubkey_hex: string
  publicKey: KeyObject
  first_serial: number | null
  last_serial: number | null
  introduced_by: number | null
}

/** The state of a walk along the chain. `verifyEntry` moves it on by one receipt. */
export interface Walk {
  serial: number
  prevHash: string
  tsMs: number
  /** Null when the walk does not check the tree. */
  tree: Growth | null
}

/** Takes a fault: the name of the check, the receipt's serial, the text. */
export type Report = (name: string, serial: number, text: string) => void

/** A receipt's signature, the text it must cover and the key it must be made with. */
export interface Signed {
  serial: number
  text: string
  key: KnownKey
  signature: Buffer
}

/** Checks all of a receipt but its signature, and moves the walk on. Answers the signature to check; null without a key. */
export function verifyEntry(receipt: StoredReceipt, walk: Walk, keys: KnownKey[], report: Report): Signed | null {
  const { serial } = receipt
  const fault = (name: string, text: string) => report(name, serial, text)
  const key = keys.find((one) => one.use === 'receipt' && one.key_id === receipt.key_id)
  if (serial !== walk.serial + 1) fault('serials', `comes after ${walk.serial}`)
  if (receipt.prev_hash !== walk.prevHash) fault('links', 'does not link to the one before')
  if (receipt.ts_ms < walk.tsMs) fault('times', 'is earlier than the one before')
  if (!key) fault('keys', `is signed with key ${receipt.key_id}, which is no receipt key`)
  const signed = key ? verifyHash(receipt, key, fault) : null
  for (const introduced of keys) if (introduced.introduced_by === serial) verifyIntroduction(receipt, introduced, fault)
  walk.tree?.append(Buffer.from(receipt.receipt_hash, 'hex'))
  walk.serial = serial
  walk.prevHash = receipt.receipt_hash
  walk.tsMs = receipt.ts_ms
  return signed
}

export function isSigned({ text, key, signature }: Omit<Signed, 'serial'>): boolean {
  return verify(null, Buffer.from(text), key.publicKey, signature)
}

type Fault = (name: string, text: string) => void

function verifyHash(receipt: StoredReceipt, key: KnownKey, fault: Fault): Signed {
  const { receipt_hash, signature, ...fields } = receipt
  const ts_utc = new Date(receipt.ts_ms).toISOString()
  const text = attestationPreimage({ ...fields, v: 1, ts_utc, pubkey_hex: key.pubkey_hex })
  if (sha256(text) !== receipt_hash) fault('hashes', 'does not have the hash of its fields')
  if (!isInForce(key, receipt.serial)) fault('keys', `is signed with key ${key.key_id}, which was not in force for it`)
  return { serial: receipt.serial, text, key, signature }
}

/** Whether this key was the one to sign the receipt of this serial. */
export function isInForce({ first_serial, last_serial }: KnownKey, serial: number): boolean {
  return serial >= (first_serial ?? 1) && serial <= (last_serial ?? Number.POSITIVE_INFINITY)
}

function verifyIntroduction(receipt: StoredReceipt, key: KnownKey, fault: Fault) {
  const record = keyRecord(key)
  const introduces = receipt.requested_by === ROTATION_REQUESTER && receipt.subject_sha256 === subjectOfRecord(record)
  const follows = key.use !== 'receipt' || key.first_serial === receipt.serial + 1
  if (!introduces || !follows) fault('introductions', `does not introduce key ${key.key_id}`)
}

/** Compares the head with the walk that ends at it. */
export function verifyHead(
  head: Head,
  walk: Walk & { tree: Growth },
  keys: KnownKey[],
  report: (name: string, text: string) => void,
) {
  const agrees = head.serial === walk.tree.size && head.receipt_hash === walk.prevHash && head.ts_ms === walk.tsMs
  if (!agrees) report('head', `the head is not the last receipt (${walk.tree.size})`)
  if (!head.frontier.equals(walk.tree.frontier())) report('frontier', 'the tree of the head is not over the receipts')
  const { size, nodeAt } = walk.tree
  const problem = checkpointFault(head.checkpoint, size, rootHash(size, nodeAt), keys)
  if (problem) report('checkpoint', problem)
}

/** Null for a checkpoint that a key of the service signed over this tree; otherwise what is wrong with it. */
export function checkpointFault(checkpoint: string, size: number, root: Buffer, keys: KnownKey[]): string | null {
  const origin = originOf(checkpoint)
  if (size === 0) return origin === null ? null : 'there is a checkpoint of an empty chain'
  const note = readNote(checkpoint)
  if (!note || origin === null) return 'the checkpoint is not a signed note'
  if (note.text !== checkpointText(origin, size, root)) return 'the checkpoint is not of this tree'
  const signed = keys.flatMap(({ use, pubkey_hex, publicKey }) => {
    const keyId = noteKeyId(origin, NOTE_ED25519, Buffer.from(pubkey_hex, 'hex'))
    const line = note.signatures.find((line) => line.name === origin && keyId.equals(line.keyId))
    return use === 'checkpoint' && line ? [verify(null, Buffer.from(note.text), publicKey, line.signature)] : []
  })
  return signed.length > 0 && signed.every(Boolean) ? null : 'the checkpoint is not signed by a checkpoint key'
}
