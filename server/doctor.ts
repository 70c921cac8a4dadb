// `cli doctor`: checks the running service by the settings that its processes publish, or without one those of this shell, and gives
// a cure for each problem. It only reads.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from './config.ts'
import { measureClockSkew } from './db/clock.ts'
import { findPendingMigrations } from './db/migrate.ts'
import { type Database, openDatabase } from './db/pool.ts'
import { causeCode, describeUnreachable } from './db/unreachable.ts'
import { findOpenDatabase } from './embedded/postgres.ts'
import { errorMessage } from './errors.ts'
import { findUnresolved } from './payments/ledger.ts'
import { inspectAuthorities } from './receipts/authority-check.ts'
import { isActiveKey } from './receipts/keys.ts'
import { findRunningService, type RunningService } from './running-service.ts'
import { kindOf, LOADING, problemsOf, readBeats } from './verification/offer/assessors.ts'
import { describeAssessment } from './verification/offer/offer.ts'
import { measureScanAge } from './watchdogs/intake-clock.ts'

export interface Finding {
  ok: boolean
  subject: string
  detail: string
  cure?: string
}

const MAX_SKEW_MS = 2000

interface DoctorOptions {
  /** Checks the configuration of this shell even if a service runs. */
  shell?: boolean
  /** Waits before a verifier that is being loaded is looked at again. */
  pause?: (milliseconds: number) => Promise<unknown>
}

/**
 * Runs every check, even if others fail. Changes nothing.
 * @param own the configuration of this shell, which finds the database
 */
export async function runDoctor(own: Config, { shell = false, pause = sleep }: DoctorOptions = {}): Promise<Finding[]> {
  await using opened = new AsyncDisposableStack()
  const db = await openForChecks(own, opened)
  // A database that is not migrated has no processes.
  const service = shell || 'subject' in db ? null : await findRunningService(db, own).catch(() => null)
  const { config } = service ?? { config: own }
  const lacking = (subject: string) => describeLacking(subject, service)
  const found = await Promise.all([
    attempt('service', async () => describeService(service, shell)),
    attempt('configuration', async () => [checkMode(config)]),
    attempt('assessment', async () => [checkAssessment(config)]),
    attempt('model', async () =>
      'subject' in db ? checkModel(config) : checkServiceModel(db, config, { service, pause }),
    ),
    attempt('metrics', async () => [checkMetrics(config)]),
    attempt('payments', async () => lacking('payments') ?? checkPayments(config)),
    attempt('billing', async () => lacking('subscriptions') ?? checkBilling(config)),
    attempt('timestamps', async () => lacking('timestamps') ?? inspectAuthorities(config.timestamps)),
    attempt('database', () => checkDatabase(db, config, lacking('signing keys')?.[0])),
    attempt('redis', async () => lacking('redis') ?? (config.redisUrl ? [await checkRedis(config.redisUrl)] : [])),
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

function describeService(service: RunningService | null, isAsked: boolean): Finding[] {
  const subject = 'service'
  if (!service) {
    const reason = isAsked ? 'as asked' : 'the service is not running on this database'
    return [{ ok: true, subject, detail: `${reason}: the settings of this shell are checked` }]
  }
  const { processes, differing } = service
  const names = processes.map(({ kind, pid, host }) => `${kind} ${pid} on ${host}`).join(', ')
  const running = { ok: true, subject, detail: `running (${names}): its settings are checked` }
  if (differing.length === 0) return [running]
  const parts = differing.map(
    ({ name, there, here }) => `${name} is ${there || 'unset'} there, ${here || 'unset'} here`,
  )
  return [running, { ok: true, subject: 'this shell', detail: `differs from the service: ${parts.join('; ')}` }]
}

/** The settings of a check whose values may be hidden. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  model: ['ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL', 'OPENAI_API_KEY', 'OPENAI_BASE_URL'],
  payments: ['FACILITATOR_URL', 'CDP_API_KEY_SECRET', 'EVM_RPC_URL', 'SOLANA_RPC_URL'],
  subscriptions: ['STRIPE_SECRET_KEY', 'STRIPE_WEBHOOK_SECRET', 'STRIPE_API_BASE'],
  timestamps: ['TIMESTAMP_URLS', 'TIMESTAMP_CA_FILE'],
  'signing keys': ['SIGNING_SEED', 'SIGNING_SEED_FILE'],
  redis: ['REDIS_URL'],
}

/** What this shell does not know cannot be checked from here, which is no fault of the service. */
function describeLacking(subject: string, service: RunningService | null): [Finding] | undefined {
  const names = NEEDED[subject]?.filter((name) => service?.lacking.has(name)) ?? []
  if (names.length === 0) return undefined
  const detail = `not checked: the service has ${names.join(' and ')}, and this shell has not`
  return [{ ok: true, subject, detail }]
}

function checkMode({ paymentMode, offlinePublic, fixtures }: Config): Finding {
  const fixed = fixtures.hosts.size > 0 ? `, ${fixtures.hosts.size} fixture hosts` : ''
  const open = offlinePublic ? ', OFFLINE_PUBLIC: everyone may have everything for nothing' : ''
  return { ok: true, subject: 'configuration', detail: `valid; payment mode ${paymentMode}${open}${fixed}` }
}

function checkAssessment(config: Config): Finding {
  return { ok: true, subject: 'assessment', detail: describeAssessment(config) }
}

function checkMetrics({ operatorToken, paymentMode, offlinePublic }: Config): Finding {
  const subject = 'metrics'
  if (operatorToken) return { ok: true, subject, detail: 'open to OPERATOR_TOKEN' }
  if (paymentMode === 'offline' && !offlinePublic)
    return { ok: true, subject, detail: 'open to every caller, as in offline mode on this machine only' }
  const cure = 'set OPERATOR_TOKEN, and give it to the collector that reads /metrics'
  return { ok: false, subject, detail: 'closed: OPERATOR_TOKEN is not set', cure }
}

/** The checks that the processes make when they start. There a problem prevents the start only if payments would be lost. */
async function checkPayments(config: Config): Promise<Finding[]> {
  if (config.paymentMode === 'offline') return []
  const { inspectPayments } = await import('./payments/facilitators/live-setup.ts')
  const found = await inspectPayments(config)
  return found.map(({ verdict, ...rest }) => ({ ok: verdict === 'right', ...rest }))
}

async function checkBilling(config: Config): Promise<Finding[]> {
  const { inspectBilling } = await import('./billing/startup-checks.ts')
  const found = await inspectBilling(config)
  return found.map(({ verdict, ...rest }) => ({ ok: verdict === 'right', ...rest }))
}

/**
 * What the workers of a running service say of what assesses. Without one the model is asked from here. A verifier that is being
 * loaded is no fault: it is waited for.
 */
async function checkServiceModel(
  db: Database,
  config: Config,
  { service, pause }: { service: RunningService | null; pause: (milliseconds: number) => Promise<unknown> },
): Promise<Finding[]> {
  const read = async () => (service ? await readBeats(db).catch(() => []) : [])
  let beats = await read()
  for (let waited = 0; waited < LOADING_MS && problemsOf(beats).includes(LOADING); waited += LOOK_MS) {
    await pause(LOOK_MS)
    beats = await read()
  }
  if (beats.length === 0) return describeLacking('model', service) ?? checkModel(config)
  if (config.assessment.kind === 'literal') return []
  const subject = config.model ? 'model' : 'verifier'
  const where = config.model ? `${describeModel(config.model)}: ` : ''
  const problems = problemsOf(beats)
  const isLoading = problems.length > 0 && problems.every((problem) => problem === LOADING)
  const said = isLoading ? [`${LOADING}; this check has waited ${LOADING_MS / 1000} s for it`] : problems
  const detail = `${where}${said.join('; ') || `ready in ${beats.length} workers`}`
  return [{ ok: problems.length === 0, subject, detail, cure: isLoading ? LOADING_CURE : MODEL_CURE }]
}

/** A verifier takes a few seconds. */
const LOADING_MS = 30_000
const LOOK_MS = 500
const LOADING_CURE =
  'wait for log event verifier_ready; give the workers more CPU and memory if it does not come. Until then new verifications get 503'
const MODEL_CURE = 'until it answers, new verifications get 503 and paid ones wait'

/** Asks the model the tiny question that a worker asks it too, with the schema and all. */
async function checkModel(config: Config): Promise<Finding[]> {
  const { model } = config
  if (!model) return []
  const [{ openConfiguredModel }, { openLog, openMetrics }] = await Promise.all([
    import('../workers/assessment/choice.ts'),
    import('./telemetry.ts'),
  ])
  const log = openLog('error', { write: () => {} })
  const { circuit } = await openConfiguredModel(model, { config, metrics: openMetrics(), log })
  await circuit.proved()
  const subject = 'model'
  const where = describeModel(model)
  if (circuit.problem === null) return [{ ok: true, subject, detail: `${where} answers a trial question` }]
  return [{ ok: false, subject, detail: `${where}: ${circuit.problem}`, cure: MODEL_CURE }]
}

/** Only the origin: a URL may contain a password. */
function describeModel({ model, baseUrl, protocol }: NonNullable<Config['model']>): string {
  return `${model} at ${new URL(baseUrl ?? DEFAULT_SERVERS[protocol]).origin}`
}

const DEFAULT_SERVERS = { anthropic: 'https://api.anthropic.com', openai: 'https://api.openai.com' }

type DatabaseCheck = (db: Database) => Promise<Finding>

/** The database of the service, or what prevents that it is opened. */
async function openForChecks(config: Config, opened: AsyncDisposableStack): Promise<Database | Finding> {
  const url = config.databaseUrl ?? (await findOpenDatabase(config.dataDir))
  if (!url) {
    const detail = `the service is not running here: DATABASE_URL is not set, and no \`npm start\` is running on ${config.dataDir}`
    return { ok: false, subject: 'database', detail, cure: 'set DATABASE_URL, or run `npm start`' }
  }
  try {
    const db = await openDatabase(url, { maxConnections: 2, pooled: config.databaseDirectUrl !== undefined })
    opened.defer(() => db.end())
    return db
  } catch (error) {
    return { ok: false, subject: 'database', ...describeUnreachable(url, error) }
  }
}

async function checkDatabase(db: Database | Finding, config: Config, noSeed: Finding | undefined): Promise<Finding[]> {
  const checks: [string, DatabaseCheck][] = [
    ['database', checkClock],
    ['migrations', checkMigrations],
    ['signing keys', async (db) => noSeed ?? checkKeys(db, config)],
    ['workers', (db) => checkWorkers(db, config)],
    ['watchdogs', checkWatchdogs],
    ['settlements', checkSettlements],
  ]
  if ('subject' in db) return [db, ...skipped(checks)]
  const findings: Finding[] = []
  for (const [subject, check] of checks) findings.push(...(await attemptOnDatabase(subject, () => check(db))))
  return findings
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
      cure: 'give web and worker processes the same ASSESSMENT, ANTHROPIC_ and OPENAI_ variables',
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
  const { pingRedis } = await import('./redis.ts')
  try {
    await pingRedis(url)
    return { ok: true, subject: 'redis', detail: 'answers' }
  } catch (error) {
    const cure = 'check REDIS_URL; until it answers, each web process counts rate limits by itself'
    return { ok: false, subject: 'redis', detail: errorMessage(error), cure }
  }
}
