// `retryable` of a failure: if true, the same call under the same key may succeed. If false, the same call always gets the same
// failure.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { Countersign } from '../../client/client.ts'
import { type ErrorCode, errorTable } from '../../server/errors.ts'
import { expectCompleted, expectNonCompleted } from '../interface.schema.ts'
import { pruneRequest } from '../prune.ts'
import { FALSE_NAME } from '../site.ts'
import { openScriptedFacilitator, PAGE, payingFetch, signPayment, startSystem, termsOf } from '../system.ts'

const WAIT = { prefer: 'wait=20' }
const till = openScriptedFacilitator()
const system = await startSystem({ overrides: { facilitator: till } })
t.teardown(() => system[Symbol.asyncDispose]())

/** A purchase of a page of its own, with scripted failures. */
function openOrder(status = 503) {
  const path = `/${randomUUID()}`
  const fail = (as = status) => system.site.pages.set(path, { status: as, body: 'no' })
  fail()
  return {
    key: randomUUID(),
    body: { source_url: system.site.url(path), claim: 'The harbour was opened in 1874.' },
    fail,
    repair: () => system.site.pages.set(path, { body: PAGE }),
  }
}
type Order = ReturnType<typeof openOrder>

async function sign({ key, body }: Order) {
  return signPayment(termsOf(await system.ask({ key, body })))
}

/** Buys, and checks that the request fails. */
async function fail(order: Order) {
  const { headers } = await sign(order)
  const accepted = await system.ask({ ...order, headers })
  const token = accepted.headers.get('x-service-recovery-token') ?? ''
  const { request_id: id = '' } = (await accepted.json()) as { request_id: string }
  const failed = await system.recover(id, token, WAIT)
  return { id, token, headers, failed, text: await failed.clone().text() }
}

const retryable = [408, 425, 429, 500, 502, 503, 504, 520]
const final = [401, 403, 404, 405, 410, 451, 204, 206, 300]

t.test('a status of the source is retryable after 408, 425, 429 and from 500 on', async (t) => {
  for (const status of [...retryable, ...final]) {
    const order = openOrder(status)
    const { failed } = await fail(order)
    const { error } = await expectNonCompleted(t, failed, 422, String(status))
    t.equal(error.retryable, retryable.includes(status), String(status))
    const again = await system.ask(order)
    await expectNonCompleted(t, again, retryable.includes(status) ? 402 : 422, `${status} again`)
  }
})

/** The table of the contract; `source_http_status` depends on the status. */
const passing: ErrorCode[] = [
  'source_dns_failed',
  'source_unreachable',
  'source_timeout',
  'source_rate_limited',
  'source_challenge',
  'assessment_failed',
  'cancelled',
  'execution_failed',
]

t.test('which failures are retryable', (t) => {
  const failures = (Object.keys(errorTable) as ErrorCode[]).filter((code) => errorTable[code].status === 422)
  t.same(failures.filter((code) => errorTable[code].retryable).sort(), passing.toSorted())
  t.end()
})

t.test('every failure says that nothing was charged', async (t) => {
  const bodies = [
    { source_url: system.site.url('/nowhere'), claim: 'It is so.' },
    { source_url: `https://${FALSE_NAME}/`, claim: 'It is so.' },
    { source_url: 'https://127.0.0.1/', claim: 'It is so.' },
    { source_url: system.site.url('/harbour'), claim: 'It is so.', options: { max_price_usd: '0.02' } },
  ]
  for (const body of bodies) {
    const response = await system.ask({ key: randomUUID(), body, fetch: payingFetch(), headers: WAIT })
    const { error } = await expectNonCompleted(t, response, 422)
    t.match(error.message, /Nothing was charged\.$/, error.code)
  }
  t.equal(till.settled.length, 0)
})

t.test('a retryable failure can be paid again: the same key, the same request, the same token', async (t) => {
  const order = openOrder()
  const { id, token, headers, failed, text } = await fail(order)
  t.equal((await expectNonCompleted(t, failed, 422)).error.retryable, true)

  const before = Date.now()
  const asked = await system.ask(order)
  const challenge = await expectNonCompleted(t, asked, 402)
  t.equal(challenge.request_id, id)
  t.match(challenge.error, { code: 'payment_required', message: /source_http_status.*Nothing was charged\./ })
  const { expires_at } = (challenge as unknown as { quote: { expires_at: string } }).quote
  t.ok(Date.parse(expires_at) >= before + 899_000, 'the terms are fresh')
  t.equal(await (await system.recover(id, token)).text(), text, 'until a payment is bound, recovery shows the failure')

  const forged = { 'payment-signature': headers['payment-signature'].slice(0, 40) }
  await expectNonCompleted(t, await system.ask({ ...order, headers: forged }), 402)
  t.equal(await (await system.recover(id, token)).text(), text)

  order.fail(404)
  const second = await signPayment(termsOf(asked))
  const accepted = await system.ask({ ...order, headers: { ...second.headers, ...WAIT } })
  const { error } = await expectNonCompleted(t, accepted, 422, 'the second failure is final')
  t.equal(error.retryable, false)
  order.repair()
  const last = await (await system.ask(order)).text()
  for (const given of [undefined, headers, second.headers])
    t.equal(await (await system.ask({ ...order, headers: given })).text(), last, 'the final failure is answered again')
  t.equal(await (await system.recover(id, token)).text(), last)
  t.equal(till.settled.length, 0)
  const ledger = await system.sql('select outcome, reason from payment_ledger where request_id = $1 order by entry', [
    id,
  ])
  t.same(
    ledger,
    [1, 2].map(() => ({ outcome: 'failed', reason: 'source_http_status' })),
    'one entry for each attempt',
  )
})

t.test('the attempt that succeeds is charged once, after any number of failed ones', async (t) => {
  const order = openOrder()
  const { id, token, headers } = await fail(order)
  const second = await sign(order)
  await expectNonCompleted(t, await system.ask({ ...order, headers: { ...second.headers, ...WAIT } }), 422)
  order.repair()
  const before = till.settled.length
  // The authorization of a failed attempt is free, for the next attempt too.
  const done = await system.ask({ ...order, headers: { ...headers, ...WAIT } })
  const { result, bytes } = await expectCompleted(t, done)
  t.equal(result.request_id, id)
  t.equal(done.headers.get('x-service-recovery-token'), token)
  t.equal(till.settled.length, before + 1)
  t.equal((await expectCompleted(t, await system.ask(order))).bytes, bytes)
  t.equal((await expectCompleted(t, await system.recover(id, token))).bytes, bytes)
  const ledger = await system.sql('select outcome from payment_ledger where request_id = $1 order by entry', [id])
  t.same(
    ledger.map(({ outcome }) => outcome),
    ['failed', 'failed', 'settled'],
  )
})

t.test('many calls at once for a failed request: one attempt', async (t) => {
  const order = openOrder()
  const { id } = await fail(order)
  order.repair()
  const before = till.settled.length
  const signed = await Promise.all(Array.from({ length: 5 }, () => sign(order)))
  const answers = await Promise.all(
    signed.map(({ headers }) => system.ask({ ...order, headers: { ...headers, ...WAIT } })),
  )
  const ids = new Set<string>()
  for (const answer of answers) {
    // A call after the request had ended: another payment paid for the request.
    if (answer.status === 409) continue
    ids.add((await expectCompleted(t, answer)).result.request_id)
  }
  t.same([...ids], [id])
  t.equal(till.settled.length, before + 1)
})

t.test('a failure past retention is still retryable', async (t) => {
  const order = openOrder()
  const { id, text, token } = await fail(order)
  await system.sql(`update verification_requests set changed_at = now() - interval '25 hours' where id = $1`, [id])
  await pruneRequest(system, id)
  t.same(await system.sql('select state, body from verification_requests where id = $1', [id]), [
    { state: 'failed', body: null },
  ])
  t.equal(await (await system.recover(id, token)).text(), text)
  order.repair()
  const done = await system.ask({ ...order, fetch: payingFetch(), headers: WAIT })
  t.equal((await expectCompleted(t, done)).result.request_id, id)
})

t.test('a client repeats a retryable failure with the same key and succeeds', async (t) => {
  const order = openOrder()
  const service = new Countersign({ baseUrl: system.url('/'), fetch: payingFetch() })
  const buy = () => service.verifySource(order.body, { idempotencyKey: order.key })
  const refusal = await buy().catch((error: unknown) => error)
  t.match(refusal, { name: 'CountersignError', code: 'source_http_status', retryable: true, status: 422 })
  order.repair()
  const purchase = await buy()
  t.equal(purchase.idempotencyKey, order.key)
  t.equal(purchase.requestId, (refusal as { requestId: string }).requestId)
  order.fail(404)
  const lost = openOrder(404)
  const final = await service.verifySource(lost.body, { idempotencyKey: lost.key }).catch((error: unknown) => error)
  t.match(final, { code: 'source_http_status', retryable: false })
})

t.test('a failed request is not tried again while verification is switched off, and keeps its failure', async (t) => {
  const order = openOrder()
  const { id, token, text } = await fail(order)
  await using off = await system.openTwin({}, { VERIFICATION_ENABLED: 'false' })
  const { error } = await expectNonCompleted(t, await system.ask({ ...order, at: off }), 503)
  t.match(error, { code: 'verification_disabled', retryable: true })
  t.equal(await (await system.recover(id, token, {}, off)).text(), text)
})
