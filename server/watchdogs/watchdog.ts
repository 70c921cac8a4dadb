// The record of watchdogs. A deadline is a few columns of a row and the database's clock: no process counts time, so nothing
// is lost with a process. A change of a row sets `check_at`; server/watchdogs/scan.ts reads the row then, and
// watchdog-alerts.ts writes the alert that is due.
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { lockAccount } from '../accounts/account.ts'
import { ownName } from '../accounts/names.ts'
import { OUTAGE_BURST, OUTAGE_SPACING_SECONDS } from '../alerts/daily-allowance.ts'
import { deleteWebhook, insertWebhook, updateWebhookUrl, WEBHOOK_STATES } from '../alerts/webhooks.ts'
import { nothing, sql, type Tx } from '../db/pool.ts'
import { AppError } from '../errors.ts'

export const WATCHDOG_STATES = ['new', 'up', 'late', 'down', 'paused'] as const

export const watchdogName = ownName.describe('Name of the watchdog.')

/** What is expected, and what happens when it does not come. */
export interface Terms {
  interval_s: number
  grace_s: number
  alert_after: number
  remind_every_s: number | null
}

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

/** A moment to the microsecond, in text: it can be compared with the column again, and sorts by time. */
export const moment = (expression: ReturnType<typeof sql.fragment>) =>
  sql.fragment`to_char(${expression} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

/** Of a row `w`: when its next heartbeat is due, and when its silence becomes an outage. */
export const dueAt = sql.fragment`(w.started_at + w.interval_s * interval '1 second')`
export const alertAt = sql.fragment`
  (w.started_at + (w.interval_s::bigint * w.alert_after + w.grace_s) * interval '1 second')`

/** Of a row `w`: the moment before which its allowance has no outage left; null when the allowance is whole. */
export const nextOutageAt = sql.fragment`
  (w.outages_full_at - ${(OUTAGE_BURST - 1) * OUTAGE_SPACING_SECONDS} * interval '1 second')`

/**
 * Of a row `w` with an outage that is not alerted yet: the moment before which it may not be; null for none. A missed
 * deadline does not wait for the account's next day.
 */
export const tellableAt = sql.fragment`greatest(${nextOutageAt}, case when not w.silent then w.fails_wait_until end)`

/** Of a row `w`: the state as its owner sees it, whether or not the outage was alerted. */
export const shownState = sql.fragment`
  case when w.state = 'paused' then 'paused'
       when w.revived_at is null and (w.state = 'down' or w.failed_at is not null) then 'down'
       when ${dueAt} < now() then 'late'
       when w.last_beat_at is null then 'new'
       else 'up' end`

const watchdogColumns = sql.fragment`w.name, w.interval_s, w.grace_s, w.alert_after, w.remind_every_s, ${shownState} state,
  case when w.state <> 'paused' then ${moment(dueAt)} end due_at, ${moment(sql.fragment`w.last_beat_at`)} last_heartbeat_at,
  w.beats, w.note, case when w.revived_at is null then ${moment(sql.fragment`w.down_since`)} end down_since,
  ${moment(sql.fragment`w.paused_until`)} paused_until, w.event_seq, ${moment(sql.fragment`w.created_at`)} created_at,
  w.webhook_id, h.url webhook_url, h.state webhook_state, h.secret_version, ${moment(sql.fragment`now()`)} server_now`

export async function seekWatchdog(tx: Tx, accountId: string, name: string): Promise<Watchdog | null> {
  return tx.maybeOne(sql.prepared('find_watchdog', watchdogRow)`
    select ${watchdogColumns} from watchdogs w join webhooks h on h.id = w.webhook_id
    where w.account_id = ${accountId} and w.name = ${name}`)
}

/** Throws AppError `not_found`, the same for a watchdog of another account as for none. */
export async function findWatchdog(tx: Tx, accountId: string, name: string): Promise<Watchdog> {
  return (await seekWatchdog(tx, accountId, name)) ?? missing()
}

export function missing(): never {
  throw new AppError('not_found', 'This account has no such watchdog.')
}

export function listWatchdogs(tx: Tx, accountId: string): Promise<readonly Watchdog[]> {
  return tx.any(sql.type(watchdogRow)`
    select ${watchdogColumns} from watchdogs w join webhooks h on h.id = w.webhook_id
    where w.account_id = ${accountId} order by w.name collate "C"`)
}

/**
 * Makes a watchdog, whose clock starts with it, or changes one, whose clock goes on.
 * @param refuse makes the error when there are `limit` watchdogs already and this would be one more
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

/** Until it is resumed nothing is due and nothing is alerted. Throws `not_found`, `invalid_request` for a moment gone by. */
export async function pauseWatchdog(tx: Tx, accountId: string, name: string, until: string | null): Promise<void> {
  const { id } = (await lockWatchdog(tx, accountId, name)) ?? missing()
  const paused = await tx.query(sql.type(nothing)`
    update watchdogs set state = 'paused', paused_until = ${until}::timestamptz, check_at = ${until}::timestamptz
    where id = ${id} and (${until}::timestamptz is null or ${until}::timestamptz > now())`)
  if (paused.rowCount === 0) throw new AppError('invalid_request', 'until: must lie in the future.')
}

/**
 * What resuming does to a row `w`: it gets a fresh deadline, and an outage that was not alerted is forgotten. An outage that
 * was alerted goes on: its end is alerted with the next heartbeat, or at once if one came during the pause.
 */
export const resumed = (at: ReturnType<typeof sql.fragment>) => sql.fragment`
  state = 'watching', started_at = ${at}, paused_until = null, check_at = ${at}, failed_at = null,
  silent = false, coalesced = 0, revived_at = case when w.down_since is not null then w.revived_at end`

/** One that is not paused is left alone: its clock goes on. Throws `not_found`. */
export async function resumeWatchdog(tx: Tx, accountId: string, name: string): Promise<void> {
  const { id } = (await lockWatchdog(tx, accountId, name)) ?? missing()
  await tx.query(sql.type(nothing)`
    update watchdogs w set ${resumed(sql.fragment`now()`)} where id = ${id} and state = 'paused'`)
}

/** Deletes its webhook and its alerts too, sent or not. Throws `not_found`. */
export async function deleteWatchdog(tx: Tx, accountId: string, name: string): Promise<void> {
  const { id, webhook_id } = (await lockWatchdog(tx, accountId, name)) ?? missing()
  await tx.query(sql.type(nothing)`delete from watchdogs where id = ${id}`)
  await deleteWebhook(tx, webhook_id)
}

const lockedRow = z.object({ id: z.string(), webhook_id: z.string() })

function lockWatchdog(tx: Tx, accountId: string, name: string) {
  return tx.maybeOne(sql.prepared('lock_watchdog', lockedRow)`
    select id, webhook_id from watchdogs where account_id = ${accountId} and name = ${name} for update`)
}

/** The holder of the lock before us may have made the watchdog of this name. */
async function lockAbsence(tx: Tx, accountId: string, name: string) {
  await lockAccount(tx, accountId)
  return lockWatchdog(tx, accountId, name)
}

export function countWatchdogs(tx: Tx, accountId: string): Promise<number> {
  return tx.oneFirst(sql.type(z.object({ n: z.number() }))`
    select count(*) n from watchdogs where account_id = ${accountId}`)
}
