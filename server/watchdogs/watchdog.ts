// The record of watchdogs: their stored states, the legal moves between them, and their SQL.
//
//             missed deadline or `fail` (watchdog.missed)
//   watching ───────────────────────────────────────────► down ──┐
//    │ ▲  ▲         `ok` (watchdog.recovered)             │ │ ▲  │ (watchdog.reminder)
//    │ │  └───────────────────────────────────────────────┘ │ └──┘
//    │ │                                                    │
//    │ │ resume, or `paused_until` is over                  │ pause
//    │ └───────────────────────────────────── paused ◄──────┘
//    └──────────────────── pause ─────────────────▲
//
//   watching ► watching: `ok` after a pause, for an outage that was alerted before it (watchdog.recovered)
//
// The moves with an alert happen in the transaction that writes the alert. Until then an outage, or its end, is noted in
// `failed_at` and `revived_at`, and the owner sees the state that follows from them (`shownState`). A pause does not end an outage
// that was alerted: `down_since` stays, and the next `ok` after it raises watchdog.recovered.
//
// A deadline is a few columns of a row and the database's clock. No process counts time, so nothing is lost with a process.
// A change of a row sets `check_at`; scan.ts reads the row then and raises the alert that is due.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { lockAccount } from '../accounts/account.ts'
import { ownName } from '../accounts/own-names.ts'
import { OUTAGE_BURST, OUTAGE_SPACING_SECONDS } from '../alerts/daily-allowance.ts'
import { deleteWebhook, insertWebhook, updateWebhookUrl, WEBHOOK_STATES } from '../alerts/webhooks.ts'
import { nothing, sql, type Tx } from '../db/pool.ts'
import { utcMicroseconds } from '../db/time.ts'
import { AppError } from '../errors.ts'

/** The states of the column, which its CHECK constraint repeats. `watching` is shown as `new`, `up`, `late` or `down`. */
export const STORED_STATES = ['watching', 'down', 'paused'] as const
export type StoredState = (typeof STORED_STATES)[number]

interface Move {
  from: readonly StoredState[]
  to: StoredState
}

/** The moves of a watchdog, by the type of the alert or the action of its owner, with the states before and after. */
export const MOVES = {
  'watchdog.missed': { from: ['watching'], to: 'down' },
  'watchdog.reminder': { from: ['down'], to: 'down' },
  // From `watching` for an outage that was alerted before a pause.
  'watchdog.recovered': { from: ['down', 'watching'], to: 'watching' },
  pause: { from: ['watching', 'down', 'paused'], to: 'paused' },
  resume: { from: ['paused'], to: 'watching' },
} as const satisfies Record<string, Move>

/** The moves that are alerts. */
export type AlertMove = Extract<keyof typeof MOVES, `watchdog.${string}`>

export function isMove(move: keyof typeof MOVES, from: StoredState): boolean {
  const legal: readonly StoredState[] = MOVES[move].from
  return legal.includes(from)
}

/** The states as owners see them. */
export const WATCHDOG_STATES = ['new', 'up', 'late', 'down', 'paused'] as const

export const watchdogName = ownName.describe('Name of the watchdog.')

/** How often a heartbeat is expected, and when its absence is alerted. */
export interface Terms {
  interval_s: number
  grace_s: number
  alert_after: number
  remind_every_s: number | null
}

/**
 * The possible arrivals of a heartbeat. The column `recent_beats` holds their places in this list, from 1;
 * heartbeats.ts writes it.
 */
export const ARRIVALS = ['in_time', 'late', 'missed', 'failed'] as const
/** Number of heartbeats whose arrival is kept. */
export const RECENT_BEATS = 20

export const watchdogRow = z.object({
  name: z.string(),
  interval_s: z.int(),
  grace_s: z.int(),
  alert_after: z.int(),
  remind_every_s: z.int().nullable(),
  state: z.enum(WATCHDOG_STATES),
  due_at: z.string().nullable(),
  last_heartbeat_at: z.string().nullable(),
  beats: z.int(),
  recent_beats: z
    .array(z.enum(ARRIVALS))
    .describe(
      `The last heartbeats, at most ${RECENT_BEATS}, the oldest first: in_time; late, but before an outage was due; ` +
        'missed, which is after that; failed. Equal heartbeats at the same moment count once.',
    ),
  note: z.string().nullable(),
  down_since: z.string().nullable(),
  paused_until: z.string().nullable(),
  event_seq: z.int(),
  created_at: z.string(),
  webhook_id: z.string(),
  webhook_url: z.string(),
  webhook_state: z.enum(WEBHOOK_STATES),
  secret_version: z.int(),
  server_now: z.string(),
})
export type Watchdog = z.output<typeof watchdogRow>

/** Of a row `w`: when its next heartbeat is due, and when its silence becomes an outage. */
export const dueAt = sql.fragment`(w.started_at + w.interval_s * interval '1 second')`
export const alertAt = sql.fragment`
  (w.started_at + (w.interval_s::bigint * w.alert_after + w.grace_s) * interval '1 second')`

/** Of a row `w`: the time until which its allowance has no outage left; null when the allowance is full. */
export const nextOutageAt = sql.fragment`
  (w.outages_full_at - ${(OUTAGE_BURST - 1) * OUTAGE_SPACING_SECONDS} * interval '1 second')`

/**
 * Of a row `w` with an outage that is not alerted yet: the earliest time at which it may be; null for at once. A missed
 * deadline does not wait for the account's next day.
 */
export const alertableAt = sql.fragment`greatest(${nextOutageAt}, case when not w.silent then w.fails_wait_until end)`

/** Of a row `w`: the state as its owner sees it, which does not depend on whether the outage was alerted. */
export const shownState = sql.fragment`
  case when w.state = 'paused' then 'paused'
       when w.revived_at is null and (w.state = 'down' or w.failed_at is not null) then 'down'
       when ${dueAt} < now() then 'late'
       when w.last_beat_at is null then 'new'
       else 'up' end`

/** Of a row `w`: the arrivals of the last heartbeats, the oldest first. */
const recentBeats = sql.fragment`array(
  select (${sql.array([...ARRIVALS], 'text')})[(w.recent_beats >> (3 * n)) & 7]
  from generate_series(${RECENT_BEATS - 1}::int, 0, -1) n where (w.recent_beats >> (3 * n)) & 7 > 0)`

const watchdogColumns = sql.fragment`w.name, w.interval_s, w.grace_s, w.alert_after, w.remind_every_s, ${shownState} state,
  case when w.state <> 'paused' then ${utcMicroseconds(dueAt)} end due_at, ${utcMicroseconds(sql.fragment`w.last_beat_at`)} last_heartbeat_at,
  w.beats, ${recentBeats} recent_beats, w.note, case when w.revived_at is null then ${utcMicroseconds(sql.fragment`w.down_since`)} end down_since,
  ${utcMicroseconds(sql.fragment`w.paused_until`)} paused_until, w.event_seq, ${utcMicroseconds(sql.fragment`w.created_at`)} created_at,
  w.webhook_id, h.url webhook_url, h.state webhook_state, h.secret_version, ${utcMicroseconds(sql.fragment`now()`)} server_now`

async function seekWatchdog(tx: Tx, accountId: string, name: string): Promise<Watchdog | null> {
  return tx.maybeOne(sql.prepared('find_watchdog', watchdogRow)`
    select ${watchdogColumns} from watchdogs w join webhooks h on h.id = w.webhook_id
    where w.account_id = ${accountId} and w.name = ${name}`)
}

/** Throws AppError `not_found`, also for a watchdog of another account. */
export async function findWatchdog(tx: Tx, accountId: string, name: string): Promise<Watchdog> {
  return (await seekWatchdog(tx, accountId, name)) ?? missing()
}

export function missing(): never {
  throw new AppError('not_found', 'This account has no such watchdog.')
}

/** Of one account, by name. */
export function findWatchdogs(tx: Tx, accountId: string): Promise<readonly Watchdog[]> {
  return tx.any(sql.type(watchdogRow)`
    select ${watchdogColumns} from watchdogs w join webhooks h on h.id = w.webhook_id
    where w.account_id = ${accountId} order by w.name collate "C"`)
}

/**
 * Makes a watchdog and starts its clock, or changes a watchdog, whose clock continues.
 * @param refuse makes the error that is thrown when the account has `limit` watchdogs already
 */
export async function writeWatchdog(
  tx: Tx,
  { accountId, name, url, terms, limit }: { accountId: string; name: string; url: string; terms: Terms; limit: number },
  refuse: () => AppError,
): Promise<{ made: boolean; watchdog: Watchdog }> {
  const present = (await lockWatchdog(tx, accountId, name)) ?? (await lockAbsence(tx, accountId, name))
  if (!present && (await countWatchdogs(tx, accountId)) >= limit) throw refuse()
  if (present) {
    await updateWebhookUrl(tx, present.webhook_id, url)
    await updateTerms(tx, present.id, terms)
  } else {
    await insertWatchdog(tx, { accountId, name, webhookId: await insertWebhook(tx, accountId, url), terms })
  }
  return { made: !present, watchdog: await findWatchdog(tx, accountId, name) }
}

async function insertWatchdog(
  tx: Tx,
  { accountId, name, webhookId, terms }: { accountId: string; name: string; webhookId: string; terms: Terms },
) {
  await tx.query(sql.type(nothing)`
    insert into watchdogs (id, account_id, name, webhook_id, interval_s, grace_s, alert_after, remind_every_s)
    values (${randomUUID()}, ${accountId}, ${name}, ${webhookId}, ${terms.interval_s}, ${terms.grace_s},
            ${terms.alert_after}, ${terms.remind_every_s})`)
}

async function updateTerms(tx: Tx, id: string, { interval_s, grace_s, alert_after, remind_every_s }: Terms) {
  await tx.query(sql.type(nothing)`
    update watchdogs set interval_s = ${interval_s}, grace_s = ${grace_s}, alert_after = ${alert_after},
                         remind_every_s = ${remind_every_s}, check_at = now()
    where id = ${id}`)
}

/**
 * Until it is resumed nothing is due and nothing is alerted. Throws AppError `not_found`, and `invalid_request` for a time
 * in the past.
 * @param until ISO 8601; null for no end
 */
export async function startPause(tx: Tx, accountId: string, name: string, until: string | null): Promise<void> {
  const { id } = (await lockWatchdog(tx, accountId, name)) ?? missing()
  const paused = await tx.query(sql.type(nothing)`
    update watchdogs set state = ${MOVES.pause.to}, paused_until = ${until}::timestamptz, check_at = ${until}::timestamptz
    where id = ${id} and (${until}::timestamptz is null or ${until}::timestamptz > now())`)
  if (paused.rowCount === 0) throw new AppError('invalid_request', 'until: must be in the future.')
}

/**
 * The columns of a row `w` after resuming: a fresh deadline, and no outage that was not alerted. An alerted outage
 * continues: its end is alerted with the next heartbeat, or at once if a heartbeat came during the pause.
 */
export const resumed = (at: ReturnType<typeof sql.fragment>) => sql.fragment`
  state = ${MOVES.resume.to}, started_at = ${at}, paused_until = null, check_at = ${at}, failed_at = null,
  silent = false, coalesced = 0, revived_at = case when w.down_since is not null then w.revived_at end`

/** A watchdog that is not paused stays as it is: its clock goes on. Throws AppError `not_found`. */
export async function endPause(tx: Tx, accountId: string, name: string): Promise<void> {
  const { id } = (await lockWatchdog(tx, accountId, name)) ?? missing()
  await tx.query(sql.type(nothing)`
    update watchdogs w set ${resumed(sql.fragment`now()`)} where id = ${id} and state = 'paused'`)
}

/** Deletes its webhook and its alerts too, sent or not. Throws AppError `not_found`. */
export async function removeWatchdog(tx: Tx, accountId: string, name: string): Promise<void> {
  const { id, webhook_id } = (await lockWatchdog(tx, accountId, name)) ?? missing()
  await tx.query(sql.type(nothing)`delete from watchdogs where id = ${id}`)
  await deleteWebhook(tx, webhook_id)
}

const lockedRow = z.object({ id: z.string(), webhook_id: z.string() })

function lockWatchdog(tx: Tx, accountId: string, name: string) {
  return tx.maybeOne(sql.prepared('lock_watchdog', lockedRow)`
    select id, webhook_id from watchdogs where account_id = ${accountId} and name = ${name} for update`)
}

/** The transaction that held the account's lock before this one may have made the watchdog. */
async function lockAbsence(tx: Tx, accountId: string, name: string) {
  await lockAccount(tx, accountId)
  return lockWatchdog(tx, accountId, name)
}

export function countWatchdogs(tx: Tx, accountId: string): Promise<number> {
  return tx.oneFirst(sql.type(z.object({ n: z.number() }))`
    select count(*) n from watchdogs where account_id = ${accountId}`)
}
