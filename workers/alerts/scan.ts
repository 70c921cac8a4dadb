// Looks for watchdogs that were not heard from. Every worker looks once a second and one of them finds something to do: who
// gets the row of the scans judges, and takes what is due by putting its next check a little off. A crash at any point
// leaves watchdogs that are looked at again a few seconds later.
import { setInterval as every } from 'node:timers/promises'
import { z } from 'zod'
import { dueAlert, standingColumns, standingRow, type Telling, tell } from '../../server/control/watchdog-alerts.ts'
import { alertAt, resumed } from '../../server/control/watchdogs.ts'
import { BatchOverflow } from '../../server/db/batch.ts'
import { type Database, nothing, sql, type Tx, transact } from '../../server/db/pool.ts'
import { Refused } from '../../server/receipts/chain.ts'
import type { Work } from '../context.ts'

type Tools = Pick<Work, 'db' | 'chain' | 'log' | 'metrics'>

export interface Scanner extends AsyncDisposable {
  /** Rejects when it stopped without having been asked to. */
  died: Promise<never>
}

const PERIOD_MS = 1000
/**
 * Deadlines are judged in steps of a second or two. One that is longer than this was an outage of ours, or a clock that was
 * set; shorter ones are what the grace is for, which by default is no shorter.
 */
const GAP_SECONDS = 5
/** Shorter steps are left to grow: another worker has just looked. */
const STEP_SECONDS = 0.25
const MAX_CLAIMED = 500
/** A watchdog that was taken up and not told, whatever the reason, is looked at again so much later. */
const CLAIM_SECONDS = 10
/** One that cannot be told even alone is left out for so long. */
const PUT_OFF_SECONDS = 60
const MAX_FAILURES_RUNNING = 3

/**
 * Scans until disposed; a failing database is logged and waited out. Steps go on while alerts are told, however many they
 * are: that there is much to tell is no outage of ours.
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

/**
 * Judges what has come due since the last scan, whoever made it. Answers how many alerts were told, or null when there was
 * no time to judge.
 */
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
 * Takes the next step: up to the last moment at which heartbeats could be taken, and no further. Null when there is none
 * to take: another worker takes it, or nobody could have sent a heartbeat since. A clock that is put back a little is
 * waited for; much, and it counts as a gap.
 */
async function advance(tx: Tx, { log }: Tools): Promise<string | null> {
  const step = await tx.maybeOne(sql.prepared('lock_watchdog_scan', stepRow)`
    select seen_at::text, open_at::text, extract(epoch from open_at - seen_at)::float8 seconds
    from watchdog_scans for update skip locked`)
  if (!step || (step.seconds < STEP_SECONDS && step.seconds >= -GAP_SECONDS)) return null
  const { seen_at, open_at, seconds } = step
  if (Math.abs(seconds) > GAP_SECONDS) {
    const moved = await (seconds > 0 ? skipGap(tx, seen_at, open_at) : stepBack(tx, open_at))
    // A service that was merely not running yet has kept nobody waiting.
    log[moved > 0 ? 'warn' : 'info']({ event: 'watchdog_gap', seconds, from: seen_at, to: open_at, moved })
  }
  await tx.query(sql.prepared('advance_watchdog_scan', nothing)`
    update watchdog_scans set seen_at = ${open_at}::timestamptz`)
  return open_at
}

/**
 * Time that nobody attended to does not count: every running clock is moved on by its part of the gap. `check_at` may stay,
 * it is only earlier than it need be.
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

/** Looks at watchdogs whose check has come. Where there is something to tell it is put off, else set to when there may be. */
function claimDue(db: Database, until: string) {
  return db.any(sql.prepared('claim_due_watchdogs', claimedRow)`
    with target as (
      select w.id, w.state = 'watching' and ${alertAt} <= ${until}::timestamptz overdue,
        w.state = 'down' and coalesce(${remindAt} <= ${until}::timestamptz, false) remind,
        w.state <> 'paused' and (w.revived_at is not null or (w.state = 'watching' and w.failed_at is not null)) untold
      from watchdogs w where w.check_at <= ${until}::timestamptz
      order by w.check_at limit ${MAX_CLAIMED} for no key update skip locked
    )
    update watchdogs w set check_at =
      case when overdue or remind or untold then ${until}::timestamptz + ${CLAIM_SECONDS} * interval '1 second'
           when w.state = 'paused' then w.paused_until
           when w.state = 'down' then ${remindAt}
           else ${alertAt} end
    from target where w.id = target.id
    returning ${standingColumns}, overdue, remind`)
}

const remindAt = sql.fragment`(coalesce(w.reminded_at, w.down_since) + w.remind_every_s * interval '1 second')`

/** Together first. Only if that fails, one by one: a watchdog that cannot be told must not keep the others from it. */
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
      // It is not the watchdog, or not the watchdogs.
      if (error instanceof BatchOverflow || ++running === MAX_FAILURES_RUNNING) throw error
      await putOff(tools, telling.seen.id, error)
    }
  }
  return told
}

/** False when the watchdog has changed in the meantime: then there was nothing to tell. */
async function tellOne({ chain, metrics }: Tools, telling: Telling): Promise<boolean> {
  const { type, seen, alert } = telling
  const appended = await tell(chain, telling)
  if (appended instanceof Refused) return false
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
