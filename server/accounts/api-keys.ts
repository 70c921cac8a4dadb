// API keys: their text and their record. Only the SHA-256 of a key is stored. The text carries a checksum, so that a mistyped
// key is refused without a query.
import { hash, randomBytes, randomUUID } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { z } from 'zod'
import { nothing, sql, type Tx } from '../db/pool.ts'
import type { AppError } from '../errors.ts'
import { lockAccount } from './account.ts'
import { type KeyKind, keyKind } from './scopes.ts'

const PREFIX = 'ctk_'
const SECRET_BYTES = 32
const SECRET_CHARS = 43
const CHECKSUM_CHARS = 6
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const KEY_FORM = new RegExp(`^${PREFIX}([0-9A-Za-z]{${SECRET_CHARS}})([0-9A-Za-z]{${CHECKSUM_CHARS}})$`)

/** A new key: `ctk_`, 32 random bytes in base 62, and a CRC-32 that detects typing errors and lets scanners find leaked keys. */
export function makeApiKey(): string {
  const secret = base62(BigInt(`0x${randomBytes(SECRET_BYTES).toString('hex')}`), SECRET_CHARS)
  return `${PREFIX}${secret}${checksum(secret)}`
}

/** Whether the text has the form and the checksum of a key. It says nothing about whether the key exists. */
export function isWellFormedApiKey(text: string): boolean {
  const [, secret = '', sum] = text.match(KEY_FORM) ?? []
  return checksum(secret) === sum
}

/** The stored form of a key. A 256-bit random secret needs no slow hash: no dictionary contains it. */
export function hashApiKey(key: string): Buffer {
  return hash('sha256', key, 'buffer')
}

function checksum(secret: string): string {
  return base62(BigInt(crc32(secret)), CHECKSUM_CHARS)
}

function base62(value: bigint, length: number): string {
  let rest = value
  let text = ''
  while (text.length < length) {
    text = ALPHABET[Number(rest % 62n)] + text
    rest /= 62n
  }
  return text
}

interface NewApiKey {
  accountId: string
  kind: KeyKind
  label: string | null
}

/** Returns the key itself, which is shown once and stored nowhere. */
export async function insertApiKey(tx: Tx, key: NewApiKey): Promise<{ id: string; apiKey: string }> {
  const id = randomUUID()
  const apiKey = makeApiKey()
  await tx.query(sql.type(nothing)`
    insert into api_keys (id, account_id, key_hash, kind, label)
    values (${id}, ${key.accountId}, ${sql.binary(hashApiKey(apiKey))}, ${key.kind}, ${key.label})`)
  return { id, apiKey }
}

/**
 * As `insertApiKey`, for an account that may have `limit` keys. Ended keys are deleted first: their owner no longer sees them.
 * Throws the error of `refuse` where the account has `limit` keys already.
 */
export async function addApiKey(
  tx: Tx,
  key: NewApiKey,
  { limit, refuse }: { limit: number; refuse: () => AppError },
): Promise<{ id: string; apiKey: string }> {
  await lockAccount(tx, key.accountId)
  await tx.query(sql.type(nothing)`
    delete from api_keys where account_id = ${key.accountId} and expires_at <= now()`)
  if ((await countApiKeys(tx, key.accountId)) >= limit) throw refuse()
  return insertApiKey(tx, key)
}

/** True of a key `k` that has not ended. */
export const isInForce = sql.fragment`(k.expires_at is null or k.expires_at > now())`

/** Keys that count against `api_keys`: every one that has not ended, also one that is due to end. */
export function countApiKeys(tx: Tx, accountId: string): Promise<number> {
  return tx.oneFirst(sql.type(z.object({ n: z.number() }))`
    select count(*) n from api_keys k where account_id = ${accountId} and ${isInForce}`)
}

export const apiKeyRow = z.strictObject({
  id: z.uuid(),
  kind: keyKind,
  label: z.string().nullable(),
  created_at: z.string(),
  expires_at: z.string().nullable(),
  last_used_at: z.string().nullable().describe('To the hour; null when it was never used.'),
})

const iso = (column: string) =>
  sql.fragment`to_char(${sql.identifier([column])} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`

/** Keys that have not ended, the oldest first. */
export function findApiKeys(tx: Tx, accountId: string) {
  return tx.any(sql.type(apiKeyRow)`
    select id, kind, label, ${iso('created_at')} created_at, ${iso('expires_at')} expires_at,
           ${iso('last_used_at')} last_used_at
    from api_keys k where account_id = ${accountId} and ${isInForce} order by k.created_at, id`)
}

/**
 * Ends a key: at once without `at`, else at that time, so that its successor can be put in place. A key that ends earlier
 * keeps its end. False where the account has no such key.
 */
export async function endApiKey(tx: Tx, accountId: string, id: string, at: Date | null): Promise<boolean> {
  const ended = at
    ? await tx.query(sql.type(nothing)`
        update api_keys set expires_at = least(coalesce(expires_at, 'infinity'), ${at.toISOString()}::timestamptz)
        where account_id = ${accountId} and id = ${id}`)
    : await tx.query(sql.type(nothing)`delete from api_keys where account_id = ${accountId} and id = ${id}`)
  return ended.rowCount === 1
}
