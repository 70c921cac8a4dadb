// Whether heartbeats can be taken at all. Every API process records so twice a second, and deadlines are judged no further
// than that: time in which no heartbeat could be taken makes no outage.
import { setInterval as every } from 'node:timers/promises'
import { z } from 'zod'
import { type Database, nothing, sql } from '../db/pool.ts'
import type { Logger } from '../telemetry.ts'

const PERIOD_MS = 500

/** Records it until disposed. While the database does not answer, no heartbeat can be taken either. */
export async function openAttendance(db: Database, log: Logger): Promise<AsyncDisposable> {
  const stopping = new AbortController()
  let silent = false
  const tryAttend = async () => {
    try {
      await attend(db)
      silent = false
    } catch (error) {
      if (!silent) log.warn({ event: 'attendance_failed', err: error })
      silent = true
    }
  }
  await tryAttend()
  const attending = (async () => {
    try {
      for await (const _ of every(PERIOD_MS, undefined, { signal: stopping.signal })) await tryAttend()
    } catch (error) {
      if (!stopping.signal.aborted) throw error
    }
  })()
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort()
      await attending
    },
  }
}

/** One of all processes is enough. The time may be earlier than the one recorded, after a clock was put back. */
export async function attend(db: Database): Promise<void> {
  await db.query(sql.prepared('attend', nothing)`
    update watchdog_scans set open_at = now()
    where abs(extract(epoch from now() - open_at)) > ${(PERIOD_MS / 1000) * 0.8}`)
}

/** Seconds since the scanner last judged deadlines. */
export function measureScanAge(db: Pick<Database, 'oneFirst'>): Promise<number> {
  return db.oneFirst(sql.type(z.object({ age: z.number() }))`
    select extract(epoch from now() - seen_at)::float8 age from watchdog_scans`)
}
