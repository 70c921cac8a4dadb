// Calls with a valid key are counted against the account and not against their address. All other calls are counted against the
// address.
import { randomBytes, randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { addressKey } from '../../server/accounts/address-key.ts'
import { makeApiKey } from '../../server/accounts/api-keys.ts'
import { CALLER_LIMITS, LIMITS } from '../../server/accounts/tiers.ts'
import { LONG } from '../long.ts'
import { ERAS, openRawClient } from '../mcp/raw-client.ts'
import { redisUrl } from '../redis.ts'
import { openWatchdogHarness } from '../watchdogs/harness.ts'
import { type Answer, type ApiProcess, openAccountHarness } from './harness.ts'

/** Lets the tests name the address of a call. */
const PROXIED = { TRUST_PROXY: '1' }
const from = (address: string) => ({ 'x-forwarded-for': address })
/** A random address of 2001:db8::/32, so that runs do not share a count. */
const anyAddress = () => `2001:db8:${randomBytes(2).toString('hex')}:${randomBytes(2).toString('hex')}::1`

function expectLimited(t: Test, { status, headers, body }: Answer, message: RegExp) {
  t.equal(status, 429)
  t.match(body, { error: { code: 'rate_limited', message, retryable: true } })
  t.match(headers.get('retry-after'), /^[1-9]\d?$/)
}

t.test('all addresses of an IPv6 /64 have one key', async (t) => {
  const groups = () => Array.from({ length: 4 }, () => randomBytes(2).toString('hex'))
  for (let run = 0; run < 200; run++) {
    const network = ['2001', ...groups().slice(1)]
    const one = [...network, ...groups()].join(':')
    const other = [...network, ...groups()].join(':')
    t.equal(addressKey(one), addressKey(other), `${one} and ${other}`)
    t.equal(addressKey(`${one}%eth0`), addressKey(one))
    t.equal(addressKey(`[${one}]:443`), addressKey(one))
    const elsewhere = [...network.slice(0, 3), (Number.parseInt(network[3]!, 16) ^ 1).toString(16), ...groups()]
    t.not(addressKey(elsewhere.join(':')), addressKey(one))
  }
  for (const [written, key] of [
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:0DB8:0:0:ffff::', '2001:db8:0:0::/64'],
    ['2001:db8:0:0:1:2:192.0.2.1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::ffff:c000:207', '192.0.2.7'],
    ['0:0:0:0:0:FFFF:192.0.2.7', '192.0.2.7'],
    ['192.0.2.7', '192.0.2.7'],
    ['192.0.2.7:8080', '192.0.2.7'],
    ['', 'unknown'],
    ['unknown', 'unknown'],
    ['256.1.1.1', 'unknown'],
    ['1:2:3', 'unknown'],
  ] as const)
    t.equal(addressKey(written), key, written)
})

t.test('all addresses of an IPv6 /64 have one limit', async (t) => {
  await using harness = await openAccountHarness({ ...PROXIED, RATE_LIMIT_PER_MINUTE: '3' })
  const network = anyAddress().replace('::1', '')
  const statuses = new Map<number, number>()
  for (let n = 0; n < 200; n += 50) {
    const answers = Array.from({ length: 50 }, (_, k) =>
      harness.call('GET', '/v1/chain-head', { headers: from(`${network}::${(n + k).toString(16)}`) }),
    )
    for (const { status } of await Promise.all(answers)) statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  t.same(Object.fromEntries(statuses), { 200: 3, 429: 197 })
})

t.test('a thousand watchdogs of a pro account send heartbeats from one address, without a false alarm', async (t) => {
  await using harness = await openWatchdogHarness({ RATE_LIMIT_PER_MINUTE: '600' })
  const owner = await harness.register({ tier: 'pro' })
  const watchdogs = Array.from({ length: LIMITS.pro.watchdogs }, (_, n) => `w${n}`)
  const each = async (work: (name: string) => Promise<Answer>) => {
    const statuses = new Set<number>()
    for (let n = 0; n < watchdogs.length; n += 50)
      for (const { status } of await Promise.all(watchdogs.slice(n, n + 50).map(work))) statuses.add(status)
    return [...statuses]
  }
  t.same(await each((name) => harness.putWatchdog(owner, name)), [201])
  // The test ends each interval itself, so a round has the heartbeats of a minute at 60 s.
  for (let round = 0; round < (LONG ? 3 : 1); round++) {
    await harness.pass(owner, 60_000)
    t.same(await each((name) => harness.beat(owner, name)), [200])
    t.equal(await harness.scan(), 0)
  }
  t.same((await harness.tables.query('select type from alerts')).rows, [])
})

t.test('each budget of an account names its limit and is independent of the others', async (t) => {
  await using harness = await openAccountHarness()
  const owner = await harness.register()
  const other = await harness.register()
  await owner.call('PUT', '/v1/watchdog/w', { body: { interval_s: 60, webhook_url: 'https://example.com/hook' } })
  const beat = () => owner.call('POST', '/v1/heartbeat/w')
  const receipt = () => owner.call('POST', '/v1/receipt', { body: { subject_sha256: '00'.repeat(32) } })
  const usage = (account = owner) => account.call('GET', '/v1/usage')
  const spend = async (call: () => Promise<Answer>, times: number) => {
    const statuses = new Set<number>()
    for (let n = 0; n < times; n += 20) {
      const calls = Array.from({ length: Math.min(20, times - n) }, call)
      for (const { status } of await Promise.all(calls)) statuses.add(status)
    }
    return [...statuses].sort()
  }
  t.same(await spend(beat, LIMITS.free.heartbeats_per_minute), [200])
  expectLimited(t, await beat(), /^heartbeats_per_minute: the free tier has 120\. Try again in \d+ s\.$/)
  t.same(await spend(receipt, LIMITS.free.receipts_per_minute), [201, 429])
  expectLimited(t, await receipt(), /^receipts_per_minute: the free tier has 120\./)
  // The PUT was the first call.
  t.same(await spend(usage, LIMITS.free.calls_per_minute - 1), [200])
  expectLimited(t, await usage(), /^calls_per_minute: the free tier has 600\./)
  t.equal((await usage(other)).status, 200, 'another account has a count of its own')
  const elsewhere = await owner.call('GET', '/v1/usage', { headers: from(anyAddress()) })
  t.equal(elsewhere.status, 429, 'an account has one count for all addresses')
  const key = makeApiKey()
  t.equal((await harness.call('GET', '/v1/usage', { key })).status, 401)
})

t.test('the limits per minute allow what the other limits of a tier allow', async (t) => {
  for (const [tier, limits] of Object.entries(LIMITS)) {
    t.ok(limits.heartbeats_per_minute >= 2 * 6 * limits.watchdogs, `${tier}: all watchdogs, at 10 s`)
    t.ok(limits.receipts_per_minute * 1440 >= 2 * limits.receipts_per_day, `${tier}: the receipts of a day`)
    t.ok(limits.calls_per_minute >= 4 * limits.active_leases, `${tier}: all leases, renewed every 15 s`)
    t.ok(limits.lease_acts_per_day >= (86_400 / 22) * limits.active_leases, `${tier}: all leases, all day`)
    t.equal(limits.journal_bytes, limits.journal_slots * 65_536, `${tier}: the bytes are those of the slots`)
  }
})

t.test('a valid key passes where the address has no call left, and does not count against it', async (t) => {
  await using harness = await openAccountHarness({ ...PROXIED, RATE_LIMIT_PER_MINUTE: '5' })
  const owner = await harness.register()
  const address = anyAddress()
  const usage = (key?: string, more = {}) =>
    harness.call('GET', '/v1/usage', { key, headers: { ...from(address), ...more } })
  for (let n = 0; n < 30; n++) t.equal((await usage(owner.key)).status, 200)
  t.equal((await harness.call('GET', '/v1/chain-head', { headers: from(address) })).status, 200)
  // Four are left: a call with a mistyped key counts against the address.
  for (let n = 0; n < 4; n++) t.equal((await usage(`${owner.key.slice(0, -1)}!`)).status, 401)
  expectLimited(t, await usage('x'), /requests in a minute/)
  expectLimited(t, await usage(), /requests in a minute/)
  t.equal((await usage(owner.key)).status, 200)
  t.equal((await harness.call('GET', '/v1/chain-head', { key: owner.key, headers: from(address) })).status, 200)
  expectLimited(t, await harness.call('GET', '/v1/chain-head', { headers: from(address) }), /requests in a minute/)
})

t.test('look-ups of unknown well-formed keys are limited, and recently valid keys still pass', async (t) => {
  await using harness = await openAccountHarness({ ...PROXIED, RATE_LIMIT_PER_MINUTE: '1000' })
  const [owner, later] = [await harness.register(), await harness.register()]
  const address = anyAddress()
  const usage = (key: string, otherProcess: ApiProcess = harness, at = address) =>
    otherProcess.call('GET', '/v1/usage', { key, headers: from(at) })
  t.equal((await usage(owner.key)).status, 200)
  const most = CALLER_LIMITS.unknown_keys_per_minute
  for (let n = 0; n < most; n++) t.equal((await usage(makeApiKey())).status, 401)
  expectLimited(t, await usage(makeApiKey()), /unknown API keys/)
  expectLimited(t, await usage(later.key), /unknown API keys/)
  harness.api.callers.clear()
  t.equal((await usage(owner.key)).status, 200, 'a key that was valid before is always looked up')
  t.equal((await usage(later.key, harness, anyAddress())).status, 200, 'a new key passes from another address')
  t.equal((await usage(later.key)).status, 200, 'and then from this one')

  await using restarted = await harness.openApiProcess()
  for (let n = 0; n < most; n++) await usage(makeApiKey(), restarted)
  expectLimited(t, await usage(makeApiKey(), restarted), /unknown API keys/)
  t.equal((await usage(owner.key, restarted)).status, 200, 'a process that has just started also knows the key')
})

t.test('a hundred concurrent calls with a new key share one query, and all are answered', async (t) => {
  await using harness = await openAccountHarness({ ...PROXIED, RATE_LIMIT_PER_MINUTE: '5' })
  const owner = await harness.register()
  const calls = Array.from({ length: 100 }, () => owner.call('GET', '/v1/usage', { headers: from('192.0.2.1') }))
  t.same([...new Set((await Promise.all(calls)).map(({ status }) => status))], [200])
})

for (const era of ERAS)
  t.test(`MCP has the same limits: ${era}`, async (t) => {
    await using harness = await openAccountHarness({ ...PROXIED, RATE_LIMIT_PER_MINUTE: '5' })
    const owner = await harness.register()
    const address = anyAddress()
    const { ask, post } = openRawClient(new URL('/mcp', harness.api.baseUrl).href)
    const usage = (args: object, headers = {}) =>
      ask(
        'tools/call',
        { name: 'service_usage_get', arguments: args },
        { era, headers: { ...from(address), ...headers } },
      )
    const inHeader = { authorization: `Bearer ${owner.key}` }
    for (let n = 0; n < 10; n++) {
      t.equal((await usage({ service_key: owner.key })).body.result.structuredContent.handle, owner.handle)
      t.equal((await usage({}, inHeader)).body.result.structuredContent.handle, owner.handle)
    }
    for (let n = 0; n < 5; n++)
      t.match((await usage({ service_key: 'x' })).body.result.structuredContent, { error: { code: 'unauthenticated' } })
    for (const refused of [
      await usage({}),
      await usage({ service_key: makeApiKey() }),
      await ask('tools/list', {}, { era, headers: from(address) }),
      await post('{', from(address)),
    ]) {
      t.equal(refused.status, 429)
      t.match(refused.body.error.data.error, { code: 'rate_limited', retryable: true })
    }
    t.equal((await usage({ service_key: owner.key })).status, 200, 'a key in the arguments')
    t.equal((await usage({}, inHeader)).status, 200, 'a key in the headers')
    t.equal((await harness.call('GET', '/v1/usage', { key: owner.key, headers: from(address) })).status, 200)

    // Far beyond the limit, messages of the address are not read.
    for (let n = 0; n < 60; n++) await post('{', from(address))
    t.equal((await usage({ service_key: owner.key })).status, 429)
    t.equal((await usage({}, inHeader)).status, 200, 'a key in the headers still passes')
  })

t.test('MCP: a heartbeat counts as a heartbeat, and every message counts as a call', async (t) => {
  await using harness = await openAccountHarness()
  const owner = await harness.register()
  await owner.call('PUT', '/v1/watchdog/w', { body: { interval_s: 60, webhook_url: 'https://example.com/hook' } })
  const { ask, call } = openRawClient(new URL('/mcp', harness.api.baseUrl).href)
  const headers = { authorization: `Bearer ${owner.key}` }
  const beat = () => call('service_watchdog_heartbeat', { name: 'w' }, { headers })
  for (let n = 0; n < LIMITS.free.heartbeats_per_minute; n++) t.not((await beat()).isError, true)
  const refused = await beat()
  t.match(refused.structuredContent, { error: { code: 'rate_limited', message: /^heartbeats_per_minute/ } })
  t.ok(refused._meta['service/retry-after-seconds'] > 0)
  const spent = 1 + LIMITS.free.heartbeats_per_minute + 1
  const rest = LIMITS.free.calls_per_minute - spent
  for (let n = 0; n < rest; n += 20)
    await Promise.all(Array.from({ length: Math.min(20, rest - n) }, () => ask('ping', {}, { headers })))
  t.equal((await ask('tools/list', {}, { headers })).status, 429)
})

t.test(
  'with Redis two processes share the count of an account',
  { skip: redisUrl() ? false : 'no Redis on this machine' },
  async (t) => {
    await using harness = await openAccountHarness({ REDIS_URL: redisUrl() ?? '' })
    await using other = await harness.openApiProcess()
    const owner = await harness.register()
    await owner.call('PUT', '/v1/watchdog/w', { body: { interval_s: 60, webhook_url: 'https://example.com/hook' } })
    const beat = (otherProcess: ApiProcess) => otherProcess.call('POST', '/v1/heartbeat/w', { key: owner.key })
    const statuses = new Set<number>()
    for (let n = 0; n < LIMITS.free.heartbeats_per_minute; n += 2) {
      statuses.add((await beat(harness)).status)
      statuses.add((await beat(other)).status)
    }
    t.same([...statuses], [200])
    expectLimited(t, await beat(other), /heartbeats_per_minute/)
    expectLimited(t, await beat(harness), /heartbeats_per_minute/)
  },
)

t.test('a registration with a taken or reserved handle does not count', async (t) => {
  await using harness = await openAccountHarness({ ...PROXIED, RATE_LIMIT_PER_MINUTE: '1000' })
  const address = anyAddress()
  const register = (handle: string, at = address) =>
    harness.call('POST', '/v1/register', { body: { handle }, headers: from(at) })
  const most = CALLER_LIMITS.registrations_per_day
  t.equal((await register('first')).status, 201)
  for (let n = 0; n < 5; n++) t.equal((await register('first')).status, 409)
  const answers = await Promise.all(Array.from({ length: most + 4 }, () => register(randomUUID())))
  t.equal(answers.filter(({ status }) => status === 201).length, most - 1)
  const over = await register(randomUUID())
  t.equal(over.status, 429)
  t.match(over.body.error, { code: 'daily_limit', message: /20 a day \(UTC\) from one address/, retryable: true })
  const seconds = Number(over.headers.get('retry-after'))
  t.ok(Math.abs(seconds - (86_400 - ((Date.now() / 1000) % 86_400))) < 60, `${seconds} s to the next UTC midnight`)
  t.equal((await register(randomUUID(), address.replace('::1', '::2'))).status, 429, 'the /64 is the same')
  t.equal((await register(randomUUID(), anyAddress())).status, 201)
  const { rows } = await harness.tables.query('select r::text from registration_days r')
  t.notMatch(JSON.stringify(rows), /2001:|20010db8/, 'no address is stored, as text or as bytes')
  await harness.tables.query('update registration_days set day = day - 1')
  t.equal((await register(randomUUID())).status, 201, 'the count starts again the next day')
})

t.test(
  'accounts made by all callers together have a limit, and one address does not use it up by failing',
  async (t) => {
    await using harness = await openAccountHarness({ ...PROXIED, RATE_LIMIT_PER_MINUTE: '1000' })
    const register = () =>
      harness.call('POST', '/v1/register', { body: { handle: randomUUID() }, headers: from(anyAddress()) })
    const most = CALLER_LIMITS.registrations_per_minute
    await harness.register({ handle: 'taken' })
    const again = { body: { handle: 'taken' }, headers: from('192.0.2.1') }
    for (let n = 0; n < most; n++) t.equal((await harness.call('POST', '/v1/register', again)).status, 409)
    for (let n = 0; n < most - 20; n += 20)
      for (const { status } of await Promise.all(Array.from({ length: 20 }, register))) t.equal(status, 201)
    // With the first one, the one that is refused is the 121st.
    for (const { status } of await Promise.all(Array.from({ length: 19 }, register))) t.equal(status, 201)
    expectLimited(t, await register(), /registrations by all callers/)
  },
)
