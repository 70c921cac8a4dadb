// Limits on the calls to facilitators and nodes that a caller can cause.
import { randomBytes, randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { privateKeyToAddress } from 'viem/accounts'
import { AppError } from '../../server/errors.ts'
import { buildUpstreamCalls } from '../../server/payments/facilitators/upstream-calls.ts'
import { callTool, expectNonCompleted, PAYMENT } from '../mcp/paid-tool.ts'
import { openEvmHarness } from './evm-harness.ts'

const succeed = async () => 'done'
const fail = () => Promise.reject(new Error('came to nothing'))
const refused = { code: 'rate_limited', headers: { 'retry-after': /^[1-9]\d*$/ } }

async function expectLimited(t: Test, attempt: Promise<unknown>, about: string) {
  const error = await attempt.catch((error) => error)
  t.ok(error instanceof AppError, about)
  t.match(error, refused, about)
}

t.test('an address may cause so many failing calls a minute; successful ones do not count', async (t) => {
  const upstream = buildUpstreamCalls({ failedPerMinute: 3, perSecond: 1000 })
  for (let i = 0; i < 20; i++) t.equal(await upstream.attempt('203.0.113.1', succeed), 'done')
  for (let i = 0; i < 3; i++) await t.rejects(upstream.attempt('203.0.113.1', fail), { message: 'came to nothing' })
  let called = false
  const attempt = upstream.attempt('203.0.113.1', async () => {
    called = true
  })
  await expectLimited(t, attempt, 'the fourth')
  t.notOk(called, 'no call is made')
  t.equal(await upstream.attempt('203.0.113.2', succeed), 'done', 'another address is not limited')
})

t.test('an IPv6 subscriber is one address, and IPv4 inside IPv6 is its own', async (t) => {
  const upstream = buildUpstreamCalls({ failedPerMinute: 1, perSecond: 1000 })
  await t.rejects(upstream.attempt('2001:db8:0:1::1', fail), { message: 'came to nothing' })
  await expectLimited(t, upstream.attempt('2001:db8:0:1:ffff::2', fail), 'the same /64')
  await t.rejects(upstream.attempt('2001:db8:0:2::1', fail), { message: 'came to nothing' }, 'the next /64')
  await t.rejects(upstream.attempt('::ffff:192.0.2.1', fail), { message: 'came to nothing' })
  await t.rejects(upstream.attempt('::ffff:192.0.2.2', fail), { message: 'came to nothing' })
})

t.test(
  'all addresses together may cause so many calls a second, and a refusal does not count against the address',
  async (t) => {
    const upstream = buildUpstreamCalls({ failedPerMinute: 1, perSecond: 2 })
    await upstream.attempt('203.0.113.1', succeed)
    await upstream.attempt('203.0.113.2', succeed)
    const many = Array.from({ length: 3 }, () => upstream.attempt('203.0.113.3', succeed))
    for (const attempt of many) await expectLimited(t, attempt, 'more')
  },
)

t.test('false payments from many addresses leave calls to payers whose payments are true', async (t) => {
  const upstream = buildUpstreamCalls({ failedPerMinute: 1000, perSecond: 40 })
  for (let i = 0; i < 20; i++) t.equal(await upstream.attempt('203.0.113.1', succeed), 'done')
  /** Eight networks, each of which has failed before. */
  const hostile = Array.from({ length: 800 }, (_, i) => upstream.attempt(`2001:db8:${i % 8}:${i}::1`, fail))
  const outcomes = await Promise.allSettled(hostile)
  t.ok(
    outcomes.filter((outcome) => outcome.status === 'rejected' && outcome.reason.code === 'rate_limited').length > 700,
  )
  t.equal(await upstream.attempt('203.0.113.1', succeed), 'done', 'one that buys often')
  t.equal(await upstream.attempt('203.0.113.2', succeed), 'done', 'a newcomer')
})

// biome-ignore lint/suspicious/noExplicitAny: payments that are wrong on purpose
type Loose = any

t.test('over every protocol, payments that need an outside check are limited, and known ones are not', async (t) => {
  await using harness = await openEvmHarness({ overrides: { upstream: { failedPerMinute: 5, perSecond: 1000 } } })
  const { facilitator, rpc, system } = harness
  const bought = await harness.order()
  t.equal((await bought.buyAndWait()).status, 200)
  const known = { 'payment-signature': bought.signatures[0] ?? '' }
  const order = await harness.order()
  const asked = await order.ask()
  const signed = await order.sign(asked)
  /** A payment of a contract wallet that does not exist. */
  const make = () => {
    const payment: Loose = JSON.parse(Buffer.from(signed, 'base64').toString())
    payment.payload.authorization.from = privateKeyToAddress(`0x${randomBytes(32).toString('hex')}`)
    payment.payload.signature = `0x${randomBytes(200).toString('hex')}`
    return payment
  }
  const headers = () => ({ 'payment-signature': Buffer.from(JSON.stringify(make())).toString('base64') })
  const payments = system.url('/api/agent/v1/payments')
  const verify = () => order.ask(headers())
  const look = () => fetch(payments, { headers: headers() })
  const callByMcp = () => callTool(system.url('/'), { args: order.body, meta: { [PAYMENT]: make() } })

  t.equal((await verify()).status, 402)
  t.equal((await look()).status, 404)
  // Checked twice: to derive the key from the payer, and as a payment.
  t.ok((await callByMcp()).isError)
  t.equal((await verify()).status, 402)
  rpc.calls.length = 0
  facilitator.received.length = 0
  for (const answer of [await verify(), await look()]) {
    t.equal(answer.status, 429)
    t.match(answer.headers.get('retry-after'), /^[1-9]\d*$/)
    t.match(await answer.json(), { error: { code: 'rate_limited', retryable: true } })
  }
  t.match(expectNonCompleted(t, await callByMcp(), 'failed'), { error: { code: 'rate_limited' } })
  t.equal((await fetch(payments, { headers: known })).status, 200, 'signed by a key, so no outside call')
  t.equal((await bought.ask(known)).status, 200)
  const elsewhere = await fetch(system.url('/api/agent/v1/verify-source'), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID(), ...known },
    body: JSON.stringify(order.body),
  })
  t.equal(elsewhere.status, 409)
  t.same(rpc.calls, [])
  t.same(facilitator.received, [])
})
