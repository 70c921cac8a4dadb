// The facts of the status: everything that an operator needs first and that is in the database.
import { z } from 'zod'
import type { Config } from '../config.ts'
import { findPendingMigrations } from '../db/migrate.ts'
import { type Database, sql } from '../db/pool.ts'
import { measureCaptures } from '../evidence/store.ts'
import { findUnresolved } from '../payments/ledger.ts'
import { findHead } from '../receipts/head.ts'
import { findFailingAuthorities } from '../receipts/timestamping.ts'
import { measureBacklog } from '../verification/lookup.ts'
import { type Beat, kindOf, LOADING, problemsOf, readBeats } from '../verification/offer/assessors.ts'
import { measureScanAge } from '../watchdogs/intake-clock.ts'
import { BOUNDS } from './alarms.ts'
import { countJobs } from './jobs.ts'
import { countOutcomes, sumToday } from './money.ts'
import { differingSettings, listProcesses } from './presence.ts'
import { measurePruneLags } from './prune-lags.ts'
import { readRecent } from './recent.ts'

/** The facts that warnings are derived from. The cost to read them does not grow with the database. */
export type Urgent = Awaited<ReturnType<typeof readUrgent>>

export type Facts = Awaited<ReturnType<typeof readFacts>>

type Retention = Pick<Config, 'resultRetentionSeconds' | 'capture'>

/** Reads them in one pass and changes nothing. @param retention decides when results and captures are due, and how much is captured */
export async function readUrgent(db: Database, retention: Retention) {
  const { capture } = retention
  const pendingMigrations = await findPendingMigrations(db)
  const processes = await listProcesses(db)
  const beats = await readBeats(db)
  const unresolved = await findUnresolved(db)
  const working = await measureBacklog(db)
  const at = new Date()
  const isMigrated = pendingMigrations.length === 0
  const [lag] = (await measurePruneLags(db, retention, { isMigrated })).toSorted(
    (one, other) => other.seconds - one.seconds,
  )
  return {
    at,
    pending_migrations: pendingMigrations,
    processes: processes.map(({ settings: _, ...rest }) => rest),
    differing_settings: differingSettings(processes),
    workers: {
      alive: beats.length,
      paused: beats.filter(({ paused }) => paused > 0).length,
      away: beats.filter(isAway).length,
    },
    queue: await countJobs(db),
    requests: { working: working.count, oldest_seconds: Math.round(working.oldestSeconds) },
    recent: await readRecent(db, at.getTime()),
    assessor: {
      methods: [...new Set(beats.map(({ methodology }) => kindOf(methodology) ?? 'unknown'))],
      paused_seconds: Math.round(Math.min(...(beats.length > 0 ? beats.map(({ paused }) => paused) : [0]))),
      problems: problemsOf(beats),
    },
    unresolved_payments: {
      count: unresolved.length,
      oldest_seconds: Math.max(0, ...unresolved.map(({ open_seconds }) => open_seconds)),
    },
    watchdogs: { judged_seconds_ago: Math.round(await measureScanAge(db)) },
    alerts: await countAlerts(db),
    // A database that is not migrated yet has no such tables, and the status must say that it is not migrated.
    failing_authorities: isMigrated ? await findFailingAuthorities(db) : [],
    captures: {
      ...(isMigrated ? await measureCaptures(db) : { rows: 0, bytes: 0 }),
      enabled: capture.enabled,
      max_bytes: capture.maxBytes,
    },
    prune_lag_table: lag && lag.seconds > 0 ? lag.table : null,
    prune_lag_seconds: Math.round(lag?.seconds ?? 0),
  }
}

/** Whether what assesses in a worker does not work. A verifier that is loaded after the start of its worker is none that is away. */
function isAway({ paused, problem, booted_seconds }: Beat): boolean {
  const isLoading = problem === LOADING && booted_seconds <= BOUNDS.loading
  return !isLoading && (paused > 0 || problem !== null)
}

/** As readUrgent, with all other facts of the status. */
export async function readFacts(db: Database, retention: Retention) {
  const { at, pending_migrations, processes, differing_settings, workers, queue, ...urgent } = await readUrgent(
    db,
    retention,
  )
  const { recent, assessor, unresolved_payments, alerts, failing_authorities, captures } = urgent
  const { prune_lag_table, prune_lag_seconds } = urgent
  const head = await findHead(db)
  // The order is that of the command's answer.
  return {
    at,
    pending_migrations,
    processes,
    differing_settings,
    workers,
    queue,
    requests: {
      ...urgent.requests,
      by_state: Object.fromEntries((await countStates(db)).map(({ state, count }) => [state, count])),
    },
    last_hour: await countOutcomes(db, 3600),
    last_day: await countOutcomes(db, 86_400),
    recent,
    assessor,
    money_today: await sumToday(db),
    unresolved_payments,
    chain: {
      serial: head.serial,
      receipt_hash: head.receipt_hash,
      at: head.serial === 0 ? null : new Date(head.ts_ms),
    },
    watchdogs: {
      by_state: Object.fromEntries((await countWatchdogs(db)).map(({ state, count }) => [state, count])),
      ...urgent.watchdogs,
    },
    alerts,
    failing_authorities,
    captures,
    accounts: await countAccounts(db),
    prune_lag_table,
    prune_lag_seconds,
  }
}

const stateCount = z.object({ state: z.string(), count: z.number() })

/** Counts the states in which a request must have a job; a partial index covers them. */
function countStates(db: Database) {
  return db.any(sql.type(stateCount)`
    select state, count(*) count from verification_requests
    where state in ('accepted', 'observed', 'assessed', 'settling', 'settled') group by state order by state`)
}

function countWatchdogs(db: Database) {
  return db.any(sql.type(stateCount)`select state, count(*) count from watchdogs group by state order by state`)
}

function countAlerts(db: Database) {
  return db.one(sql.type(
    z.object({
      pending: z.number(),
      oldest_seconds: z.number(),
      failing_webhooks: z.number(),
      given_up_last_hour: z.number(),
    }),
  )`
    select count(*) pending, round(coalesce(extract(epoch from now() - min(created_at)), 0))::float8 oldest_seconds,
           (select count(*) from webhooks where state <> 'active') failing_webhooks,
           (select count(*) from alerts where state = 'failed' and settled_at > now() - interval '1 hour') given_up_last_hour
    from alerts where state = 'pending'`)
}

/** Reads all accounts to count them; an index has the few disabled ones. */
function countAccounts(db: Database) {
  return db.one(sql.type(z.object({ total: z.number(), disabled: z.number() }))`
    select (select count(*) from accounts) total, (select count(*) from accounts where disabled_at is not null) disabled`)
}
