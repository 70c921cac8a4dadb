// Who is calling: API keys and what each may do. Only a key's hash is stored; a key that was typed wrong is refused by its
// checksum before the database is asked.
import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import { type Database, nothing, sql } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import type { RateLimits } from './rate-limit.ts'
import { TIERS, type Tier } from './tiers.ts'

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

const CACHE_MS = 2000
const MAX_RECENT = 10_000
const MAX_VALID = 50_000

/**
 * What this process knows of keys, by their digests. Who a key is for is believed for two seconds: a key revoked through
 * another process is refused here that much later at most. That a key was valid is remembered longer, and is worth one
 * thing: the next look into the database for it is not counted against the caller's address.
 */
export class KnownCallers {
  readonly #recent = new LRUCache<string, Caller>({ max: MAX_RECENT, ttl: CACHE_MS })
  readonly #valid = new LRUCache<string, true>({ max: MAX_VALID })
  readonly #lookUps = new Map<string, Promise<Caller | null>>()

  /** @param digests SHA-256 of keys in base64 that were valid a while ago */
  constructor(digests: Iterable<string> = []) {
    for (const digest of digests) this.#valid.set(digest, true)
  }

  find(digest: string): Caller | undefined {
    return this.#recent.get(digest)
  }

  wasValid(digest: string): boolean {
    return this.#valid.has(digest)
  }

  /** One look for all who show the same key at the same time. */
  lookUp(digest: string, look: () => Promise<Caller | null>): Promise<Caller | null> {
    const running = this.#lookUps.get(digest)
    if (running) return running
    const started = look()
      .then((found) => this.#learn(digest, found))
      .finally(() => this.#lookUps.delete(digest))
    this.#lookUps.set(digest, started)
    return started
  }

  #learn(digest: string, found: Caller | null) {
    if (found) {
      this.#recent.set(digest, found)
      this.#valid.set(digest, true)
    } else this.#valid.delete(digest)
    return found
  }

  /** Every key is looked for anew: a key or a tier has changed. */
  clear(): void {
    this.#recent.clear()
  }
}

/** The keys of the last day, so that after a start callers who were here before are known from their first call on. */
export async function openKnownCallers(db: Database): Promise<KnownCallers> {
  const used = await db.anyFirst(sql.type(z.object({ digest: z.string() }))`
    select encode(key_hash, 'base64') digest from api_keys
    where last_used_at > now() - interval '1 day' order by last_used_at desc limit ${MAX_VALID}`)
  return new KnownCallers(used)
}

interface Desk {
  db: Database
  callers: KnownCallers
  limits: Pick<RateLimits, 'spendLookUp' | 'giveBackLookUp'>
}

/**
 * Whose key it is; null for one that is unknown, mistyped, expired or revoked. Throws AppError `rate_limited` when it would
 * have to be looked for in the database and too many from this address were none.
 */
export async function recognise(desk: Desk, key: string, address: string): Promise<Caller | null> {
  const digest = hash('sha256', key, 'base64')
  const recent = desk.callers.find(digest)
  if (recent) return recent
  const [, secret = '', sum] = key.match(KEY_FORM) ?? []
  if (checksum(secret) !== sum) return null
  return desk.callers.lookUp(digest, () => findCounted(desk, digest, address))
}

/** Counted before the look, so that many at once cannot pass; a key that is one costs its address nothing. */
async function findCounted({ db, callers, limits }: Desk, digest: string, address: string): Promise<Caller | null> {
  const keyHash = Buffer.from(digest, 'base64')
  if (callers.wasValid(digest)) return findCaller(db, keyHash)
  await limits.spendLookUp(address)
  const found = await findCaller(db, keyHash)
  if (found) await limits.giveBackLookUp(address)
  return found
}

/** Unknown, mistyped, expired and revoked keys get the same answer. */
export function unauthenticated(): AppError {
  const message =
    'A valid API key is needed: Authorization: Bearer ctk_..., or the argument service_key of an MCP tool.'
  return new AppError('unauthenticated', message, { headers: { 'www-authenticate': 'Bearer' } })
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
