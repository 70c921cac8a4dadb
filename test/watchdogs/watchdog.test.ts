// Watchdogs over HTTP: requests, answers, refusals and concurrency.
import t from 'tap'
import { BatchOverflowError } from '../../server/db/batch.ts'
import type { Account, Answer } from '../accounts/harness.ts'
import { HOOK, openWatchdogHarness } from './harness.ts'

const harness = await openWatchdogHarness()
t.teardown(() => harness[Symbol.asyncDispose]())
const { putWatchdog, beat, show, pass } = harness

const countBy = (answers: Answer[]) =>
  Object.fromEntries(
    Object.entries(Object.groupBy(answers, ({ status }) => status)).map(([status, group]) => [status, group?.length]),
  )
/** Seconds between two times that come from one reading of the clock, to the millisecond. */
const seconds = (later: string, earlier: string) => (Date.parse(later) - Date.parse(earlier)) / 1000
const MICROSECONDS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/

t.test('the clock starts with the first PUT and goes on through later ones', async (t) => {
  const account = await harness.register({ handle: 'kelby' })
  const made = await account.call('PUT', '/v1/watchdog/nightly', { body: { interval_s: 300_000, webhook_url: HOOK } })
  t.equal(made.status, 201)
  const { webhook_secret, ...watchdog } = made.body
  t.match(webhook_secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  t.same(watchdog, {
    name: 'nightly',
    interval_s: 300_000,
    grace_s: 30_000,
    alert_after: 1,
    remind_every_s: null,
    state: 'new',
    due_at: watchdog.due_at,
    last_heartbeat_at: null,
    beats: 0,
    recent_beats: [],
    note: null,
    down_since: null,
    paused_until: null,
    event_seq: 0,
    created_at: watchdog.created_at,
    webhook_url: HOOK,
    webhook_state: 'active',
    server_now: watchdog.server_now,
  })
  for (const time of [watchdog.due_at, watchdog.created_at, watchdog.server_now]) t.match(time, MICROSECONDS)
  t.equal(seconds(watchdog.due_at, watchdog.created_at), 300_000)

  const again = await account.call('PUT', '/v1/watchdog/nightly', { body: { interval_s: 300_000, webhook_url: HOOK } })
  t.equal(again.status, 200)
  t.same(again.body, { ...watchdog, server_now: again.body.server_now }, 'the same answer, without the secret')

  await pass(account, 100_000)
  const terms = { interval_s: 200_000, grace_s: 0, alert_after: 3, remind_every_s: 60 }
  const { body } = await putWatchdog(account, 'nightly', terms)
  t.match(body, { ...terms, state: 'new' })
  t.equal(seconds(body.due_at, watchdog.due_at), -100_000 - 100_000, 'counted from the first PUT')
  const shown = await show(account, 'nightly')
  t.same(shown, { ...body, server_now: shown.server_now })
  t.match((await account.call('GET', '/v1/watchdog')).body, { watchdogs: [{ name: 'nightly', interval_s: 200_000 }] })
  t.match((await account.call('GET', '/v1/usage')).body.used, { watchdogs: 1 })
})

t.test('the grace is the larger of 5 seconds and a tenth of the interval', async (t) => {
  const account = await harness.register({ tier: 'dev' })
  for (const [interval_s, grace_s] of [
    [10, 5],
    [50, 5],
    [51, 6],
    [2_592_000, 259_200],
  ]) {
    const body = { interval_s, webhook_url: HOOK }
    t.equal((await account.call('PUT', `/v1/watchdog/w${interval_s}`, { body })).body.grace_s, grace_s)
  }
})

t.test('invalid terms are refused, and so are URLs against the policy', async (t) => {
  const account = await harness.register({ tier: 'pro' })
  const wrong = [
    { interval_s: 9 },
    { interval_s: 2_592_001 },
    { interval_s: 60.5 },
    { interval_s: '60' },
    { interval_s: undefined },
    { grace_s: -1 },
    { grace_s: null },
    { alert_after: 0 },
    { alert_after: 101 },
    { remind_every_s: 59 },
    { webhook_url: undefined },
    { webhook_url: '' },
    { webhook_url: 'hook' },
    { webhook_url: 'http://example.com/' },
    { webhook_url: 'https://example.com:8443/' },
    { webhook_url: 'https://user@example.com/' },
    { webhook_url: 'https://localhost/' },
    { webhook_url: 'https://127.0.0.1/' },
    { webhook_url: 'https://0x7f000001/' },
    { webhook_url: 'https://[::ffff:10.0.0.1]/' },
    { webhook_url: 'https://169.254.169.254/latest/meta-data' },
    { webhook_url: 'https://hook.internal/' },
    { webhook_url: 'ftp://example.com/' },
    { webhook_url: `https://example.com/${'x'.repeat(2048)}` },
    ...['?t[]=1', 'a|b', '%zz', '%', '#a#b', '\u00fc'].map((tail) => ({ webhook_url: `https://example.com/${tail}` })),
    { surprise: 1 },
    { state: 'up' },
  ]
  for (const changes of wrong) {
    const answer = await putWatchdog(account, 'w', changes)
    t.equal(answer.status, 400, JSON.stringify(changes).slice(0, 60))
    t.equal(answer.body.error.code, 'invalid_request')
  }
  for (const webhook_url of ['http://localhost:3000/hook', 'https://localhost/'])
    t.match((await putWatchdog(account, 'w', { webhook_url })).body.error.message, 'FIXTURE_HOSTS', 'how to name it')
  for (const name of ['a b', 'a%2Fb', 'ü', '%00', 'x'.repeat(129)]) {
    t.equal((await putWatchdog(account, name)).status, 400, name)
    t.equal((await beat(account, name)).status, 400, name)
  }
  t.same((await account.call('GET', '/v1/watchdog')).body, { watchdogs: [] })
  for (const name of ['x'.repeat(128), '-._', 'A', 'a']) t.equal((await putWatchdog(account, name)).status, 201)
  const { watchdogs } = (await account.call('GET', '/v1/watchdog')).body
  t.same(
    watchdogs.map(({ name }: { name: string }) => name),
    ['-._', 'A', 'a', 'x'.repeat(128)],
  )
})

t.test('the free tier has one; deleting it makes room', async (t) => {
  const account = await harness.register()
  t.equal((await putWatchdog(account, 'one')).status, 201)
  const second = await putWatchdog(account, 'two')
  t.equal(second.status, 403)
  t.match(second.body.error, { code: 'tier_limit', message: /watchdogs.*free tier has 1/, retryable: false })
  t.equal((await beat(account, 'two')).status, 404)
  t.equal((await putWatchdog(account, 'one', { interval_s: 90 })).status, 200)
  t.equal((await account.call('DELETE', '/v1/watchdog/one')).status, 204)
  for (const [method, path] of [
    ['DELETE', '/v1/watchdog/one'],
    ['GET', '/v1/watchdog/one'],
    ['POST', '/v1/heartbeat/one'],
  ] as const)
    t.equal((await account.call(method, path)).status, 404)
  t.match((await account.call('GET', '/v1/usage')).body.used, { watchdogs: 0 })
  t.equal((await putWatchdog(account, 'two')).status, 201)
  const { rows } = await harness.tables.query(
    'select from webhooks where account_id = (select id from accounts where handle = $1)',
    [account.handle],
  )
  t.equal(rows.length, 1, 'the webhook was deleted with the watchdog')
})

t.test('thirty at once, through two processes: exactly one', async (t) => {
  await using other = await harness.openApiProcess()
  const account = await harness.register()
  const put = (n: number, path: string) =>
    (n % 2 ? harness : other).call('PUT', path, { key: account.key, body: { interval_s: 60, webhook_url: HOOK } })
  const many = Array.from({ length: 30 }, (_, n) => n)
  t.same(countBy(await Promise.all(many.map((n) => put(n, `/v1/watchdog/w${n}`)))), { 201: 1, 403: 29 })
  const another = await harness.register()
  const same = many.map((n) =>
    (n % 2 ? harness : other).call('PUT', '/v1/watchdog/same', {
      key: another.key,
      body: { interval_s: 60, webhook_url: HOOK },
    }),
  )
  const answers = await Promise.all(same)
  t.same(countBy(answers), { 200: 29, 201: 1 })
  t.equal(answers.filter(({ body }) => body.webhook_secret).length, 1)
})

t.test('a heartbeat moves the deadline by an interval', async (t) => {
  const account = await harness.register()
  const { created_at } = (await putWatchdog(account, 'w')).body
  await pass(account, 50_000)
  t.equal(seconds((await show(account, 'w')).due_at, created_at), 10_000)
  const answer = await beat(account, 'w')
  t.equal(answer.status, 200)
  const { due_at, server_now } = answer.body
  t.same(answer.body, { name: 'w', state: 'up', due_at, server_now })
  t.equal(seconds(due_at, server_now), 60_000)
  t.equal(answer.headers.get('cache-control'), 'no-store')
  t.match(await show(account, 'w'), { state: 'up', beats: 1, last_heartbeat_at: server_now, due_at })
  t.equal(seconds((await putWatchdog(account, 'w', { interval_s: 120_000 })).body.due_at, due_at), 60_000)
  t.match(await show(account, 'w'), { beats: 1, last_heartbeat_at: server_now }, 'a change keeps the heartbeats')

  await pass(account, 121_000)
  t.equal((await show(account, 'w')).state, 'late')
  t.equal((await beat(account, 'w', { note: 'slow \u{1F40C}' })).body.state, 'up')
  t.match(await show(account, 'w'), { beats: 2, note: 'slow \u{1F40C}' })
  for (const body of [{ note: 'x'.repeat(201) }, { note: 'a\nb' }, { note: '\ud800' }, { note: 7 }, { status: 'good' }])
    t.equal((await beat(account, 'w', body)).status, 400)
  t.equal((await beat(account, 'w', { note: '\u{1F40C}'.repeat(200) })).status, 200)
})

t.test('how the last 20 heartbeats came is kept', async (t) => {
  const account = await harness.register({ handle: 'strip' })
  await putWatchdog(account, 'job', { interval_s: 1000, grace_s: 100 })
  for (const seconds of [0, 999, 1050, 1200]) {
    await pass(account, seconds)
    await beat(account, 'job')
  }
  await beat(account, 'job', { status: 'fail' })
  const known = ['in_time', 'in_time', 'late', 'missed', 'failed']
  t.same((await show(account, 'job')).recent_beats, known, 'the oldest first')
  await account.call('POST', '/v1/watchdog/job/pause', { body: { paused: true } })
  await pass(account, 5000)
  await beat(account, 'job')
  t.same((await show(account, 'job')).recent_beats, [...known, 'in_time'], 'nothing is due while it is paused')
  for (let n = 0; n < 16; n++) await beat(account, 'job', { note: `${n}` })
  const [, , ...left] = known
  const { recent_beats, beats } = await show(account, 'job')
  t.same(recent_beats, [...left, ...Array(17).fill('in_time')])
  t.equal(beats, 22)
})

t.test('a key for heartbeats can do nothing else', async (t) => {
  const account = await harness.register()
  await putWatchdog(account, 'w')
  const { api_key: key } = (await account.call('POST', '/v1/api-keys', { body: { kind: 'heartbeat' } })).body
  t.equal((await harness.call('POST', '/v1/heartbeat/w', { key })).status, 200)
  for (const [method, path] of [
    ['GET', '/v1/watchdog'],
    ['GET', '/v1/watchdog/w'],
    ['DELETE', '/v1/watchdog/w'],
    ['POST', '/v1/watchdog/w/test'],
  ] as const)
    t.equal((await harness.call(method, path, { key })).status, 403, `${method} ${path}`)
  const stranger = await harness.register()
  t.equal((await beat(stranger, 'w')).status, 404)
})

t.test(
  'heartbeats at the same time: each is counted, each caller gets its own answer, and none writes the index',
  async (t) => {
    await using other = await harness.openApiProcess()
    const account = await harness.register({ tier: 'dev' })
    const names = Array.from({ length: 20 }, (_, n) => `w${n}`)
    for (const name of names) await putWatchdog(account, name)
    const checks = async () => {
      const { rows } = await harness.tables.query(
        `select name, beats::int, check_at from watchdogs
       where account_id = (select id from accounts where handle = $1) order by name`,
        [account.handle],
      )
      return rows as { name: string; beats: number; check_at: Date }[]
    }
    const before = await checks()
    const asked = Array.from({ length: 600 }, (_, n) => ({
      name: names[n % 21] ?? 'missing',
      desk: n % 2 ? harness : other,
    }))
    const answers = await Promise.all(
      asked.map(({ name, desk }) => desk.call('POST', `/v1/heartbeat/${name}`, { key: account.key })),
    )
    for (const [index, answer] of answers.entries()) {
      const { name } = asked[index]!
      if (name === 'missing') t.equal(answer.status, 404)
      else if (answer.status !== 200 || answer.body.name !== name) t.fail(`${answer.status} for ${name}`)
    }
    const after = await checks()
    for (const { name, beats } of after) t.equal(beats, asked.filter((one) => one.name === name).length, name)
    t.same(
      after.map(({ check_at }) => check_at),
      before.map(({ check_at }) => check_at),
    )
  },
)

t.test('heartbeats beyond the queue get 503 with Retry-After', async (t) => {
  const account = await harness.register()
  await putWatchdog(account, 'w')
  const { heartbeats } = harness.api
  const { add } = heartbeats
  heartbeats.add = () => Promise.reject(new BatchOverflowError('full'))
  t.teardown(() => {
    heartbeats.add = add
  })
  const answer = await beat(account, 'w')
  t.equal(answer.status, 503)
  t.match(answer.body.error, { code: 'capacity_exceeded', retryable: true })
  t.match(answer.headers.get('retry-after'), /^[1-4]$/)
})

t.test('while paused nothing is due; after resuming the clock starts afresh', async (t) => {
  const account = await harness.register()
  const pause = (body: object) => account.call('POST', '/v1/watchdog/w/pause', { body })
  await putWatchdog(account, 'w')
  await beat(account, 'w')
  await pass(account, 55_000)
  t.match((await pause({ paused: true })).body, { state: 'paused', due_at: null, paused_until: null })
  t.match((await beat(account, 'w')).body, { state: 'paused', due_at: null }, 'a heartbeat does not resume it')
  t.match((await putWatchdog(account, 'w', { interval_s: 90_000 })).body, { state: 'paused', due_at: null, beats: 2 })
  await pass(account, 1_000_000)
  const resumed = (await pause({ paused: false })).body
  t.equal(resumed.state, 'up')
  t.equal(seconds(resumed.due_at, resumed.server_now), 90_000)
  await pass(account, 30_000)
  t.equal(
    seconds((await pause({ paused: false })).body.due_at, resumed.due_at),
    -30_000,
    'after resuming its clock goes on',
  )

  const until = new Date(Date.now() + 3_600_000).toISOString()
  t.equal(Date.parse((await pause({ paused: true, until })).body.paused_until), Date.parse(until))
  for (const body of [
    { paused: true, until: '2020-01-01T00:00:00Z' },
    { paused: true, until: '0000-01-01T00:00:00Z' },
    { paused: true, until: '2099-01-01' },
    { paused: true, until: '2099-01-01T00:00:00+01:00' },
    { paused: false, until },
    { paused: 'yes' },
    {},
  ])
    t.equal((await pause(body)).status, 400, JSON.stringify(body))
  t.match(await show(account, 'w'), { state: 'paused' })
})

t.test('a test alert goes into the outbox with its receipt, and the number of waiting ones is limited', async (t) => {
  const account = await harness.register()
  await putWatchdog(account, 'w')
  const ask = (owner: Account = account) => owner.call('POST', '/v1/watchdog/w/test')
  const answer = await ask()
  t.equal(answer.status, 200)
  const { alert, attestation } = answer.body
  t.match(attestation, { label: 'watchdog.test', requested_by: 'watchdog' })
  t.match(await harness.alerts(account, 'w'), [
    { event_seq: 1, type: 'watchdog.test', serial: attestation.serial, body: { receipt: { attestation } } },
  ])
  t.match(alert, { type: 'watchdog.test', event_seq: 1, id: /^wh_[0-9a-f]{32}$/ })
  const answers = await Promise.all(Array.from({ length: 10 }, () => ask()))
  for (const { status } of answers) t.ok(status === 200 || status === 503)
  for (let n = 0; n < 20; n++) await ask()
  t.match((await ask()).body.error, { code: 'rate_limited' })
  const rows = await harness.alerts(account, 'w')
  t.equal(rows.length, 20)
  t.same(
    rows.map(({ event_seq }) => event_seq),
    rows.map((_, index) => index + 1),
  )
  t.match((await account.call('GET', '/v1/usage')).body.used, { receipts_today: 0 })
})
