// The status: everything that an operator looks at first, read in one pass, and the warnings that follow from it.
import { z } from 'zod'
import { alertPruneLag } from '../alerts/outbox.ts'
import { findPendingMigrations } from '../db/migrate.ts'
import { type Database, sql } from '../db/pool.ts'
import { findUnresolved, measureLedgerLag } from '../payments/ledger.ts'
import { findHead } from '../receipts/head.ts'
import { kindOf, readBeats } from '../verification/assessors.ts'
import { measureBacklog } from '../verification/lookup.ts'
import { measureScanAge } from '../watchdogs/intake-clock.ts'
import { countJobs } from './jobs.ts'
import { differingSettings, listProcesses } from './presence.ts'

export type Status = Awaited<ReturnType<typeof readFacts>> & { warnings: Warning[] }

export interface Warning {
  what: string
  cure: string
}

/** Reads the status. It changes nothing. */
export async function readStatus(db: Database): Promise<Status> {
  const facts = await readFacts(db)
  return { ...facts, warnings: warningsOf(facts) }
}

type Facts = Awaited<ReturnType<typeof readFacts>>

async function readFacts(db: Database) {
  const pendingMigrations = await findPendingMigrations(db)
  const processes = await listProcesses(db)
  const beats = await readBeats(db)
  const head = await findHead(db)
  const unresolved = await findUnresolved(db)
  const working = await measureBacklog(db)
  return {
    at: new Date(),
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
    prune_lag_seconds: Math.round(Math.max(await alertPruneLag(db), await measureLedgerLag(db))),
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
  return db.one(sql.type(z.object({ pending: z.number(), oldest_seconds: z.number(), failing_webhooks: z.number() }))`
    select count(*) pending, round(coalesce(extract(epoch from now() - min(created_at)), 0))::float8 oldest_seconds,
           (select count(*) from webhooks where state <> 'active') failing_webhooks
    from alerts where state = 'pending'`)
}

function countAccounts(db: Database) {
  return db.one(sql.type(z.object({ total: z.number(), disabled: z.number() }))`
    select count(*) total, count(disabled_at) disabled from accounts`)
}

/** Beyond these, an operator should look. Seconds. */
const LONG = { request: 120, job: 60, scan: 15, unresolved: 3600, prune: 600 }

function warningsOf(facts: Facts): Warning[] {
  const alive = facts.processes.filter((one) => one.alive)
  const serves = (kind: 'web' | 'worker') => alive.some((one) => one.kind === kind || one.kind === 'all')
  const { requests, queue, watchdogs, assessor } = facts
  const found: [boolean, string, string][] = [
    [
      facts.pending_migrations.length > 0,
      `migrations are pending: ${facts.pending_migrations.join(', ')}`,
      'run `npm run cli -- migrate`',
    ],
    [!serves('web'), 'no web process is alive', 'start one: `npm run web`'],
    [
      facts.workers.alive === 0,
      `no worker is alive${requests.working > 0 ? `, and ${requests.working} paid requests wait` : ''}`,
      alive.some(({ drain }) => drain !== null)
        ? 'the processes are drained: `npm run cli -- processes resume all`'
        : 'start one: `npm run worker`',
    ],
    ...facts.processes
      .filter((one) => !one.alive)
      .map(({ kind, host, pid, silent_seconds }): [boolean, string, string] => [
        true,
        `the ${kind} process ${pid} on ${host} has been silent for ${silent_seconds} s`,
        'look at its log; its work is taken over by others, and this line goes away after ten minutes',
      ]),
    ...facts.differing_settings
      .filter(({ name }) => !OWN_SETTINGS.has(name))
      .map(({ name, values }): [boolean, string, string] => [
        true,
        `${name} differs between processes: ${[...new Set(values.map(({ value }) => value || 'unset'))].join(', ')}`,
        'give all processes of a deployment the same variables; `config --running` shows which has which',
      ]),
    [
      requests.oldest_seconds > LONG.request,
      `a request has been in its state for ${requests.oldest_seconds} s`,
      'see `npm run cli -- requests list --stuck`, then `requests show`',
    ],
    [
      queue.oldest_seconds > LONG.job,
      `the oldest job has been due for ${queue.oldest_seconds} s`,
      'start another worker process',
    ],
    [
      queue.dead > 0,
      `${queue.dead} jobs have used up their attempts`,
      'see `npm run cli -- jobs dead`, then `jobs redrive`',
    ],
    [
      assessor.paused_seconds > 0,
      `the model that assesses does not answer; it is asked again in ${assessor.paused_seconds} s`,
      'run `npm run cli -- doctor`, and check the ANTHROPIC_ variables',
    ],
    [
      facts.unresolved_payments.oldest_seconds > LONG.unresolved,
      `a payment has been unresolved for ${facts.unresolved_payments.oldest_seconds} s`,
      'see `npm run cli -- payments list-unresolved`; a worker and the RPC of the chain must be up',
    ],
    [
      watchdogs.judged_seconds_ago > LONG.scan,
      `the deadlines of watchdogs were judged ${watchdogs.judged_seconds_ago} s ago`,
      'a web process, which takes heartbeats, and a worker process, which judges deadlines, must run',
    ],
    [
      facts.prune_lag_seconds > LONG.prune,
      `rows have been due for deletion for ${facts.prune_lag_seconds} s`,
      'start another worker process',
    ],
  ]
  return found.filter(([applies]) => applies).map(([, what, cure]) => ({ what, cure }))
}

/** Settings that processes of one deployment may have of their own. */
const OWN_SETTINGS: ReadonlySet<string> = new Set([
  'PORT',
  'HOST',
  'DATA_DIR',
  'LOG_LEVEL',
  'WORKER_CONCURRENCY',
  'WORKER_FETCHES',
])
