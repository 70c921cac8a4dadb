// The warnings of the status: each alarm has a warning of the same name with the same bound, warnings name recent events,
// and each is logged when it begins and when it ends.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readConfig } from '../../server/config.ts'
import { nothing, openDatabase, sql, transact } from '../../server/db/pool.ts'
import { takeFigures } from '../../server/operate/figures.ts'
import { closeMinute, countersOf } from '../../server/operate/minutes.ts'
import { openPresence } from '../../server/operate/presence.ts'
import { buildProbe } from '../../server/operate/readiness.ts'
import { readStatus } from '../../server/operate/status.ts'
import { openNotes } from '../../server/operate/warning-log.ts'
import { type Warning, warningsOf } from '../../server/operate/warnings.ts'
import { openLog, openMetrics } from '../../server/telemetry.ts'
import { LOADING } from '../../server/verification/offer/assessors.ts'
import { openLocalAssessor } from '../../workers/assessment/local.ts'
import { openTestDatabase } from '../database.ts'

const RETENTION = readConfig({})
const rules = readFileSync(join(import.meta.dirname, '../../ops/prometheus-rules.yaml'), 'utf8')
const alarms = [...rules.matchAll(/- alert: Countersign(\w+)\n/g)].map(([, name = '']) =>
  name.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toLowerCase(),
)

t.test('each alarm has a warning of its name, just beyond its bound and not at it', async (t) => {
  await using database = await openTestDatabase()
  const db = await openDatabase(database.url, { maxConnections: 2 })
  t.teardown(() => db.end())
  const quiet = await readStatus(db, RETENTION)
  const facts = (more: number): typeof quiet => ({
    ...quiet,
    pending_migrations: more ? ['0001_later.sql'] : [],
    workers: { alive: 0, paused: more, away: more },
    queue: { ...quiet.queue, oldest_seconds: 60 + more, dead: more },
    requests: { ...quiet.requests, oldest_seconds: 120 + more },
    watchdogs: { ...quiet.watchdogs, judged_seconds_ago: 15 + more },
    alerts: { ...quiet.alerts, given_up_last_hour: more },
    prune_lag_seconds: 600 + more,
    captures: { enabled: true, rows: 1, bytes: 95 + more, max_bytes: 100 },
    failing_authorities: more ? [{ url: 'https://tsa.example/', failures: 3, problem: 'it answered 503' }] : [],
    recent: {
      answers: 100,
      server_errors: 5 + more,
      completed: 20,
      failed: { source_http_status: 20, execution_failed: more },
      settlements: { unknown: 5 + more },
      rescued_workers: 2 + more,
      payment_calls: { 'facilitator kelby': 10 + more },
      timed: { admissions: 100, results: 20, detections: 100 },
      admission_p99: 1 + more,
      result_p95: 60 + more,
      detection_p99: 5 + more,
      event_loops: [{ process: 'web-1', seconds: 0.5 + more }],
    },
  })
  const names = (more: number) => warningsOf(facts(more)).map(({ name }) => name)
  t.same(names(0).toSorted(), ['no_worker', 'unseen'])
  // While the database does not answer there is no status: the command says so.
  t.same(new Set([...names(1), 'database_away']), new Set(alarms))
})

t.test('a percentile of few is that of the slowest, and says of how many', async (t) => {
  await using database = await openTestDatabase()
  const db = await openDatabase(database.url, { maxConnections: 4 })
  t.teardown(() => db.end())
  const metrics = openMetrics()
  await using presence = await openPresence({ db, metrics, log: openLog('silent') }, 'all', {})
  const texts = async () => (await readStatus(db, RETENTION)).warnings.map(({ what }) => what)
  metrics.admissionSeconds.observe(4)
  metrics.resultSeconds.observe(110)
  await presence.publish()
  t.match((await texts()).join('\n'), /^the only paid call in the last 15 minutes waited for [\d.]+ s for its 202$/m)
  for (let call = 1; call < 22; call++) metrics.admissionSeconds.observe(0.1)
  for (let result = 1; result < 20; result++) metrics.resultSeconds.observe(110)
  metrics.watchdogDelaySeconds.observe(20)
  metrics.watchdogDelaySeconds.observe(20)
  await presence.publish()
  const all = (await texts()).join('\n')
  t.match(all, /^the slowest of 22 paid calls in the last 15 minutes waited for [\d.]+ s for its 202$/m)
  t.match(all, /^1 of 20 results in the last 15 minutes took \d+ s$/m)
  t.match(all, /^the slowest of 2 missed deadlines in the last 15 minutes was detected [\d.]+ s late$/m)
})

t.test(
  'a worker that loads its verifier is not warned of, unless it takes too long or says something else',
  async (t) => {
    await using database = await openTestDatabase()
    const db = await openDatabase(database.url, { maxConnections: 2 })
    t.teardown(() => db.end())
    await using assessor = openLocalAssessor({ threads: 1, metrics: openMetrics(), log: openLog('silent') })
    t.equal(assessor.problem, LOADING, 'what a verifier says of itself at first')
    await db.query(sql.type(nothing)`
    insert into worker_beats (pool_id, methodology, assessor_paused_until, assessor_problem)
    values ('a', 'retrieval-1 local-1', now() + interval '1 minute', ${LOADING})`)
    const found = async () => (await readStatus(db, RETENTION)).warnings.find(({ name }) => name === 'model_away')
    t.equal(await found(), undefined)
    await db.query(sql.type(nothing)`update worker_beats set booted_at = now() - interval '3 minutes'`)
    t.match(await found(), { what: /: the verifier is being loaded$/, cure: /^wait for log event verifier_ready; / })
    await db.query(
      sql.type(nothing)`update worker_beats set booted_at = now(), assessor_problem = 'it refuses the key'`,
    )
    t.match(await found(), { what: /: it refuses the key$/, cure: /^correct the setting/ })
  },
)

t.test('the warning of a silent process ends when it says, though its row is not deleted yet', async (t) => {
  await using database = await openTestDatabase()
  const db = await openDatabase(database.url, { maxConnections: 2 })
  t.teardown(() => db.end())
  await using _presence = await openPresence({ db, metrics: openMetrics(), log: openLog('silent') }, 'all', {})
  const found = async () => (await readStatus(db, RETENTION)).warnings.find(({ name }) => name === 'process_silent')
  await db.query(sql.type(nothing)`update processes set beat_at = now() - interval '595 seconds'`)
  t.match(await found(), {
    what: /has been silent for \d+ s$/,
    cure: /this warning ends after ten minutes of silence$/,
  })
  await db.query(sql.type(nothing)`update processes set beat_at = now() - interval '601 seconds'`)
  t.equal(await found(), undefined)
})

t.test('the 503 of /readyz, for example while the verifier is loaded, is no server error', async (t) => {
  const metrics = openMetrics()
  metrics.requests.inc({ operation: 'readyz', status: '503' }, 9)
  metrics.requests.inc({ operation: 'verify_source', status: '503' })
  metrics.requests.inc({ operation: 'verify_source', status: '202' }, 3)
  t.same(countersOf(await takeFigures(metrics)).watched?.answers, { 2: 3, 5: 1 })
})

t.test('what happened in the last 15 minutes is warned of, and what happened before is not', async (t) => {
  await using database = await openTestDatabase()
  const db = await openDatabase(database.url, { maxConnections: 4 })
  t.teardown(() => db.end())
  const metrics = openMetrics()
  await using presence = await openPresence({ db, metrics, log: openLog('silent') }, 'all', {})
  const names = async () => (await readStatus(db, RETENTION)).warnings.map(({ name }) => name)
  const quiet = await names()
  metrics.failures.inc({ code: 'execution_failed' })
  metrics.settlements.inc({ outcome: 'unknown' }, 6)
  metrics.rescued.inc(3)
  metrics.paymentCallFailures.inc({ dependency: 'facilitator kelby' }, 11)
  metrics.requests.inc({ operation: 'verify_source', status: '503' })
  metrics.watchdogDelaySeconds.observe(20)
  metrics.resultSeconds.observe(110)
  metrics.admissionSeconds.observe(4)
  await presence.publish()
  const expected = [
    'admission_slow',
    'detection_slow',
    'payment_calls_fail',
    'results_slow',
    'server_errors',
    'settlement_unknown',
    'work_failed',
    'workers_die',
  ]
  t.same((await names()).filter((name) => !quiet.includes(name)).toSorted(), expected)

  const dead = sql.fragment`false`
  const now = new Date(Date.now() - 16 * 60_000)
  await transact(db, (tx) => closeMinute(tx, { dead, now }))
  t.same(await names(), quiet)
  metrics.failures.inc({ code: 'execution_failed' })
  await presence.publish()
  t.same(
    (await names()).filter((name) => !quiet.includes(name)),
    ['work_failed'],
  )
})

t.test('a warning is logged when it begins, at growing intervals, and when it is over', async (t) => {
  const lines: Record<string, unknown>[] = []
  const log = openLog('info', { write: (line) => void lines.push(JSON.parse(line)) })
  let seconds = 0
  const note = openNotes(log, () => seconds * 1000)
  const warning = (name: string): Warning => ({ name, what: `${name} at ${seconds}`, cure: 'mend it' })
  for (; seconds <= 600; seconds += 15) note([warning('queue_behind')])
  note([])
  note([warning('queue_behind'), warning('queue_behind')])
  t.match(lines, [
    { event: 'warning', warning: 'queue_behind', what: 'queue_behind at 0', cure: 'mend it', level: 'warn' },
    { event: 'warning_remains', seconds: 60 },
    { event: 'warning_remains', seconds: 120 },
    { event: 'warning_remains', seconds: 240 },
    { event: 'warning_remains', seconds: 480 },
    { event: 'warning_over', warning: 'queue_behind', seconds: 615 },
    { event: 'warning', what: 'queue_behind at 615; queue_behind at 615' },
  ])
})

t.test('the samples that alarms wait for are there before anything was counted', async (t) => {
  const { registry } = openMetrics()
  const text = await registry.metrics()
  for (const sample of [
    'countersign_verification_failures_total{code="execution_failed"} 0',
    'countersign_verification_failures_total{code="source_unreachable"} 0',
    'countersign_alert_attempts_total{outcome="given_up"} 0',
    'countersign_settlements_total{outcome="unknown"} 0',
    'countersign_readiness_probes_total{outcome="not_ready"} 0',
  ])
    t.ok(text.includes(`${sample}\n`), sample)
})

t.test('a process whose release is not migrated logs it itself, once', async (t) => {
  await using database = await openTestDatabase()
  const db = await openDatabase(database.url, { maxConnections: 2 })
  t.teardown(() => db.end())
  const lines: Record<string, unknown>[] = []
  const log = openLog('info', { write: (line) => void lines.push(JSON.parse(line)) })
  const probe = buildProbe({ db, log, room: { isFull: false } })
  await db.query(sql.unsafe`delete from schema_migrations where name like '0001%'`)
  t.equal(await probe(), false)
  t.equal(await probe(), false)
  t.match(lines, [{ event: 'warning', warning: 'not_ready', what: /^migrations: pending: 0001_/, cure: /migrate/ }])
  t.match(lines[0]?.what, /keys: no active receipt key$/)
})
