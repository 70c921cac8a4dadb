// The bounds of all journals together: what free accounts store has a bound for all of them, and an unused journal expires.
import { z } from 'zod'
import { shareOf } from '../accounts/shared-budget.ts'
import { type Database, sql, type Tx, transact } from '../db/pool.ts'
import { AppError } from '../errors.ts'

/** While the table of slots takes more bytes than this on the disk, free accounts store nothing new. Paid accounts do. */
export const FREE_JOURNAL_BYTES = 10_737_418_240
/** Days without a call of any key of a free account after which its journal is deleted. */
export const UNUSED_JOURNAL_DAYS = 90
const BATCH = 200

const sizeRow = z.object({ bytes: z.number(), slots: z.number() })

/**
 * Throws AppError `capacity_exceeded` when a free account has no room left. Part of the room is kept for accounts with few slots.
 * @param most FREE_JOURNAL_BYTES; tests give another
 */
export async function requireRoom(tx: Tx, accountId: string, most: number = FREE_JOURNAL_BYTES): Promise<void> {
  const { bytes, slots } = await tx.one(sql.type(sizeRow)`
    select pg_total_relation_size('journal_slots')::float8 bytes,
      (select count(*) from journal_slots where account_id = ${accountId}) slots`)
  if (bytes >= shareOf(most, slots + 1))
    throw new AppError('capacity_exceeded', 'The space for journals of the free tier is full. Nothing was stored.', {
      headers: { 'retry-after': '3600' },
    })
}

/** Deletes unused journals of free accounts, and returns the number of slots. */
export async function pruneJournals(db: Database, signal?: AbortSignal): Promise<number> {
  let pruned = 0
  for (let rows = BATCH; rows === BATCH; pruned += rows) {
    signal?.throwIfAborted()
    rows = await transact(db, async (tx) => (await deleteUnused(tx)).length)
  }
  return pruned
}

/** An account is in use while one of its keys is, or while it stores anything. */
function deleteUnused(tx: Tx) {
  const limit = sql.fragment`now() - ${UNUSED_JOURNAL_DAYS} * interval '1 day'`
  return tx.any(sql.type(z.object({ slot: z.string() }))`
    delete from journal_slots where (account_id, slot) in (
      select s.account_id, s.slot from journal_slots s join accounts a on a.id = s.account_id
      where s.updated_at < ${limit} and a.tier = 'free' and a.granted_tier = 'free'
        and not exists (select from api_keys k where k.account_id = a.id and k.last_used_at >= ${limit})
      order by s.account_id, s.slot limit ${BATCH} for update of s skip locked)
    returning slot`)
}
