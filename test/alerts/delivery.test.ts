// The requests that a receiver gets, and what happens to alerts whose receiver fails, for each way of failing.
import { createPublicKey, hash, verify } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import t from 'tap'
import { verifyAttestation } from '../../client/verification.ts'
import { SCHEDULE_SECONDS } from '../../server/alerts/schedule.ts'
import { updateWebhookUrl } from '../../server/alerts/webhooks.ts'
import { transact } from '../../server/db/pool.ts'
import { jcs } from '../client/issuer.ts'
import { openAlertHarness } from './harness.ts'
import { failing, failingFirst, type Received, status } from './receiver.ts'

const harness = await openAlertHarness()
t.teardown(() => harness[Symbol.asyncDispose]())
const { receiver, front } = harness
const { keys } = (await (await fetch(front.url('/v1/keys'))).json()) as {
  keys: { key_id: number; use: string; pubkey_hex: string }[]
}

const at = (path: string) => receiver.received.filter((item) => item.path === path)
const idOf = ({ headers }: Received) => headers['webhook-id']
const webhookKey = createPublicKey({
  key: Buffer.from(`302a300506032b6570032100${keys.find(({ use }) => use === 'webhook')?.pubkey_hex}`, 'hex'),
  format: 'der',
  type: 'spki',
})

/** By the stock library and by OpenSSL, not by this project's client. */
function check(t: import('tap').Test, item: Received, secret: string) {
  const text = item.body.toString()
  const headers = item.headers as Record<string, string>
  const body = new Webhook(secret).verify(text, headers) as Record<string, unknown>
  const [v1a = ''] = headers['webhook-signature']?.split(' ').filter((part) => part.startsWith('v1a,')) ?? []
  const signed = Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`)
  t.ok(verify(null, signed, webhookKey, Buffer.from(v1a.slice(4), 'base64')), 'v1a')
  return body
}

t.test('an alert: the bytes of the outbox, signed twice, with its receipt', async (t) => {
  const hook = await harness.makeHook()
  const [id] = await harness.raise(hook)
  await harness.deliver()
  const [item] = at(hook.path)
  const [row] = await harness.alerts(hook)
  t.match(item, { method: 'POST', host: 'hook.test' })
  t.equal(item?.body.toString(), row?.body)
  t.match(item?.headers, {
    'webhook-id': id,
    'content-type': 'application/json',
    'user-agent': /^Countersign-Alerts\//,
  })
  const names = item?.rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()) ?? []
  t.equal(new Set(names).size, names.length, 'no header twice')
  const { receipt, ...alert } = check(t, item!, hook.secret) as { receipt: { attestation: { subject_sha256: string } } }
  t.match(alert, { type: 'watchdog.missed', data: { event_seq: 1 } })
  t.equal(receipt.attestation.subject_sha256, hash('sha256', jcs(alert)))
  t.ok(verifyAttestation(receipt.attestation, { keys }).ok)
  t.match(row, { state: 'delivered', attempts: 1, wait_s: null, log: [204] })
  t.same(await harness.webhook(hook), { state: 'active', tried: true, slow: false, sender: null })
})

t.test('a failed alert is sent again: the same id and bytes, a new time, new signatures', async (t) => {
  const hook = await harness.makeHook()
  receiver.answers.set(hook.path, failingFirst(3))
  const [id] = await harness.raise(hook)
  for (let attempt = 1; attempt <= 4; attempt++) {
    await harness.deliver()
    const [row] = await harness.alerts(hook)
    if (attempt < 4) {
      t.match(row, { state: 'pending', attempts: attempt })
      t.ok(row!.wait_s! <= 3600, `${row?.wait_s} s`)
      t.match(await harness.webhook(hook), { state: 'active', slow: true })
    }
    await harness.hasten()
    harness.clock.aheadMs += 7000
  }
  harness.clock.aheadMs = 0
  const items = at(hook.path)
  t.equal(items.length, 4)
  for (const item of items) check(t, item, hook.secret)
  t.same(new Set(items.map(idOf)), new Set([id]))
  t.equal(new Set(items.map(({ body }) => body.toString())).size, 1)
  t.equal(new Set(items.map(({ headers }) => headers['webhook-timestamp'])).size, 4)
  t.equal(new Set(items.map(({ headers }) => headers['webhook-signature'])).size, 4)
  t.match(await harness.alerts(hook), [{ state: 'delivered', attempts: 4, log: [503, 503, 503, 200] }])
  t.same(await harness.webhook(hook), { state: 'active', tried: true, slow: false, sender: null })
})

t.test('an alert that is not due is not sent, however often the loop is woken', async (t) => {
  const hook = await harness.makeHook()
  receiver.answers.set(hook.path, failing)
  await harness.raise(hook)
  for (let pass = 0; pass < 3; pass++) await harness.deliver()
  t.equal(at(hook.path).length, 1)
})

t.test('in order: an alert is sent after the one before it is delivered or given up', async (t) => {
  const hook = await harness.makeHook()
  receiver.answers.set(hook.path, failingFirst(2))
  const ids = await harness.raise(hook, 3)
  await harness.deliver()
  ids.push(...(await harness.raise(hook, 1, 'watchdog.recovered')))
  await harness.deliver()
  t.match(await harness.alerts(hook), [{ attempts: 1 }, ...[2, 3, 4].map(() => ({ attempts: 0, wait_s: null }))])
  await harness.hasten()
  await harness.deliver()
  t.equal(at(hook.path).length, 2, 'only the first again')
  await harness.hasten()
  await harness.deliver()
  t.same(at(hook.path).map(idOf), [ids[0], ids[0], ...ids])
  t.ok(at(hook.path).every(({ besides }) => besides === 0))
  t.ok((await harness.alerts(hook)).every(({ state }) => state === 'delivered'))
})

t.test('after the last attempt the alert is given up, and the webhook is failing until a delivery', async (t) => {
  const hook = await harness.makeHook()
  receiver.answers.set(hook.path, failing)
  await harness.raise(hook, 2)
  for (let attempt = 1; attempt <= SCHEDULE_SECONDS.length; attempt++) {
    t.match(await harness.webhook(hook), { state: 'active' })
    await harness.hasten()
    await harness.deliver()
  }
  const [first, second] = await harness.alerts(hook)
  t.match(first, { state: 'failed', attempts: 12, wait_s: null })
  t.match(second, { state: 'pending', attempts: 1 }, 'the next one is sent')
  t.match(await harness.webhook(hook), { state: 'failing' })
  receiver.answers.delete(hook.path)
  await harness.hasten()
  await harness.deliver()
  t.match((await harness.alerts(hook))[1], { state: 'delivered' })
  t.match(await harness.webhook(hook), { state: 'active', slow: false })
})

t.test('a redirect is a failure, and is not followed', async (t) => {
  const hook = await harness.makeHook()
  for (const code of [301, 302, 303, 307, 308, 304])
    await t.test(String(code), async (t) => {
      receiver.answers.set(hook.path, status(code, { location: receiver.url('/elsewhere') }))
      const [id] = await harness.raise(hook)
      await harness.deliver()
      const row = (await harness.alerts(hook)).find((alert) => alert.id === id)
      t.match(row, { state: 'pending', log: [code] })
      receiver.answers.delete(hook.path)
      await harness.hasten()
      await harness.deliver()
    })
  t.same(at('/elsewhere'), [])
})

for (const [name, answer] of [
  ['410', status(410)],
  ['webhook-delivery: disable', status(500, { 'webhook-delivery': 'disable' })],
] as const)
  t.test(`${name}: nothing more is sent until a PUT with a URL`, async (t) => {
    const hook = await harness.makeHook()
    receiver.answers.set(hook.path, answer)
    await harness.raise(hook, 2)
    await harness.deliver()
    t.match(await harness.webhook(hook), { state: 'disabled', sender: null })
    t.match(await harness.alerts(hook), [
      { state: 'discarded', attempts: 1, wait_s: null },
      { state: 'discarded', attempts: 0, wait_s: null },
    ])
    receiver.answers.delete(hook.path)
    await harness.raise(hook)
    await harness.deliver()
    t.match((await harness.alerts(hook))[2], { state: 'discarded', attempts: 0 }, 'it is on record')
    t.equal(at(hook.path).length, 1)
    const lines = front.logged.filter((line) => line.event === 'alerts_discarded' && line.webhook_id === hook.id)
    t.match(lines, [{ alerts: 1 }, { alerts: 1 }])
    await transact(front.core.db, (tx) => updateWebhookUrl(tx, hook.id, hook.url))
    const [id] = await harness.raise(hook)
    await harness.deliver()
    t.same(at(hook.path).map(idOf).slice(1), [id], 'new alerts only, not the discarded ones')
    t.match(await harness.webhook(hook), { state: 'active' })
  })

t.test('a 200 with webhook-delivery: disable is a delivery and disables the webhook', async (t) => {
  const hook = await harness.makeHook()
  receiver.answers.set(hook.path, status(200, { 'webhook-delivery': 'disable' }))
  await harness.raise(hook, 2)
  await harness.deliver()
  t.match(await harness.alerts(hook), [{ state: 'delivered' }, { state: 'discarded' }])
  t.match(await harness.webhook(hook), { state: 'disabled' })
})

t.test('the wait is that of the schedule, or that of Retry-After with 429 and 503, up to an hour', async (t) => {
  const inFiveMinutes = () => new Date(Date.now() + 300_000).toUTCString()
  for (const [code, retryAfter, least, most] of [
    [500, '120', 4, 6],
    [404, '120', 4, 6],
    [429, '120', 120, 120],
    [503, '120', 120, 120],
    [503, inFiveMinutes(), 200, 300],
    [429, '999999', 3600, 3600],
    [429, '0', 4, 6],
    [429, 'soon', 4, 6],
  ] as const) {
    const hook = await harness.makeHook()
    receiver.answers.set(hook.path, status(code, { 'retry-after': retryAfter }))
    const [id] = await harness.raise(hook)
    await harness.deliver()
    const line = front.logged.find((one) => one.event === 'alert_attempt' && one.alert_id === id)
    const seconds = Number(line?.retry_s)
    t.ok(least <= seconds && seconds <= most, `${code}, Retry-After ${retryAfter}: ${seconds} s`)
    t.ok((await harness.alerts(hook))[0]!.wait_s! <= seconds + 1)
  }
})

t.test('a delivery that looked failed is repeated with the same id', async (t) => {
  const hook = await harness.makeHook()
  const [id] = await harness.raise(hook)
  let deaf = true
  receiver.answers.set(hook.path, (response) => {
    if (deaf) response.socket?.destroy()
    else response.writeHead(200).end()
  })
  await harness.deliver()
  t.match(await harness.alerts(hook), [{ state: 'pending', log: [/broke off/] }])
  deaf = false
  await harness.hasten()
  await harness.deliver()
  t.match(await harness.alerts(hook), [{ state: 'delivered', attempts: 2 }])
  t.same(at(hook.path).map(idOf), [id, id])
})

t.test('the status and the headers are the answer; the body is not waited for', async (t) => {
  for (const [answer, log] of [
    ['HTTP/1.1 200 OK\r\nContent-Len', /broke off/],
    ['HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc', 200],
    ['HTTP/1.1 500 x\r\nContent-Length: 100\r\n\r\nabc', 500],
    ['nonsense\r\n\r\n', /valid HTTP/],
    [`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`, /headers/],
  ] as const) {
    const hook = await harness.makeHook()
    receiver.answers.set(hook.path, (response) => response.socket?.end(answer))
    await harness.raise(hook)
    await harness.deliver()
    t.match(await harness.alerts(hook), [{ log: [log] }], answer.slice(0, 50))
  }
})

t.test('each attempt has a connection of its own', async (t) => {
  const hook = await harness.makeHook()
  await harness.raise(hook, 3)
  await harness.deliver()
  t.equal(at(hook.path).length, 3)
  t.equal(new Set(at(hook.path).map(({ port }) => port)).size, 3)
  t.ok(at(hook.path).every(({ headers }) => headers.connection === 'close'))
})

t.test('a webhook that is deleted during a send leaves no rows', async (t) => {
  const hook = await harness.makeHook()
  receiver.answers.set(hook.path, async (response) => {
    await front.tables.query('delete from webhooks where id = $1', [hook.id])
    response.writeHead(200).end()
  })
  await harness.raise(hook, 2)
  await harness.deliver()
  t.equal(at(hook.path).length, 1)
  t.same(await harness.alerts(hook), [])
})

t.test('the outcome of each attempt is counted', async (t) => {
  const metrics = await front.core.metrics.registry.metrics()
  for (const outcome of ['delivered', 'retry', 'given_up', 'unwanted'])
    t.match(metrics, new RegExp(`countersign_alert_attempts_total\\{outcome="${outcome}"\\} [1-9]`))
})
