// Authentication: from the API key of a call to the account that calls, with a short cache in front of the database.
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import { atMost } from '../db/cache-bound.ts'
import { type Database, nothing, sql } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { isInForce, isWellFormedApiKey } from './api-keys.ts'
import type { RateLimits } from './rate-limit.ts'
import { KEY_SCOPES, type KeyKind, keyKind, type Scope } from './scopes.ts'
import { TIERS, type Tier } from './tiers.ts'

export interface Caller {
  accountId: string
  handle: string
  tier: Tier
  apiKeyId: string
  kind: KeyKind
}

const CACHE_MS = 2000
const MAX_CACHED = 10_000
const MAX_VALID = 50_000

/**
 * A cache of this process for keys, by their digests. The caller of a key is cached for two seconds, so a key that another
 * process revokes is refused here at most two seconds later. The cache remembers for longer that a key was valid. This has
 * one effect: the next query for the key is not counted against the caller's address.
 */
export class CallerCache {
  readonly #callers = new LRUCache<string, Caller>({ ...atMost(MAX_CACHED), ttl: CACHE_MS })
  readonly #valid = new LRUCache<string, true>(atMost(MAX_VALID))
  readonly #lookUps = new Map<string, Promise<Caller | null>>()

  /** @param digests SHA-256 in base64 of keys that were valid recently */
  constructor(digests: Iterable<string> = []) {
    for (const digest of digests) this.#valid.set(digest, true)
  }

  find(digest: string): Caller | undefined {
    return this.#callers.get(digest)
  }

  wasValid(digest: string): boolean {
    return this.#valid.has(digest)
  }

  /** Concurrent calls with the same key share one `query`. */
  lookUp(digest: string, query: () => Promise<Caller | null>): Promise<Caller | null> {
    const running = this.#lookUps.get(digest)
    if (running) return running
    const started = query()
      .then((found) => this.#remember(digest, found))
      .finally(() => this.#lookUps.delete(digest))
    this.#lookUps.set(digest, started)
    return started
  }

  #remember(digest: string, found: Caller | null) {
    if (found) {
      this.#callers.set(digest, found)
      this.#valid.set(digest, true)
    } else this.#valid.delete(digest)
    return found
  }

  /** To be called when a key or a tier has changed: the next call of every key reads the database. */
  clear(): void {
    this.#callers.clear()
  }
}

/** Starts with the keys used in the last day, so that after a restart their first call is not counted against an address. */
export async function openCallerCache(db: Database): Promise<CallerCache> {
  const used = await db.anyFirst(sql.type(z.object({ digest: z.string() }))`
    select encode(key_hash, 'base64') digest from api_keys
    where last_used_at > now() - interval '1 day' order by last_used_at desc limit ${MAX_VALID}`)
  return new CallerCache(used)
}

interface Authentication {
  db: Database
  callers: CallerCache
  limits: Pick<RateLimits, 'spendLookUp' | 'giveBackLookUp'>
}

/**
 * The caller whose key this is; null for an unknown, mistyped, expired or revoked key. Throws AppError `rate_limited` where the
 * key needs a query and its address has shown too many unknown keys.
 */
export async function authenticate(context: Authentication, key: string, address: string): Promise<Caller | null> {
  const digest = hash('sha256', key, 'base64')
  const cached = context.callers.find(digest)
  if (cached) return cached
  if (!isWellFormedApiKey(key)) return null
  return context.callers.lookUp(digest, () => findCounted(context, digest, address))
}

/** Counts before the query, so that concurrent calls cannot pass the limit; a key that exists is given back. Throws AppError `forbidden` for a disabled account. */
async function findCounted(
  { db, callers, limits }: Authentication,
  digest: string,
  address: string,
): Promise<Caller | null> {
  const keyHash = Buffer.from(digest, 'base64')
  if (callers.wasValid(digest)) return findCaller(db, keyHash)
  await limits.spendLookUp(address)
  const found = await findCaller(db, keyHash)
  if (found) await limits.giveBackLookUp(address)
  return found
}

const callerRow = z.object({
  account_id: z.string(),
  handle: z.string(),
  tier: z.enum(TIERS),
  id: z.string(),
  kind: keyKind,
  stale: z.boolean(),
  disabled: z.boolean(),
})

async function findCaller(db: Database, keyHash: Buffer): Promise<Caller | null> {
  const row = await db.maybeOne(sql.prepared('find_caller', callerRow)`
    select k.account_id, a.handle, a.tier, k.id, k.kind,
           coalesce(k.last_used_at < now() - interval '1 hour', true) stale, a.disabled_at is not null disabled
    from api_keys k join accounts a on a.id = k.account_id
    where k.key_hash = ${sql.binary(keyHash)} and ${isInForce}`)
  if (!row) return null
  if (row.disabled) throw new AppError('forbidden', 'This account is disabled. Ask the operator of the service.')
  if (row.stale) await db.query(sql.type(nothing)`update api_keys set last_used_at = now() where id = ${row.id}`)
  return { accountId: row.account_id, handle: row.handle, tier: row.tier, apiKeyId: row.id, kind: row.kind }
}

/** The same answer for unknown, mistyped, expired and revoked keys. */
export function unauthenticated(): AppError {
  const message =
    'A valid API key is needed: Authorization: Bearer ctk_..., or the argument service_key of an MCP tool.'
  return new AppError('unauthenticated', message, { headers: { 'www-authenticate': 'Bearer' } })
}

/** Throws AppError `forbidden`, which names the missing scope. */
export function requireScope(caller: Caller, scope: Scope): void {
  if (!KEY_SCOPES[caller.kind].includes(scope))
    throw new AppError('forbidden', `This API key is of kind ${caller.kind} and does not have the right ${scope}.`)
}
