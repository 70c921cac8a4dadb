// What watchdogs tell. The change of a watchdog, the receipt of the alert, the alert in the outbox and the job that sends it
// are one transaction, made under the lock of the chain's head: whatever crashes, an outage is told once, and its end once.
//
// Alerts are written up from a row as it was read, and count only if the row still stands so when the lock is held. A
// heartbeat that came in between has won.
import { z } from 'zod'
import { type Alert, type AlertType, makeAlertId, sealAlert, subjectOf } from '../alerts/format.ts'
import { insertAlerts, requireRoom } from '../alerts/outbox.ts'
import type { Core } from '../context.ts'
import { column, type Database, nothing, sql, type Tx } from '../db/pool.ts'
import { AppError } from '../errors.ts'
import { type Appended, type Chain, type Companion, Refused } from '../receipts/chain.ts'
import { alertAt, dueAt, moment, shownState, WATCHDOG_STATES } from './watchdogs.ts'

export const standingRow = z.object({
  id: z.string(),
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
  /** Whole intervals since the clock started. */
  missed: z.int(),
  now: z.string(),
})
/** A watchdog as it stood when it was read. */
export type Standing = z.output<typeof standingRow>

/** Of a row `w`. */
export const standingColumns = sql.fragment`w.id, w.webhook_id, w.name, w.interval_s, w.grace_s, w.alert_after, w.state,
  ${shownState} shown, w.event_seq, ${moment(sql.fragment`w.last_beat_at`)} last_beat_at, w.beats, w.note,
  ${moment(dueAt)} due_at, ${moment(alertAt)} alert_at, ${moment(sql.fragment`w.failed_at`)} failed_at,
  ${moment(sql.fragment`w.down_since`)} down_since, ${moment(sql.fragment`w.revived_at`)} revived_at,
  greatest(floor(extract(epoch from now() - w.started_at) / w.interval_s), 0)::bigint missed,
  ${moment(sql.fragment`now()`)} now`

export async function findStandings(db: Tx | Database, ids: readonly string[]): Promise<readonly Standing[]> {
  return db.any(sql.prepared('find_watchdog_standings', standingRow)`
    select ${standingColumns} from watchdogs w where w.id = any(${sql.array([...ids], 'uuid')})`)
}

/** What becomes of a row when its alert is told. */
interface After {
  state: Standing['state']
  down_since: string | null
  failed_at: string | null
  revived_at: string | null
}

/** An alert written up, and what it changes. */
export interface Telling {
  id: string
  type: AlertType
  seen: Standing
  alert: Alert
  after: After
}

/**
 * The alert that is due by what the row says and by its deadline, which the caller has compared with the clock; null when
 * there is none. Failures come before recoveries, so that an outage that began and ended untold is told whole.
 */
export function dueAlert(seen: Standing, { overdue, remind }: { overdue: boolean; remind: boolean }): Telling | null {
  if (seen.state === 'paused') return null
  if (seen.revived_at !== null && seen.down_since !== null) return recovered(seen, seen.revived_at, seen.down_since)
  if (seen.state === 'watching' && seen.failed_at !== null) return missed(seen, seen.failed_at, 'failed')
  if (seen.state === 'watching' && overdue) return missed(seen, seen.alert_at, 'overdue')
  if (seen.state === 'down' && remind && seen.down_since !== null) return reminder(seen, seen.down_since)
  return null
}

/** @param since when it became an outage: computed, so that it is told as of then, however late it is found */
function missed(seen: Standing, since: string, reason: 'failed' | 'overdue'): Telling {
  const previous = reason === 'overdue' ? 'late' : seen.beats === 1 ? 'new' : 'up'
  const missed_count = reason === 'overdue' ? Math.max(seen.missed, seen.alert_after) : 0
  const data = { state: 'down', previous, reason, missed_count, down_since: since, ...toldOf(seen) }
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

/** Resolves once the alert is in the outbox; refused when the watchdog has changed since it was read. */
export function tell(chain: Chain, telling: Telling): Promise<Appended | Refused<'changed'>> {
  const { type: label, alert } = telling
  const companion = { kind: watchdogAlerts, item: telling }
  return chain.append({ subjectSha256: subjectOf(alert), label, requestedBy: 'watchdog', companion })
}

/**
 * Tells what a heartbeat has just turned. Never throws: the heartbeat stands in its row, and what is not told now the
 * scanner tells.
 */
export async function tellTurn({ db, chain, log }: Pick<Core, 'db' | 'chain' | 'log'>, id: string): Promise<void> {
  try {
    const [seen] = await findStandings(db, [id])
    const telling = seen && dueAlert(seen, { overdue: false, remind: false })
    if (telling) await tell(chain, telling)
  } catch (error) {
    log.warn({ event: 'telling_put_off', err: error })
  }
}

const MAX_ATTEMPTS = 5

/**
 * A test alert, by the way of every other. Null where there is no such watchdog. Throws `rate_limited` while too many
 * alerts wait for this receiver, BatchOverflow like the chain.
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
  }
  throw new AppError('capacity_exceeded', 'The watchdog keeps changing. Try again.', {
    headers: { 'retry-after': '1' },
  })
}

const watchdogAlerts: Companion<Telling, 'changed'> = {
  async admit(tx, items) {
    const standing = new Map((await lockStandings(tx, items)).map((row) => [row.id, row]))
    return items.map(({ seen, type }) => {
      const now = standing.get(seen.id)
      // Of several about one watchdog the first of a batch changes it for the others.
      standing.delete(seen.id)
      return now && stillHolds(type, seen, now) ? null : new Refused('changed')
    })
  },

  async write(tx, entries) {
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

/** Later heartbeats, notes and terms change nothing about an alert, unless they move the deadline that it is about. */
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

function lockStandings(tx: Tx, items: Telling[]): Promise<readonly Standing[]> {
  return tx.any(sql.prepared('lock_watchdog_standings', standingRow)`
    select ${standingColumns} from watchdogs w where w.id = any(${column(items, 'uuid', ({ seen }) => seen.id)})
    order by w.id for no key update`)
}

async function writeAfters(tx: Tx, tellings: Telling[]) {
  const rows = tellings.map(({ type, seen, alert, after }) => ({
    type,
    id: seen.id,
    seq: alert.data.event_seq,
    ...after,
  }))
  await tx.query(sql.prepared('write_watchdog_afters', nothing)`
    update watchdogs w set
      state = t.state, event_seq = t.seq, down_since = t.down_since, failed_at = t.failed_at, revived_at = t.revived_at,
      reminded_at = case t.type when 'watchdog.reminder' then now() when 'watchdog.test' then w.reminded_at end,
      check_at = now()
    from json_to_recordset(${sql.json(rows)}) as t (type text, id uuid, seq int8, state text, down_since timestamptz,
      failed_at timestamptz, revived_at timestamptz)
    where w.id = t.id`)
}
