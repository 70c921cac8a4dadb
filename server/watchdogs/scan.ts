// Finds watchdogs whose deadline has passed or whose alert is due. Every worker tries once a second, and one of them gets the
// row of the scans: it decides up to when deadlines count, and claims what is due by moving its next check a few seconds on.
// After a crash at any point the claimed watchdogs are checked again some seconds later.
import { setInterval as every } from 'node:timers/promises'
import { z } from 'zod'
import type { Work } from '../../workers/context.ts'
import { hasRoom } from '../alerts/outbox.ts'
import { BatchOverflowError } from '../db/batch.ts'
import { type Database, nothing, sql, type Tx, transact } from '../db/pool.ts'
import { Refused } from '../receipts/chain.ts'
import { dueAlert, type Telling, tell, waitForNextDay } from './alerts.ts'
import { standingColumns, standingRow } from './snapshot.ts'
import { alertAt, nextOutageAt, resumed, tellableAt } from './watchdog.ts'

type Tools = Pick<Work, 'db' | 'chain' | 'log' | 'metrics'>

export interface Scanner extends AsyncDisposable {
  /** Rejects when the scanner stopped without being disposed. */
  died: Promise<never>
}

const PERIOD_MS = 1000
/**
 * Deadlines are judged in steps of a second or two. A longer step than this is an outage of ours, or a clock that was set;
 * for shorter ones there is the grace, which by default is no shorter.
 */
const GAP_SECONDS = 5
/** Shorter steps are not taken: another worker has just scanned. */
const STEP_SECONDS = 0.25
const MAX_CLAIMED = 500
/** Retry delay for a claimed watchdog whose alert was not recorded. */
const CLAIM_SECONDS = 10
/** Delay for a watchdog whose alert fails even when it is written alone. */
const PUT_OFF_SECONDS = 60
/** Delay for an outage while too many alerts wait at the webhook. */
const NO_ROOM_SECONDS = 60
const MAX_FAILURES_RUNNING = 3

/**
 * Scans until disposed; a failing database is logged and waited out. Steps go on while alerts are written, however many they
 * are: much to write is no outage of ours.
 */
export function openScanner(work: Work): Scanner {
  const stopping = new AbortController()
  let telling: Promise<void> | undefined
  const scan = async () => {
    const until = await transact(work.db, (tx) => advance(tx, work))
    if (until === null) return
    telling ??= orLog(work, () => tellDue(work, until)).finally(() => {
      telling = undefined
    })
  }
  const scanning = (async () => {
    try {
      for await (const _ of every(PERIOD_MS, undefined, { signal: stopping.signal })) await orLog(work, scan)
    } catch (error) {
      if (!stopping.signal.aborted) throw error
    }
  })()
  const died = scanning.then(() => new Promise<never>(() => {}))
  died.catch(() => {})
  return {
    died,
    async [Symbol.asyncDispose]() {
      stopping.abort()
      await scanning.catch(() => {})
      await telling
    },
  }
}

async function orLog({ log }: Work, act: () => Promise<unknown>) {
  try {
    await act()
  } catch (error) {
    log.warn({ event: 'scan_failed', err: error })
  }
}

/** Judges what has come due since the last scan. Answers how many alerts were written, or null when there was no step to take. */
export async function scanWatchdogs(tools: Tools): Promise<number | null> {
  const until = await transact(tools.db, (tx) => advance(tx, tools))
  return until === null ? null : tellDue(tools, until)
}

async function tellDue(tools: Tools, until: string): Promise<number> {
  await resumeDue(tools.db, until)
  let told = 0
  for (;;) {
    const claimed = await claimDue(tools.db, until)
    told += await tellAll(
      tools,
      claimed.flatMap((row) => dueAlert(row, row) ?? []),
    )
    if (claimed.length === MAX_CLAIMED) continue
    if (told > 0) tools.log.info({ event: 'watchdogs_told', alerts: told })
    return told
  }
}

const stepRow = z.object({ seen_at: z.string(), open_at: z.string(), seconds: z.number() })

/**
 * Takes the next step: up to the last moment at which heartbeats could be taken, and no further. Null when there is none to
 * take: another worker takes it, or no heartbeat could be taken since. When the clock was put back a little, nothing is done
 * until it has caught up; when it was put back by more, that counts as a gap.
 */
async function advance(tx: Tx, { log }: Tools): Promise<string | null> {
  const step = await tx.maybeOne(sql.prepared('lock_watchdog_scan', stepRow)`
    select seen_at::text, open_at::text, extract(epoch from open_at - seen_at)::float8 seconds
    from watchdog_scans for update skip locked`)
  if (!step || (step.seconds < STEP_SECONDS && step.seconds >= -GAP_SECONDS)) return null
  const { seen_at, open_at, seconds } = step
  if (Math.abs(seconds) > GAP_SECONDS) {
    const moved = await (seconds > 0 ? skipGap(tx, seen_at, open_at) : stepBack(tx, open_at))
    // No watchdog moved: the service was only not running yet.
    log[moved > 0 ? 'warn' : 'info']({ event: 'watchdog_gap', seconds, from: seen_at, to: open_at, moved })
  }
  await tx.query(sql.prepared('advance_watchdog_scan', nothing)`
    update watchdog_scans set seen_at = ${open_at}::timestamptz`)
  return open_at
}

/**
 * Time in which no heartbeat could be taken does not count: every running clock is moved on by its part of the gap.
 * `check_at` may stay, it is only earlier than it need be.
 */
async function skipGap(tx: Tx, from: string, to: string): Promise<number> {
  const { rowCount } = await tx.query(sql.type(nothing)`
    with target as (select id from watchdogs where state = 'watching' order by id for no key update)
    update watchdogs w set started_at = started_at
      + greatest(${to}::timestamptz - greatest(started_at, ${from}::timestamptz), interval '0')
    from target where w.id = target.id`)
  return rowCount
}

/** Clocks that started in what is the future now start now: their deadlines would be that much too late. */
async function stepBack(tx: Tx, to: string): Promise<number> {
  const { rowCount } = await tx.query(sql.type(nothing)`
    with target as (select id from watchdogs where check_at is not null order by id for no key update)
    update watchdogs w set started_at = least(started_at, ${to}::timestamptz), check_at = ${to}::timestamptz
    from target where w.id = target.id`)
  return rowCount
}

async function resumeDue(db: Database, until: string) {
  await db.query(sql.prepared('resume_due_watchdogs', nothing)`
    with target as (
      select id from watchdogs
      where check_at <= ${until}::timestamptz and state = 'paused' and paused_until <= ${until}::timestamptz
      for no key update skip locked
    )
    update watchdogs w set ${resumed(sql.fragment`${until}::timestamptz`)} from target where w.id = target.id`)
}

const claimedRow = standingRow.extend({ overdue: z.boolean(), remind: z.boolean() })

/**
 * Checks watchdogs whose time has come. One with an alert due is claimed: its check is moved on by CLAIM_SECONDS. An outage
 * that may not be alerted yet, because the watchdog's allowance, the day's number or the room at its webhook is used up, is
 * noted in the row (`failed_at`, `silent`), so that its owner sees it, and checked again when it may be. Any other watchdog
 * is checked again when something can be due.
 */
function claimDue(db: Database, until: string) {
  const at = sql.fragment`${until}::timestamptz`
  return db.any(sql.prepared('claim_due_watchdogs', claimedRow)`
    with target as (
      select w.id, o.overdue, o.noted, o.remind, o.ended, p.permitted_at,
        o.ended or ((o.remind or ((o.overdue or o.noted) and coalesce(p.permitted_at <= ${at}, true)))
                    and ${hasRoom(sql.fragment`w.webhook_id`)}) tell
      from watchdogs w,
        lateral (select
          w.state = 'watching' and ${alertAt} <= ${at} and not (w.silent and w.revived_at is null) overdue,
          w.state = 'watching' and w.failed_at is not null noted,
          w.state = 'down' and coalesce(${remindAt} <= ${at}, false) remind,
          w.state <> 'paused' and w.revived_at is not null and w.down_since is not null ended) o,
        lateral (select case when o.overdue then ${nextOutageAt} else ${tellableAt} end permitted_at) p
      where w.check_at <= ${at}
      order by w.check_at limit ${MAX_CLAIMED} for no key update of w skip locked
    )
    update watchdogs w set
      failed_at = case when overdue and not tell then coalesce(w.failed_at, ${alertAt}) else w.failed_at end,
      silent = w.silent or (overdue and (noted or not tell)),
      coalesced = w.coalesced + (overdue and noted and not ended and w.revived_at is not null)::int,
      revived_at = case when ended or not (overdue and noted) then w.revived_at end,
      check_at = case when tell then ${at} + ${CLAIM_SECONDS} * interval '1 second'
                      when w.state = 'paused' then w.paused_until
                      when remind then ${noRoomAt(at)}
                      when w.state = 'down' then ${remindAt}
                      when overdue or (w.silent and w.revived_at is null) then ${heldUntil(at)}
                      when noted then least(${heldUntil(at)}, ${alertAt})
                      else ${alertAt} end
    from target where w.id = target.id
    returning ${standingColumns}, overdue and tell overdue, remind and tell remind`)
}

type Fragment = ReturnType<typeof sql.fragment>

const noRoomAt = (at: Fragment) => sql.fragment`(${at} + ${NO_ROOM_SECONDS} * interval '1 second')`

/** When an outage is checked again that may not be alerted yet. */
const heldUntil = (at: Fragment) =>
  sql.fragment`(case when permitted_at > ${at} then permitted_at else ${noRoomAt(at)} end)`

const remindAt = sql.fragment`(coalesce(w.reminded_at, w.down_since) + w.remind_every_s * interval '1 second')`

/** Together first. Only if that fails, one by one: an alert that cannot be written must not hold up the others. */
async function tellAll(tools: Tools, tellings: Telling[]): Promise<number> {
  const outcomes = await Promise.allSettled(tellings.map((telling) => tellOne(tools, telling)))
  const failed = tellings.filter((_, index) => outcomes[index]?.status === 'rejected')
  const told = outcomes.filter((outcome) => outcome.status === 'fulfilled' && outcome.value).length
  return told + (await tellOneByOne(tools, failed))
}

async function tellOneByOne(tools: Tools, tellings: Telling[]): Promise<number> {
  let told = 0
  let running = 0
  for (const telling of tellings) {
    try {
      if (await tellOne(tools, telling)) told++
      running = 0
    } catch (error) {
      // Full queue or repeated failures: the fault is not this watchdog's, so stop.
      if (error instanceof BatchOverflowError || ++running === MAX_FAILURES_RUNNING) throw error
      await putOff(tools, telling.seen.id, error)
    }
  }
  return told
}

/** False when no alert was due any more because the watchdog has changed, or when the account has none left today. */
async function tellOne({ db, chain, metrics }: Tools, telling: Telling): Promise<boolean> {
  const { type, seen, alert } = telling
  const appended = await tell(chain, telling)
  if (appended instanceof Refused) {
    if (appended.reason === 'daily_limit') await waitForNextDay(db, telling)
    return false
  }
  metrics.watchdogAlerts.inc({ type })
  if (type === 'watchdog.missed')
    metrics.watchdogDelaySeconds.observe((Date.parse(seen.now) - Date.parse(alert.timestamp)) / 1000)
  return true
}

async function putOff({ db, log }: Tools, id: string, error: unknown) {
  log.error({ event: 'watchdog_untold', watchdog_id: id, err: error })
  await db.query(sql.type(nothing)`
    update watchdogs set check_at = now() + ${PUT_OFF_SECONDS} * interval '1 second' where id = ${id}`)
}
