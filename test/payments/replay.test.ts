// One authorization pays for one request: not under another key, for another body, on another network, or at the same time.
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { deeds } from './evm-facilitator.ts'
import { type EvmHarness, openEvmHarness, PRICE, type Purchase } from './evm-harness.ts'

const harness = await openEvmHarness()
t.teardown(() => harness[Symbol.asyncDispose]())

/** Another request, with the authorization of a third party. */
function present(
  where: EvmHarness,
  header: string,
  { key = randomUUID() as string, body }: { key?: string; body: unknown },
) {
  return fetch(where.system.url('/api/agent/v1/verify-source'), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key, 'payment-signature': header },
    body: JSON.stringify(body),
  })
}

/** Checks a page of its own and the bought one: no work is done, and no money moves. */
async function expectBound(t: Test, order: Purchase) {
  const other = await harness.order()
  const [header = ''] = order.signatures
  for (const body of [order.body, other.body]) {
    const response = await present(harness, header, { body })
    t.equal(response.status, 409)
    t.match(await response.json(), { error: { code: 'payment_conflict' } })
  }
  const changed = await present(harness, header, { key: order.key, body: other.body })
  t.equal(changed.status, 409)
  t.match(await changed.json(), { error: { code: 'idempotency_conflict' } })
  t.equal(other.fetches(), 0, 'no work is done for it')
  t.equal(order.fetches(), 1)
}

t.test('while its settlement is uncertain, and after it is paid', async (t) => {
  const order = await harness.order()
  harness.facilitator.script.push(deeds.lostBefore)
  await order.buy()
  await harness.inDoubt(order)
  await expectBound(t, order)
  await harness.hurry()
  t.equal((await order.buyAndWait()).status, 200)
  await expectBound(t, order)
  const [header = ''] = order.signatures
  const again = await present(harness, header, { key: order.key, body: order.body })
  t.equal(again.status, 200)
  t.equal(again.headers.get('x-service-idempotent-replay'), 'true')
  t.equal(await order.spent(), PRICE)
})

t.test('under many keys at the same time: it pays for one', async (t) => {
  const order = await harness.order()
  const terms = await order.ask()
  const header = await order.sign(terms)
  const answers = await Promise.all(Array.from({ length: 8 }, () => present(harness, header, { body: order.body })))
  const statuses = answers.map((answer) => answer.status).sort()
  t.same(statuses, [202, ...Array(7).fill(409)])
  const [accepted] = answers.filter((answer) => answer.status === 202)
  const { request_id: id } = (await (accepted as Response).json()) as { request_id: string }
  t.equal((await harness.recover(id, { prefer: 'wait=25' })).status, 200)
  t.equal(await order.spent(), PRICE)
  t.equal(order.fetches(), 1)
})

t.test('on another network', async (t) => {
  await using mainnet = await openEvmHarness({ network: 'eip155:8453' })
  const order = await harness.order()
  await order.buyAndWait()
  const there = await mainnet.order({ wallet: order.wallet })
  const payment = JSON.parse(Buffer.from(order.signatures[0] ?? '', 'base64').toString())
  const { accepts } = (await (await there.ask()).json()).payment_required
  const rewritten = Buffer.from(JSON.stringify({ ...payment, accepted: accepts[0] })).toString('base64')
  for (const header of [order.signatures[0] ?? '', rewritten]) {
    const response = await present(mainnet, header, { body: there.body })
    t.equal(response.status, 402)
    t.match(await response.json(), { error: { code: 'payment_invalid' } })
  }
  t.equal(there.fetches(), 0)
  t.equal(await there.spent(), 0n)
})
