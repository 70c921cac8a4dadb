// How much of its tier an account uses, counted as the limits count it.
import { z } from 'zod'
import { sql, type Tx } from '../db/pool.ts'

const usageRow = z.object({
  active_leases: z.int(),
  receipts_today: z.int(),
  watchdogs: z.int(),
  watchdog_alerts_today: z.int(),
  citation_watches: z.int(),
  journal_slots: z.int(),
  resets_at: z.string(),
})

/** The day is the database's UTC day, as in the receipts' count. @param nowMs the clock that leases are signed by */
export function findUsage(tx: Tx, accountId: string, nowMs: number) {
  return tx.one(sql.type(usageRow)`
    select
      (select count(*) from leases
       where account_id = ${accountId} and revoked_ms is null and expires_ms > ${nowMs}) active_leases,
      coalesce((select receipts from receipt_days
                where account_id = ${accountId} and day = (now() at time zone 'utc')::date), 0) receipts_today,
      (select count(*) from watchdogs where account_id = ${accountId}) watchdogs,
      coalesce((select asked from alert_days
                where account_id = ${accountId} and day = (now() at time zone 'utc')::date), 0) watchdog_alerts_today,
      (select count(*) from citation_watches where account_id = ${accountId}) citation_watches,
      (select count(*) from journal_slots where account_id = ${accountId}) journal_slots,
      to_char(date_trunc('day', now() at time zone 'utc') + interval '1 day', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') resets_at`)
}
