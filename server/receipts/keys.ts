// Signing keys: one per use and generation, derived from one seed, so that a signature for one use is never valid for another.
// The database holds every public key that ever signed. Private keys are in memory only.
import { createPrivateKey, createPublicKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { existsSync, linkSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { checkDataFolder, makeDataFolder } from '../config/data-folder.ts'
import { type Database, nothing, sql, type Tx, transact } from '../db/pool.ts'
import { utcMilliseconds } from '../db/time.ts'
import type { SigningKey } from './format.ts'

export const KEY_USES = ['receipt', 'lease', 'webhook', 'checkpoint'] as const
export type KeyUse = (typeof KEY_USES)[number]

/** DER prefix of an Ed25519 private key in PKCS #8 (RFC 8410); the 32 bytes of the key follow. */
const PKCS8_ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex')

/** 32 bytes for one purpose (HKDF-SHA-256). */
export function deriveSecret(seed: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', seed, Buffer.alloc(0), `countersign ${purpose} v1`, 32))
}

/** @param generation 1 for the first key of a use, one more with every rotation */
export function deriveKey(seed: Buffer, use: KeyUse, generation: number): Omit<SigningKey, 'keyId'> {
  const secret = deriveSecret(seed, generation === 1 ? `${use} key` : `${use} key ${generation}`)
  const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8_ED25519, secret]), format: 'der', type: 'pkcs8' })
  return { privateKey, publicKeyHex: publicKeyHexOf(privateKey) }
}

function publicKeyHexOf(privateKey: KeyObject): string {
  return createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex')
}

/**
 * The seed in the folder's file `signing-seed`, made on first use (mode 0600). Of processes that start at once, one makes the
 * file and the others read it. The file is complete and on the disk before it has its name: losing a seed that has signed
 * loses all keys.
 */
export function keptSeed(folder: string): Buffer {
  const path = join(folder, 'signing-seed')
  makeDataFolder(folder)
  if (!existsSync(path)) {
    checkDataFolder(folder)
    keepSeed(path, randomBytes(32))
  }
  const text = readFileSync(path, 'utf8').trim()
  if (!/^[0-9a-f]{64}$/i.test(text)) throw new Error(`${path} does not hold a signing seed`)
  return Buffer.from(text, 'hex')
}

function keepSeed(path: string, seed: Buffer) {
  const draft = `${path}.${randomBytes(8).toString('hex')}`
  writeFileSync(draft, `${seed.toString('hex')}\n`, { flag: 'wx', mode: 0o600, flush: true })
  try {
    linkSync(draft, path)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  } finally {
    unlinkSync(draft)
  }
}

/** Whether the active key of a use comes from this seed; null when there is no key yet. Writes nothing. */
export async function isActiveKey(db: Database, seed: Buffer, use: KeyUse): Promise<boolean | null> {
  const active = await db.maybeOne(sql.type(activeKey)`${activeKeys(use)}`)
  return active && deriveKey(seed, use, active.generation).publicKeyHex === active.pubkey_hex
}

/**
 * The active key of one use; registers the first key of a use. Throws when the active key does not come from this seed:
 * signatures by another seed would fail at every verifier that pinned the key.
 */
export async function openSigningKey(db: Database, seed: Buffer, use: KeyUse): Promise<SigningKey> {
  const pubkey = Buffer.from(deriveKey(seed, use, 1).publicKeyHex, 'hex')
  return transact(db, async (tx) => {
    // Only if there is none: each attempt to insert uses up a number of the sequence, and every process tries when it
    // starts.
    await tx.query(sql.type(nothing)`
      insert into signing_keys (use, generation, pubkey, first_serial)
      select ${use}, 1, ${sql.binary(pubkey)}, ${use === 'receipt' ? 1 : null}::bigint
      where not exists (select from signing_keys where use = ${use}) on conflict do nothing`)
    return findSigningKey(tx, seed, use)
  })
}

/** As `openSigningKey`, but registers nothing. */
export async function findSigningKey(tx: Tx, seed: Buffer, use: KeyUse): Promise<SigningKey> {
  const active = await tx.maybeOne(sql.type(activeKey)`${activeKeys(use)}`)
  const key = active && deriveKey(seed, use, active.generation)
  if (key?.publicKeyHex === active?.pubkey_hex && key && active) return { ...key, keyId: active.key_id }
  throw new Error(
    `The ${use} key of this signing seed is not the active one of this database (key_id ${active?.key_id}). ` +
      'Start with the seed that made it.',
  )
}

const activeKey = z.object({ key_id: z.number(), generation: z.number(), pubkey_hex: z.string() })
const activeKeys = (use: KeyUse) => sql.fragment`
  select key_id, generation, encode(pubkey, 'hex') pubkey_hex from signing_keys where use = ${use} and status = 'active'`

export const publicKey = z.strictObject({
  key_id: z.int().min(0),
  use: z.enum(KEY_USES),
  alg: z.literal('Ed25519'),
  pubkey_hex: z.string().regex(/^[0-9a-f]{64}$/),
  status: z.enum(['active', 'retired', 'compromised']),
  first_serial: z
    .int()
    .nullable()
    .describe('First receipt it may sign; null for other uses, and before the first receipt of the chain.'),
  last_serial: z.int().nullable().describe('Last receipt it may have signed; null while active and for other uses.'),
  introduced_by: z
    .int()
    .nullable()
    .describe('Serial of the receipt that introduced it; null for the first key of its use.'),
  created_at: z.string(),
})

/** Every key, oldest first. */
export function listKeys(db: Tx | Database) {
  return db.any(sql.type(publicKey)`
    select key_id, use, 'Ed25519' alg, encode(pubkey, 'hex') pubkey_hex, status,
           case when h.serial > 0 then first_serial end first_serial, last_serial, introduced_by,
           ${utcMilliseconds(sql.fragment`created_at`)} created_at
    from signing_keys k cross join chain_head h order by key_id`)
}

/** Whether there is exactly one active key for receipts, so that they can be signed. */
export async function hasActiveReceiptKey(db: Pick<Database, 'any'>): Promise<boolean> {
  return (await db.any(sql.type(activeKey)`${activeKeys('receipt')}`)).length === 1
}
