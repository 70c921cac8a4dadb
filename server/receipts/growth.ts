// How the chain grew, and where a digest is in it. The time of receipts never goes back, so the receipts up to a time are found by
// halving the serials: some twenty reads by the primary key, however long the chain is.
import { z } from 'zod'
import { type Database, sql } from '../db/pool.ts'

/** How many receipts there were at each of these times, in their order. @param times milliseconds since the epoch */
export async function countUpTo(db: Database, times: readonly number[]): Promise<number[]> {
  const rows = await db.any(sql.type(z.object({ n: z.number(), count: z.number() }))`
    with recursive asked as (
      select at, n from unnest(${sql.array([...times], 'int8')}) with ordinality as t (at, n)
    ), halved as (
      -- Serials up to low are not later than the time; those from high on are, or do not exist.
      select n, at, 0::bigint low, (select serial from chain_head) + 1 high from asked
      union all
      select h.n, h.at, case when r.ts_ms <= h.at then r.serial else h.low end, case when r.ts_ms <= h.at then h.high else r.serial end
      from halved h
      cross join lateral (select serial, ts_ms from receipts where serial = (h.low + h.high) / 2 offset 0) r
      where h.high - h.low > 1
    )
    select n, low count from halved where high - low <= 1 order by n`)
  const counts = new Map(rows.map(({ n, count }) => [n, count]))
  return times.map((_, n) => counts.get(n + 1) ?? 0)
}

export interface Growth {
  /** The first moment of each day (UTC), oldest first, in milliseconds since the epoch. */
  days: { at: number; receipts: number; total: number }[]
}

const DAY_MS = 86_400_000

/** Receipts of each of the last days (UTC), today included. @param now milliseconds since the epoch */
export async function measureGrowth(db: Database, days: number, now: number): Promise<Growth> {
  const today = Math.floor(now / DAY_MS) * DAY_MS
  const starts = Array.from({ length: days }, (_, n) => today - (days - 1 - n) * DAY_MS)
  const [before = 0, ...totals] = await countUpTo(
    db,
    [...starts, today + DAY_MS].map((at) => at - 1),
  )
  return {
    days: starts.map((at, n) => {
      const total = totals[n] ?? 0
      return { at, total, receipts: total - (totals[n - 1] ?? before) }
    }),
  }
}

/** Receipts shown of one digest. */
const MAX_FOUND = 20

/**
 * The serials of receipts whose `receipt_hash` this is, or that are for this digest; oldest first, at most 20.
 * @param hex 64 hex characters in lower case
 */
export async function findByHash(db: Database, hex: string): Promise<readonly number[]> {
  const hash = sql.binary(Buffer.from(hex, 'hex'))
  return db.anyFirst(sql.prepared('find_by_hash', z.object({ serial: z.number() }))`
    select serial from (
      select r.serial from ${parts} join receipts r on r.serial >> 18 = part and r.receipt_hash = ${hash}
      union
      select found.serial from ${parts} cross join lateral (
        select r.serial from receipts r where r.serial >> 18 = part and r.subject_sha256 = ${hash}
        order by r.serial limit ${MAX_FOUND}) found
    ) found order by serial limit ${MAX_FOUND}`)
}

/** The ranges of serials that the indexes by digest are divided by (see sql/0027). */
const parts = sql.fragment`generate_series(0::bigint, (select serial >> 18 from chain_head)) part`
