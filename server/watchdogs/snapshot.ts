// A watchdog as it was when it was read. Its alerts are composed from this, and compared with it under the lock.
import { z } from 'zod'
import { hasRoom } from '../alerts/outbox.ts'
import { type Database, sql, type Tx } from '../db/pool.ts'
import { utcMicroseconds } from '../db/time.ts'
import { alertAt, alertableAt, dueAt, STORED_STATES, shownState, WATCHDOG_STATES } from './watchdog.ts'

export const snapshotRow = z.object({
  id: z.string(),
  account_id: z.string(),
  webhook_id: z.string(),
  name: z.string(),
  interval_s: z.int(),
  grace_s: z.int(),
  alert_after: z.int(),
  state: z.enum(STORED_STATES),
  /** The state as its owner sees it. */
  shown: z.enum(WATCHDOG_STATES),
  event_seq: z.int(),
  last_beat_at: z.string().nullable(),
  beats: z.int(),
  note: z.string().nullable(),
  due_at: z.string(),
  alert_at: z.string(),
  failed_at: z.string().nullable(),
  down_since: z.string().nullable(),
  revived_at: z.string().nullable(),
  /** failed_at is a missed deadline. */
  silent: z.boolean(),
  /** Further outages that are alerted together with the one at failed_at. */
  coalesced: z.int(),
  /**
   * An outage may be alerted now: the watchdog's allowance, the limit of the day and the limit of waiting alerts at its
   * webhook permit it.
   */
  may_alert: z.boolean(),
  /** Whole intervals since the clock started. */
  missed: z.int(),
  now: z.string(),
})
export type WatchdogSnapshot = z.output<typeof snapshotRow>

/** Of a row `w`. */
export const snapshotColumns = sql.fragment`w.id, w.account_id, w.webhook_id, w.name, w.interval_s, w.grace_s, w.alert_after, w.state,
  ${shownState} shown, w.event_seq, ${utcMicroseconds(sql.fragment`w.last_beat_at`)} last_beat_at, w.beats, w.note,
  ${utcMicroseconds(dueAt)} due_at, ${utcMicroseconds(alertAt)} alert_at, ${utcMicroseconds(sql.fragment`w.failed_at`)} failed_at,
  ${utcMicroseconds(sql.fragment`w.down_since`)} down_since, ${utcMicroseconds(sql.fragment`w.revived_at`)} revived_at, w.silent, w.coalesced,
  coalesce(${alertableAt} <= now(), true) and ${hasRoom(sql.fragment`w.webhook_id`)} may_alert,
  greatest(floor(extract(epoch from now() - w.started_at) / w.interval_s), 0)::bigint missed,
  ${utcMicroseconds(sql.fragment`now()`)} now`

export async function findSnapshots(db: Tx | Database, ids: readonly string[]): Promise<readonly WatchdogSnapshot[]> {
  return db.any(sql.prepared('find_watchdog_snapshots', snapshotRow)`
    select ${snapshotColumns} from watchdogs w where w.id = any(${sql.array([...ids], 'uuid')})`)
}

/** Locks watchdogs in the order of their ids, as every writer does, so that no two wait for each other. */
export function lockSnapshots(tx: Tx, ids: readonly string[]): Promise<readonly WatchdogSnapshot[]> {
  return tx.any(sql.prepared('lock_watchdog_snapshots', snapshotRow)`
    select ${snapshotColumns} from watchdogs w where w.id = any(${sql.array([...ids], 'uuid')})
    order by w.id for no key update`)
}
