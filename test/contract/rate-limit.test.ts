// Calls per address and minute: counted before a body is read, shared through Redis, and not changed by forged headers. Calls
// with a valid key or token are counted elsewhere.
import { randomBytes, randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { CALLER_LIMITS } from '../../server/accounts/tiers.ts'
import { expectCompleted, expectNonCompleted } from '../interface.schema.ts'
import { TOKEN } from '../mcp/paid-tool.ts'
import { openRawClient } from '../mcp/raw-client.ts'
import { signPayment, startSystem, termsOf } from '../system.ts'

const PER_MINUTE = 5
const REDIS_URL = process.env.TEST_REDIS_URL ?? 'redis://127.0.0.1:6379'

/** An unused address of 2001:db8::/32, in a network of its own. */
const anyAddress = () => `2001:db8:${randomBytes(2).toString('hex')}:${randomBytes(2).toString('hex')}::1`
const from = (...addresses: string[]) => ({ 'x-forwarded-for': addresses.join(', ') })

async function expectLimited(t: Test, response: Response, about = '') {
  t.match(response.headers.get('retry-after'), /^[1-9][0-9]?$/, 'Retry-After, in seconds of this minute')
  const { error } = await expectNonCompleted(t, response, 429, about)
  t.equal(error.code, 'rate_limited')
  t.equal(error.retryable, true)
}

const system = await startSystem({ env: { RATE_LIMIT_PER_MINUTE: String(PER_MINUTE), TRUST_PROXY: '1' } })
t.teardown(() => system[Symbol.asyncDispose]())

const ask = (headers: Record<string, string> = {}, at = system.service) =>
  system.ask({ key: randomUUID(), headers, at })

async function use(headers: () => Record<string, string>, at = system.service, times = PER_MINUTE) {
  for (let n = 0; n < times; n++) await (await ask(headers(), at)).text()
}

t.test('the sixth request in a minute: 429 in the error shape, before any other check', async (t) => {
  const address = from(anyAddress())
  for (let n = 0; n < PER_MINUTE; n++) await expectNonCompleted(t, await ask(address), 402)
  const key = randomUUID()
  await expectLimited(t, await system.ask({ key, headers: address }), 'a good request')
  await expectLimited(t, await system.ask({ key: 'short', headers: address }), 'a bad key')
  await expectLimited(t, await system.ask({ key, body: {}, headers: address }), 'a bad body')
  const recovery = system.url(`/api/agent/v1/requests/${randomUUID()}`)
  await expectLimited(t, await fetch(recovery, { headers: address }), 'recovery with no token')
  t.same(await system.sql('select count(*)::int n from verification_requests'), [{ n: PER_MINUTE }])

  await expectNonCompleted(t, await system.ask({ key, headers: from(anyAddress()) }), 402, 'another address')
  for (const path of ['/healthz', '/readyz'])
    t.equal((await fetch(system.url(path), { headers: address })).status, 200, `${path} is not limited`)
})

t.test('a recovery with its token is counted against its request, not against its address', async (t) => {
  const bought = async (headers: Record<string, string>) => {
    const key = randomUUID()
    const { headers: payment } = await signPayment(termsOf(await system.ask({ key, headers })))
    const paid = await system.ask({ key, headers: { ...headers, ...payment, prefer: 'wait=25' } })
    const { result } = await expectCompleted(t, paid)
    return { id: result.request_id, token: paid.headers.get('x-service-recovery-token') ?? '' }
  }
  const [one, other] = [await bought(from(anyAddress())), await bought(from(anyAddress()))]
  const address = from(anyAddress())
  await use(() => address)
  await expectLimited(t, await ask(address), 'no call is left')
  await expectLimited(t, await system.recover(one.id, `${one.token}x`, address), 'with a wrong token')
  const payments = (token: string) =>
    fetch(system.url(`/api/agent/v1/payments/${one.id}`), { headers: { ...address, authorization: `Bearer ${token}` } })
  t.equal((await payments(one.token)).status, 200)
  const most = CALLER_LIMITS.recoveries_per_minute - 1
  const statuses = new Set<number>()
  for (let n = 0; n < most; n++) {
    const answer = await system.recover(one.id, one.token, address)
    statuses.add(answer.status)
    await answer.arrayBuffer()
  }
  t.same([...statuses], [200])
  await expectLimited(t, await system.recover(one.id, one.token, address), 'the request has a limit of its own')
  await expectLimited(t, await system.recover(one.id, one.token, from(anyAddress())), 'the same from every address')
  await expectCompleted(t, await system.recover(other.id, other.token, address))

  const { call } = openRawClient(system.url('/mcp'))
  const recovered = await call('service_verify_source', {}, { headers: address, meta: { [TOKEN]: other.token } })
  t.match(recovered.structuredContent, { request_id: other.id, status: 'completed' }, 'over MCP the same')
  const refused = await openRawClient(system.url('/mcp')).ask(
    'tools/call',
    { name: 'service_verify_source', arguments: {} },
    { headers: address, meta: { [TOKEN]: `${other.token}x` } },
  )
  t.equal(refused.status, 429)
})

t.test('a body that is not JSON is counted too, and refused beyond the limit', async (t) => {
  const kinds: Record<string, { body: string; headers?: Record<string, string>; status: number }> = {
    'broken JSON': { body: '{', status: 400 },
    'an unsupported content type': { body: '{}', headers: { 'content-type': 'text/plain' }, status: 415 },
    'too large': { body: ' '.repeat(70_000), status: 400 },
  }
  for (const [about, { body, headers, status }] of Object.entries(kinds)) {
    const address = from(anyAddress())
    const send = () => system.ask({ key: randomUUID(), body, headers: { ...address, ...headers } })
    for (let n = 0; n < PER_MINUTE; n++) await expectNonCompleted(t, await send(), status, about)
    await expectLimited(t, await ask(address), `after ${about}`)
    await expectLimited(t, await send(), about)
  }
})

t.test('without trusted proxies X-Forwarded-For is ignored', async (t) => {
  await using direct = await system.openTwin({}, { TRUST_PROXY: '0' })
  await use(() => from(anyAddress()), direct)
  await expectLimited(t, await ask(from(anyAddress()), direct))
  await expectLimited(t, await ask({}, direct))
})

t.test('with one trusted proxy the right-most address counts', async (t) => {
  const address = anyAddress()
  await use(() => from(anyAddress(), anyAddress(), address))
  await expectLimited(t, await ask(from(anyAddress(), address)))
  await expectLimited(t, await ask(from(address)))
  await expectNonCompleted(t, await ask(from(address, anyAddress())), 402)
})

t.test('with two trusted proxies the second address from the right counts', async (t) => {
  await using behindTwo = await system.openTwin({}, { TRUST_PROXY: '2' })
  const address = anyAddress()
  await use(() => from(anyAddress(), address, '10.0.0.7'), behindTwo)
  await expectLimited(t, await ask(from(address, '10.0.0.8'), behindTwo))
  await expectNonCompleted(t, await ask(from(anyAddress(), '10.0.0.7'), behindTwo), 402)
})

t.test('0 switches it off', async (t) => {
  await using unlimited = await system.openTwin({}, { RATE_LIMIT_PER_MINUTE: '0' })
  await use(() => ({}), unlimited, 4 * PER_MINUTE)
  await expectNonCompleted(t, await ask({}, unlimited), 402)
})

t.test('with Redis two services share one count', { skip: await withoutRedis() }, async (t) => {
  await using one = await system.openTwin({}, { REDIS_URL })
  await using other = await system.openTwin({}, { REDIS_URL })
  const address = from(anyAddress())
  await use(() => address, one, 3)
  await expectNonCompleted(t, await ask(address, other), 402)
  await expectNonCompleted(t, await ask(address, other), 402)
  await expectLimited(t, await ask(address, other))
  await expectLimited(t, await ask(address, one))
})

t.test('without an answer of Redis each service counts by itself', async (t) => {
  // No server listens on port 1 of loopback.
  await using alone = await system.openTwin({}, { REDIS_URL: 'redis://127.0.0.1:1' })
  const address = from(anyAddress())
  await use(() => address, alone)
  await expectLimited(t, await ask(address, alone))
})

/** The reason to skip the Redis test; the gate's machine has a Redis. */
async function withoutRedis(): Promise<string | false> {
  const redis = new Redis(REDIS_URL, { lazyConnect: true, retryStrategy: null, enableOfflineQueue: false })
  redis.on('error', () => {})
  try {
    await redis.connect()
    await redis.ping()
    return false
  } catch {
    return process.env.CI ? false : `no Redis at ${REDIS_URL}`
  } finally {
    redis.disconnect()
  }
}
