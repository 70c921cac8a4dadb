// Who is calling: API keys and what each may do. Only a key's hash is stored; a key that was typed wrong is refused by its
// checksum before the database is asked.
import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import { TIERS, type Tier } from './control/tiers.ts'
import { type Database, nothing, sql } from './db/pool.ts'
import { AppError } from './errors.ts'

export const SCOPES = [
  'account:read',
  'account:write',
  'lease:read',
  'lease:write',
  'receipt:write',
  'watchdog:read',
  'watchdog:write',
  'heartbeat:send',
  'journal:read',
  'journal:write',
] as const
export type Scope = (typeof SCOPES)[number]

/** The kinds of key that can be made. A cron file needs no more than `heartbeat`. */
export const KEY_KINDS = {
  full: SCOPES,
  read_only: SCOPES.filter((scope) => scope.endsWith(':read')),
  heartbeat: ['heartbeat:send'],
} as const satisfies Record<string, readonly Scope[]>
export type KeyKind = keyof typeof KEY_KINDS

export interface Caller {
  accountId: string
  handle: string
  tier: Tier
  apiKeyId: string
  kind: KeyKind
}

const PREFIX = 'ctk_'
const SECRET_BYTES = 32
const SECRET_CHARS = 43
const CHECKSUM_CHARS = 6
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const KEY_FORM = new RegExp(`^${PREFIX}([0-9A-Za-z]{${SECRET_CHARS}})([0-9A-Za-z]{${CHECKSUM_CHARS}})$`)

/** A new key: 32 random bytes in base 62 and their checksum, which tells typing errors and lets scanners find leaks. */
export function makeApiKey(): string {
  const secret = base62(BigInt(`0x${randomBytes(SECRET_BYTES).toString('hex')}`), SECRET_CHARS)
  return `${PREFIX}${secret}${checksum(secret)}`
}

/** What is stored of a key. A 256-bit random secret needs no slow hash: there is no dictionary to try. */
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

/** Keys seen a moment ago. A key revoked through another process is refused here this much later at most. */
export type CallerCache = LRUCache<string, Caller>
const CACHE_MS = 2000

export function buildCallerCache(): CallerCache {
  return new LRUCache({ max: 10_000, ttl: CACHE_MS })
}

const UNKNOWN = 'A valid API key is needed: Authorization: Bearer ctk_..., or the argument service_key of an MCP tool.'

/** Unknown, mistyped, expired and revoked keys get the same answer. Throws AppError `unauthenticated`. */
export async function authenticate(
  api: { db: Database; callers: CallerCache },
  key: string | undefined,
): Promise<Caller> {
  if (!key) throw refusal()
  const digest = hash('sha256', key, 'base64')
  const cached = api.callers.get(digest)
  if (cached) return cached
  const [, secret = '', sum] = key.match(KEY_FORM) ?? []
  if (checksum(secret) !== sum) throw refusal()
  const found = await findCaller(api.db, hashApiKey(key))
  if (!found) throw refusal()
  api.callers.set(digest, found)
  return found
}

function refusal() {
  return new AppError('unauthenticated', UNKNOWN, { headers: { 'www-authenticate': 'Bearer' } })
}

const callerRow = z.object({
  account_id: z.string(),
  handle: z.string(),
  tier: z.enum(TIERS),
  id: z.string(),
  kind: z.enum(['full', 'read_only', 'heartbeat']),
  stale: z.boolean(),
})

async function findCaller(db: Database, keyHash: Buffer): Promise<Caller | null> {
  const row = await db.maybeOne(sql.prepared('find_caller', callerRow)`
    select k.account_id, a.handle, a.tier, k.id, k.kind,
           coalesce(k.last_used_at < now() - interval '1 hour', true) stale
    from api_keys k join accounts a on a.id = k.account_id
    where k.key_hash = ${sql.binary(keyHash)} and (k.expires_at is null or k.expires_at > now())`)
  if (!row) return null
  if (row.stale) await db.query(sql.type(nothing)`update api_keys set last_used_at = now() where id = ${row.id}`)
  return { accountId: row.account_id, handle: row.handle, tier: row.tier, apiKeyId: row.id, kind: row.kind }
}

/** Throws AppError `forbidden`, naming what is missing. */
export function requireScope(caller: Caller, scope: Scope): void {
  const scopes: readonly Scope[] = KEY_KINDS[caller.kind]
  if (!scopes.includes(scope))
    throw new AppError('forbidden', `This API key is of kind ${caller.kind} and does not have the right ${scope}.`)
}
