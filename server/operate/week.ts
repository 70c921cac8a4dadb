// What the dashboard shows in addition to the status: the last week in periods, reasons and hosts of failed verifications,
// and limits that callers reached.
import { z } from 'zod'
import { type Database, sql } from '../db/pool.ts'
import { readFigures } from './figures.ts'
import { type Period, readPeriods } from './roll-ups.ts'
import { sourceHost } from './stored-json.ts'

const PERIOD_MINUTES = 180
const WEEK_MS = 7 * 86_400_000

/**
 * The last seven days in periods of three hours; the last one is the current one. @param now milliseconds since the
 * epoch
 */
export function readWeek(db: Database, now: number): Promise<Period[]> {
  const step = PERIOD_MINUTES * 60_000
  const to = (Math.floor(now / step) + 1) * step
  return readPeriods(db, { from: new Date(to - WEEK_MS), to: new Date(to), minutes: PERIOD_MINUTES })
}

const failingHost = z.object({ host: z.string(), count: z.number(), codes: z.array(z.string()) })
export type FailingHost = z.output<typeof failingHost>

/** The hosts at which most requests failed that are still kept with their address: those of the last day. */
export function listFailingHosts(db: Database, limit: number): Promise<readonly FailingHost[]> {
  return db.any(sql.type(failingHost)`
    select ${sourceHost(sql.fragment`body`)} host, count(*) count, array_agg(distinct error ->> 'code') codes
    from verification_requests
    where state in ('completed', 'failed') and body is not null and state = 'failed' and changed_at > now() - interval '1 day'
    group by 1 order by 2 desc, 1 limit ${limit}`)
}

export interface RefusedCalls {
  operation: string
  count: number
}

/** Calls that were refused with 429, by operation, since the counters began; the most first. */
export async function countRefused(db: Database): Promise<RefusedCalls[]> {
  const figures = await readFigures(db)
  const calls = figures.find(({ name }) => name === 'countersign_requests_total')?.values ?? []
  const counts = new Map<string, number>()
  for (const { labels, value } of calls)
    if (String(labels.status) === '429')
      counts.set(String(labels.operation), (counts.get(String(labels.operation)) ?? 0) + value)
  return [...counts].map(([operation, count]) => ({ operation, count })).sort((a, b) => b.count - a.count)
}
