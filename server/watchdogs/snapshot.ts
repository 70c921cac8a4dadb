// A watchdog as it was when it was read: what its alerts are composed from and compared with.
import { z } from 'zod'
import { hasRoom } from '../alerts/outbox.ts'
import { type Database, sql, type Tx } from '../db/pool.ts'
import { utcMicroseconds } from '../db/time.ts'
import { alertAt, dueAt, shownState, tellableAt, WATCHDOG_STATES } from './watchdog.ts'

export const standingRow = z.object({
  id: z.string(),
  account_id: z.string(),
  webhook_id: z.string(),
  name: z.string(),
  interval_s: z.int(),
  grace_s: z.int(),
  alert_after: z.int(),
  state: z.enum(['watching', 'down', 'paused']),
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
  /** An outage may be alerted now: the watchdog's allowance, the day and the room at its webhook permit it. */
  may_tell: z.boolean(),
  /** Whole intervals since the clock started. */
  missed: z.int(),
  now: z.string(),
})
/** A watchdog as it was when it was read. */
export type Standing = z.output<typeof standingRow>

/** Of a row `w`. */
export const standingColumns = sql.fragment`w.id, w.account_id, w.webhook_id, w.name, w.interval_s, w.grace_s, w.alert_after, w.state,
  ${shownState} shown, w.event_seq, ${utcMicroseconds(sql.fragment`w.last_beat_at`)} last_beat_at, w.beats, w.note,
  ${utcMicroseconds(dueAt)} due_at, ${utcMicroseconds(alertAt)} alert_at, ${utcMicroseconds(sql.fragment`w.failed_at`)} failed_at,
  ${utcMicroseconds(sql.fragment`w.down_since`)} down_since, ${utcMicroseconds(sql.fragment`w.revived_at`)} revived_at, w.silent, w.coalesced,
  coalesce(${tellableAt} <= now(), true) and ${hasRoom(sql.fragment`w.webhook_id`)} may_tell,
  greatest(floor(extract(epoch from now() - w.started_at) / w.interval_s), 0)::bigint missed,
  ${utcMicroseconds(sql.fragment`now()`)} now`

export async function findStandings(db: Tx | Database, ids: readonly string[]): Promise<readonly Standing[]> {
  return db.any(sql.prepared('find_watchdog_standings', standingRow)`
    select ${standingColumns} from watchdogs w where w.id = any(${sql.array([...ids], 'uuid')})`)
}

/** Locks watchdogs, in the order of their ids as everywhere. */
export function lockStandings(tx: Tx, ids: readonly string[]): Promise<readonly Standing[]> {
  return tx.any(sql.prepared('lock_watchdog_standings', standingRow)`
    select ${standingColumns} from watchdogs w where w.id = any(${sql.array([...ids], 'uuid')})
    order by w.id for no key update`)
}
