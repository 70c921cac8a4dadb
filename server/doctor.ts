// `cli doctor`: checks configuration and database, and gives a cure for each problem. It only reads.
import { Redis } from 'ioredis'
import type { Config } from './config.ts'
import { measureClockSkew } from './db/clock.ts'
import { findOpenDatabase } from './db/embedded.ts'
import { findPendingMigrations } from './db/migrate.ts'
import { type Database, openDatabase } from './db/pool.ts'
import { errorMessage } from './errors.ts'
import { findUnresolved } from './payments/ledger.ts'
import { isActiveKey } from './receipts/keys.ts'
import { kindOf, readBeats } from './verification/assessors.ts'
import { describeAssessment } from './verification/offer.ts'
import { measureScanAge } from './watchdogs/intake-clock.ts'

export interface Finding {
  ok: boolean
  subject: string
  detail: string
  cure?: string
}

const MAX_SKEW_MS = 2000

export async function runDoctor(config: Config): Promise<Finding[]> {
  const findings = [
    checkMode(config),
    checkAssessment(config),
    checkMetrics(config),
    ...(await checkPayments(config)),
    ...(await checkBilling(config)),
    ...(await checkDatabase(config)),
  ]
  return config.redisUrl ? [...findings, await checkRedis(config.redisUrl)] : findings
}

function checkMode({ paymentMode, fixtures }: Config): Finding {
  const fixed = fixtures.hosts.size > 0 ? `, ${fixtures.hosts.size} fixture hosts` : ''
  return { ok: true, subject: 'configuration', detail: `valid; payment mode ${paymentMode}${fixed}` }
}

function checkAssessment(config: Config): Finding {
  return { ok: true, subject: 'assessment', detail: describeAssessment(config) }
}

function checkMetrics({ operatorToken, paymentMode }: Config): Finding {
  const subject = 'metrics'
  if (operatorToken) return { ok: true, subject, detail: 'open to OPERATOR_TOKEN' }
  if (paymentMode === 'offline') return { ok: true, subject, detail: 'open to every caller, as in offline mode only' }
  const cure = 'set OPERATOR_TOKEN, and give it to the collector that reads /metrics'
  return { ok: false, subject, detail: 'closed: OPERATOR_TOKEN is not set', cure }
}

/** The checks that the processes make when they start. There a problem prevents the start only if payments would be lost. */
async function checkPayments(config: Config): Promise<Finding[]> {
  if (config.paymentMode === 'offline') return []
  const { inspectPayments } = await import('./payments/live-setup.ts')
  const found = await inspectPayments(config)
  return found.map(({ verdict, ...rest }) => ({ ok: verdict === 'right', ...rest }))
}

async function checkBilling(config: Config): Promise<Finding[]> {
  const { inspectBilling } = await import('./billing/startup-checks.ts')
  const found = await inspectBilling(config)
  return found.map(({ verdict, ...rest }) => ({ ok: verdict === 'right', ...rest }))
}

async function checkDatabase(config: Config): Promise<Finding[]> {
  const url = config.databaseUrl ?? (await findOpenDatabase(config.dataDir))
  if (!url)
    return [
      {
        ok: config.paymentMode === 'offline',
        subject: 'database',
        detail: `DATABASE_URL is not set, and no \`npm start\` is running on ${config.dataDir}`,
        cure: 'set DATABASE_URL',
      },
    ]
  const db = await openDatabase(url, { maxConnections: 2 })
  try {
    return [
      await checkClock(db),
      await checkMigrations(db),
      await checkKeys(db, config),
      await checkWorkers(db, config),
      await checkWatchdogs(db),
      await checkSettlements(db),
    ]
  } catch (error) {
    const cure = 'check DATABASE_URL and that the server accepts connections from here; then `npm run cli -- migrate`'
    return [{ ok: false, subject: 'database', detail: errorMessage(error), cure }]
  } finally {
    await db.end()
  }
}

async function checkClock(db: Database): Promise<Finding> {
  const skew = await measureClockSkew(db)
  return {
    ok: skew < MAX_SKEW_MS,
    subject: 'database',
    detail: `answers; its clock and the one of this machine differ by ${skew} ms`,
    cure: 'synchronize both machines by NTP: deadlines and receipts depend on these clocks',
  }
}

async function checkMigrations(db: Database): Promise<Finding> {
  const pending = await findPendingMigrations(db)
  return {
    ok: pending.length === 0,
    subject: 'migrations',
    detail: pending.length === 0 ? 'up to date' : `pending: ${pending.join(', ')}`,
    cure: 'run `npm run cli -- migrate`',
  }
}

async function checkKeys(db: Database, { signingSeed, paymentMode }: Config): Promise<Finding> {
  const subject = 'signing keys'
  if (!signingSeed) return { ok: paymentMode === 'offline', subject, detail: 'the seed is kept in DATA_DIR' }
  const active = await isActiveKey(db, signingSeed, 'receipt')
  return {
    ok: active !== false,
    subject,
    detail: {
      true: 'the active receipt key is of this seed',
      false: 'the active receipt key is of another seed',
      null: 'none yet: the first start makes it',
    }[`${active}`],
    cure: 'set the seed this database was started with',
  }
}

async function checkWorkers(db: Database, { assessment }: Config): Promise<Finding> {
  const subject = 'workers'
  const alive = (await readBeats(db)).map(({ methodology }) => methodology)
  const other = alive.find((methodology) => ![null, assessment.kind].includes(kindOf(methodology)))
  if (other)
    return {
      ok: false,
      subject,
      detail: `one assesses by ${other}, but ${assessment.kind} assessment is offered: until they agree, nothing is sold`,
      cure: 'give web and worker processes the same ASSESSMENT and ANTHROPIC_API_KEY',
    }
  return {
    ok: alive.length > 0,
    subject,
    detail: `${alive.length} alive`,
    cure: 'start a worker process: without one, paid requests stay pending',
  }
}

const MAX_SCAN_AGE_SECONDS = 15

async function checkWatchdogs(db: Database): Promise<Finding> {
  const seconds = await measureScanAge(db)
  return {
    ok: seconds < MAX_SCAN_AGE_SECONDS,
    subject: 'watchdogs',
    detail: `their deadlines were judged ${Math.round(seconds)} s ago`,
    cure: 'start a web process, which takes heartbeats, and a worker process, which judges deadlines',
  }
}

/** An authorization expires after some minutes, and on Base that is final within half an hour. */
const MAX_UNRESOLVED_SECONDS = 3600

async function checkSettlements(db: Database): Promise<Finding> {
  const open = await findUnresolved(db)
  const oldest = Math.max(0, ...open.map((payment) => payment.open_seconds))
  return {
    ok: oldest < MAX_UNRESOLVED_SECONDS,
    subject: 'settlements',
    detail: open.length === 0 ? 'none unresolved' : `${open.length} unresolved, the oldest for ${oldest} s`,
    cure: 'see `npm run cli -- payments list-unresolved`; a worker and the RPC of the chain must be up',
  }
}

async function checkRedis(url: string): Promise<Finding> {
  const redis = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null })
  redis.on('error', () => {})
  try {
    await redis.connect()
    await redis.ping()
    return { ok: true, subject: 'redis', detail: 'answers' }
  } catch (error) {
    const cure = 'check REDIS_URL; until it answers, each web process counts rate limits by itself'
    return { ok: false, subject: 'redis', detail: errorMessage(error), cure }
  } finally {
    redis.disconnect()
  }
}
