// The facts of the status: everything that an operator looks at first, as far as it is in the database.
import { z } from 'zod'
import type { Config } from '../config.ts'
import { findPendingMigrations } from '../db/migrate.ts'
import { type Database, sql } from '../db/pool.ts'
import { findUnresolved } from '../payments/ledger.ts'
import { findHead } from '../receipts/head.ts'
import { kindOf, readBeats } from '../verification/assessors.ts'
import { measureBacklog } from '../verification/lookup.ts'
import { measureScanAge } from '../watchdogs/intake-clock.ts'
import { countJobs } from './jobs.ts'
import { differingSettings, listProcesses } from './presence.ts'
import { measurePruneLags } from './prune-lags.ts'
import { readRecent } from './recent.ts'

export type Facts = Awaited<ReturnType<typeof readFacts>>

/** In one pass. It changes nothing. @param retention decides when results are due for deletion */
export async function readFacts(db: Database, retention: Pick<Config, 'resultRetentionSeconds'>) {
  const pendingMigrations = await findPendingMigrations(db)
  const processes = await listProcesses(db)
  const beats = await readBeats(db)
  const head = await findHead(db)
  const unresolved = await findUnresolved(db)
  const working = await measureBacklog(db)
  const at = new Date()
  const [lag] = (await measurePruneLags(db, retention)).toSorted((one, other) => other.seconds - one.seconds)
  return {
    at,
    pending_migrations: pendingMigrations,
    processes: processes.map(({ settings: _, ...rest }) => rest),
    differing_settings: differingSettings(processes),
    workers: { alive: beats.length, paused: beats.filter(({ paused }) => paused > 0).length },
    queue: await countJobs(db),
    requests: {
      working: working.count,
      oldest_seconds: Math.round(working.oldestSeconds),
      by_state: Object.fromEntries((await countStates(db)).map(({ state, count }) => [state, count])),
    },
    last_hour: await countOutcomes(db, 3600),
    last_day: await countOutcomes(db, 86_400),
    recent: await readRecent(db, at.getTime()),
    assessor: {
      methods: [...new Set(beats.map(({ methodology }) => kindOf(methodology) ?? 'unknown'))],
      paused_seconds: Math.round(Math.min(...(beats.length > 0 ? beats.map(({ paused }) => paused) : [0]))),
    },
    money_today: await sumToday(db),
    unresolved_payments: {
      count: unresolved.length,
      oldest_seconds: Math.max(0, ...unresolved.map(({ open_seconds }) => open_seconds)),
    },
    chain: {
      serial: head.serial,
      receipt_hash: head.receipt_hash,
      at: head.serial === 0 ? null : new Date(head.ts_ms),
    },
    watchdogs: {
      by_state: Object.fromEntries((await countWatchdogs(db)).map(({ state, count }) => [state, count])),
      judged_seconds_ago: Math.round(await measureScanAge(db)),
    },
    alerts: await countAlerts(db),
    accounts: await countAccounts(db),
    prune_lag_table: lag && lag.seconds > 0 ? lag.table : null,
    prune_lag_seconds: Math.round(lag?.seconds ?? 0),
  }
}

const stateCount = z.object({ state: z.string(), count: z.number() })

/** Of the states in which a request must have a job; a partial index covers them. */
function countStates(db: Database) {
  return db.any(sql.type(stateCount)`
    select state, count(*) count from verification_requests
    where state in ('accepted', 'observed', 'assessed', 'settling', 'settled') group by state order by state`)
}

function countWatchdogs(db: Database) {
  return db.any(sql.type(stateCount)`select state, count(*) count from watchdogs group by state order by state`)
}

/** From the ledger, which has an entry for every end of a paid request. */
async function countOutcomes(db: Database, seconds: number) {
  const rows = await db.any(sql.type(
    z.object({ outcome: z.string(), reason: z.string().nullable(), count: z.number() }),
  )`
    select outcome, reason, count(*) count from payment_ledger
    where entered_at > now() - ${seconds} * interval '1 second' group by outcome, reason order by count(*) desc, reason`)
  const total = (outcome: string) => rows.reduce((sum, row) => sum + (row.outcome === outcome ? row.count : 0), 0)
  return {
    settled: total('settled'),
    failed: total('failed'),
    unpaid: total('unpaid'),
    failures: Object.fromEntries(
      rows.filter(({ outcome }) => outcome === 'failed').map(({ reason, count }) => [reason ?? 'unknown', count]),
    ),
  }
}

/** Settled since UTC midnight. `amount_usd`: of USDC, which has six decimals. */
function sumToday(db: Database) {
  return db.any(sql.type(
    z.object({ mode: z.string(), network: z.string(), payments: z.number(), amount_usd: z.string() }),
  )`
    select mode, network, count(*) payments, (sum(amount_atomic) / 1000000)::numeric(30, 2)::text amount_usd
    from payment_ledger
    where outcome = 'settled' and entered_at >= date_trunc('day', now() at time zone 'utc') at time zone 'utc'
    group by mode, network order by mode, network`)
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

function countAccounts(db: Database) {
  return db.one(sql.type(z.object({ total: z.number(), disabled: z.number() }))`
    select count(*) total, count(disabled_at) disabled from accounts`)
}
