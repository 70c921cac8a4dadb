// The calls to the assessing model and their cost in the last hour, day and week, from the roll-ups.
import type { Database } from '../db/pool.ts'
import { type ModelUse, NO_MODEL_USE, type Period, readPeriods } from './roll-ups.ts'

export interface Spending {
  hour: ModelUse
  day: ModelUse
  week: ModelUse
}

const HOUR_MS = 3_600_000

/** Until the last minute that is recorded. @param now milliseconds since the epoch */
export async function readSpending(db: Database, now: number): Promise<Spending> {
  const last = async (hours: number) =>
    sumOf(await readPeriods(db, { from: new Date(now - hours * HOUR_MS), to: new Date(now), minutes: hours * 60 }))
  const [hour, day, week] = await Promise.all([last(1), last(24), last(7 * 24)])
  return { hour, day, week }
}

function sumOf(periods: readonly Period[]): ModelUse {
  return periods.reduce(
    (sum, { model }) => ({
      calls: addCounts(sum.calls, model.calls),
      tokens: addCounts(sum.tokens, model.tokens),
      usd: sum.usd + model.usd,
    }),
    NO_MODEL_USE,
  )
}

function addCounts(one: Record<string, number>, other: Record<string, number>): Record<string, number> {
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return Object.fromEntries([...names].map((name) => [name, (one[name] ?? 0) + (other[name] ?? 0)]))
}

export function countOf(counts: Record<string, number>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

/** For example `0.0042 USD`. Null where tokens were used and their price is not known. */
export function costOf({ tokens, usd }: ModelUse): string | null {
  if (usd === 0 && countOf(tokens) > 0) return null
  return `${usd.toFixed(usd > 0 && usd < 1 ? 4 : 2)} USD`
}
