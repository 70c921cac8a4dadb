// The row of an account: its lock, its tier and its handle.
import { z } from 'zod'
import { nothing, sql, type Tx } from '../db/pool.ts'
import type { Tier } from './tiers.ts'

export const accountHandle = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'must be 1 to 64 of a-z 0-9 - _, starting with a letter or digit')
  .describe('Public: it is the requested_by of your receipts.')

/**
 * Locks the account until the transaction ends. A transaction that creates something that a tier limits holds this lock, so an account
 * creates such things one at a time. Otherwise two concurrent calls could both take the last place that the limit allows.
 */
export async function lockAccount(tx: Tx, accountId: string): Promise<void> {
  await tx.query(sql.type(nothing)`select from accounts where id = ${accountId} for no key update`)
}

const idRow = z.object({ id: z.string() })

/** The id of the account; null where no account has the handle. */
export function findAccountId(tx: Tx, handle: string): Promise<string | null> {
  return tx.maybeOneFirst(sql.type(idRow)`select id from accounts where handle = ${handle}`)
}

/** Records the tier that the operator gives free of charge. Returns the account's id; null where no account has the handle. */
export function grantTier(tx: Tx, handle: string, tier: Tier): Promise<string | null> {
  return tx.maybeOneFirst(sql.type(idRow)`
    update accounts set granted_tier = ${tier} where handle = ${handle} returning id`)
}
