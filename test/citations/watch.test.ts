// Citation watches through the whole service, its worker and its queue: a quote is watched while its page changes.
import { randomUUID } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import t from 'tap'
import { verifyAlert } from '../../client/alert.ts'
import { verifyAttestation } from '../../client/verification.ts'
import { subjectOf } from '../../server/alerts/format.ts'
import { CHANGE_BURST } from '../../server/citations/alerts.ts'
import { checkCitation } from '../../server/citations/check.ts'
import { testCitationWatch } from '../../server/citations/operations.ts'
import { openReceiver } from '../alerts/receiver.ts'
import { PAGE, payingFetch, type System, startSystem } from '../system.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
type Body = any

async function openAccount(system: System) {
  const call = async (method: string, path: string, body?: unknown, key?: string) => {
    const answer = await fetch(system.url(path), {
      method,
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), authorization: `Bearer ${key}` },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    const text = await answer.text()
    return { status: answer.status, body: (text ? JSON.parse(text) : null) as Body }
  }
  const { body } = await call('POST', '/v1/register', { handle: `h-${randomUUID()}` })
  return { call: (method: string, path: string, given?: unknown) => call(method, path, given, body.api_key) }
}

const buyHarbour = (system: System) => buy(system)

async function buy(system: System, body?: { source_url: string; claim: string }) {
  const key = randomUUID()
  const bought = await system.ask({ key, body, fetch: payingFetch(), headers: { prefer: 'wait=20' } })
  if (bought.status !== 200) throw new Error(await bought.text())
  const result = (await bought.json()) as Body
  return {
    result,
    named: {
      request_id: result.request_id,
      recovery_token: bought.headers.get('x-service-recovery-token') ?? '',
      evidence_id: 'e1',
    },
  }
}

const check = async (system: System) => {
  const [row] = await system.sql(`update citation_watches set check_at = now() returning id::text`)
  await checkCitation({ watch_id: row!.id as string }, system.service.work, new AbortController().signal)
}
const alertsOf = (system: System) => system.sql(`select * from alerts order by event_seq`) as Promise<Body[]>

t.test('changed, vanished, restored: one alert for each, with both digests and a receipt', async (t) => {
  await using system = await startSystem()
  const { call } = await openAccount(system)
  const { result, named } = await buyHarbour(system)
  const webhook_url = system.site.url('/hook')
  const made = await call('PUT', '/v1/citation-watch/harbour', { ...named, webhook_url, every_hours: 6 })
  t.equal(made.status, 201, JSON.stringify(made.body))
  t.match(made.body, {
    name: 'harbour',
    state: 'present',
    quote: result.evidence[0].quote,
    source_url: result.source.requested_url,
    every_hours: 6,
    last_check: null,
    last_seen: { text_sha256: result.source.text_sha256, start: result.evidence[0].start },
    webhook_secret: /^whsec_[A-Za-z0-9+/]{43}=$/,
  })
  const { webhook_secret: _, ...shown } = made.body
  t.same((await call('GET', '/v1/citation-watch/harbour')).body, shown)
  t.same((await call('GET', '/v1/citation-watch')).body, { citation_watches: [shown] })
  t.match((await call('GET', '/v1/usage')).body, { used: { citation_watches: 1 } })

  await check(system)
  t.match((await call('GET', '/v1/citation-watch/harbour')).body, {
    state: 'present',
    last_check: { outcome: 'present' },
  })
  t.same(await alertsOf(system), [])

  // The cache would give a young observation: the check must read the page as it is.
  const become = async (page: string) => {
    system.site.pages.set('/harbour', { body: page })
    await system.sql('delete from observations')
  }
  await become(`<p>Unrelated words come first.</p>${PAGE.replace('1874', '1875')}`)
  await check(system)
  await check(system)
  const [changed, ...more] = await alertsOf(system)
  t.same(more, [], 'once, however often the page is checked')
  t.match(changed, { type: 'citation.changed', state: 'pending', event_seq: '1' })
  const body = JSON.parse(changed.body)
  t.match(body.data, {
    citation: 'harbour',
    state: 'changed',
    previous: 'present',
    event_seq: 1,
    quote: result.evidence[0].quote,
    before: { text_sha256: result.source.text_sha256, content_sha256: result.source.content_sha256 },
    after: { outcome: 'changed', nearest: { quote: /1875/ } },
  })
  t.not(body.data.after.text_sha256, body.data.before.text_sha256)
  const { receipt, ...alert } = body
  t.equal(receipt.attestation.subject_sha256, subjectOf(alert))
  t.equal(String(receipt.attestation.serial), changed.serial)
  t.match(receipt.attestation, { requested_by: 'citation-watch', label: 'citation.changed' })
  const { keys } = (await call('GET', '/v1/keys')).body
  t.ok(verifyAttestation(receipt.attestation, { keys }).ok)

  await become('<p>This page is about something else entirely.</p>')
  await check(system)
  await become(PAGE)
  await check(system)
  t.same(
    (await alertsOf(system)).map(({ type, event_seq }) => `${event_seq} ${type}`),
    ['1 citation.changed', '2 citation.vanished', '3 citation.restored'],
  )
  t.match((await call('GET', '/v1/citation-watch/harbour')).body, { state: 'present', event_seq: 3 })
})

t.test('a page that alternates: twelve changes are alerted at once, and one more an hour', async (t) => {
  await using system = await startSystem()
  const { call } = await openAccount(system)
  const { named } = await buyHarbour(system)
  await call('PUT', '/v1/citation-watch/harbour', { ...named, webhook_url: system.site.url('/hook'), every_hours: 720 })
  const flip = async (n: number) => {
    system.site.pages.set('/harbour', { body: n % 2 ? PAGE : '<p>This page is about something else entirely.</p>' })
    await system.sql('delete from observations')
    await check(system)
    await system.sql(`update alerts set state = 'delivered', settled_at = now(), next_attempt_at = null
                      where state = 'pending'`)
  }
  const receipts = async () => (await system.sql('select count(*)::int n from receipts'))[0]!.n as number
  const before = await receipts()
  for (let n = 0; n < CHANGE_BURST + 3; n++) await flip(n)
  t.equal((await alertsOf(system)).length, CHANGE_BURST)
  t.equal(await receipts(), before + CHANGE_BURST)
  const shown = (await call('GET', '/v1/citation-watch/harbour')).body
  t.match(
    shown,
    { state: 'present', last_check: { outcome: 'vanished' } },
    'the check is recorded, and the state is the one that was alerted',
  )
  t.ok(Date.parse(shown.next_check_at) > Date.now() + 3_600_000, 'the next check comes after every_hours')
  await system.sql(`update citation_watches set flips_full_at = flips_full_at - interval '1 hour'`)
  await flip(CHANGE_BURST + 1)
  t.equal((await alertsOf(system)).length, CHANGE_BURST, 'the page is again in the alerted state')
  await flip(CHANGE_BURST + 2)
  t.match((await alertsOf(system)).slice(CHANGE_BURST), [{ type: 'citation.vanished' }])

  await system.sql('update alert_days set asked = 50')
  const refused = await call('POST', '/v1/citation-watch/harbour/test')
  t.equal(refused.status, 429)
  t.match(refused.body.error, { code: 'daily_limit' })
})

t.test('a changed page reaches a receiver that verifies the alert', async (t) => {
  await using receiver = await openReceiver(['hook.test', 'page.test'])
  const serve = (html: string) =>
    receiver.answers.set('/page', (response) => response.writeHead(200, { 'content-type': 'text/html' }).end(html))
  serve(PAGE)
  await using system = await startSystem({ env: receiver.env })
  const { call } = await openAccount(system)
  const body = { source_url: receiver.url('/page', 'page.test'), claim: 'The harbour was opened in 1874.' }
  const { named } = await buy(system, body)
  const webhook_url = receiver.url('/hook', 'hook.test')
  const made = await call('PUT', '/v1/citation-watch/harbour', { ...named, webhook_url })
  t.equal(made.status, 201)
  const { keys } = (await call('GET', '/v1/keys')).body

  const lookNow = async () => {
    // As if the minute between two checks were over.
    await system.sql(`update citation_watches set created_at = created_at - interval '1 hour', last_check =
      jsonb_set(last_check, '{checked_at}', '"2026-01-01T00:00:00Z"')`)
    await system.sql('delete from observations')
    t.equal((await call('POST', '/v1/citation-watch/harbour/check')).status, 200)
  }
  const received: Body[] = []
  for (const html of [PAGE.replace('1874', '1875'), '<p>Something else.</p>', PAGE]) {
    serve(html)
    await lookNow()
    const [item] = (await receiver.arrivals('/hook', received.length + 1)).slice(received.length)
    const headers = item!.headers as Record<string, string>
    const text = item!.body.toString()
    t.same(new Webhook(made.body.webhook_secret).verify(text, headers), JSON.parse(text), 'by the stock library')
    t.match(verifyAlert({ headers, body: item!.body, secret: made.body.webhook_secret, keys }), { ok: true })
    received.push(JSON.parse(text))
  }
  t.same(
    received.map(({ type, data }) => `${data.event_seq} ${type} ${data.previous}`),
    ['1 citation.changed present', '2 citation.vanished changed', '3 citation.restored vanished'],
  )
  t.equal(received[2].data.after.text_sha256, received[0].data.before.text_sha256, 'the page is the old one again')
  t.match((await call('GET', '/v1/citation-watch/harbour/alerts')).body, {
    alerts: [{ type: 'citation.restored' }, { type: 'citation.vanished' }, { type: 'citation.changed' }],
  })
})

t.test('a page that cannot be read is checked each hour, and alerted after three times', async (t) => {
  await using system = await startSystem()
  const { call } = await openAccount(system)
  const { named } = await buyHarbour(system)
  await call('PUT', '/v1/citation-watch/h', { ...named, webhook_url: system.site.url('/hook'), every_hours: 720 })
  system.site.pages.set('/harbour', { status: 404, body: 'gone' })
  await system.sql('delete from observations')
  for (const failures of [1, 2]) {
    await check(system)
    const { body } = await call('GET', '/v1/citation-watch/h')
    t.match(body, { state: 'present', failures, last_check: { outcome: 'unreadable', code: 'source_http_status' } })
    const hours = (Date.parse(body.next_check_at) - Date.now()) / 3_600_000
    t.ok(hours > 0.9 && hours < 1.1, `${hours}`)
    t.same(await alertsOf(system), [])
  }
  await check(system)
  t.match(await alertsOf(system), [{ type: 'citation.vanished' }])
  const { body } = await call('GET', '/v1/citation-watch/h')
  const hours = (Date.parse(body.next_check_at) - Date.now()) / 3_600_000
  t.ok(hours > 720 * 0.94 && hours < 720 * 1.06, `${hours}`)
  await check(system)
  t.equal((await alertsOf(system)).length, 1)
})

t.test('two workers that find the same change alert it once; a job of the queue makes the check', async (t) => {
  await using system = await startSystem()
  const { call } = await openAccount(system)
  const { named } = await buyHarbour(system)
  await call('PUT', '/v1/citation-watch/h', { ...named, webhook_url: system.site.url('/hook') })
  system.site.pages.set('/harbour', { body: '<p>Nothing is left.</p>' })
  await system.sql('delete from observations')
  const [row] = await system.sql(`update citation_watches set check_at = now() returning id::text`)
  const payload = { watch_id: row!.id as string }
  const { work } = system.service
  await Promise.all([1, 2, 3, 4].map(() => checkCitation(payload, work, new AbortController().signal)))
  t.equal((await alertsOf(system)).length, 1)

  const asked = await call('POST', '/v1/citation-watch/h/check')
  const wait = Date.parse(asked.body.next_check_at) - Date.parse(asked.body.last_check.checked_at)
  t.ok(wait >= 59_000 && wait <= 61_000, `${wait} ms after the last one, no sooner`)
})

t.test('invalid watches are refused', async (t) => {
  await using system = await startSystem()
  const { call } = await openAccount(system)
  const { named } = await buyHarbour(system)
  const webhook_url = system.site.url('/hook')
  const put = (body: object, name = 'h') => call('PUT', `/v1/citation-watch/${name}`, { webhook_url, ...body })
  t.match(await put({}), { status: 400, body: { error: { code: 'invalid_request' } } })
  t.match(await put({ request_id: named.request_id }), { status: 400 })
  t.match(await put({ ...named, recovery_token: 'crt_x' }), { status: 404 })
  t.match(await put({ ...named, request_id: randomUUID() }), { status: 404 })
  t.match(await put({ ...named, evidence_id: 'e6' }), { status: 400, body: { error: { message: /no evidence "e6"/ } } })
  t.match(await put({ ...named, webhook_url: 'https://10.0.0.1/' }), {
    status: 400,
    body: { error: { message: /^webhook_url: / } },
  })
  t.match(await put({ ...named, webhook_url: 'http://site.test/' }), { status: 400 })
  t.match(await put({ ...named, every_hours: 0 }), { status: 400 })
  t.match(await put({ ...named, every_hours: 721 }), { status: 400 })
  t.match(await put(named, 'sl%20ash'), { status: 400 })

  t.equal((await put(named)).status, 201)
  t.match(await put(named, 'second'), {
    status: 403,
    body: { error: { code: 'tier_limit', message: 'citation_watches: the free tier has 1 at a time.' } },
  })
  const stranger = await openAccount(system)
  t.equal((await stranger.call('GET', '/v1/citation-watch/h')).status, 404)
  t.equal((await stranger.call('DELETE', '/v1/citation-watch/h')).status, 404)

  await system.sql(`update citation_watches set state = 'changed'`)
  t.match(await put({ every_hours: 48 }), { status: 200, body: { every_hours: 48, state: 'changed' } })
  t.match(await put(named), { status: 200, body: { every_hours: 24, state: 'changed' } }, 'the same quote')
  t.notOk((await put({})).body.webhook_secret)
  t.equal((await call('DELETE', '/v1/citation-watch/h')).status, 204)
  t.same(await system.sql('select from webhooks'), [])
  t.equal((await put(named)).status, 201, 'there is room again')
  await system.sql(`update verification_requests set changed_at = changed_at - interval '1 day'`)
  t.match(
    await put(named),
    { status: 410, body: { error: { code: 'result_expired' } } },
    'past retention, not deleted yet',
  )
})

t.test('test alerts to a receiver that fails are limited', async (t) => {
  await using receiver = await openReceiver(['hook.test', 'page.test'])
  receiver.answers.set('/page', (response) => response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE))
  receiver.answers.set('/hook', (response) => response.writeHead(503, { 'retry-after': '3600' }).end())
  await using system = await startSystem({ env: receiver.env })
  const { call } = await openAccount(system)
  const body = { source_url: receiver.url('/page', 'page.test'), claim: 'The harbour was opened in 1874.' }
  const { named } = await buy(system, body)
  await call('PUT', '/v1/citation-watch/h', { ...named, webhook_url: receiver.url('/hook', 'hook.test') })
  const first = await call('POST', '/v1/citation-watch/h/test')
  t.same(testCitationWatch.output.parse(first.body), first.body)
  const tries = [first.status]
  for (let n = 1; n < 21; n++) tries.push((await call('POST', '/v1/citation-watch/h/test')).status)
  t.same(tries, [...Array(20).fill(200), 429])
  t.equal((await alertsOf(system)).length, 20)
})

t.test('a page cannot stop its own checks: a host that sends Retry-After counts as unreadable', async (t) => {
  await using system = await startSystem()
  const { call } = await openAccount(system)
  const { named } = await buyHarbour(system)
  await call('PUT', '/v1/citation-watch/harbour', { ...named, webhook_url: system.site.url('/hook'), every_hours: 6 })
  system.site.pages.set('/harbour', { status: 429, headers: { 'retry-after': '999999999' }, body: '' })
  await system.sql('delete from observations')
  for (let failures = 1; failures <= 3; failures++) {
    await check(system)
    const { body } = await call('GET', '/v1/citation-watch/harbour')
    t.match(body, {
      last_check: { outcome: 'unreadable', code: 'source_rate_limited', message: /429 .* 999999999 seconds/ },
      state: failures < 3 ? 'present' : 'vanished',
    })
    t.ok(Date.parse(body.next_check_at) < Date.now() + 7 * 3_600_000, `next at ${body.next_check_at}`)
  }
  const [alert] = await alertsOf(system)
  t.equal(alert.type, 'citation.vanished')
})
