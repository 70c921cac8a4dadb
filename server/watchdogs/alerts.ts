// The alerts of watchdogs. The change of a watchdog, the receipt of its alert, the alert in the outbox and the job that sends
// it are one transaction, made under the lock of the chain's head: whatever crashes, an outage is alerted once, and its end
// once.
//
// An alert is composed from a row as it was read. It is written only if the row still says the same under the lock: a
// heartbeat in between makes it void.

import { type AlertCause, countAlerts, noAlertsLeft, OUTAGE_SPACING_SECONDS } from '../alerts/daily-allowance.ts'
import { type Alert, type AlertType, makeAlertId, sealAlert, subjectOf } from '../alerts/format.ts'
import { insertAlerts, requireRoom } from '../alerts/outbox.ts'
import type { Core } from '../context.ts'
import { type Database, nothing, sql, type Tx } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { type Appended, type Chain, type Participant, Refused } from '../receipts/chain.ts'
import { findStandings, lockStandings, type Standing, standingColumns, standingRow } from './snapshot.ts'
import { alertAt } from './watchdog.ts'

/** A row's columns once its alert is written. */
interface After {
  state: Standing['state']
  down_since: string | null
  failed_at: string | null
  revived_at: string | null
}

/** An alert as composed, and what it changes. */
export interface Telling {
  id: string
  type: AlertType
  seen: Standing
  alert: Alert
  after: After
}

/**
 * The alert that is due, by the row and by its deadline; null when there is none. An outage comes before its end, so that one
 * that began and ended without an alert is alerted whole.
 * @param due `overdue`: its deadline is over and its allowance permits an alert. `remind`: a reminder is due
 */
export function dueAlert(seen: Standing, { overdue, remind }: { overdue: boolean; remind: boolean }): Telling | null {
  if (seen.state === 'paused') return null
  if (seen.revived_at !== null && seen.down_since !== null) return recovered(seen, seen.revived_at, seen.down_since)
  if (seen.state === 'watching' && seen.failed_at !== null)
    return seen.may_tell ? missed(seen, seen.failed_at, seen.silent ? 'overdue' : 'failed') : null
  if (seen.state === 'watching' && overdue) return missed(seen, seen.alert_at, 'overdue')
  if (seen.state === 'down' && remind && seen.down_since !== null) return reminder(seen, seen.down_since)
  return null
}

/** @param since when it became an outage, which may be long before it was found */
function missed(seen: Standing, since: string, reason: 'failed' | 'overdue'): Telling {
  const previous = reason === 'overdue' ? 'late' : seen.beats === 1 ? 'new' : 'up'
  const missed_count = reason === 'overdue' ? Math.max(seen.missed, seen.alert_after) : 0
  const coalesced = seen.coalesced > 0 && { coalesced: seen.coalesced }
  const data = { state: 'down', previous, reason, missed_count, down_since: since, ...coalesced, ...toldOf(seen) }
  const after = { state: 'down', down_since: since, failed_at: seen.failed_at, revived_at: seen.revived_at } as const
  return telling('watchdog.missed', since, seen, data, after)
}

function recovered(seen: Standing, revived: string, since: string): Telling {
  const down_ms = Math.max(Date.parse(revived) - Date.parse(since), 0)
  const missed_intervals = Math.floor(down_ms / 1000 / seen.interval_s)
  const times = { recovered_at: revived, down_since: since, down_ms, missed_intervals }
  const after = { state: 'watching', down_since: null, failed_at: null, revived_at: null } as const
  return telling(
    'watchdog.recovered',
    revived,
    seen,
    { state: 'up', previous: 'down', ...times, ...toldOf(seen) },
    after,
  )
}

function reminder(seen: Standing, since: string): Telling {
  const down_ms = Math.max(Date.parse(seen.now) - Date.parse(since), 0)
  const data = { state: 'down', previous: 'down', down_since: since, down_ms, ...toldOf(seen) }
  return telling('watchdog.reminder', seen.now, seen, data, unchanged(seen))
}

function test(seen: Standing): Telling {
  const data = { state: seen.shown, previous: seen.shown, ...toldOf(seen) }
  return telling('watchdog.test', seen.now, seen, data, unchanged(seen))
}

function unchanged({ state, down_since, failed_at, revived_at }: Standing): After {
  return { state, down_since, failed_at, revived_at }
}

function toldOf({ name, interval_s, grace_s, alert_after, last_beat_at, due_at, note, now }: Standing) {
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

function telling(type: AlertType, timestamp: string, seen: Standing, data: object, after: After): Telling {
  const alert = { type, timestamp, data: { event_seq: seen.event_seq + 1, ...data } }
  return { id: makeAlertId(), type, seen, alert, after }
}

/** `changed`: the watchdog has changed since it was read. `daily_limit`: see countAlerts. */
export type TellRefusal = 'changed' | 'daily_limit'

/** Resolves once the alert is in the outbox, or when it is refused. */
export function tell(chain: Chain, telling: Telling): Promise<Appended | Refused<TellRefusal>> {
  const { type: label, alert } = telling
  const participant = { kind: watchdogAlerts, item: telling }
  return chain.append({ subjectSha256: subjectOf(alert), label, requestedBy: 'watchdog', participant })
}

/**
 * Raises the alert that a heartbeat has just made due. Never throws: the watchdog's row holds what happened, and what is not
 * alerted now the scanner alerts.
 */
export async function tellTurn({ db, chain, log }: Pick<Core, 'db' | 'chain' | 'log'>, id: string): Promise<void> {
  try {
    const [seen] = await findStandings(db, [id])
    const telling = seen && dueAlert(seen, { overdue: false, remind: false })
    const outcome = telling && (await tell(chain, telling))
    if (outcome instanceof Refused && outcome.reason === 'daily_limit') await waitForNextDay(db, telling!)
  } catch (error) {
    log.warn({ event: 'telling_put_off', err: error })
  }
}

/**
 * Puts an alert off to the next day (UTC), because the number of this one is used up; the row says all the same that the
 * watchdog is down. A deadline that is missed during such a failure is checked in time.
 */
export async function waitForNextDay(db: Database, { seen, alert }: Telling): Promise<void> {
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

const MAX_ATTEMPTS = 5

/**
 * Makes a test alert, like every other. Null when there is no such watchdog. Throws AppError `rate_limited` while too many
 * alerts wait for this receiver, `daily_limit` when the account has none left today, and BatchOverflowError like the chain.
 */
export async function tellTest({ db, chain }: Pick<Core, 'db' | 'chain'>, accountId: string, name: string) {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const seen = await db.maybeOne(sql.prepared('find_watchdog_to_test', standingRow)`
      select ${standingColumns} from watchdogs w where w.account_id = ${accountId} and w.name = ${name}`)
    if (!seen) return null
    await requireRoom(db, seen.webhook_id)
    const telling = test(seen)
    const appended = await tell(chain, telling)
    if (!(appended instanceof Refused)) return { ...telling, attestation: appended.attestation }
    if (appended.reason === 'daily_limit') throw noAlertsLeft()
  }
  throw new AppError('capacity_exceeded', 'The watchdog keeps changing. Try again.', {
    headers: { 'retry-after': '1' },
  })
}

const watchdogAlerts: Participant<Telling, TellRefusal> = {
  async check(tx, items) {
    const standing = new Map(
      (
        await lockStandings(
          tx,
          items.map(({ seen }) => seen.id),
        )
      ).map((row) => [row.id, row]),
    )
    const current = items.map(({ seen, type }) => {
      const now = standing.get(seen.id)
      // Of several about one watchdog the first of a batch changes it for the others.
      standing.delete(seen.id)
      return now !== undefined && stillHolds(type, seen, now)
    })
    const counted = await countAlerts(
      tx,
      items.map((item, index) => (current[index] ? countedAs(item) : null)),
    )
    return items.map((_, index) =>
      current[index] ? (counted[index] ? null : new Refused('daily_limit')) : new Refused('changed'),
    )
  },

  async apply(tx, entries) {
    await writeAfters(
      tx,
      entries.map(({ item }) => item),
    )
    await insertAlerts(
      tx,
      entries.map(({ item: { id, type, seen, alert }, attestation }) => ({
        id,
        type,
        webhookId: seen.webhook_id,
        eventSeq: alert.data.event_seq,
        body: sealAlert(alert, attestation),
        serial: attestation.serial,
      })),
    )
  },
}

/** The end of an outage is not counted: there is one for each outage that was alerted. */
function countedAs({ type, seen, alert }: Telling): { accountId: string; cause: AlertCause } | null {
  if (type === 'watchdog.recovered') return null
  return { accountId: seen.account_id, cause: alert.data.reason === 'overdue' ? 'found' : 'asked' }
}

/** Later heartbeats, notes and terms leave an alert valid, unless they move the deadline that it is about. */
function stillHolds(type: AlertType, seen: Standing, now: Standing): boolean {
  return (
    now.event_seq === seen.event_seq &&
    now.state === seen.state &&
    now.down_since === seen.down_since &&
    now.failed_at === seen.failed_at &&
    now.revived_at === seen.revived_at &&
    (type !== 'watchdog.missed' || seen.failed_at !== null || now.alert_at === seen.alert_at)
  )
}

async function writeAfters(tx: Tx, tellings: Telling[]) {
  const rows = tellings.map(({ type, seen, alert, after }) => ({
    type,
    id: seen.id,
    seq: alert.data.event_seq,
    told: seen.coalesced,
    ...after,
  }))
  await tx.query(sql.prepared('write_watchdog_afters', nothing)`
    update watchdogs w set
      state = t.state, event_seq = t.seq, down_since = t.down_since, failed_at = t.failed_at, revived_at = t.revived_at,
      reminded_at = case t.type when 'watchdog.reminder' then now() when 'watchdog.test' then w.reminded_at end,
      silent = w.silent and t.failed_at is not null,
      coalesced = case when ${isMissed} then greatest(w.coalesced - t.told, 0) else w.coalesced end,
      outages_full_at = case when ${isMissed} then greatest(w.outages_full_at, now()) + ${OUTAGE_SPACING_SECONDS} * interval '1 second'
                             else w.outages_full_at end,
      check_at = now()
    from json_to_recordset(${sql.json(rows)}) as t (type text, id uuid, seq int8, told int4, state text,
      down_since timestamptz, failed_at timestamptz, revived_at timestamptz)
    where w.id = t.id`)
}

const isMissed = sql.fragment`t.type = 'watchdog.missed'`
