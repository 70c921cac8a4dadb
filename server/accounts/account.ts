// Accounts and their API keys. There is no e-mail and no password: who loses every key of an account has lost it.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { nothing, sql, type Tx } from '../db/pool.ts'
import { utcSeconds } from '../db/time.ts'
import { AppError } from '../errors.ts'
import { hashApiKey, type KeyKind, makeApiKey } from './api-keys.ts'

/** Names that receipts of the service itself carry in `requested_by`; an account of that name could pass for it. */
export const RESERVED_HANDLES: readonly string[] = [
  'source-verification',
  'countersign',
  'service',
  'lease',
  'watchdog',
  'citation-watch',
  'key-rotation',
]

/** Throws AppError `handle_taken` for a handle that the service keeps for itself. */
export function refuseReserved(handle: string): void {
  if (RESERVED_HANDLES.includes(handle))
    throw new AppError('handle_taken', `The handle ${handle} is reserved: receipts of the service carry it.`)
}

/** Makes an account and its first key, which is answered once and stored nowhere. Throws AppError `handle_taken`. */
export async function insertAccount(tx: Tx, handle: string): Promise<{ accountId: string; apiKey: string }> {
  const accountId = randomUUID()
  const made = await tx.query(sql.type(nothing)`
    insert into accounts (id, handle) values (${accountId}, ${handle}) on conflict (handle) do nothing`)
  if (made.rowCount === 0) throw new AppError('handle_taken', `The handle ${handle} is taken.`)
  const { apiKey } = await insertApiKey(tx, { accountId, kind: 'full', label: 'registration' })
  return { accountId, apiKey }
}

/**
 * New things that a tier limits are made one at a time for each account, or two at once could both be the last that is
 * allowed. The account's row is the lock.
 */
export async function lockAccount(tx: Tx, accountId: string): Promise<void> {
  await tx.query(sql.type(nothing)`select from accounts where id = ${accountId} for no key update`)
}

export async function insertApiKey(
  tx: Tx,
  key: { accountId: string; kind: KeyKind; label: string | null },
): Promise<{ id: string; apiKey: string }> {
  const id = randomUUID()
  const apiKey = makeApiKey()
  await tx.query(sql.type(nothing)`
    insert into api_keys (id, account_id, key_hash, kind, label)
    values (${id}, ${key.accountId}, ${sql.binary(hashApiKey(apiKey))}, ${key.kind}, ${key.label})`)
  return { id, apiKey }
}

/** Makes a key unless there are `limit` already. Keys that have ended are deleted, and so do not count. */
export async function addApiKey(
  tx: Tx,
  key: { accountId: string; kind: KeyKind; label: string | null },
  { limit, refuse }: { limit: number; refuse: () => AppError },
): Promise<{ id: string; apiKey: string }> {
  await lockAccount(tx, key.accountId)
  await tx.query(sql.type(nothing)`
    delete from api_keys where account_id = ${key.accountId} and expires_at <= now()`)
  const keys = await tx.oneFirst(sql.type(z.object({ n: z.number() }))`
    select count(*) n from api_keys where account_id = ${key.accountId}`)
  if (keys >= limit) throw refuse()
  return insertApiKey(tx, key)
}

export const apiKeyRow = z.strictObject({
  id: z.uuid(),
  kind: z.enum(['full', 'read_only', 'heartbeat']),
  label: z.string().nullable(),
  created_at: z.string(),
  expires_at: z.string().nullable(),
  last_used_at: z.string().nullable().describe('To the hour; null when it was never used.'),
})

const unended = sql.fragment`(k.expires_at is null or k.expires_at > now())`

export function listApiKeys(tx: Tx, accountId: string) {
  return tx.any(sql.type(apiKeyRow)`
    select id, kind, label, ${utcSeconds(sql.fragment`created_at`)} created_at, ${utcSeconds(sql.fragment`expires_at`)} expires_at,
           ${utcSeconds(sql.fragment`last_used_at`)} last_used_at
    from api_keys k where account_id = ${accountId} and ${unended} order by k.created_at, id`)
}

/** Ends a key at once, or at a time so that its successor can be put in place. False when there is no such key. */
export async function endApiKey(tx: Tx, accountId: string, id: string, at: Date | null): Promise<boolean> {
  const ended = at
    ? await tx.query(sql.type(nothing)`
        update api_keys set expires_at = least(coalesce(expires_at, 'infinity'), ${at.toISOString()}::timestamptz)
        where account_id = ${accountId} and id = ${id}`)
    : await tx.query(sql.type(nothing)`delete from api_keys where account_id = ${accountId} and id = ${id}`)
  return ended.rowCount === 1
}
