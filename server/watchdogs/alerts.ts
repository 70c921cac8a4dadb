// The alerts of watchdogs: which alert is due, its content, and how it is raised. After any crash, an outage is alerted
// once, and its end once (see alerts/raise.ts).
import { OUTAGE_SPACING_SECONDS } from '../alerts/daily-allowance.ts'
import { type AlertDraft, composeAlert, raiserOf } from '../alerts/raise.ts'
import type { Core } from '../context.ts'
import { type Database, nothing, sql, type Tx } from '../db/pool.ts'
import { Refused } from '../receipts/chain.ts'
import { findSnapshots, lockSnapshots, snapshotColumns, snapshotRow, type WatchdogSnapshot } from './snapshot.ts'
import { type AlertMove, alertAt, isMove, MOVES, missing } from './watchdog.ts'

/** A row's columns once its alert is written. */
interface After {
  state: WatchdogSnapshot['state']
  down_since: string | null
  failed_at: string | null
  revived_at: string | null
}

export interface WatchdogDraft extends AlertDraft {
  /** The row from which the alert was composed. */
  seen: WatchdogSnapshot
  after: After
}

/**
 * The alert that is due, by the row and by its deadline; null when there is none. An outage comes before its end, so that one
 * that began and ended without an alert gets both of its alerts.
 * @param due `overdue`: its deadline is over and its allowance permits an alert. `remind`: a reminder is due
 */
export function dueAlert(
  seen: WatchdogSnapshot,
  { overdue, remind }: { overdue: boolean; remind: boolean },
): WatchdogDraft | null {
  const { state, failed_at, down_since, revived_at } = seen
  if (isMove('watchdog.recovered', state) && revived_at !== null && down_since !== null)
    return recovered(seen, revived_at, down_since)
  if (isMove('watchdog.missed', state)) {
    if (failed_at !== null) return seen.may_alert ? missed(seen, failed_at, seen.silent ? 'overdue' : 'failed') : null
    if (overdue) return missed(seen, seen.alert_at, 'overdue')
  }
  if (isMove('watchdog.reminder', state) && remind && down_since !== null) return reminder(seen, down_since)
  return null
}

/** @param since when it became an outage, which may be long before it was found */
function missed(seen: WatchdogSnapshot, since: string, reason: 'failed' | 'overdue'): WatchdogDraft {
  const previous = reason === 'overdue' ? 'late' : seen.beats === 1 ? 'new' : 'up'
  const missed_count = reason === 'overdue' ? Math.max(seen.missed, seen.alert_after) : 0
  const coalesced = seen.coalesced > 0 && { coalesced: seen.coalesced }
  const data = { state: 'down', previous, reason, missed_count, down_since: since, ...coalesced, ...fieldsOf(seen) }
  const columns = { down_since: since, failed_at: seen.failed_at, revived_at: seen.revived_at }
  return draft('watchdog.missed', since, seen, data, columns)
}

function recovered(seen: WatchdogSnapshot, revived: string, since: string): WatchdogDraft {
  const down_ms = Math.max(Date.parse(revived) - Date.parse(since), 0)
  const missed_intervals = Math.floor(down_ms / 1000 / seen.interval_s)
  const times = { recovered_at: revived, down_since: since, down_ms, missed_intervals }
  const data = { state: 'up', previous: 'down', ...times, ...fieldsOf(seen) }
  return draft('watchdog.recovered', revived, seen, data, { down_since: null, failed_at: null, revived_at: null })
}

function reminder(seen: WatchdogSnapshot, since: string): WatchdogDraft {
  const down_ms = Math.max(Date.parse(seen.now) - Date.parse(since), 0)
  const data = { state: 'down', previous: 'down', down_since: since, down_ms, ...fieldsOf(seen) }
  return draft('watchdog.reminder', seen.now, seen, data, seen)
}

function test(seen: WatchdogSnapshot): WatchdogDraft {
  const data = { state: seen.shown, previous: seen.shown, ...fieldsOf(seen) }
  return draft('watchdog.test', seen.now, seen, data, seen)
}

/** The fields that every alert of a watchdog has. */
function fieldsOf({ name, interval_s, grace_s, alert_after, last_beat_at, due_at, note, now }: WatchdogSnapshot) {
  return {
    watchdog: name,
    interval_s,
    grace_s,
    alert_after,
    last_heartbeat_at: last_beat_at,
    due_at,
    note,
    detected_at: now,
  }
}

function draft(
  type: AlertMove | 'watchdog.test',
  timestamp: string,
  seen: WatchdogSnapshot,
  data: Record<string, unknown>,
  { down_since, failed_at, revived_at }: Omit<After, 'state'>,
): WatchdogDraft {
  return {
    ...composeAlert(type, timestamp, seen, data),
    ownerId: seen.id,
    accountId: seen.account_id,
    webhookId: seen.webhook_id,
    cause: causeOf(type, data.reason),
    seen,
    after: { state: type === 'watchdog.test' ? seen.state : MOVES[type].to, down_since, failed_at, revived_at },
  }
}

/** The end of an outage is not counted, because there is one for each alerted outage. */
function causeOf(type: AlertMove | 'watchdog.test', reason: unknown): AlertDraft['cause'] {
  if (type === 'watchdog.recovered') return null
  return reason === 'overdue' ? 'found' : 'asked'
}

/** Raises an alert of a watchdog. Refused as `overtaken` when a heartbeat has made it void. */
export const raiseWatchdogAlert = raiserOf<WatchdogDraft, WatchdogSnapshot>({
  requestedBy: 'watchdog',
  lock: lockSnapshots,
  isCurrent,
  apply,
})

/** Later heartbeats, notes and terms leave an alert valid, unless they move the deadline that it is about. */
function isCurrent({ seen, alert }: WatchdogDraft, row: WatchdogSnapshot): boolean {
  return (
    row.event_seq === seen.event_seq &&
    row.state === seen.state &&
    row.down_since === seen.down_since &&
    row.failed_at === seen.failed_at &&
    row.revived_at === seen.revived_at &&
    (alert.type !== 'watchdog.missed' || seen.failed_at !== null || row.alert_at === seen.alert_at)
  )
}

async function apply(tx: Tx, drafts: readonly WatchdogDraft[]) {
  const rows = drafts.map(({ seen, alert, after }) => ({
    type: alert.type,
    id: seen.id,
    seq: alert.data.event_seq,
    coalesced: seen.coalesced,
    ...after,
  }))
  await tx.query(sql.prepared('apply_watchdog_alerts', nothing)`
    update watchdogs w set
      state = t.state, event_seq = t.seq, down_since = t.down_since, failed_at = t.failed_at, revived_at = t.revived_at,
      reminded_at = case t.type when 'watchdog.reminder' then now() when 'watchdog.test' then w.reminded_at end,
      silent = w.silent and t.failed_at is not null,
      coalesced = case when ${isMissed} then greatest(w.coalesced - t.coalesced, 0) else w.coalesced end,
      outages_full_at = case when ${isMissed} then greatest(w.outages_full_at, now()) + ${OUTAGE_SPACING_SECONDS} * interval '1 second'
                             else w.outages_full_at end,
      check_at = now()
    from json_to_recordset(${sql.json(rows)}) as t (type text, id uuid, seq int8, coalesced int4, state text,
      down_since timestamptz, failed_at timestamptz, revived_at timestamptz)
    where w.id = t.id`)
}

const isMissed = sql.fragment`t.type = 'watchdog.missed'`

/**
 * Raises the alert that a heartbeat has just made due. Never throws: the watchdog's row holds what happened, and the scanner
 * raises what was not raised here.
 */
export async function raisePending({ db, chain, log }: Pick<Core, 'db' | 'chain' | 'log'>, id: string): Promise<void> {
  try {
    const [seen] = await findSnapshots(db, [id])
    const due = seen && dueAlert(seen, { overdue: false, remind: false })
    if (due) await raiseOrWait({ db, chain }, due)
  } catch (error) {
    log.warn({ event: 'alert_put_off', err: error })
  }
}

/** Raises an alert; false when it was refused. An alert that the limit of the day refuses waits for the next day. */
export async function raiseOrWait({ db, chain }: Pick<Core, 'db' | 'chain'>, alert: WatchdogDraft): Promise<boolean> {
  const raised = await raiseWatchdogAlert(chain, alert)
  if (!(raised instanceof Refused)) return true
  if (raised.reason === 'daily_limit') await waitForNextDay(db, alert)
  return false
}

/**
 * Puts an alert off to the next day (UTC), because the limit of this day is reached. The row still says that the watchdog is
 * down. A deadline that is missed while a `fail` waits is checked at its own time.
 */
async function waitForNextDay(db: Database, { seen, alert }: WatchdogDraft): Promise<void> {
  const failed = alert.data.reason === 'failed'
  const missed = sql.fragment`(${alert.data.reason === 'overdue'} and w.state = 'watching' and ${alertAt} <= now())`
  await db.query(sql.prepared('watchdog_waits_for_next_day', nothing)`
    update watchdogs w
    set failed_at = case when ${missed} then coalesce(w.failed_at, ${alertAt}) else w.failed_at end,
        silent = w.silent or ${missed},
        fails_wait_until = case when ${failed} then next_day else w.fails_wait_until end,
        check_at = case when ${failed} then least(next_day, ${alertAt}) else next_day end
    from (select (date_trunc('day', now() at time zone 'utc') + interval '1 day') at time zone 'utc' next_day) t
    where w.id = ${seen.id} and w.state <> 'paused'`)
}

/** The draft of a test alert. Throws AppError `not_found`. */
export async function draftTest(tx: Tx, accountId: string, name: string): Promise<WatchdogDraft> {
  const seen = await tx.maybeOne(sql.prepared('find_watchdog_to_test', snapshotRow)`
    select ${snapshotColumns} from watchdogs w where w.account_id = ${accountId} and w.name = ${name}`)
  return seen ? test(seen) : missing()
}
