// Accounts over HTTP: registration, keys and their rotation, and what an account uses of its tier.
import { createHash, randomUUID } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import t from 'tap'
import { RESERVED_HANDLES } from '../../server/accounts/registration.ts'
import { catalog } from '../../server/catalog.ts'
import { buildDocument } from '../../server/http/openapi.ts'
import { type Answer, openAccountHarness } from './harness.ts'

const GUIDE = readFileSync(new URL('../../docs/guide/control-toolkit.md', import.meta.url), 'utf8')
const harness = await openAccountHarness()
t.teardown(() => harness[Symbol.asyncDispose]())

const FREE = {
  active_leases: 1,
  lease_acts_per_day: 4000,
  receipts_per_day: 10,
  watchdogs: 1,
  watchdog_alerts_per_day: 50,
  citation_watches: 1,
  quote_check_pages_per_day: 25,
  quote_checks_in_flight: 4,
  journal_slots: 4,
  journal_bytes: 262_144,
  api_keys: 20,
  heartbeats_per_minute: 120,
  receipts_per_minute: 120,
  calls_per_minute: 600,
  checkouts_per_hour: 20,
}
const subject = (n: number) => createHash('sha256').update(`${n}`).digest('hex')

t.test('registration: a handle, a key that is shown once, the tier and its limits', async (t) => {
  const answer = await harness.call('POST', '/v1/register', { body: { handle: 'kelby_1-a' } })
  t.equal(answer.status, 201)
  const { api_key, ...rest } = answer.body
  t.same(rest, { handle: 'kelby_1-a', tier: 'free', limits: FREE })
  t.match(api_key, /^ctk_[0-9A-Za-z]{43}[0-9A-Za-z]{6}$/)
  t.equal((await harness.call('GET', '/v1/usage', { key: api_key })).status, 200)
  const { rows } = await harness.tables.query(
    'select k::text row from api_keys k union all select a::text from accounts a',
  )
  t.ok(rows.length > 0 && rows.every(({ row }) => !row.includes(api_key.slice(4))), 'the key itself is stored nowhere')

  const taken = await harness.call('POST', '/v1/register', { body: { handle: 'kelby_1-a' } })
  t.equal(taken.status, 409)
  t.equal(taken.body.error.code, 'handle_taken')
  for (const handle of ['', 'Kelby', '-a', '_a', 'a b', 'a.b', 'é', 'a'.repeat(65), 'a\n', null, 7])
    t.equal((await harness.call('POST', '/v1/register', { body: { handle } })).status, 400, `${handle}`.slice(0, 9))
  for (const handle of ['a'.repeat(64), '0', 'z-_'])
    t.equal((await harness.call('POST', '/v1/register', { body: { handle } })).status, 201, handle.slice(0, 9))
})

t.test('twenty registrations of one handle at once: one', async (t) => {
  const body = { handle: 'wanted' }
  const answers = await Promise.all(Array.from({ length: 20 }, () => harness.call('POST', '/v1/register', { body })))
  t.equal(answers.filter((answer) => answer.status === 201).length, 1)
  t.equal(answers.filter((answer) => answer.status === 409).length, 19)
})

t.test('the list of keys leaves out the keys; a key ends at once or at the given time', async (t) => {
  const account = await harness.register()
  const make = async (body: object) => (await account.call('POST', '/v1/api-keys', { body })).body
  const [full, beat] = [await make({ kind: 'full', label: 'next' }), await make({ kind: 'heartbeat' })]
  const listed = (await account.call('GET', '/v1/api-keys')).body.api_keys
  t.same(
    listed.map(({ kind, label }: Answer['body']) => ({ kind, label })),
    [
      { kind: 'full', label: 'registration' },
      { kind: 'full', label: 'next' },
      { kind: 'heartbeat', label: null },
    ],
  )
  t.notMatch(JSON.stringify(listed), /ctk_/)

  const old = listed[0].id
  const overlap = await account.call('POST', `/v1/api-keys/${old}/revoke`, { body: { after_s: 3600 } })
  t.equal(overlap.body.ends_at, new Date(harness.clock.now + 3_600_000).toISOString())
  t.equal((await account.call('GET', '/v1/usage')).status, 200, 'the old key works until its end')
  t.equal((await harness.call('POST', `/v1/api-keys/${old}/revoke`, { key: full.api_key })).status, 200)
  t.equal((await account.call('GET', '/v1/usage')).status, 401, 'and not afterwards')
  t.equal((await harness.call('GET', '/v1/usage', { key: full.api_key })).status, 200)
  t.equal((await harness.call('POST', `/v1/api-keys/${old}/revoke`, { key: full.api_key })).status, 404)
  t.equal((await harness.call('GET', '/v1/usage', { key: beat.api_key })).status, 403)
  for (const body of [{ kind: 'root' }, { kind: 'full', label: 'a\u0000b' }, { kind: 'full', label: 'x'.repeat(101) }])
    t.equal((await harness.call('POST', '/v1/api-keys', { key: full.api_key, body })).status, 400)
})

t.test('twenty keys at a time; ended keys do not count and are not listed', async (t) => {
  const account = await harness.register()
  const make = () => account.call('POST', '/v1/api-keys', { body: { kind: 'heartbeat' } })
  const made = await Promise.all(Array.from({ length: 30 }, make))
  t.equal(made.filter(({ status }) => status === 201).length, 19, 'twenty, with the first key')
  const refused = made.find(({ status }) => status !== 201)!
  t.match(refused, { status: 403, body: { error: { code: 'tier_limit', message: /^api_keys: .* 20 / } } })
  const { id } = made.find(({ status }) => status === 201)!.body
  await account.call('POST', `/v1/api-keys/${id}/revoke`, { body: { after_s: 3600 } })
  t.equal((await make()).status, 403, 'a key that is due to end still counts')
  await harness.tables.query(`update api_keys set expires_at = now() - interval '1 second' where id = $1`, [id])
  const listed = async () => (await account.call('GET', '/v1/api-keys')).body.api_keys.length
  t.equal(await listed(), 19)
  t.equal((await account.call('GET', '/v1/usage')).body.used.api_keys, 19)
  t.equal((await make()).status, 201)
  t.equal(await listed(), 20)
  const { rows } = await harness.tables.query('select from api_keys where id = $1', [id])
  t.same(rows, [], 'it is gone')
})

t.test('a reserved handle is refused with its reason, and is documented', async (t) => {
  const description = buildDocument({ config: harness.api.config }, catalog).paths['/v1/register']?.post as {
    description: string
  }
  for (const handle of RESERVED_HANDLES) {
    const { status, body } = await harness.call('POST', '/v1/register', { body: { handle } })
    t.equal(status, 409)
    t.match(body.error, { code: 'handle_taken', message: `The handle ${handle} is reserved`, retryable: false })
    t.match(description.description, handle)
    t.ok(GUIDE.includes(`\`${handle}\``), `${handle} is in the guide`)
  }
})

t.test('every name by which the service asks for receipts of its own is reserved', (t) => {
  const server = new URL('../../server/', import.meta.url)
  const sources = globSync('**/*.ts', { cwd: server }).map((file) => readFileSync(new URL(file, server), 'utf8'))
  const names = sources.flatMap((text) =>
    [...text.matchAll(/(?:requestedBy: |REQUESTED_BY = )'([a-z-]+)'/g)].map(([, name = '']) => name),
  )
  t.ok(names.length >= 5, names.join(', '))
  t.same(
    names.filter((name) => !RESERVED_HANDLES.includes(name)),
    [],
  )
  t.end()
})

t.test('usage: the numbers that the limits count, and the end of the day', async (t) => {
  const account = await harness.register()
  const usage = async () => (await account.call('GET', '/v1/usage')).body
  const empty = await usage()
  const midnight = new Date(Math.ceil((Date.now() + 1) / 86_400_000) * 86_400_000)
  t.same(empty, {
    handle: account.handle,
    tier: 'free',
    limits: FREE,
    used: {
      active_leases: 0,
      lease_acts_today: 0,
      receipts_today: 0,
      watchdogs: 0,
      watchdog_alerts_today: 0,
      citation_watches: 0,
      quote_check_pages_today: 0,
      quote_checks_in_flight: 0,
      journal_slots: 0,
      journal_bytes: 0,
      api_keys: 1,
    },
    resets_at: midnight.toISOString().replace('.000Z', 'Z'),
    subscription: null,
  })
  const terms = { agent: 'a', action: 'b', ttl_s: 60, lim: '' }
  const { lease } = (await account.call('POST', '/v1/lease', { body: terms })).body
  await account.call('POST', `/v1/lease/${lease.lease_id}/renew`)
  await account.call('POST', '/v1/receipt', { body: { subject_sha256: subject(0) } })
  await account.call('PUT', '/v1/journal/a', { body: Buffer.from('x') })
  t.same((await usage()).used, {
    active_leases: 1,
    lease_acts_today: 2,
    receipts_today: 1,
    watchdogs: 0,
    watchdog_alerts_today: 0,
    citation_watches: 0,
    quote_check_pages_today: 0,
    quote_checks_in_flight: 0,
    journal_slots: 1,
    journal_bytes: 1,
    api_keys: 1,
  })
  await account.call('POST', `/v1/lease/${lease.lease_id}/revoke`)
  await account.call('DELETE', '/v1/journal/a')
  t.same((await usage()).used, {
    active_leases: 0,
    lease_acts_today: 3,
    receipts_today: 1,
    watchdogs: 0,
    watchdog_alerts_today: 0,
    citation_watches: 0,
    quote_check_pages_today: 0,
    quote_checks_in_flight: 0,
    journal_slots: 0,
    journal_bytes: 0,
    api_keys: 1,
  })
})

t.test('ten receipts a UTC day on the free tier; receipts of the service do not count', async (t) => {
  const account = await harness.register()
  const submit = (n: number) => account.call('POST', '/v1/receipt', { body: { subject_sha256: subject(n) } })
  const terms = { agent: 'a', action: 'b', ttl_s: 60, lim: '' }
  const { lease } = (await account.call('POST', '/v1/lease', { body: terms })).body
  const statuses = await Promise.all(Array.from({ length: 25 }, async (_, n) => (await submit(n)).status))
  t.equal(statuses.filter((status) => status === 201).length, 10)
  t.equal(statuses.filter((status) => status === 429).length, 15)
  const over = await submit(11)
  t.equal(over.body.error.code, 'daily_limit')
  const seconds = Number(over.headers.get('retry-after'))
  t.ok(Math.abs(seconds - (86_400 - ((Date.now() / 1000) % 86_400))) < 60, `${seconds} s to the next UTC midnight`)
  t.equal((await account.call('POST', `/v1/lease/${lease.lease_id}/renew`)).status, 200)
  t.match((await account.call('GET', '/v1/usage')).body.used, { receipts_today: 10 })
  // Counts of yesterday do not count today.
  await harness.tables.query(
    'update receipt_days set day = day - 1 where account_id = (select id from accounts where handle = $1)',
    [account.handle],
  )
  t.match((await account.call('GET', '/v1/usage')).body.used, { receipts_today: 0 })
  t.equal((await submit(12)).status, 201)
})

t.test('a changed tier applies at once', async (t) => {
  const account = await harness.register({ tier: 'dev' })
  const { tier, limits } = (await account.call('GET', '/v1/usage')).body
  t.equal(tier, 'dev')
  for (const [name, free] of Object.entries(FREE)) t.ok(limits[name] >= free, name)
  t.ok(limits.active_leases > FREE.active_leases)
  const terms = { agent: 'a', action: 'b', ttl_s: 60, lim: randomUUID() }
  for (let n = 0; n < 3; n++) t.equal((await account.call('POST', '/v1/lease', { body: terms })).status, 201)
})
