// Finds watchdogs whose deadline has passed or whose alert is due. Every worker process tries once a second; the one that locks
// the row of `watchdog_scans` decides up to when deadlines count, and claims what is due by moving its next check a few
// seconds on. After a crash at any point the claimed watchdogs are checked again CLAIM_SECONDS later.
import { z } from 'zod'
import { hasRoom } from '../alerts/outbox.ts'
import type { Core } from '../context.ts'
import { BatchOverflowError } from '../db/batch.ts'
import { every } from '../db/interval.ts'
import { type Database, nothing, sql, type Tx, transact } from '../db/pool.ts'
import { inTrace } from '../tracing/spans.ts'
import { dueAlert, raiseOrWait, type WatchdogDraft } from './alerts.ts'
import { snapshotColumns, snapshotRow } from './snapshot.ts'
import { alertAt, alertableAt, nextOutageAt, resumed } from './watchdog.ts'

type Tools = Pick<Core, 'db' | 'chain' | 'log' | 'metrics' | 'tracing'>

const PERIOD_MS = 1000
/**
 * A step is normally one or two seconds. A longer step than this is downtime of the service, or a changed clock. The grace
 * covers shorter steps, because its default is not shorter than this.
 */
const GAP_SECONDS = 5
/** A shorter step is not taken: another worker process has just scanned. */
const STEP_SECONDS = 0.25
const MAX_CLAIMED = 500
/** Retry delay for a claimed watchdog whose alert was not recorded. */
const CLAIM_SECONDS = 10
/** Delay for a watchdog whose alert fails even when it is written alone. */
const POSTPONE_SECONDS = 60
/** Delay for an outage while too many alerts wait at the webhook. */
const NO_ROOM_SECONDS = 60
/** Failures in a row after which the scan stops. */
const MAX_FAILURES_RUNNING = 3

/**
 * Scans until disposed; while the database fails, it logs that and tries again. Steps continue while alerts are raised, so
 * that a long list of alerts does not look like downtime.
 */
export function openScanner(tools: Tools): AsyncDisposable {
  const onError = (error: unknown) => tools.log.warn({ event: 'scan_failed', err: error })
  let raising: Promise<unknown> | undefined
  const scan = async () => {
    const until = await transact(tools.db, (tx) => advance(tx, tools))
    if (until === null) return
    raising ??= raiseDue(tools, until)
      .catch(onError)
      .finally(() => {
        raising = undefined
      })
  }
  const scanning = every(PERIOD_MS, scan, onError)
  return {
    async [Symbol.asyncDispose]() {
      await scanning[Symbol.asyncDispose]()
      await raising
    },
  }
}

/** Checks the deadlines since the last scan. Answers how many alerts were raised, or null when no step was taken. */
export async function scanWatchdogs(tools: Tools): Promise<number | null> {
  const until = await transact(tools.db, (tx) => advance(tx, tools))
  return until === null ? null : raiseDue(tools, until)
}

async function raiseDue(tools: Tools, until: string): Promise<number> {
  await resumeDue(tools.db, until)
  let raised = 0
  for (;;) {
    const claimed = await claimDue(tools.db, until)
    raised += await raiseAll(
      tools,
      claimed.flatMap((row) => dueAlert(row, row) ?? []),
    )
    if (claimed.length === MAX_CLAIMED) continue
    if (raised > 0) tools.log.info({ event: 'watchdogs_told', alerts: raised })
    return raised
  }
}

const stepRow = z.object({ scanned_until: z.string(), accepted_until: z.string(), seconds: z.number() })

/**
 * Takes the next step, up to the intake clock (see intake-clock.ts). Null when there is no step to take: another process
 * takes it, or the intake clock has not moved. When the clock was set back a little, nothing happens until it has caught
 * up; when it was set back by more, that counts as a gap.
 */
async function advance(tx: Tx, { log }: Tools): Promise<string | null> {
  const step = await tx.maybeOne(sql.prepared('lock_watchdog_scan', stepRow)`
    select seen_at::text scanned_until, open_at::text accepted_until, extract(epoch from open_at - seen_at)::float8 seconds
    from watchdog_scans for update skip locked`)
  if (!step || (step.seconds < STEP_SECONDS && step.seconds >= -GAP_SECONDS)) return null
  const { scanned_until: from, accepted_until: to, seconds } = step
  if (Math.abs(seconds) > GAP_SECONDS) {
    const moved = await (seconds > 0 ? skipGap(tx, from, to) : stepBack(tx, to))
    // If no watchdog moved, there was none: the service was not in use.
    log[moved > 0 ? 'warn' : 'info']({ event: 'watchdog_gap', seconds, from, to, moved })
  }
  await tx.query(sql.prepared('advance_watchdog_scan', nothing)`
    update watchdog_scans set seen_at = ${to}::timestamptz`)
  return to
}

/**
 * The time in which no heartbeat could be accepted does not count: every running clock moves later by its part of the gap.
 * `check_at` is not changed, so the next check only comes earlier than necessary.
 */
async function skipGap(tx: Tx, from: string, to: string): Promise<number> {
  const { rowCount } = await tx.query(sql.type(nothing)`
    with target as (select id from watchdogs where state = 'watching' order by id for no key update)
    update watchdogs w set started_at = started_at
      + greatest(${to}::timestamptz - greatest(started_at, ${from}::timestamptz), interval '0')
    from target where w.id = target.id`)
  return rowCount
}

/**
 * After the clock was set back, clocks that started in the future start at `to`, because otherwise their deadlines
 * would come too late.
 */
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

const claimedRow = snapshotRow.extend({ overdue: z.boolean(), remind: z.boolean() })

/**
 * Checks watchdogs whose `check_at` has come. One with an alert due is claimed: its check moves on by CLAIM_SECONDS. An outage
 * that may not be alerted yet, because the watchdog's allowance, the limit of the day or the room at its webhook is used up,
 * is noted in the row (`failed_at`, `silent`), so that its owner sees it, and is checked again when it may be alerted. Any
 * other watchdog is checked again when something can be due.
 */
function claimDue(db: Database, until: string) {
  const at = sql.fragment`${until}::timestamptz`
  return db.any(sql.prepared('claim_due_watchdogs', claimedRow)`
    with target as (
      select w.id, o.overdue, o.noted, o.remind, o.ended, p.permitted_at,
        o.ended or ((o.remind or ((o.overdue or o.noted) and coalesce(p.permitted_at <= ${at}, true)))
                    and ${hasRoom(sql.fragment`w.webhook_id`)}) raise
      from watchdogs w,
        lateral (select
          w.state = 'watching' and ${alertAt} <= ${at} and not (w.silent and w.revived_at is null) overdue,
          w.state = 'watching' and w.failed_at is not null noted,
          w.state = 'down' and coalesce(${remindAt} <= ${at}, false) remind,
          w.state <> 'paused' and w.revived_at is not null and w.down_since is not null ended) o,
        lateral (select case when o.overdue then ${nextOutageAt} else ${alertableAt} end permitted_at) p
      where w.check_at <= ${at}
      order by w.check_at limit ${MAX_CLAIMED} for no key update of w skip locked
    )
    update watchdogs w set
      failed_at = case when overdue and not raise then coalesce(w.failed_at, ${alertAt}) else w.failed_at end,
      silent = w.silent or (overdue and (noted or not raise)),
      coalesced = w.coalesced + (overdue and noted and not ended and w.revived_at is not null)::int,
      revived_at = case when ended or not (overdue and noted) then w.revived_at end,
      check_at = case when raise then ${at} + ${CLAIM_SECONDS} * interval '1 second'
                      when w.state = 'paused' then w.paused_until
                      when remind then ${noRoomAt(at)}
                      when w.state = 'down' then ${remindAt}
                      when overdue or (w.silent and w.revived_at is null) then ${heldUntil(at)}
                      when noted then least(${heldUntil(at)}, ${alertAt})
                      else ${alertAt} end
    from target where w.id = target.id
    returning ${snapshotColumns}, overdue and raise overdue, remind and raise remind`)
}

type Fragment = ReturnType<typeof sql.fragment>

const noRoomAt = (at: Fragment) => sql.fragment`(${at} + ${NO_ROOM_SECONDS} * interval '1 second')`

/** When an outage that may not be alerted yet is checked again. */
const heldUntil = (at: Fragment) =>
  sql.fragment`(case when permitted_at > ${at} then permitted_at else ${noRoomAt(at)} end)`

const remindAt = sql.fragment`(coalesce(w.reminded_at, w.down_since) + w.remind_every_s * interval '1 second')`

/** Raises alerts together. Only if that fails, one by one: an alert that cannot be written must not hold up the others. */
async function raiseAll(tools: Tools, drafts: WatchdogDraft[]): Promise<number> {
  const outcomes = await Promise.allSettled(drafts.map((draft) => raiseOne(tools, draft)))
  const failed = drafts.filter((_, index) => outcomes[index]?.status === 'rejected')
  const raised = outcomes.filter((outcome) => outcome.status === 'fulfilled' && outcome.value).length
  return raised + (await raiseOneByOne(tools, failed))
}

async function raiseOneByOne(tools: Tools, drafts: WatchdogDraft[]): Promise<number> {
  let raised = 0
  let running = 0
  for (const draft of drafts) {
    try {
      if (await raiseOne(tools, draft)) raised++
      running = 0
    } catch (error) {
      // A full queue or repeated failures are not the fault of one watchdog.
      if (error instanceof BatchOverflowError || ++running === MAX_FAILURES_RUNNING) throw error
      await postpone(tools, draft.ownerId, error)
    }
  }
  return raised
}

/** False when the alert was refused: the watchdog has changed, or its account has no alert left today. */
async function raiseOne(tools: Tools, draft: WatchdogDraft): Promise<boolean> {
  if (!(await inTrace(tools.tracing, 'watchdog.judge', {}, () => raiseOrWait(tools, draft)))) return false
  const { seen, alert } = draft
  tools.metrics.watchdogAlerts.inc({ type: alert.type })
  if (alert.type === 'watchdog.missed')
    tools.metrics.watchdogDelaySeconds.observe((Date.parse(seen.now) - Date.parse(alert.timestamp)) / 1000)
  return true
}

async function postpone({ db, log }: Tools, id: string, error: unknown) {
  log.error({ event: 'watchdog_untold', watchdog_id: id, err: error })
  await db.query(sql.type(nothing)`
    update watchdogs set check_at = now() + ${POSTPONE_SECONDS} * interval '1 second' where id = ${id}`)
}
