// A new signing key takes the place of an old one. The receipt key in force signs a receipt that introduces the new key;
// receipt, keys and head move in one transaction under the head's lock, so every receipt before it is signed with the old
// key and every one after it with the new, whichever process signs.
import { z } from 'zod'
import { type Database, nothing, sql, type Tx, transact } from '../db/pool.ts'
import type { Attestation } from '../interface/attestation.ts'
import { type LinkOptions, linkReceipts } from './chain.ts'
import { canonicalJson, sha256 } from './format.ts'
import { advanceHead, type Head, lockHead } from './head.ts'
import { deriveKey, findSigningKey, type KeyUse } from './keys.ts'
import { type ChainKeys, loadKeys } from './signer.ts'

/** Whose receipts introductions are; no account can have this name. */
export const ROTATION_REQUESTER = 'key-rotation'

/** What an introduction attests: `subject_sha256` is the SHA-256 of this object's canonical JSON. */
export interface KeyRecord {
  type: 'service.signing-key'
  version: 1
  key_id: number
  use: KeyUse
  alg: 'Ed25519'
  pubkey_hex: string
  /** The receipt after the introduction; null for uses that sign no receipts. */
  first_serial: number | null
}

export function keyRecord(key: Pick<KeyRecord, 'key_id' | 'use' | 'pubkey_hex' | 'first_serial'>): KeyRecord {
  const { key_id, use, pubkey_hex, first_serial } = key
  return { type: 'service.signing-key', version: 1, key_id, use, alg: 'Ed25519', pubkey_hex, first_serial }
}

export function subjectOfRecord(record: KeyRecord): string {
  return sha256(canonicalJson(record))
}

export interface Rotation {
  retired: number
  record: KeyRecord
  introduction: Attestation
}

/**
 * Retires the active key of a use and puts the next generation in force. It takes the place of nothing else: whoever has
 * the seed can derive every generation.
 */
export async function rotateKey(
  db: Database,
  seed: Buffer,
  use: KeyUse,
  options: { origin: string; now: () => number },
): Promise<Rotation> {
  return transact(db, async (tx) => {
    const head = await lockHead(tx)
    const retired = await findSigningKey(tx, seed, use)
    const next = await reserveKey(tx, use)
    const { publicKeyHex } = deriveKey(seed, use, next.generation)
    const first_serial = use === 'receipt' ? head.serial + 2 : null
    const record = keyRecord({ key_id: next.key_id, use, pubkey_hex: publicKeyHex, first_serial })
    const introduction = await introduce(tx, head, await loadKeys(tx, seed), record, options)
    await retireKey(tx, retired.keyId, use === 'receipt' ? introduction.serial : null)
    await insertKey(tx, record, next.generation, introduction.serial)
    await tx.query(sql.type(nothing)`update chain_head set key_changes = key_changes + 1`)
    return { retired: retired.keyId, record, introduction }
  })
}

async function introduce(tx: Tx, head: Head, keys: ChainKeys, record: KeyRecord, options: LinkOptions) {
  const subject = {
    subjectSha256: subjectOfRecord(record),
    label: introductionLabel(record.use),
    requestedBy: ROTATION_REQUESTER,
  }
  const extension = await linkReceipts(head, keys, [subject], options)
  await advanceHead(tx, extension)
  const [introduction] = extension.attestations
  if (!introduction) throw new Error('the introduction of a key has no receipt')
  return introduction
}

/** Says in the chain itself whether the next receipt must be signed with another key. */
export function introductionLabel(use: KeyUse): string {
  return `${use}-key`
}

/** The record must name the key before its row can be written: the row refers to the receipt over the record. */
function reserveKey(tx: Tx, use: KeyUse) {
  return tx.one(sql.type(z.object({ key_id: z.number(), generation: z.number() }))`
    select nextval(pg_get_serial_sequence('signing_keys', 'key_id')) key_id, max(generation) + 1 generation
    from signing_keys where use = ${use}`)
}

async function retireKey(tx: Tx, keyId: number, lastSerial: number | null) {
  await tx.query(sql.type(nothing)`
    update signing_keys set status = 'retired', retired_at = now(), last_serial = ${lastSerial} where key_id = ${keyId}`)
}

async function insertKey(tx: Tx, record: KeyRecord, generation: number, introducedBy: number) {
  await tx.query(sql.type(nothing)`
    insert into signing_keys (key_id, use, generation, pubkey, first_serial, introduced_by) overriding system value
    values (${record.key_id}, ${record.use}, ${generation}, decode(${record.pubkey_hex}, 'hex'), ${record.first_serial},
            ${introducedBy})`)
}
