// Signing keys: one per purpose, all derived from one seed, so that a signature made for one thing can never be read as
// another. The database knows every public key that ever signed; the seed and the private keys are nowhere but in memory.
import { createPrivateKey, createPublicKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { type Database, sql, type Tx, transact } from '../db/pool.ts'
import type { SigningKey } from './format.ts'

export const KEY_USES = ['receipt', 'lease', 'webhook', 'checkpoint'] as const
export type KeyUse = (typeof KEY_USES)[number]

/** DER prefix of an Ed25519 private key in PKCS #8 (RFC 8410); the 32 bytes of the key follow. */
const PKCS8_ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex')

/** 32 bytes for one purpose (HKDF-SHA-256). */
export function deriveSecret(seed: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', seed, Buffer.alloc(0), `countersign ${purpose} v1`, 32))
}

function derivePrivateKey(seed: Buffer, use: KeyUse) {
  const key = Buffer.concat([PKCS8_ED25519, deriveSecret(seed, `${use} key`)])
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' })
}

/**
 * The seed kept in `folder`, made on first use (mode 0600). Several processes may start at once: the first one's file
 * wins and the others read it.
 */
export function keptSeed(folder: string): Buffer {
  const path = join(folder, 'signing-seed')
  mkdirSync(folder, { recursive: true })
  try {
    writeFileSync(path, `${randomBytes(32).toString('hex')}\n`, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const text = readFileSync(path, 'utf8').trim()
  if (!/^[0-9a-f]{64}$/i.test(text)) throw new Error(`${path} does not hold a signing seed`)
  return Buffer.from(text, 'hex')
}

function publicKeyHexOf(privateKey: KeyObject): string {
  return createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex')
}

/** Whether this seed makes the active key of the use; null when there is none yet. Reads only. */
export async function isActiveKey(db: Database, seed: Buffer, use: KeyUse): Promise<boolean | null> {
  const active = await db.maybeOneFirst(sql.type(z.object({ pubkey_hex: z.string() }))`
    select encode(pubkey, 'hex') pubkey_hex from signing_keys where use = ${use} and status = 'active'`)
  return active === null ? null : active === publicKeyHexOf(derivePrivateKey(seed, use))
}

/**
 * The active key of one use, registered in the database on first sight. Refuses when the database's active key is
 * another one: signing on with a changed seed would break every verifier that pinned the old key.
 */
export async function openSigningKey(db: Database, seed: Buffer, use: KeyUse): Promise<SigningKey> {
  const privateKey = derivePrivateKey(seed, use)
  const publicKeyHex = publicKeyHexOf(privateKey)
  const keyId = await transact(db, (tx) => registerKey(tx, use, publicKeyHex))
  return { keyId, publicKeyHex, privateKey }
}

async function registerKey(tx: Tx, use: KeyUse, publicKeyHex: string): Promise<number> {
  const pubkey = Buffer.from(publicKeyHex, 'hex')
  await tx.query(sql.type(z.object({ key_id: z.number() }))`
    insert into signing_keys (use, pubkey) values (${use}, ${sql.binary(pubkey)}) on conflict do nothing returning key_id`)
  const active = await tx.maybeOne(sql.type(z.object({ key_id: z.number(), pubkey_hex: z.string() }))`
    select key_id, encode(pubkey, 'hex') pubkey_hex from signing_keys where use = ${use} and status = 'active'`)
  if (active?.pubkey_hex === publicKeyHex) return active.key_id
  throw new Error(
    `The ${use} key of this signing seed is not the active one of this database (key_id ${active?.key_id}). ` +
      'Start with the seed that made it.',
  )
}

export const publicKey = z.strictObject({
  key_id: z.int().min(0),
  use: z.enum(KEY_USES),
  alg: z.literal('Ed25519'),
  pubkey_hex: z.string().regex(/^[0-9a-f]{64}$/),
  status: z.enum(['active', 'retired', 'compromised']),
  first_serial: z.int().nullable().describe('First receipt signed with it; null for other uses or before the first.'),
  last_serial: z.int().nullable().describe('Last receipt it may have signed; null while active.'),
  created_at: z.string(),
})

/** Every key ever used, oldest first. */
export function listKeys(tx: Tx) {
  return tx.any(sql.type(publicKey)`
    select key_id, use, 'Ed25519' alg, encode(pubkey, 'hex') pubkey_hex, status,
           case when use = 'receipt' then
             (select min(serial) from receipts r where r.key_id = k.key_id) end first_serial,
           case when use = 'receipt' and status <> 'active' then
             (select max(serial) from receipts r where r.key_id = k.key_id) end last_serial,
           to_char(created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') created_at
    from signing_keys k order by key_id`)
}
