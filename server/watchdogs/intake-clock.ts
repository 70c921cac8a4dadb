// The intake clock: the last time at which heartbeats could be accepted. Every API process records it twice a second, and
// only deadlines before it are checked. So a time in which no heartbeat could be accepted causes no outage.
//
// The row of `watchdog_scans` holds two times: `open_at`, until which heartbeats were accepted, and `seen_at`, until which
// scan.ts has judged deadlines.
import { z } from 'zod'
import { every } from '../db/interval.ts'
import { type Database, nothing, sql } from '../db/pool.ts'
import type { Logger } from '../telemetry.ts'

const PERIOD_MS = 500

/**
 * Records the clock until disposed; resolves after the first record. While the database does not answer, no heartbeat can
 * be accepted; that is logged once.
 */
export async function openIntakeClock(db: Database, log: Logger): Promise<AsyncDisposable> {
  let failing = false
  const onError = (error: unknown) => {
    if (!failing) log.warn({ event: 'intake_clock_failed', err: error })
    failing = true
  }
  const record = async () => {
    await recordIntake(db)
    failing = false
  }
  await record().catch(onError)
  return every(PERIOD_MS, record, onError)
}

/** All processes together write it once per period. The time may go back if the database's clock was set back. */
export async function recordIntake(db: Database): Promise<void> {
  await db.query(sql.prepared('record_intake', nothing)`
    update watchdog_scans set open_at = now()
    where abs(extract(epoch from now() - open_at)) > ${(PERIOD_MS / 1000) * 0.8}`)
}

/** Seconds since the scanner last checked deadlines. */
export function measureScanAge(db: Pick<Database, 'oneFirst'>): Promise<number> {
  return db.oneFirst(sql.type(z.object({ age: z.number() }))`
    select extract(epoch from now() - seen_at)::float8 age from watchdog_scans`)
}
