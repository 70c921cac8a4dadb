// Receipts that accounts request: their daily limit and their idempotency keys. Both are read and written under the lock of
// the chain's head, in the receipts' transaction, so two batches cannot exceed a limit or use a key twice.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { column, type Database, nothing, sql, type Tx } from '../db/pool.ts'
import { type Participant, Refused } from './chain.ts'
import { addToDay, takeFromDay } from './days.ts'
import { canonicalJson } from './format.ts'

export interface Submission {
  accountId: string
  /** Receipts the account may request today. */
  dailyLimit: number
  /** Hashes of the caller's Idempotency-Key and of the request body, in hex. */
  key?: { hash: string; bodyHash: string }
}

export type SubmissionRefusal = 'repeat' | 'conflict' | 'daily_limit'

/** Hashes an idempotency key and the body it was sent with. */
export function submissionKey(idempotencyKey: string, body: unknown) {
  const digest = (text: string) => createHash('sha256').update(text).digest('hex')
  return { hash: digest(idempotencyKey), bodyHash: digest(canonicalJson(body)) }
}

export const submissions: Participant<Submission, SubmissionRefusal> = {
  async check(tx, items) {
    const known = await findKeys(tx, items)
    // Counted before it is checked, which saves a statement; the count of refused items is taken back.
    const requested = countBy(items.filter((item) => !known.has(idOf(item) ?? '')))
    const used = await addToDay(tx, 'receipts', requested)
    const free = (item: Submission) =>
      item.dailyLimit - (used.get(item.accountId) ?? 0) + (requested.get(item.accountId) ?? 0)
    const accepted = new Map<string, number>()
    const refusals = items.map((item) => {
      const id = idOf(item)
      const before = id && known.get(id)
      if (before) return new Refused<SubmissionRefusal>(before === item.key?.bodyHash ? 'repeat' : 'conflict')
      const count = (accepted.get(item.accountId) ?? 0) + 1
      if (count > free(item)) return new Refused<SubmissionRefusal>('daily_limit')
      accepted.set(item.accountId, count)
      // With the same key twice in one batch, the second item repeats the first.
      if (id && item.key) known.set(id, item.key.bodyHash)
      return null
    })
    const unused = [...requested].map(([id, count]) => [id, count - (accepted.get(id) ?? 0)] as const)
    await takeFromDay(tx, 'receipts', new Map(unused))
    return refusals
  },

  async apply(tx, entries) {
    const keyed = entries.flatMap(({ item, attestation }) =>
      item.key ? [{ ...item, key: item.key, attestation }] : [],
    )
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

/** A key is the account's own, so the account is part of its id. */
function idOf({ accountId, key }: Submission): string | undefined {
  return key && `${accountId} ${key.hash}`
}

function countBy(items: Submission[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { accountId } of items) counts.set(accountId, (counts.get(accountId) ?? 0) + 1)
  return counts
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

/** Serial of the receipt made with an idempotency key, or null. */
export function findByKey(tx: Tx | Database, accountId: string, keyHash: string): Promise<number | null> {
  return tx.maybeOneFirst(sql.type(z.object({ serial: z.number() }))`
    select serial from receipt_keys where account_id = ${accountId} and key_hash = decode(${keyHash}, 'hex')`)
}
