// The operations on alerts over HTTP, for watchdogs and citation watches.
import { randomUUID } from 'node:crypto'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'
import t from 'tap'
import { KEEP_DAYS, pruneAlerts } from '../../server/alerts/outbox.ts'
import { openAlertHarness } from './harness.ts'
import { type Received, status } from './receiver.ts'

const harness = await openAlertHarness()
t.teardown(() => harness[Symbol.asyncDispose]())
const { front, receiver } = harness

async function ask(key: string, method: string, path: string, body?: object) {
  const answer = await fetch(front.url(path), {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as any }
}

/** An account with a watchdog whose alerts go to a new path. */
async function openWatchdog() {
  const handle = `h-${randomUUID()}`
  const { api_key } = (await ask('', 'POST', '/v1/register', { handle })).body
  const hook = `/${randomUUID()}`
  const path = '/v1/watchdog/nightly'
  const put = () => ask(api_key, 'PUT', path, { interval_s: 86_400, webhook_url: receiver.url(hook) })
  const { webhook_secret } = (await put()).body
  const call = (method: string, tail: string) => ask(api_key, method, `${path}${tail}`)
  return {
    secret: webhook_secret as string,
    put,
    call,
    list: async (query = '') => (await call('GET', `/alerts${query}`)).body,
    test: () => call('POST', '/test'),
    answer: (code: number) => receiver.answers.set(hook, status(code, { 'retry-after': '3600' })),
    received: () => receiver.received.filter((item) => item.path === hook),
  }
}

const isGood = (item: Received | undefined, secret: string) => {
  try {
    new Webhook(secret).verify(item!.body.toString(), item!.headers as Record<string, string>)
    return true
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false
    throw error
  }
}

t.test('the list: newest first, by pages, with bodies and attempts', async (t) => {
  const watchdog = await openWatchdog()
  t.same(await watchdog.list(), { webhook_state: 'active', alerts: [], next: null })
  watchdog.answer(503)
  for (let n = 0; n < 3; n++) await watchdog.test()
  await harness.deliver()
  watchdog.answer(200)
  await harness.hasten()
  await harness.deliver()
  const { alerts, next } = await watchdog.list()
  t.equal(next, null)
  t.same(
    alerts.map((alert: { event_seq: number }) => alert.event_seq),
    [3, 2, 1],
  )
  const [, , first] = alerts
  t.match(first, {
    id: watchdog.received()[0]?.headers['webhook-id'],
    type: 'watchdog.test',
    state: 'delivered',
    next_attempt_at: null,
    body: watchdog.received()[0]?.body.toString(),
    attempts: [
      { attempt: 1, status: 503, error: 'The receiver answered with status 503.' },
      { attempt: 2, status: 200, error: null },
    ],
  })
  t.equal(JSON.parse(first.body).receipt.attestation.serial, first.serial)
  for (const { at, ms } of first.attempts) {
    t.ok(Math.abs(Date.parse(at) - Date.now()) < 60_000, at)
    t.ok(Number.isInteger(ms) && ms >= 0)
  }
  const page = await watchdog.list('?limit=2')
  t.same([page.alerts.length, page.next], [2, 2])
  const rest = await watchdog.list(`?limit=2&before=${page.next}`)
  t.same([...page.alerts, ...rest.alerts], alerts)
  t.equal(rest.next, null)
  for (const query of ['?limit=0', '?limit=101', '?before=0', '?before=x', '?surprise=1'])
    t.equal((await watchdog.call('GET', `/alerts${query}`)).status, 400, query)
})

t.test('redelivery: the same alert again, in any state', async (t) => {
  const watchdog = await openWatchdog()
  await watchdog.test()
  await harness.deliver()
  const [{ id }] = (await watchdog.list()).alerts
  const again = () => watchdog.call('POST', `/alerts/${id}/redeliver`)

  await t.test('delivered', async (t) => {
    const { status, body } = await again()
    t.equal(status, 202)
    t.match(body, { id, state: 'delivered' })
    t.type(body.next_attempt_at, 'string')
    await again()
    await harness.deliver()
    const [first, second] = watchdog.received()
    t.equal(watchdog.received().length, 2, 'two redeliveries before a send are one')
    t.equal(second?.headers['webhook-id'], id)
    t.equal(second?.body.toString(), first?.body.toString())
    t.ok(isGood(second, watchdog.secret))
  })
  await t.test('a failed redelivery is not retried and changes no state', async (t) => {
    watchdog.answer(503)
    await again()
    await harness.deliver()
    await harness.hasten()
    await harness.deliver()
    t.equal(watchdog.received().length, 3)
    const { alerts, webhook_state } = await watchdog.list()
    t.match(alerts, [{ state: 'delivered', next_attempt_at: null, attempts: { length: 3 } }])
    t.equal(webhook_state, 'active', 'only a given-up alert makes it failing')
  })
  await t.test('discarded, at a webhook that stays disabled until a PUT', async (t) => {
    watchdog.answer(410)
    await watchdog.test()
    await harness.deliver()
    const [gone] = (await watchdog.list()).alerts
    t.match(gone, { state: 'discarded' })
    watchdog.answer(200)
    await watchdog.call('POST', `/alerts/${gone.id}/redeliver`)
    await harness.deliver()
    t.match(await watchdog.list(), { webhook_state: 'disabled', alerts: [{ id: gone.id, state: 'delivered' }] })
    await watchdog.put()
    t.match(await watchdog.list(), { webhook_state: 'active' })
  })
  await t.test('failed, and the webhook is active again', async (t) => {
    watchdog.answer(503)
    await watchdog.test()
    const [{ id: lost }] = (await watchdog.list()).alerts
    for (let attempt = 1; attempt <= 12; attempt++) {
      await harness.deliver()
      await harness.hasten()
    }
    t.match(await watchdog.list(), { webhook_state: 'failing', alerts: [{ id: lost, state: 'failed' }] })
    watchdog.answer(200)
    await watchdog.call('POST', `/alerts/${lost}/redeliver`)
    await harness.deliver()
    t.match(await watchdog.list(), {
      webhook_state: 'active',
      alerts: [{ state: 'delivered', attempts: { length: 13 } }],
    })
  })
  await t.test('pending: the first one is tried now; a settled one is sent before it and delays none', async (t) => {
    watchdog.answer(503)
    await watchdog.test()
    await watchdog.test()
    await harness.deliver()
    const [second, first] = (await watchdog.list()).alerts
    const before = watchdog.received().length
    await again()
    await harness.deliver()
    t.equal(watchdog.received().at(-1)?.headers['webhook-id'], id)
    t.equal(watchdog.received().length, before + 1, 'the pending one keeps its due time')
    await watchdog.call('POST', `/alerts/${second.id}/redeliver`)
    await harness.deliver()
    t.equal(watchdog.received().at(-1)?.headers['webhook-id'], first.id, 'still in order')
    watchdog.answer(200)
    await watchdog.call('POST', `/alerts/${first.id}/redeliver`)
    await harness.deliver()
    t.match((await watchdog.list()).alerts, [{ state: 'delivered' }, { state: 'delivered' }])
  })
  await t.test('a pruned or unknown alert is not found', async (t) => {
    await front.tables.query(`update alerts set settled_at = now() - $1 * interval '1 day' where id = $2`, [
      KEEP_DAYS + 1,
      id,
    ])
    await pruneAlerts(front.core.db)
    t.equal((await again()).status, 404)
    const other = await openWatchdog()
    await other.test()
    const [{ id: theirs }] = (await other.list()).alerts
    t.equal((await watchdog.call('POST', `/alerts/${theirs}/redeliver`)).status, 404, 'another watchdog has it')
  })
})

t.test('after a rotation the old secret signs too for a day', async (t) => {
  const watchdog = await openWatchdog()
  const rotate = async () => {
    const { status, body, headers } = await watchdog.call('POST', '/secret')
    t.equal(status, 200)
    t.equal(headers.get('cache-control'), 'no-store')
    return body as { webhook_secret: string; old_secrets_until: string }
  }
  const latest = async () => {
    await watchdog.test()
    await harness.deliver()
    return watchdog.received().at(-1)
  }
  const versions = (item: Received | undefined) =>
    String(item?.headers['webhook-signature'])
      .split(' ')
      .map((part) => part.split(',')[0])
  const secrets = [watchdog.secret]
  t.same(versions(await latest()), ['v1', 'v1a'])
  const { webhook_secret, old_secrets_until } = await rotate()
  secrets.unshift(webhook_secret)
  t.match(webhook_secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  t.ok(Math.abs(Date.parse(old_secrets_until) - Date.now() - 86_400_000) < 60_000)
  const both = await latest()
  t.same(versions(both), ['v1', 'v1', 'v1a'])
  t.same(
    secrets.map((secret) => isGood(both, secret)),
    [true, true],
  )

  for (let n = 0; n < 3; n++) secrets.unshift((await rotate()).webhook_secret)
  t.equal(new Set(secrets).size, 5)
  const many = await latest()
  t.same(
    secrets.map((secret) => isGood(many, secret)),
    [true, true, true, true, false],
    'three old ones at most',
  )
  await front.tables.query(`update webhooks set old_secrets_until = now() - interval '1 second' where old_secrets > 0`)
  const late = await latest()
  t.same(versions(late), ['v1', 'v1a'])
  t.same(
    secrets.map((secret) => isGood(late, secret)),
    [true, false, false, false, false],
  )
  secrets.unshift((await rotate()).webhook_secret)
  const last = await latest()
  t.same(
    secrets.map((secret) => isGood(last, secret)),
    [true, true, false, false, false, false],
  )
})
