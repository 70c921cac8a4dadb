// A request refused before its first 402 leaves its key free: the same key then buys something else.
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { expectCompleted, expectNonCompleted } from '../interface.schema.ts'
import { harbourClaim, payingFetch, type System, startSystem } from '../system.ts'

const WAIT = { prefer: 'wait=20' }

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())
const harbour = harbourClaim(system.site)

async function expectNoTrace(t: Test, on: System) {
  t.same(await on.sql('select count(*)::int n from verification_requests'), [{ n: 0 }], 'no row is stored')
}

t.test('400, 415 and 422: nothing is stored, and the key is free', async (t) => {
  const refused: [status: number, body: unknown, headers?: Record<string, string>][] = [
    [400, '{'],
    [400, { ...harbour, claim: '' }],
    [400, { ...harbour, note: 1 }],
    [400, JSON.stringify(harbour).padEnd(65_537)],
    [415, harbour, { 'content-type': 'text/plain' }],
    [422, { ...harbour, options: { max_price_usd: '0.02' } }],
    [422, { ...harbour, source_url: 'https://127.0.0.1/' }],
    [422, { ...harbour, source_url: 'https://site.test:8443/' }],
  ]
  const keys = refused.map(() => randomUUID())
  for (const [index, [status, body, headers]] of refused.entries()) {
    const key = keys[index] ?? ''
    await expectNonCompleted(t, await system.ask({ key, body, headers }), status)
    const paying = await system.ask({ key, body, headers, fetch: payingFetch() })
    t.equal(paying.status, status, 'a payment does not change that')
  }
  await expectNoTrace(t, system)
  t.same(system.site.requests, [])
  for (const key of keys) {
    const response = await system.ask({ key, body: harbour, fetch: payingFetch(), headers: WAIT })
    await expectCompleted(t, response)
  }
})

t.test('429: the key can be used when the address may call again', async (t) => {
  await using limited = await startSystem({ env: { RATE_LIMIT_PER_MINUTE: '1', TRUST_PROXY: '1' } })
  const key = randomUUID()
  const from = (address: string) => ({ 'x-forwarded-for': address })
  await limited.ask({ key: randomUUID(), headers: from('192.0.2.1') })
  await expectNonCompleted(t, await limited.ask({ key, headers: from('192.0.2.1') }), 429)
  const other = { ...harbour, claim: 'It has three piers.' }
  await expectNonCompleted(t, await limited.ask({ key, body: other, headers: from('192.0.2.2') }), 402)
})

t.test('503 while switched off: the key is free, and bought results are served', async (t) => {
  const key = randomUUID()
  const bought = randomUUID()
  const done = await system.ask({ key: bought, fetch: payingFetch(), headers: WAIT })
  const token = done.headers.get('x-service-recovery-token') ?? ''
  const { result, bytes } = await expectCompleted(t, done)

  await using off = await system.openTwin({}, { VERIFICATION_ENABLED: 'false' })
  const ask = (key: string) => system.ask({ key, at: off })
  const { error } = await expectNonCompleted(t, await ask(key), 503)
  t.equal(error.retryable, true)
  t.equal((await expectCompleted(t, await ask(bought))).bytes, bytes, 'a replay is no new verification')
  const recovered = await system.recover(result.request_id, token, {}, off)
  t.equal((await expectCompleted(t, recovered)).bytes, bytes)

  const other = { ...harbour, claim: 'It has three piers.' }
  await expectCompleted(t, await system.ask({ key, body: other, fetch: payingFetch(), headers: WAIT }))
})
