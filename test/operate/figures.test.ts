// Figures of all processes: sums that never decrease when a process ends, and the minutes and days that are made from them.
import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import pg from 'pg'
import t from 'tap'
import { type Database, openDatabase, sql, transact } from '../../server/db/pool.ts'
import { readFigures, renderFigures, renderOwnFigures } from '../../server/operate/figures.ts'
import { closeMinute } from '../../server/operate/minutes.ts'
import { openPresence, type Presence, type ProcessKind } from '../../server/operate/presence.ts'
import { NO_MODEL_USE, readDays, readPeriods } from '../../server/operate/roll-ups.ts'
import { costOf, readSpending } from '../../server/operate/spending.ts'
import { openLog, openMetrics } from '../../server/telemetry.ts'
import { openTestDatabase } from '../database.ts'

interface Ward extends AsyncDisposable {
  db: Database
  tables: pg.Pool
  /** The part of a process that writes its presence and its counts. */
  start(kind: ProcessKind): Promise<{ presence: Presence; metrics: ReturnType<typeof openMetrics> }>
  /** The value of one sample of the text for Prometheus; undefined if it is not there. */
  sample(name: string): Promise<number | undefined>
  /** As if a process had been killed so many seconds ago: its row stays and grows old. */
  age(presence: Presence, seconds: number): Promise<unknown>
}

const NEVER = sql.fragment`false`
const OLD = sql.fragment`beat_at < now() - interval '600 seconds'`

async function openWard(): Promise<Ward> {
  await using opened = new AsyncDisposableStack()
  const { url } = opened.use(await openTestDatabase())
  const tables = new pg.Pool({ connectionString: url, max: 2 })
  // Its connections may still be closing when the database is dropped.
  tables.on('error', () => {})
  opened.defer(() => tables.end())
  const db = await openDatabase(url, { maxConnections: 4 })
  opened.defer(() => db.end())
  const reader = openMetrics()
  const closing = opened.move()
  /** Ended by the test, or at its end. */
  const started = new AsyncDisposableStack()
  const text = async () => renderFigures(await readFigures(db), reader)
  return {
    db,
    tables,
    async start(kind) {
      const metrics = openMetrics()
      return { metrics, presence: started.use(await openPresence({ db, metrics, log: openLog('silent') }, kind, {})) }
    },
    async sample(name) {
      const line = (await text()).split('\n').find((one) => one.startsWith(`${name} `))
      return line === undefined ? undefined : Number(line.slice(name.length + 1))
    },
    age: (presence, seconds) =>
      tables.query(
        `update processes set beat_at = now() - $2 * interval '1 second' where kind || '-' || left(id::text, 8) = $1`,
        [presence.label, seconds],
      ),
    async [Symbol.asyncDispose]() {
      await started.disposeAsync()
      await closing.disposeAsync()
    },
  }
}

t.test('counters and histograms are sums over processes, gauges have the label of their process', async (t) => {
  await using ward = await openWard()
  const [one, two, web] = [await ward.start('worker'), await ward.start('worker'), await ward.start('web')]
  one.metrics.failures.inc({ code: 'source_http_status' }, 2)
  two.metrics.failures.inc({ code: 'source_http_status' }, 3)
  one.metrics.stageSeconds.observe({ stage: 'observe' }, 0.3)
  two.metrics.stageSeconds.observe({ stage: 'observe' }, 0.7)
  two.metrics.assessorPaused.set(1)
  web.metrics.requests.inc({ operation: 'verify_source', status: '202' })
  for (const { presence } of [one, two, web]) await presence.publish()
  t.equal(await ward.sample('countersign_verification_failures_total{code="source_http_status"}'), 5)
  t.equal(await ward.sample('countersign_stage_seconds_bucket{le="0.5",stage="observe"}'), 1)
  t.equal(await ward.sample('countersign_stage_seconds_count{stage="observe"}'), 2)
  t.equal(await ward.sample('countersign_stage_seconds_sum{stage="observe"}'), 1)
  t.equal(await ward.sample(`countersign_assessor_paused{process="${two.presence.label}"}`), 1)
  t.equal(await ward.sample('countersign_requests_total{operation="verify_source",status="202"}'), 1)
  await one.presence[Symbol.asyncDispose]()
  await two.presence[Symbol.asyncDispose]()
  t.equal(await ward.sample('countersign_verification_failures_total{code="source_http_status"}'), 5, 'kept')
  t.equal(await ward.sample(`countersign_assessor_paused{process="${two.presence.label}"}`), undefined, 'a gauge ends')
  await web.presence[Symbol.asyncDispose]()
  t.equal(await ward.sample('countersign_stage_seconds_bucket{le="0.5",stage="observe"}'), 1)
  const { rows } = await ward.tables.query('select count(*)::int from processes')
  t.same(rows, [{ count: 0 }])
})

t.test(
  'a killed process: its counts stay before and after its row is swept, and once if it was only silent',
  async (t) => {
    await using ward = await openWard()
    const name = 'countersign_rescued_workers_total'
    const [killed, reader] = [await ward.start('worker'), await ward.start('web')]
    killed.metrics.rescued.inc(7)
    killed.metrics.assessorPaused.set(1)
    await killed.presence.publish()
    await ward.age(killed.presence, 60)
    t.equal(await ward.sample(name), 7)
    t.equal(await ward.sample(`countersign_assessor_paused{process="${killed.presence.label}"}`), undefined)
    await ward.age(killed.presence, 700)
    await transact(ward.db, (tx) => closeMinute(tx, { dead: OLD }))
    const { rows } = await ward.tables.query('select count(*)::int from processes')
    t.same(rows, [{ count: 1 }])
    t.equal(await ward.sample(name), 7, 'the sums have it')
    // The process was frozen, and continues.
    const { label } = killed.presence
    killed.metrics.rescued.inc(2)
    await killed.presence.publish()
    t.not(killed.presence.label, label, 'it goes on as another process')
    t.equal(await ward.sample(name), 9)
    killed.metrics.rescued.inc(1)
    await killed.presence.publish()
    t.equal(await ward.sample(name), 10)
    await killed.presence[Symbol.asyncDispose]()
    t.equal(await ward.sample(name), 10)
    await reader.presence[Symbol.asyncDispose]()
  },
)

t.test('sums do not go back while processes start, count and end', async (t) => {
  await using ward = await openWard()
  let counted = 0
  let running = true
  const life = async () => {
    for (let n = 0; n < 8; n++) {
      const { presence, metrics } = await ward.start('worker')
      metrics.rescued.inc()
      counted++
      await presence[Symbol.asyncDispose]()
    }
  }
  const lives = Promise.all([life(), life(), life()]).finally(() => {
    running = false
  })
  let last = 0
  let falls = 0
  while (running) {
    const now = (await ward.sample('countersign_rescued_workers_total')) ?? 0
    if (now < last) falls++
    last = now
  }
  await lives
  t.equal(falls, 0)
  t.equal(await ward.sample('countersign_rescued_workers_total'), counted)
})

t.test('names that another release counted are kept in the sums and not shown', async (t) => {
  await using ward = await openWard()
  const { presence } = await ward.start('web')
  const other = [
    {
      name: 'countersign_later_total',
      help: 'x',
      type: 'counter',
      aggregator: 'sum',
      values: [{ value: 3, labels: {} }],
    },
  ]
  await ward.tables.query('update ended_figures set figures = $1', [gzipSync(JSON.stringify(other))])
  await presence[Symbol.asyncDispose]()
  t.equal(await ward.sample('countersign_later_total'), undefined)
  const figures = await readFigures(ward.db)
  t.match(
    figures.find(({ name }) => name === 'countersign_later_total'),
    { values: [{ value: 3 }] },
  )
})

t.test('without a database a process shows what is its own, and no sum', async (t) => {
  const metrics = openMetrics({ process: true })
  metrics.failures.inc({ code: 'x' })
  metrics.assessorPaused.set(1)
  const text = await renderOwnFigures(metrics, 'web-1')
  t.match(text, 'countersign_database_up 0')
  t.match(text, 'countersign_assessor_paused{process="web-1"} 1')
  t.match(text, /process_resident_memory_bytes\{process="web-1"\} \d+/)
  t.notMatch(text, 'countersign_verification_failures_total')
})

function enter({ tables }: Ward, at: Date, outcome: 'settled' | 'failed') {
  const settled = outcome === 'settled'
  return tables.query(
    `with request as (
       insert into verification_requests (id, key_hash, body_hash, state, body, quote_expires_at)
       values ($1::text::uuid, sha256($1::text::bytea), sha256('body'), 'quoted', '{}', now()) returning id)
     insert into payment_ledger (request_id, outcome, reason, network, asset, payer, nonce, pay_to, amount_atomic,
       valid_before, provider, mode, transaction, proof, entered_at)
     select id, $2, $3, 'eip155:8453', 'usdc', 'payer', id::text, 'us', 30000, 1, $4, $5, $6, $7, $8 from request`,
    [
      randomUUID(),
      outcome,
      settled ? null : 'source_dns',
      settled ? 'cdp' : null,
      settled ? 'mainnet' : null,
      settled ? randomUUID() : null,
      settled ? 'facilitator' : null,
      at,
    ],
  )
}

t.test('minutes, periods and days', async (t) => {
  await using ward = await openWard()
  const { metrics, presence } = await ward.start('all')
  const start = Date.parse('2026-03-01T23:57:00Z')
  const at = (minutes: number, seconds = 0) => new Date(start + minutes * 60_000 + seconds * 1000)
  const close = (now: Date) => transact(ward.db, (tx) => closeMinute(tx, { dead: NEVER, now }))
  /** What is counted in one minute. It is closed some seconds after its end. */
  const minute = async (number: number, count: () => unknown) => {
    await count()
    await presence.publish()
    await close(at(number + 1, 3))
  }
  t.same(await readDays(ward.db, 90, at(0)), [], 'nothing is known yet')
  await minute(0, () => {
    metrics.moves.inc({ state: 'accepted' }, 4)
    metrics.readinessProbes.inc({ outcome: 'ready' }, 12)
    metrics.completed.inc({ verdict: 'supports' }, 2)
    metrics.modelCalls.inc({ outcome: 'ok' }, 2)
    metrics.modelTokens.inc({ kind: 'input' }, 3000)
    for (const seconds of [0.2, 0.2, 0.2, 4]) metrics.stageSeconds.observe({ stage: 'observe' }, seconds)
    return Promise.all([
      enter(ward, at(0), 'settled'),
      enter(ward, at(0, 59), 'settled'),
      enter(ward, at(0, 30), 'failed'),
      enter(ward, at(1), 'settled'),
    ])
  })
  await close(at(1, 8))
  await minute(1, () => {
    metrics.moves.inc({ state: 'accepted' }, 1)
    metrics.readinessProbes.inc({ outcome: 'ready' }, 11)
    metrics.readinessProbes.inc({ outcome: 'not_ready' }, 1)
    metrics.failures.inc({ code: 'source_dns' })
    metrics.modelCalls.inc({ outcome: 'overloaded' })
    metrics.modelTokens.inc({ kind: 'input' }, 1000)
    metrics.modelTokens.inc({ kind: 'output' }, 50)
    metrics.modelUsd.inc(0.25)
    metrics.alertAttempts.inc({ outcome: 'delivered' })
    metrics.stageSeconds.observe({ stage: 'observe' }, 0.2)
  })
  // Three minutes without a row follow.
  await minute(5, () => {
    metrics.moves.inc({ state: 'accepted' }, 10)
    metrics.readinessProbes.inc({ outcome: 'ready' }, 12)
    return ward.tables.query(
      `select graphile_worker.add_job('verify_request', run_at => now() - interval '40 seconds')`,
    )
  })
  const periods = await readPeriods(ward.db, { from: at(0), to: at(6) })
  t.same(
    periods.map(({ recorded, well, admitted }) => [recorded, well, admitted]),
    [
      [1, 1, 4],
      [1, 0, 1],
      [0, 0, 0],
      [0, 0, 0],
      [0, 0, 0],
      [1, 1, 10],
    ],
  )
  t.match(periods[0], {
    at: at(0),
    completed: { supports: 2 },
    payments: { settled: 2, failed: 1 },
    revenue: [{ mode: 'mainnet', network: 'eip155:8453', payments: 2, usd: 0.06 }],
    stages: { observe: { count: 4, mean: 1.15 } },
  })
  const { observe } = periods[0]?.stages ?? {}
  t.ok(
    observe && observe.p50 > 0.1 && observe.p50 <= 0.25 && observe.p99 > 2.5 && observe.p99 <= 5,
    JSON.stringify(observe),
  )
  t.match(periods[1], { failed: { source_dns: 1 }, alerts: { delivered: 1 }, payments: { settled: 1 } })
  t.equal(periods[1]?.completed.supports, 0)
  t.equal(periods[5]?.queue_depth, 1)
  t.ok((periods[5]?.oldest_seconds ?? 0) >= 40)
  const [whole] = await readPeriods(ward.db, { from: at(0), to: at(6), minutes: 6 })
  t.match(whole, { recorded: 3, well: 2, admitted: 15, payments: { settled: 3, failed: 1 }, queue_depth: 1 })
  t.equal(whole?.stages.observe?.count, 5)
  const [late] = await readPeriods(ward.db, { from: at(1), to: at(6), minutes: 5 })
  t.equal(late?.admitted, 11, 'what was counted before is not in it')

  t.same(periods[0]?.model, { calls: { ok: 2 }, tokens: { input: 3000 }, usd: 0 })
  const spent = { calls: { ok: 0, overloaded: 1 }, tokens: { input: 1000, output: 50 }, usd: 0.25 }
  t.same(periods[1]?.model, spent)
  t.same(periods[2]?.model, { calls: {}, tokens: {}, usd: 0 })
  const { hour } = await readSpending(ward.db, at(6).getTime())
  t.same(hour, { calls: { ok: 2, overloaded: 1 }, tokens: { input: 4000, output: 50 }, usd: 0.25 })
  t.same([costOf(hour), costOf({ ...hour, usd: 0 }), costOf(NO_MODEL_USE)], ['0.2500 USD', null, '0.00 USD'])
  await ward.tables.query(`update minute_figures set counters = counters - 'model' where minute = $1`, [at(0)])
  const [, second] = await readPeriods(ward.db, { from: at(0), to: at(6) })
  t.match(second?.model, { calls: {}, usd: 0 }, 'after a release that kept no figures of the model nothing is guessed')
  t.equal(second?.model.tokens.input, 0)

  t.same(
    await readDays(ward.db, 90, at(6, 2)),
    [
      { day: '2026-03-01', minutes: 3, well: 1, share: 1 / 3 },
      { day: '2026-03-02', minutes: 3, well: 1, share: 1 / 3 },
    ],
    'minutes without a row count as not well',
  )
  const [first, next, ...rest] = await readDays(ward.db, 90, at(6 + 2880))
  t.match([first, next], [{ minutes: 3 }, { minutes: 1440, well: 1 }], 'the whole day counts when it is over')
  t.match(rest, [
    { day: '2026-03-03', minutes: 1440, well: 0, share: 0 },
    { day: '2026-03-04', minutes: 3 },
  ])

  await close(at(8 * 1440))
  const [kept] = await readPeriods(ward.db, { from: at(8 * 1440 - 60), to: at(8 * 1440), minutes: 60 })
  t.match(kept, { recorded: 1, admitted: 0 }, 'the first row that is left has nothing to be compared with')
  await close(at(91 * 1440))
  const { rows } = await ward.tables.query(
    `select (select count(*)::int from minute_figures) minutes, (select count(*)::int from day_figures) days`,
  )
  t.same(rows, [{ minutes: 1, days: 2 }], 'old rows are deleted')
})
