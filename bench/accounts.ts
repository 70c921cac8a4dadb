// Accounts of the bench. Requests use them in turn, so that the load stays below the limits of each.
import type pg from 'pg'
import { hashApiKey, makeApiKey } from '../server/accounts/api-keys.ts'

/** With this number, a load of tens of thousands of calls per second stays below the limits of the pro tier. */
export const ACCOUNTS = 100

export interface BenchAccount {
  accountId: string
  key: string
  headers: { authorization: string }
}

/** The id of the nth account, from 0; `accountIdSql` is the same in SQL. */
export function accountIdOf(n: number): string {
  return `00000000-0000-4000-8000-${String(n % ACCOUNTS).padStart(12, '0')}`
}

/** @param n an integer expression of SQL */
export function accountIdSql(n: string): string {
  return `('00000000-0000-4000-8000-' || lpad(((${n}) % ${ACCOUNTS})::text, 12, '0'))::uuid`
}

/** Stores them, all of the pro tier, with one key each. */
export async function openAccounts(admin: Pick<pg.ClientBase, 'query'>, handle: string): Promise<BenchAccount[]> {
  const keys = Array.from({ length: ACCOUNTS }, makeApiKey)
  const ids = keys.map((_, n) => accountIdOf(n))
  await admin.query(
    `with account as (
       insert into accounts (id, handle, tier, granted_tier)
       select id, $3 || '-' || id, 'pro', 'pro' from unnest($1::uuid[]) id
     )
     insert into api_keys (id, account_id, key_hash, kind)
     select gen_random_uuid(), id, key_hash, 'full' from unnest($1::uuid[], $2::bytea[]) as t (id, key_hash)`,
    [ids, keys.map(hashApiKey), handle],
  )
  return keys.map((key, n) => ({ accountId: accountIdOf(n), key, headers: { authorization: `Bearer ${key}` } }))
}
