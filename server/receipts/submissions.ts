// Receipts that accounts ask for: the daily count and the idempotency keys, kept in the same transaction as the chain. Both
// are read and written under the lock of the chain's head, so no two batches can count past a limit or repeat a key.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { column, nothing, sql, type Tx } from '../db/pool.ts'
import { type Companion, Refused } from './chain.ts'
import { canonicalJson } from './format.ts'

export interface Submission {
  accountId: string
  /** Receipts the account may have today. */
  dailyLimit: number
  /** The caller's Idempotency-Key, and what it stands for. */
  key?: { hash: string; bodyHash: string }
}

export type SubmissionRefusal = 'repeat' | 'conflict' | 'daily_limit'

export function submissionKey(idempotencyKey: string, body: unknown) {
  const digest = (text: string) => createHash('sha256').update(text).digest('hex')
  return { hash: digest(idempotencyKey), bodyHash: digest(canonicalJson(body)) }
}

export const submissions: Companion<Submission, SubmissionRefusal> = {
  async admit(tx, items) {
    const known = await findKeys(tx, items)
    const used = await findUse(tx, items)
    return items.map((item) => {
      const id = item.key && `${item.accountId} ${item.key.hash}`
      const before = id && known.get(id)
      if (before) return new Refused(before === item.key?.bodyHash ? 'repeat' : 'conflict')
      const count = (used.get(item.accountId) ?? 0) + 1
      if (count > item.dailyLimit) return new Refused('daily_limit')
      used.set(item.accountId, count)
      // The same key twice in one batch: the second finds the first.
      if (id && item.key) known.set(id, item.key.bodyHash)
      return null
    })
  },

  async write(tx, entries) {
    const keyed = entries.flatMap(({ item, attestation }) =>
      item.key ? [{ ...item, key: item.key, attestation }] : [],
    )
    await tx.query(sql.prepared('count_receipts', nothing)`
      insert into receipt_days (account_id, day, receipts)
      select account_id::uuid, (now() at time zone 'utc')::date, count(*)
      from unnest(${column(entries, 'text', (e) => e.item.accountId)}) as t (account_id) group by account_id
      on conflict (account_id, day) do update set receipts = receipt_days.receipts + excluded.receipts`)
    if (keyed.length === 0) return
    await tx.query(sql.prepared('store_receipt_keys', nothing)`
      insert into receipt_keys (account_id, key_hash, body_hash, serial)
      select account_id::uuid, decode(key_hash, 'hex'), decode(body_hash, 'hex'), serial
      from unnest(${column(keyed, 'text', (k) => k.accountId)}, ${column(keyed, 'text', (k) => k.key.hash)},
                ${column(keyed, 'text', (k) => k.key.bodyHash)},
                ${column(keyed, 'int8', (k) => k.attestation.serial)})
           as t (account_id, key_hash, body_hash, serial)`)
  },
}

async function findKeys(tx: Tx, items: Submission[]): Promise<Map<string, string>> {
  const keyed = items.filter((item) => item.key)
  if (keyed.length === 0) return new Map()
  const rows = await tx.any(sql.prepared('find_receipt_keys', z.object({ id: z.string(), body_hash: z.string() }))`
    select k.account_id || ' ' || encode(k.key_hash, 'hex') id, encode(k.body_hash, 'hex') body_hash
    from receipt_keys k
    join unnest(${column(keyed, 'text', (item) => item.accountId)},
                ${column(keyed, 'text', (item) => item.key?.hash ?? '')}) as t (account_id, key_hash)
      on k.account_id = t.account_id::uuid and k.key_hash = decode(t.key_hash, 'hex')`)
  return new Map(rows.map((row) => [row.id, row.body_hash]))
}

async function findUse(tx: Tx, items: Submission[]): Promise<Map<string, number>> {
  const rows = await tx.any(sql.prepared('find_receipt_days', z.object({ id: z.string(), receipts: z.number() }))`
    select account_id::text id, receipts from receipt_days
    where day = (now() at time zone 'utc')::date
      and account_id = any(${sql.array([...new Set(items.map((item) => item.accountId))], 'uuid')})`)
  return new Map(rows.map((row) => [row.id, row.receipts]))
}

/** The receipt an idempotency key stands for. */
export function findByKey(tx: Tx, accountId: string, keyHash: string): Promise<number | null> {
  return tx.maybeOneFirst(sql.type(z.object({ serial: z.number() }))`
    select serial from receipt_keys where account_id = ${accountId} and key_hash = decode(${keyHash}, 'hex')`)
}
