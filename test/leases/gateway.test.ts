// The gateway of the client's README against the service, with the clocks of both set by the tests.
import { createServer } from 'node:http'
import t from 'tap'
import { openAccountHarness } from '../accounts/harness.ts'
import { buildGateway } from '../client/gateway.ts'

const harness = await openAccountHarness()
t.teardown(() => harness[Symbol.asyncDispose]())
const { keys } = (await harness.call('GET', '/v1/keys')).body
const TERMS = { agent: 'agent-7', action: 'pay', ttl_s: 60, lim: 'usd<=20' }

/** Advances the clocks of the service and the gateway together; the wall clock has no effect. */
function tick(t: import('tap').Test) {
  let ticks = 1000
  t.intercept(performance, 'now', { value: () => ticks })
  return (ms: number) => {
    ticks += ms
    harness.clock.now += ms
  }
}

async function openCase(t: import('tap').Test, terms: object = {}) {
  const account = await harness.register()
  const mayPay = buildGateway(harness.api.baseUrl, account.key, account.handle, keys)
  const { lease } = (await account.call('POST', '/v1/lease', { body: { ...TERMS, ...terms } })).body
  const renewals = async () =>
    (await account.call('GET', `/v1/lease/${lease.lease_id}`)).body.receipts.renewed as number
  return { account, mayPay, id: lease.lease_id as string, wait: tick(t), renewals }
}

t.test('the gateway forwards only what the lease allows', async (t) => {
  const { mayPay, id } = await openCase(t)
  t.equal(await mayPay(id, 'agent-7', 20), 'ok')
  t.equal(await mayPay(id, 'agent-7', 21), 'over_limit')
  t.equal(await mayPay(id, 'agent-8', 1), 'wrong_agent')
  t.equal(await mayPay('ls_00000000000000000000000000000000', 'agent-7', 1), 'no_lease')
  t.equal(await mayPay('../usage?', 'agent-7', 1), 'no_lease')
})

t.test('an unknown policy is refused, and so is a lease for another action', async (t) => {
  for (const [terms, expected] of [
    [{ lim: 'usd<=20;eur<=5' }, 'over_limit'],
    [{ lim: '' }, 'over_limit'],
    [{ action: 'refund' }, 'wrong_action'],
  ] as const) {
    const { mayPay, id } = await openCase(t, terms)
    t.equal(await mayPay(id, 'agent-7', 1), expected)
  }
})

t.test('the gateway renews a lease only when its deadline is near', async (t) => {
  const { mayPay, id, wait, renewals } = await openCase(t)
  await mayPay(id, 'agent-7', 1)
  const first = await renewals()
  wait(15_000)
  t.equal(await mayPay(id, 'agent-7', 1), 'ok')
  t.equal(await renewals(), first)
  wait(10_000)
  t.equal(await mayPay(id, 'agent-7', 1), 'ok')
  t.ok((await renewals()) > first)
})

t.test('a revocation takes effect within 30 seconds', async (t) => {
  const { account, mayPay, id, wait } = await openCase(t)
  t.equal(await mayPay(id, 'agent-7', 1), 'ok')
  await account.call('POST', `/v1/lease/${id}/revoke`)
  t.equal(await mayPay(id, 'agent-7', 1), 'ok', 'the gateway has not rechecked yet')
  wait(21_000)
  t.equal(await mayPay(id, 'agent-7', 1), 'ended')
  t.equal(await mayPay(id, 'agent-7', 1), 'ended')
})

t.test('a lease ends however often it was renewed', async (t) => {
  const { mayPay, id, wait } = await openCase(t)
  for (let n = 0; n < 5; n++) {
    t.equal(await mayPay(id, 'agent-7', 1), 'ok')
    wait(11_999)
  }
  t.equal(await mayPay(id, 'agent-7', 1), 'ok', 'the last five milliseconds')
  wait(5)
  t.equal(await mayPay(id, 'agent-7', 1), 'expired')
})

t.test('while the service does not answer, a lease authorizes until its deadline', async (t) => {
  const { account, id, wait } = await openCase(t)
  let away = false
  const server = createServer(async (request, response) => {
    if (away) return void response.writeHead(503).end('{}')
    const answer = await account.call(request.method ?? '', request.url ?? '')
    response.writeHead(answer.status).end(answer.bytes)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as import('node:net').AddressInfo
  const mayPay = buildGateway(`http://127.0.0.1:${port}`, account.key, account.handle, keys)
  t.equal(await mayPay(id, 'agent-7', 1), 'ok')
  away = true
  wait(29_999)
  t.equal(await mayPay(id, 'agent-7', 1), 'ok')
  wait(1)
  t.equal(await mayPay(id, 'agent-7', 1), 'recheck_passed')
  away = false
  t.equal(await mayPay(id, 'agent-7', 1), 'ok')
  server.closeAllConnections()
})
