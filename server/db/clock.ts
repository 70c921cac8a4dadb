// The clock of the database beside the clock of this machine.
import { z } from 'zod'
import { type Database, sql } from './pool.ts'

/** Milliseconds by which the two clocks differ, the time of one query included. */
export async function measureClockSkew(db: Database): Promise<number> {
  const now = await db.oneFirst(sql.type(z.object({ now: z.date() }))`select clock_timestamp() now`)
  return Math.abs(now.getTime() - Date.now())
}
