// Accounts as an operator sees them, and the switch that disables one. No key is shown, only its kind and label.
import { z } from 'zod'
import { TIERS } from '../accounts/tiers.ts'
import { type Database, nothing, sql, type Tx } from '../db/pool.ts'

export interface AccountFilter {
  tier?: (typeof TIERS)[number]
  disabled?: boolean
  limit: number
}

const summary = z.object({
  handle: z.string(),
  tier: z.enum(TIERS),
  created_at: z.date(),
  last_used_at: z.date().nullable(),
  disabled_at: z.date().nullable(),
})

const summaryColumns = sql.fragment`
  a.handle, a.tier, a.created_at, a.disabled_at,
  (select max(k.last_used_at) from api_keys k where k.account_id = a.id) last_used_at`

/** Accounts that match, the newest first. */
export function listAccounts(db: Database, { tier, disabled = false, limit }: AccountFilter) {
  return db.any(sql.type(summary)`
    select ${summaryColumns} from accounts a
    where (${tier ?? null}::text is null or a.tier = ${tier ?? null}) and (not ${disabled} or a.disabled_at is not null)
    order by a.created_at desc, a.handle limit ${limit}`)
}

const keyRow = z.object({
  kind: z.string(),
  label: z.string().nullable(),
  created_at: z.date(),
  expires_at: z.date().nullable(),
  last_used_at: z.date().nullable(),
})

const detail = summary.extend({
  granted_tier: z.enum(TIERS),
  leases_active: z.number(),
  watchdogs: z.number(),
  watchdogs_down: z.number(),
  citation_watches: z.number(),
  journal_slots: z.number(),
  receipts_today: z.number(),
  quote_pages_today: z.number(),
  alerts_pending: z.number(),
  webhooks_failing: z.number(),
})
export type AccountDetail = z.output<typeof detail> & { keys: readonly z.output<typeof keyRow>[] }

/** One account with what it has and used today (UTC); null if no account has the handle. */
export async function showAccount(tx: Tx, handle: string): Promise<AccountDetail | null> {
  const today = sql.fragment`(now() at time zone 'utc')::date`
  const row = await tx.maybeOne(sql.type(detail)`
    select ${summaryColumns}, a.granted_tier,
      (select count(*) from leases l where l.account_id = a.id and l.revoked_ms is null
         and l.expires_ms > extract(epoch from now()) * 1000) leases_active,
      (select count(*) from watchdogs w where w.account_id = a.id) watchdogs,
      (select count(*) from watchdogs w where w.account_id = a.id and w.state = 'down') watchdogs_down,
      (select count(*) from citation_watches c where c.account_id = a.id) citation_watches,
      (select count(*) from journal_slots s where s.account_id = a.id) journal_slots,
      coalesce((select receipts from receipt_days d where d.account_id = a.id and d.day = ${today}), 0) receipts_today,
      coalesce((select pages from quote_check_days d where d.account_id = a.id and d.day = ${today}), 0) quote_pages_today,
      (select count(*) from alerts t join webhooks h on h.id = t.webhook_id
       where h.account_id = a.id and t.state = 'pending') alerts_pending,
      (select count(*) from webhooks h where h.account_id = a.id and h.state <> 'active') webhooks_failing
    from accounts a where a.handle = ${handle}`)
  if (!row) return null
  const keys = await tx.any(sql.type(keyRow)`
    select kind, label, k.created_at, expires_at, last_used_at from api_keys k
    join accounts a on a.id = k.account_id where a.handle = ${handle} order by k.created_at`)
  return { ...row, keys }
}

/**
 * Disables an account, so that its API keys are refused with 403, or enables it again. Every process follows within two
 * seconds. Nothing is deleted. Returns false if no account has the handle.
 */
export async function setDisabled(db: Database, handle: string, disabled: boolean): Promise<boolean> {
  const changed = await db.query(sql.type(nothing)`
    update accounts set disabled_at = case when ${disabled} then coalesce(disabled_at, now()) end where handle = ${handle}`)
  return changed.rowCount > 0
}
