// How much of its tier an account uses, counted as the limits count it.
import { z } from 'zod'
import { sql, type Tx } from '../db/pool.ts'

const usageRow = z.object({
  active_leases: z.int(),
  lease_acts_today: z.int(),
  receipts_today: z.int(),
  watchdogs: z.int(),
  watchdog_alerts_today: z.int(),
  citation_watches: z.int(),
  journal_slots: z.int(),
  journal_bytes: z.int(),
  api_keys: z.int(),
  resets_at: z.string(),
})

/** The day is the database's UTC day, as in receipt_days. @param nowMs the clock that leases are signed by */
export function findUsage(tx: Tx, accountId: string, nowMs: number) {
  return tx.one(sql.type(usageRow)`
    select
      (select count(*) from leases
       where account_id = ${accountId} and revoked_ms is null and expires_ms > ${nowMs}) active_leases,
      coalesce(today.lease_acts, 0) lease_acts_today,
      coalesce(today.receipts, 0) receipts_today,
      (select count(*) from watchdogs where account_id = ${accountId}) watchdogs,
      coalesce((select asked from alert_days
                where account_id = ${accountId} and day = (now() at time zone 'utc')::date), 0) watchdog_alerts_today,
      (select count(*) from citation_watches where account_id = ${accountId}) citation_watches,
      slots.slots journal_slots,
      slots.bytes journal_bytes,
      (select count(*) from api_keys
       where account_id = ${accountId} and (expires_at is null or expires_at > now())) api_keys,
      to_char(date_trunc('day', now() at time zone 'utc') + interval '1 day', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') resets_at
    from (select count(*) slots, coalesce(sum(octet_length(content)), 0)::int8 bytes
          from journal_slots where account_id = ${accountId}) slots
    left join receipt_days today on today.account_id = ${accountId} and today.day = (now() at time zone 'utc')::date`)
}
