// Daily counts of receipts per account and UTC day: those it requested, and those of its operations on leases. Read and
// written only under the lock of the chain's head, so two batches cannot exceed a limit together.
import { z } from 'zod'
import { nothing, sql, type Tx } from '../db/pool.ts'

/** Columns of receipt_days. */
export type DailyCount = 'receipts' | 'lease_acts'

const used = z.object({ id: z.string(), used: z.number() })

/** Adds to today's counts, by account. Answers the new counts of these accounts. */
export async function addToDay(
  tx: Tx,
  count: DailyCount,
  added: ReadonlyMap<string, number>,
): Promise<ReadonlyMap<string, number>> {
  if (added.size === 0) return new Map()
  const column = sql.identifier([count])
  const rows = await tx.any(sql.prepared(`add_${count}`, used)`
    insert into receipt_days (account_id, day, ${column})
    select account_id, (now() at time zone 'utc')::date, added
    from unnest(${sql.array([...added.keys()], 'uuid')}, ${sql.array([...added.values()], 'int4')}) as t (account_id, added)
    on conflict (account_id, day) do update set ${column} = receipt_days.${column} + excluded.${column}
    returning account_id::text id, ${column} used`)
  return new Map(rows.map((row) => [row.id, row.used]))
}

/** Takes back what the same transaction added, so the day is the same: `now()` is the time of the transaction's start. */
export async function takeFromDay(tx: Tx, count: DailyCount, unused: ReadonlyMap<string, number>): Promise<void> {
  const taken = [...unused].filter(([, number]) => number > 0)
  if (taken.length === 0) return
  const column = sql.identifier([count])
  await tx.query(sql.prepared(`take_${count}`, nothing)`
    update receipt_days d set ${column} = d.${column} - t.unused
    from unnest(${sql.array(
      taken.map(([id]) => id),
      'uuid',
    )}, ${sql.array(
      taken.map(([, number]) => number),
      'int4',
    )}) as t (id, unused)
    where d.account_id = t.id and d.day = (now() at time zone 'utc')::date`)
}

const dayRow = z.object({ receipts: z.int(), lease_acts: z.int(), resets_at: z.string() })

/** The account's counts of this UTC day, which is the database's, and the midnight (RFC 3339) at which they start again. */
export function findDay(tx: Tx, accountId: string) {
  return tx.one(sql.type(dayRow)`
    select coalesce(sum(receipts), 0)::int receipts, coalesce(sum(lease_acts), 0)::int lease_acts,
           to_char(((now() at time zone 'utc')::date + 1)::timestamp, 'YYYY-MM-DD"T"HH24:MI:SS"Z"') resets_at
    from receipt_days where account_id = ${accountId} and day = (now() at time zone 'utc')::date`)
}
