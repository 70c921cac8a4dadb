// Outside time: time-stamp authorities sign when a checkpoint existed. Every interval each authority is asked about the head, unless it
// has signed that one. Nothing waits for this: receipts are appended while an authority is slow, wrong or away.
import { setMaxListeners } from 'node:events'
import { z } from 'zod'
import { withoutCredentials } from '../config/credentials.ts'
import type { TimestampSettings } from '../config/timestamps.ts'
import type { Config } from '../config.ts'
import { every } from '../db/interval.ts'
import { type Database, nothing, sql } from '../db/pool.ts'
import { errorMessage } from '../errors.ts'
import type { Logger, Metrics } from '../telemetry.ts'
import { askAuthority, openReplyVerifier } from './time-stamp-authority.ts'
import { findServed } from './witnessing.ts'

export interface Timestamping extends AsyncDisposable {
  /** Asks the authorities whose turn it is. Answers how many replies were stored. */
  runOnce(): Promise<number>
}

/** Seconds between two looks at whose turn it is. */
const LOOK_S = 30
/** Of older replies the first of each day is kept. */
const TIMESTAMP_DAYS = 7

interface Parts {
  db: Database
  log: Logger
  metrics: Pick<Metrics, 'timestamps'>
  config: Pick<Config, 'witnesses'> & { timestamps: TimestampSettings }
}

/**
 * Asks until disposed, which ends a question under way. With `lookS` 0 only `runOnce` asks.
 *
 * A process that is killed between a question and its storage loses that reply. The row of the authority says that it was asked, so the
 * next question follows after the interval.
 */
export function openTimestamping(
  { db, log, metrics, config }: Parts,
  { lookS = LOOK_S, timeoutMs }: { lookS?: number; timeoutMs?: number } = {},
): Timestamping {
  const { urls, intervalSeconds, ca } = config.timestamps
  const closing = new AbortController()
  setMaxListeners(0, closing.signal)

  async function runOnce() {
    const note = await findServed({ db, config })
    const size = sizeOf(note)
    if (size === 0) return 0
    const due = await claimTurns(db, { urls, intervalSeconds, size })
    const stored = await Promise.all(due.map((url) => stamp(url, note, size)))
    if (due.length > 0) await pruneTimestamps(db)
    return stored.filter(Boolean).length
  }

  async function stamp(url: string, note: string, size: number): Promise<boolean> {
    try {
      const verifier = await openReplyVerifier(ca)
      const options = { signal: closing.signal, ...(timeoutMs !== undefined && { timeoutMs }) }
      const { reply, stamp } = await askAuthority(url, Buffer.from(note), verifier, options)
      await store(db, { url, size, note, reply, ...stamp })
      metrics.timestamps.inc({ outcome: 'stored' })
      log.info({
        event: 'timestamp_stored',
        url: withoutCredentials(url),
        tree_size: size,
        time: stamp.time,
        authority: stamp.authority,
      })
      return true
    } catch (error) {
      if (closing.signal.aborted) return false
      const problem = errorMessage(error)
      metrics.timestamps.inc({ outcome: 'failed' })
      log.warn({ event: 'timestamp_failed', url: withoutCredentials(url), tree_size: size, problem })
      await recordFailure(db, url, problem)
      return false
    }
  }

  const failed = (error: unknown) => log.error({ event: 'timestamping_failed', err: error })
  const looks = lookS > 0 ? every(lookS * 1000, runOnce, failed, { immediate: true }) : null
  return {
    runOnce,
    async [Symbol.asyncDispose]() {
      closing.abort()
      await looks?.[Symbol.asyncDispose]()
    },
  }
}

/** The size in a checkpoint; 0 before the first one. */
function sizeOf(note: string): number {
  return note === '' ? 0 : Number(note.split('\n', 2)[1])
}

interface Turn {
  urls: readonly string[]
  intervalSeconds: number
  size: number
}

/** The authorities that were not asked within the interval and have not signed this head. From now on they count as asked. */
async function claimTurns(db: Database, { urls, intervalSeconds, size }: Turn): Promise<string[]> {
  const claimed = await db.any(sql.type(z.object({ url: z.string() }))`
    insert into timestamp_authorities as a (url, asked_at, interval_seconds)
    select url, now(), ${intervalSeconds} from unnest(${sql.array([...urls], 'text')}) asked (url)
    where not exists (select from timestamps t where t.tree_size = ${size} and t.url = asked.url)
    on conflict (url) do update set asked_at = now(), interval_seconds = ${intervalSeconds}
      where a.asked_at <= now() - ${intervalSeconds} * interval '1 second'
    returning url`)
  return claimed.map(({ url }) => url)
}

interface Stored {
  url: string
  size: number
  note: string
  reply: Buffer
  time: string
  serial: string
  authority: string
}

async function store(db: Database, { url, size, note, reply, time, serial, authority }: Stored): Promise<void> {
  await db.query(sql.type(nothing)`
    with stored as (
      insert into timestamps (tree_size, url, note, reply, generated_at, serial, authority)
      values (${size}, ${url}, ${note}, ${sql.binary(reply)}, ${time}, ${serial}, ${authority})
      on conflict do nothing
    )
    update timestamp_authorities set failures = 0, problem = null where url = ${url}`)
}

async function recordFailure(db: Database, url: string, problem: string): Promise<void> {
  await db.query(sql.type(nothing)`
    update timestamp_authorities set failures = failures + 1, problem = ${problem} where url = ${url}`)
}

/** Deletes old replies except the first of each day of an authority, and authorities that are not asked any more. */
export async function pruneTimestamps(db: Database): Promise<void> {
  await db.query(sql.type(nothing)`
    delete from timestamps t
    where t.generated_at < now() - ${TIMESTAMP_DAYS} * interval '1 day'
      and exists (
        select from timestamps e
        where e.url = t.url and e.generated_at < t.generated_at
          and (e.generated_at at time zone 'UTC')::date = (t.generated_at at time zone 'UTC')::date)`)
  await db.query(sql.type(nothing)`
    delete from timestamp_authorities where asked_at < now() - ${TIMESTAMP_DAYS} * interval '1 day'`)
}

/** Questions in a row that must have failed before an operator is warned. */
const FAILURES = 3

/** The authorities that have failed several times in a row and are still asked. */
export function findFailingAuthorities(db: Database) {
  const failing = z.object({ url: z.string(), failures: z.number(), problem: z.string() })
  return db.any(sql.type(failing)`
    select url, failures, problem from timestamp_authorities
    where failures >= ${FAILURES} and asked_at > now() - 3 * interval_seconds * interval '1 second' order by url`)
}
