// The outcomes of payments since a time, counted from the ledger. The counts of past minutes are in minute_figures; the
// ledger is read only for the times between and after them.
import { z } from 'zod'
import { type Database, sql } from '../db/pool.ts'

type Fragment = ReturnType<typeof sql.fragment>

const count = z.object({
  outcome: z.string(),
  reason: z.string().nullable(),
  mode: z.string().nullable(),
  network: z.string(),
  count: z.number(),
  usd: z.string(),
})
type Count = z.output<typeof count>

/**
 * Entries from a time on, by kind. `usd`: of USDC, which has six decimals. A minute that an earlier release counted, without the
 * reasons of failures, is read from the ledger.
 */
function countEntries(db: Database, since: Fragment): Promise<readonly Count[]> {
  return db.any(sql.type(count)`
    with since as materialized (select ${since} as at), counted as materialized (
      select minute, payments from minute_figures, since
      where minute >= since.at and payments is not null
        and not jsonb_path_exists(payments, '$[*] ? (@.outcome != "settled" && !exists(@.reason))')
    ), gaps as materialized (
      select low, high from (
        select coalesce(lag(minute) over (order by minute) + interval '1 minute', since.at) low, minute high from counted, since
        union all
        select coalesce(max(minute) + interval '1 minute', since.at), 'infinity' from since left join counted on true group by since.at
      ) edges where low < high
    )
    select outcome, reason, mode, network, sum(count)::int8 count, round(sum(amount_atomic) / 1000000, 2)::text usd
    from (
      select e.* from counted, jsonb_to_recordset(payments)
        as e (outcome text, reason text, mode text, network text, count int8, amount_atomic numeric)
      union all
      select found.* from gaps cross join lateral (
        select outcome, reason, mode, network, count(*) count, sum(amount_atomic) amount_atomic from payment_ledger
        where entered_at >= gaps.low and entered_at < gaps.high group by outcome, reason, mode, network) found
    ) entries
    group by outcome, reason, mode, network order by count desc, reason, mode, network`)
}

/** How paid requests ended within the last seconds. The ledger has an entry for every end of one. */
export async function countOutcomes(db: Database, seconds: number) {
  const rows = await countEntries(db, sql.fragment`now() - ${seconds} * interval '1 second'`)
  const total = (outcome: string) => rows.reduce((sum, row) => sum + (row.outcome === outcome ? row.count : 0), 0)
  const failures: Record<string, number> = {}
  for (const { outcome, reason, count } of rows) {
    if (outcome !== 'failed') continue
    const name = reason ?? 'unknown'
    failures[name] = (failures[name] ?? 0) + count
  }
  return { settled: total('settled'), failed: total('failed'), unpaid: total('unpaid'), failures }
}

/** Settled since UTC midnight. */
export async function sumToday(db: Database) {
  const rows = await countEntries(db, sql.fragment`date_trunc('day', now(), 'utc')`)
  return rows.flatMap(({ outcome, mode, network, count, usd }) =>
    outcome === 'settled' ? [{ mode: mode ?? '', network, payments: count, amount_usd: usd }] : [],
  )
}
