// `cli doctor`: checks configuration, model, payments, database and Redis, and gives a cure for each problem. It only reads.
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

/** Runs every check, even if others fail. Changes nothing. */
export async function runDoctor(config: Config): Promise<Finding[]> {
  const found = await Promise.all([
    attempt('configuration', async () => [checkMode(config)]),
    attempt('assessment', async () => [checkAssessment(config)]),
    attempt('model', () => checkModel(config)),
    attempt('metrics', async () => [checkMetrics(config)]),
    attempt('payments', () => checkPayments(config)),
    attempt('billing', () => checkBilling(config)),
    attempt('database', () => checkDatabase(config)),
    attempt('redis', async () => (config.redisUrl ? [await checkRedis(config.redisUrl)] : [])),
  ])
  return found.flat()
}

/** A check that throws is a finding too. */
async function attempt(subject: string, check: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await check()
  } catch (error) {
    const cure = 'the message says what failed; report it if you did not cause it'
    return [{ ok: false, subject, detail: errorMessage(error), cure }]
  }
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

const MODEL_TIMEOUT_MS = 5000

/** Asks the server of the model for its list of models, which costs nothing. Every answer except a refused key passes. */
async function checkModel({ model }: Config): Promise<Finding[]> {
  if (!model) return []
  const subject = 'model'
  const base = model.baseUrl ?? 'https://api.anthropic.com'
  const at = new URL(base).origin
  try {
    const url = new URL(base)
    const path = `${url.pathname.replace(/\/$/, '')}/v1/models?limit=1`
    const response = await fetch(new URL(path, url.origin), {
      headers: { 'x-api-key': model.apiKey, 'anthropic-version': '2023-06-01' },
      signal: AbortSignal.timeout(MODEL_TIMEOUT_MS),
    })
    await response.body?.cancel()
    if (response.status === 401 || response.status === 403) {
      const detail = `${at} refuses the key (HTTP ${response.status})`
      return [{ ok: false, subject, detail, cure: 'set ANTHROPIC_API_KEY to a key of this server' }]
    }
    return [{ ok: true, subject, detail: `${at} answers` }]
  } catch (error) {
    const reason = error instanceof Error && error.cause instanceof Error ? error.cause : error
    const code = reason instanceof Error && 'code' in reason ? String(reason.code) : errorMessage(reason)
    const cure =
      'check ANTHROPIC_BASE_URL and the network; until it answers, new verifications get 503 and paid ones wait'
    return [{ ok: false, subject, detail: `${at} does not answer: ${code}`, cure }]
  }
}

type DatabaseCheck = (db: Database) => Promise<Finding>

async function checkDatabase(config: Config): Promise<Finding[]> {
  const checks: [string, DatabaseCheck][] = [
    ['database', checkClock],
    ['migrations', checkMigrations],
    ['signing keys', (db) => checkKeys(db, config)],
    ['workers', (db) => checkWorkers(db, config)],
    ['watchdogs', checkWatchdogs],
    ['settlements', checkSettlements],
  ]
  const url = config.databaseUrl ?? (await findOpenDatabase(config.dataDir))
  if (!url) {
    const detail = `DATABASE_URL is not set, and no \`npm start\` is running on ${config.dataDir}`
    return [
      { ok: false, subject: 'database', detail, cure: 'set DATABASE_URL, or run `npm start`' },
      ...skipped(checks),
    ]
  }
  let db: Database
  try {
    db = await openDatabase(url, { maxConnections: 2, pooled: config.databaseDirectUrl !== undefined })
  } catch (error) {
    return [describeUnreachable(url, error), ...skipped(checks)]
  }
  try {
    const findings: Finding[] = []
    for (const [subject, check] of checks) findings.push(...(await attemptOnDatabase(subject, () => check(db))))
    return findings
  } finally {
    await db.end()
  }
}

function skipped(checks: [string, DatabaseCheck][]): Finding[] {
  return checks
    .filter(([subject]) => subject !== 'database')
    .map(([subject]) => ({
      ok: false,
      subject,
      detail: 'not checked: there is no database',
      cure: 'repair the database first',
    }))
}

/** A table or column that is not there belongs to a migration that was not applied. */
async function attemptOnDatabase(subject: string, check: () => Promise<Finding>): Promise<Finding[]> {
  try {
    return [await check()]
  } catch (error) {
    const missing = /^42(P01|703|883)$/.test(causeCode(error) ?? '')
    const detail = missing ? 'not checked: the database is not migrated' : errorMessage(error)
    const cure = missing ? 'run `npm run cli -- migrate`' : 'look at the log of the database server'
    return [{ ok: false, subject, detail, cure }]
  }
}

/** Names server, database and role, never the password. */
function describeUnreachable(url: string, error: unknown): Finding {
  const { hostname, port, pathname, username } = new URL(url)
  const code = causeCode(error) ?? ''
  const [detail, cure] = UNREACHABLE[code] ?? [
    errorMessage(error),
    'check DATABASE_URL, and that the server accepts connections from here',
  ]
  const where = `${username || 'no role'} at ${hostname || 'local socket'}:${port || 5432}${pathname}`
  return { ok: false, subject: 'database', detail: `${where}: ${detail}`, cure }
}

/** By SQLSTATE, or by the code of Node's error: what it means, and the cure. */
const SELF_SIGNED_CURE =
  'name its CA in NODE_EXTRA_CA_CERTS, or add ?sslmode=no-verify to DATABASE_URL, which authenticates nobody'
const UNREACHABLE: Readonly<Record<string, readonly [string, string]>> = {
  ECONNREFUSED: ['nothing listens there', 'start the database server, or correct host and port in DATABASE_URL'],
  ENOTFOUND: ['this host name does not exist', 'correct the host in DATABASE_URL'],
  EAI_AGAIN: ['the name server does not answer', 'check the DNS of this machine'],
  ETIMEDOUT: ['no answer', 'check the host in DATABASE_URL, and firewalls between here and there'],
  '28P01': ['the password is wrong', 'correct the password in DATABASE_URL'],
  '28000': ['the role is refused', 'correct the role in DATABASE_URL, or pg_hba.conf of the server'],
  '3D000': ['this database does not exist', 'create it (`createdb`), or correct its name in DATABASE_URL'],
  '53300': [
    'the server has no connection left',
    'lower the number of processes, or raise max_connections of the server',
  ],
  '57P03': ['the server is starting or stopping', 'wait, then run this again'],
  DEPTH_ZERO_SELF_SIGNED_CERT: ['its certificate is self-signed', SELF_SIGNED_CURE],
  SELF_SIGNED_CERT_IN_CHAIN: ['its certificate is self-signed', SELF_SIGNED_CURE],
}

/** The first code among the error and its causes. */
function causeCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if ('code' in error && typeof error.code === 'string' && UNAVAILABLE !== error.code) return error.code
  if (error instanceof AggregateError && error.errors.length > 0) return causeCode(error.errors[0])
  return causeCode(error.cause)
}

/** The code of UnavailableError, which says nothing of the cause. */
const UNAVAILABLE = 'provider_unavailable'

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
      detail: `a worker assesses by ${other}, but ${assessment.kind} assessment is offered: until they agree, nothing is sold`,
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
    detail: `their deadlines were checked ${Math.round(seconds)} s ago`,
    cure: 'start a web process, which accepts heartbeats, and a worker process, which checks deadlines',
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
