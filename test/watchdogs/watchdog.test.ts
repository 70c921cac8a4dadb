// Watchdogs over HTTP: what is asked for, what is answered, who is refused, and what happens at the same time.
import t from 'tap'
import { BatchOverflowError } from '../../server/db/batch.ts'
import type { Account, Answer } from '../accounts/harness.ts'
import { HOOK, openKennel } from './harness.ts'

const kennel = await openKennel()
t.teardown(() => kennel[Symbol.asyncDispose]())
const { guard, beat, show, pass } = kennel

const countBy = (answers: Answer[]) =>
  Object.fromEntries(
    Object.entries(Object.groupBy(answers, ({ status }) => status)).map(([status, group]) => [status, group?.length]),
  )
/** To the millisecond: only for moments that come from one reading of the clock. */
const seconds = (later: string, earlier: string) => (Date.parse(later) - Date.parse(earlier)) / 1000
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/

t.test('made and changed: the clock starts with the first PUT and goes on through the others', async (t) => {
  const account = await kennel.register({ handle: 'kelby' })
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
    note: null,
    down_since: null,
    paused_until: null,
    event_seq: 0,
    created_at: watchdog.created_at,
    webhook_url: HOOK,
    webhook_state: 'active',
    server_now: watchdog.server_now,
  })
  for (const moment of [watchdog.due_at, watchdog.created_at, watchdog.server_now]) t.match(moment, MOMENT)
  t.equal(seconds(watchdog.due_at, watchdog.created_at), 300_000)

  const again = await account.call('PUT', '/v1/watchdog/nightly', { body: { interval_s: 300_000, webhook_url: HOOK } })
  t.equal(again.status, 200)
  t.same(again.body, { ...watchdog, server_now: again.body.server_now }, 'the same again, and no secret')

  await pass(account, 100_000)
  const terms = { interval_s: 200_000, grace_s: 0, alert_after: 3, remind_every_s: 60 }
  const { body } = await guard(account, 'nightly', terms)
  t.match(body, { ...terms, state: 'new' })
  t.equal(seconds(body.due_at, watchdog.due_at), -100_000 - 100_000, 'counted from when it was made')
  const shown = await show(account, 'nightly')
  t.same(shown, { ...body, server_now: shown.server_now })
  t.match((await account.call('GET', '/v1/watchdog')).body, { watchdogs: [{ name: 'nightly', interval_s: 200_000 }] })
  t.match((await account.call('GET', '/v1/usage')).body.used, { watchdogs: 1 })
})

t.test('the grace is the larger of 5 seconds and a tenth of the interval', async (t) => {
  const account = await kennel.register({ tier: 'dev' })
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

t.test('terms outside the rules are refused, and so are addresses outside the gate', async (t) => {
  const account = await kennel.register({ tier: 'pro' })
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
    { surprise: 1 },
    { state: 'up' },
  ]
  for (const changes of wrong) {
    const answer = await guard(account, 'w', changes)
    t.equal(answer.status, 400, JSON.stringify(changes).slice(0, 60))
    t.equal(answer.body.error.code, 'invalid_request')
  }
  for (const name of ['a b', 'a%2Fb', 'ü', '%00', 'x'.repeat(129)]) {
    t.equal((await guard(account, name)).status, 400, name)
    t.equal((await beat(account, name)).status, 400, name)
  }
  t.same((await account.call('GET', '/v1/watchdog')).body, { watchdogs: [] })
  for (const name of ['x'.repeat(128), '-._', 'A', 'a']) t.equal((await guard(account, name)).status, 201)
  const { watchdogs } = (await account.call('GET', '/v1/watchdog')).body
  t.same(
    watchdogs.map(({ name }: { name: string }) => name),
    ['-._', 'A', 'a', 'x'.repeat(128)],
  )
})

t.test('the free tier has one; what is deleted makes room', async (t) => {
  const account = await kennel.register()
  t.equal((await guard(account, 'one')).status, 201)
  const second = await guard(account, 'two')
  t.equal(second.status, 403)
  t.match(second.body.error, { code: 'tier_limit', message: /watchdogs.*free tier has 1/, retryable: false })
  t.equal((await beat(account, 'two')).status, 404)
  t.equal((await guard(account, 'one', { interval_s: 90 })).status, 200)
  t.equal((await account.call('DELETE', '/v1/watchdog/one')).status, 204)
  for (const [method, path] of [
    ['DELETE', '/v1/watchdog/one'],
    ['GET', '/v1/watchdog/one'],
    ['POST', '/v1/heartbeat/one'],
  ] as const)
    t.equal((await account.call(method, path)).status, 404)
  t.match((await account.call('GET', '/v1/usage')).body.used, { watchdogs: 0 })
  t.equal((await guard(account, 'two')).status, 201)
  const { rows } = await kennel.tables.query(
    'select from webhooks where account_id = (select id from accounts where handle = $1)',
    [account.handle],
  )
  t.equal(rows.length, 1, 'the webhook went with the watchdog')
})

t.test('thirty at once, through two processes: exactly one', async (t) => {
  await using other = await kennel.openApiProcess()
  const account = await kennel.register()
  const put = (n: number, path: string) =>
    (n % 2 ? kennel : other).call('PUT', path, { key: account.key, body: { interval_s: 60, webhook_url: HOOK } })
  const many = Array.from({ length: 30 }, (_, n) => n)
  t.same(countBy(await Promise.all(many.map((n) => put(n, `/v1/watchdog/w${n}`)))), { 201: 1, 403: 29 })
  const another = await kennel.register()
  const same = many.map((n) =>
    (n % 2 ? kennel : other).call('PUT', '/v1/watchdog/same', {
      key: another.key,
      body: { interval_s: 60, webhook_url: HOOK },
    }),
  )
  const answers = await Promise.all(same)
  t.same(countBy(answers), { 200: 29, 201: 1 })
  t.equal(answers.filter(({ body }) => body.webhook_secret).length, 1)
})

t.test('a heartbeat puts the deadline off by an interval', async (t) => {
  const account = await kennel.register()
  const { created_at } = (await guard(account, 'w')).body
  await pass(account, 50_000)
  t.equal(seconds((await show(account, 'w')).due_at, created_at), 10_000)
  const answer = await beat(account, 'w')
  t.equal(answer.status, 200)
  const { due_at, server_now } = answer.body
  t.same(answer.body, { name: 'w', state: 'up', due_at, server_now })
  t.equal(seconds(due_at, server_now), 60_000)
  t.equal(answer.headers.get('cache-control'), 'no-store')
  t.match(await show(account, 'w'), { state: 'up', beats: 1, last_heartbeat_at: server_now, due_at })
  t.equal(seconds((await guard(account, 'w', { interval_s: 120_000 })).body.due_at, due_at), 60_000)
  t.match(await show(account, 'w'), { beats: 1, last_heartbeat_at: server_now }, 'a change forgets no heartbeat')

  await pass(account, 121_000)
  t.equal((await show(account, 'w')).state, 'late')
  t.equal((await beat(account, 'w', { note: 'slow \u{1F40C}' })).body.state, 'up')
  t.match(await show(account, 'w'), { beats: 2, note: 'slow \u{1F40C}' })
  for (const body of [{ note: 'x'.repeat(201) }, { note: 'a\nb' }, { note: '\ud800' }, { note: 7 }, { status: 'good' }])
    t.equal((await beat(account, 'w', body)).status, 400)
  t.equal((await beat(account, 'w', { note: '\u{1F40C}'.repeat(200) })).status, 200)
})

t.test('a key for heartbeats sends them and nothing else', async (t) => {
  const account = await kennel.register()
  await guard(account, 'w')
  const { api_key: key } = (await account.call('POST', '/v1/api-keys', { body: { kind: 'heartbeat' } })).body
  t.equal((await kennel.call('POST', '/v1/heartbeat/w', { key })).status, 200)
  for (const [method, path] of [
    ['GET', '/v1/watchdog'],
    ['GET', '/v1/watchdog/w'],
    ['DELETE', '/v1/watchdog/w'],
    ['POST', '/v1/watchdog/w/test'],
  ] as const)
    t.equal((await kennel.call(method, path, { key })).status, 403, `${method} ${path}`)
  const stranger = await kennel.register()
  t.equal((await beat(stranger, 'w')).status, 404)
})

t.test('heartbeats at once: each is counted, each caller hears of its own, and none touches the index', async (t) => {
  await using other = await kennel.openApiProcess()
  const account = await kennel.register({ tier: 'dev' })
  const names = Array.from({ length: 20 }, (_, n) => `w${n}`)
  for (const name of names) await guard(account, name)
  const checks = async () => {
    const { rows } = await kennel.tables.query(
      `select name, beats::int, check_at from watchdogs
       where account_id = (select id from accounts where handle = $1) order by name`,
      [account.handle],
    )
    return rows as { name: string; beats: number; check_at: Date }[]
  }
  const before = await checks()
  const asked = Array.from({ length: 600 }, (_, n) => ({
    name: names[n % 21] ?? 'nobody',
    desk: n % 2 ? kennel : other,
  }))
  const answers = await Promise.all(
    asked.map(({ name, desk }) => desk.call('POST', `/v1/heartbeat/${name}`, { key: account.key })),
  )
  for (const [index, answer] of answers.entries()) {
    const { name } = asked[index]!
    if (name === 'nobody') t.equal(answer.status, 404)
    else if (answer.status !== 200 || answer.body.name !== name) t.fail(`${answer.status} for ${name}`)
  }
  const after = await checks()
  for (const { name, beats } of after) t.equal(beats, asked.filter((one) => one.name === name).length, name)
  t.same(
    after.map(({ check_at }) => check_at),
    before.map(({ check_at }) => check_at),
  )
})

t.test('more heartbeats than can be taken on get 503 and the advice to come back', async (t) => {
  const account = await kennel.register()
  await guard(account, 'w')
  const { heartbeats } = kennel.api
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

t.test('paused nothing is due; resumed the clock starts afresh', async (t) => {
  const account = await kennel.register()
  const pause = (body: object) => account.call('POST', '/v1/watchdog/w/pause', { body })
  await guard(account, 'w')
  await beat(account, 'w')
  await pass(account, 55_000)
  t.match((await pause({ paused: true })).body, { state: 'paused', due_at: null, paused_until: null })
  t.match((await beat(account, 'w')).body, { state: 'paused', due_at: null }, 'a heartbeat does not resume it')
  t.match((await guard(account, 'w', { interval_s: 90_000 })).body, { state: 'paused', due_at: null, beats: 2 })
  await pass(account, 1_000_000)
  const resumed = (await pause({ paused: false })).body
  t.equal(resumed.state, 'up')
  t.equal(seconds(resumed.due_at, resumed.server_now), 90_000)
  await pass(account, 30_000)
  t.equal(
    seconds((await pause({ paused: false })).body.due_at, resumed.due_at),
    -30_000,
    'once resumed its clock goes on',
  )

  const until = new Date(Date.now() + 3_600_000).toISOString()
  t.equal(Date.parse((await pause({ paused: true, until })).body.paused_until), Date.parse(until))
  for (const body of [
    { paused: true, until: '2020-01-01T00:00:00Z' },
    { paused: true, until: '2099-01-01' },
    { paused: true, until: '2099-01-01T00:00:00+01:00' },
    { paused: false, until },
    { paused: 'yes' },
    {},
  ])
    t.equal((await pause(body)).status, 400, JSON.stringify(body))
  t.match(await show(account, 'w'), { state: 'paused' })
})

t.test('a test alert goes into the outbox with its receipt, and tests are not piled up', async (t) => {
  const account = await kennel.register()
  await guard(account, 'w')
  const ask = (owner: Account = account) => owner.call('POST', '/v1/watchdog/w/test')
  const answer = await ask()
  t.equal(answer.status, 200)
  const { alert, attestation } = answer.body
  t.match(attestation, { label: 'watchdog.test', requested_by: 'watchdog' })
  t.match(await kennel.alerts(account, 'w'), [
    { event_seq: 1, type: 'watchdog.test', serial: attestation.serial, body: { receipt: { attestation } } },
  ])
  t.match(alert, { type: 'watchdog.test', event_seq: 1, id: /^wh_[0-9a-f]{32}$/ })
  const answers = await Promise.all(Array.from({ length: 10 }, () => ask()))
  for (const { status } of answers) t.ok(status === 200 || status === 503)
  for (let n = 0; n < 20; n++) await ask()
  t.match((await ask()).body.error, { code: 'rate_limited' })
  const rows = await kennel.alerts(account, 'w')
  t.equal(rows.length, 20)
  t.same(
    rows.map(({ event_seq }) => event_seq),
    rows.map((_, index) => index + 1),
  )
  t.match((await account.call('GET', '/v1/usage')).body.used, { receipts_today: 0 })
})
