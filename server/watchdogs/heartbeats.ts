// Writes heartbeats to the rows of watchdogs: many in one statement, and without writing an index.
import { z } from 'zod'
import { type Batcher, openBatcher } from '../db/batch.ts'
import { column, type Database, sql } from '../db/pool.ts'
import { utcMicroseconds } from '../db/time.ts'
import { alertAt, alertableAt, dueAt, nextOutageAt, RECENT_BEATS, shownState, WATCHDOG_STATES } from './watchdog.ts'

interface Heartbeat {
  accountId: string
  name: string
  /** `fail`: the watched job ran and failed. */
  status: 'ok' | 'fail'
  note: string | null
}

const answerRow = z.object({
  id: z.string(),
  account_id: z.string(),
  name: z.string(),
  state: z.enum(WATCHDOG_STATES),
  due_at: z.string().nullable(),
  server_now: z.string(),
  /** The heartbeat began or ended an outage, and an alert may be raised for that now. */
  alert_due: z.boolean(),
})
/** A watchdog after its heartbeat. */
type HeartbeatAnswer = z.output<typeof answerRow>

/** `add` answers null when there is no such watchdog. */
export type Heartbeats = Batcher<Heartbeat, HeartbeatAnswer | null>

const MAX_BATCH = 256
const MAX_QUEUE = 8192
/** The API process raises the alert of a heartbeat; after this delay the scanner does, in case that failed. */
const RAISE_SECONDS = 10

export function openHeartbeats(db: Database): Heartbeats {
  return openBatcher((beats) => writeHeartbeats(db, beats), { batch: MAX_BATCH, queue: MAX_QUEUE })
}

/** Heartbeats of one watchdog are applied in arrival order; consecutive equal ones are merged. */
async function writeHeartbeats(db: Database, beats: Heartbeat[]): Promise<(HeartbeatAnswer | null)[]> {
  const answers: (HeartbeatAnswer | null)[] = beats.map(() => null)
  const runs = [...runsOf(beats).values()]
  for (let round = 0; ; round++) {
    const due = runs.flatMap((own) => own[round] ?? [])
    if (due.length === 0) return answers
    const written = await writeRuns(db, due)
    for (const { beat, indexes } of due)
      for (const index of indexes) answers[index] = written.get(keyOf(beat.accountId, beat.name)) ?? null
  }
}

interface Run {
  beat: Heartbeat
  /** Indexes in the batch. */
  indexes: number[]
}

function runsOf(beats: Heartbeat[]): Map<string, Run[]> {
  const runs = new Map<string, Run[]>()
  for (const [index, beat] of beats.entries()) {
    const key = keyOf(beat.accountId, beat.name)
    const own = runs.get(key)
    const last = own?.at(-1)
    if (last?.beat.status === beat.status && last.beat.note === beat.note) last.indexes.push(index)
    else if (own) own.push({ beat, indexes: [index] })
    else runs.set(key, [{ beat, indexes: [index] }])
  }
  return runs
}

/** Unambiguous, because neither part contains a blank. */
function keyOf(accountId: string, name: string) {
  return `${accountId} ${name}`
}

/**
 * One statement for one run of each watchdog. Rows are locked in the order of their ids, as by every writer, so that no two
 * batches deadlock. `check_at` keeps its value unless the scanner must look earlier. No other indexed column changes, so the
 * new version of the row goes into the same page and into no index (HOT). A watchdog whose allowance of outages is used up
 * changes only its row, however often it alternates.
 *
 * Only ids are taken from the locked rows. Postgres checks constraints on the row of its snapshot before it goes on to a newer
 * version. With values of the newer version mixed in, the older row could violate a constraint although neither version
 * does.
 */
async function writeRuns(db: Database, runs: Run[]): Promise<Map<string, HeartbeatAnswer>> {
  const rows = await db.any(sql.prepared('write_heartbeats', answerRow)`
    with beat as (
      select account_id::uuid, name, beats, failed, note
      from unnest(${column(runs, 'text', (run) => run.beat.accountId)}, ${column(runs, 'text', (run) => run.beat.name)},
                  ${column(runs, 'int4', (run) => run.indexes.length)},
                  ${column(runs, 'bool', (run) => run.beat.status === 'fail')},
                  ${column(runs, 'text', (run) => run.beat.note)}) as t (account_id, name, beats, failed, note)
    ), target as (
      select w.id, b.beats, b.failed, b.note
      from beat b join watchdogs w on w.account_id = b.account_id and w.name = b.name
      order by w.id for no key update of w
    )
    update watchdogs w set
      started_at = now(), last_beat_at = now(), beats = w.beats + t.beats, note = t.note,
      failed_at = case when ${begins} then now() else w.failed_at end,
      revived_at = case when ${ends} then coalesce(w.revived_at, now()) end,
      recent_beats = ((w.recent_beats << 3) & ${RECENT_BITS}) | ${arrival},
      coalesced = w.coalesced + (${recurs})::int,
      check_at = case when ${begins} then greatest(${soon}, ${nextOutageAt}, ${failsFrom})
                      when w.state <> 'paused' and ${ends} and w.revived_at is null
                      then case when w.down_since is not null or coalesce(${alertableAt} <= now(), true) then ${soon}
                                else least(w.check_at, ${nextAlertAt}) end
                      else w.check_at end
    from target t where w.id = t.id
    returning w.id, w.account_id, w.name, ${shownState} state,
      case when w.state <> 'paused' then ${utcMicroseconds(dueAt)} end due_at, ${utcMicroseconds(sql.fragment`now()`)} server_now,
      w.state <> 'paused' and coalesce(w.revived_at = now() or w.failed_at = now(), false)
        and (w.down_since is not null or coalesce(${alertableAt} <= now(), true)) alert_due`)
  return new Map(rows.map((row) => [keyOf(row.account_id, row.name), row]))
}

/** The heartbeat begins an outage: it is the first `fail`. During an outage or a pause a `fail` changes nothing. */
const begins = sql.fragment`(t.failed and w.state = 'watching' and w.failed_at is null)`
/** It begins another outage while the one before is over and not alerted yet: both are alerted as one. */
const recurs = sql.fragment`
  (t.failed and w.state = 'watching' and w.failed_at is not null and w.revived_at is not null)`
/** It ends an outage. */
const ends = sql.fragment`(not t.failed and (w.down_since is not null or w.failed_at is not null))`
/** All bits of `recent_beats`: three for each beat that is kept. */
const RECENT_BITS = sql.fragment`${String((1n << BigInt(3 * RECENT_BEATS)) - 1n)}::bigint`
/**
 * The arrival of the heartbeat, as a number of `recent_beats`: the place in ARRIVALS, from 1. It depends on the state
 * before this heartbeat.
 */
const arrival = sql.fragment`
  case when t.failed then 4 when w.state = 'paused' or now() <= ${dueAt} then 1 when now() <= ${alertAt} then 2 else 3 end`
const soon = sql.fragment`(now() + ${RAISE_SECONDS} * interval '1 second')`
/** The deadline after this heartbeat. */
const nextAlertAt = sql.fragment`(now() + (${alertAt} - w.started_at))`
/** When a `fail` may be alerted by the limit of the day, or its deadline passes, if that is earlier; null for at once. */
const failsFrom = sql.fragment`case when w.fails_wait_until > now() then least(w.fails_wait_until, ${nextAlertAt}) end`
