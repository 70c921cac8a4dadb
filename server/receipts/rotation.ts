// Key rotation: a new signing key replaces the active one. The active receipt key signs a receipt that introduces the new key.
// Receipt, keys and head are written in one transaction under the head's lock, so every process signs all receipts before it
// with the old key and all after it with the new one.
import { z } from 'zod'
import { type Database, nothing, sql, type Tx, transact } from '../db/pool.ts'
import type { Attestation } from '../interface/attestation.ts'
import { type LinkOptions, linkReceipts } from './chain.ts'
import { canonicalJson, sha256 } from './format.ts'
import { advanceHead, type Head, lockHead } from './head.ts'
import { deriveKey, findSigningKey, type KeyUse } from './keys.ts'
import { type ChainKeys, loadKeys } from './signer.ts'

/** `requested_by` of introductions; no account can have this name. */
export const ROTATION_REQUESTER = 'key-rotation'

/** The subject of an introduction: its `subject_sha256` is the SHA-256 of this object's canonical JSON. */
export interface KeyRecord {
  type: 'service.signing-key'
  version: 1
  key_id: number
  use: KeyUse
  alg: 'Ed25519'
  pubkey_hex: string
  /** Serial of the receipt after the introduction; null for uses that sign no receipts. */
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
 * Retires the active key of a use and activates the next generation. This is no remedy for a stolen seed, from which every
 * generation can be derived.
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

/** Label of an introduction. A verifier learns from it whether another key signs the next receipt. */
function introductionLabel(use: KeyUse): string {
  return `${use}-key`
}

/** Id and generation of the new key. Its row comes later, because it refers to the receipt whose subject holds the id. */
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
