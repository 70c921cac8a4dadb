// What must hold of a receipt that stands in the chain after others, and of the head that stands behind the last one.
import { type KeyObject, verify } from 'node:crypto'
import type { Attestation } from '../verification/result.ts'
import { checkpointText, NOTE_ED25519, noteKeyId, originOf, readNote } from './checkpoint.ts'
import { attestationPreimage, sha256 } from './format.ts'
import type { Head } from './head.ts'
import type { KeyUse } from './keys.ts'
import { keyRecord, ROTATION_REQUESTER, subjectOfRecord } from './rotation.ts'
import { type Growth, rootHash } from './tree.ts'

/** A receipt as it is stored. */
export type Inspected = Omit<Attestation, 'v' | 'ts_utc' | 'pubkey_hex' | 'sig_ed25519_hex'> & { signature: Buffer }

export interface KnownKey {
  key_id: number
  use: string
  pubkey_hex: string
  publicKey: KeyObject
  first_serial: number | null
  last_serial: number | null
  introduced_by: number | null
}

/** How far the walk along the chain has come. */
export interface Walk {
  tree: Growth
  prevHash: string
  tsMs: number
  /** Signatures checked so far. */
  signatures: number
}

/** The first fault of each kind, by name. */
export type Faults = Map<string, string>

/** @param sign whether its signature is to be checked; those at the end of a key's range always are */
export function inspectReceipt(receipt: Inspected, walk: Walk, keys: KnownKey[], faults: Faults, sign: boolean) {
  const { serial } = receipt
  const fault = (name: string, text: string) => void (faults.has(name) || faults.set(name, `serial ${serial} ${text}`))
  const key = keys.find((one) => one.use === 'receipt' && one.key_id === receipt.key_id)
  if (serial !== walk.tree.size + 1) fault('serials', `comes after ${walk.tree.size}`)
  if (receipt.prev_hash !== walk.prevHash) fault('links', 'does not link to the one before')
  if (receipt.ts_ms < walk.tsMs) fault('times', 'is earlier than the one before')
  if (!key) fault('keys', `is signed with key ${receipt.key_id}, which is no receipt key`)
  else inspectSigned(receipt, key, walk, fault, sign)
  for (const introduced of keys)
    if (introduced.introduced_by === serial) inspectIntroduction(receipt, introduced, fault)
  walk.tree.append(Buffer.from(receipt.receipt_hash, 'hex'))
  walk.prevHash = receipt.receipt_hash
  walk.tsMs = receipt.ts_ms
}

type Report = (name: string, text: string) => void

function inspectSigned(receipt: Inspected, key: KnownKey, walk: Walk, fault: Report, sign: boolean) {
  const { receipt_hash, signature, ...fields } = receipt
  const ts_utc = new Date(receipt.ts_ms).toISOString()
  const preimage = attestationPreimage({ ...fields, v: 1, ts_utc, pubkey_hex: key.pubkey_hex })
  if (sha256(preimage) !== receipt_hash) fault('hashes', 'does not have the hash of its fields')
  const last = key.last_serial ?? Number.POSITIVE_INFINITY
  if (receipt.serial < (key.first_serial ?? 1) || receipt.serial > last)
    fault('keys', `is signed with key ${key.key_id}, which was not in force for it`)
  if (!sign && receipt.serial !== key.last_serial) return
  walk.signatures++
  if (!verify(null, Buffer.from(preimage), key.publicKey, signature)) fault('signatures', 'is not signed by its key')
}

function inspectIntroduction(receipt: Inspected, key: KnownKey, fault: Report) {
  const record = keyRecord({ ...key, use: key.use as KeyUse })
  const introduces = receipt.requested_by === ROTATION_REQUESTER && receipt.subject_sha256 === subjectOfRecord(record)
  const follows = key.use !== 'receipt' || key.first_serial === receipt.serial + 1
  if (!introduces || !follows) fault('introductions', `does not introduce key ${key.key_id}`)
}

/** Holds the head against the walk that should have ended at it. */
export function inspectHead(head: Head, walk: Walk, keys: KnownKey[], faults: Faults) {
  const agrees = head.serial === walk.tree.size && head.receipt_hash === walk.prevHash && head.ts_ms === walk.tsMs
  if (!agrees) faults.set('head', `the head is not the last receipt (${walk.tree.size})`)
  if (!head.frontier.equals(walk.tree.frontier()))
    faults.set('frontier', 'the tree of the head is not over the receipts')
  const problem = checkpointFault(head, walk, keys)
  if (problem) faults.set('checkpoint', problem)
}

function checkpointFault({ checkpoint }: Head, { tree }: Walk, keys: KnownKey[]): string | null {
  const origin = originOf(checkpoint)
  if (tree.size === 0) return origin === null ? null : 'there is a checkpoint of an empty chain'
  const note = readNote(checkpoint)
  if (!note || origin === null) return 'the checkpoint is not a signed note'
  if (note.text !== checkpointText(origin, tree.size, rootHash(tree.size, tree.nodeAt)))
    return 'the checkpoint is not of this tree'
  const signed = note.signatures.flatMap((line) => {
    const key = keys.find(({ use, pubkey_hex }) => {
      const keyId = noteKeyId(origin, NOTE_ED25519, Buffer.from(pubkey_hex, 'hex'))
      return use === 'checkpoint' && line.name === origin && keyId.equals(line.keyId)
    })
    return key ? [verify(null, Buffer.from(note.text), key.publicKey, line.signature)] : []
  })
  return signed.length > 0 && signed.every(Boolean) ? null : 'the checkpoint is not signed by a checkpoint key'
}
