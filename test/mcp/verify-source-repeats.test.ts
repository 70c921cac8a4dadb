// Repeated calls of the paid tool, in every state of a request: no repetition leads to a second charge, and no terms are
// sent while a payment may be in progress.
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import type { Page } from '../site.ts'
import { harbourClaim, openScriptedFacilitator, PAGE, startSystem } from '../system.ts'
import {
  type CallOptions,
  callTool,
  expectCompleted,
  expectNonCompleted,
  KEY,
  openWallet,
  PAYMENT,
  payByClient,
  REPLAYED,
  sign,
  signOrder,
  TOKEN,
  type ToolResult,
  termsOf,
} from './paid-tool.ts'

const till = openScriptedFacilitator()
const system = await startSystem({ overrides: { facilitator: till } })
t.teardown(() => system[Symbol.asyncDispose]())
const twinTill = openScriptedFacilitator()
const twin = await system.openTwin({ facilitator: twinTill })
t.teardown(() => twin[Symbol.asyncDispose]())
const impatient = await system.openTwin({ facilitator: twinTill })
impatient.api.drain()
t.teardown(() => impatient[Symbol.asyncDispose]())
const url = system.url('/')
const settled = () => till.settled.length + twinTill.settled.length

const order = (page?: Page) => signOrder(system, page)

/** Calls a process that is draining and so makes no call wait. */
const askImpatiently = (call: CallOptions) => callTool(impatient.address, call)

t.test('completed: the same bytes, and nothing is settled again', async (t) => {
  const { held, paid, unpaid, args, terms } = await order()
  held.release()
  const { bytes } = expectCompleted(t, await callTool(url, paid))
  const before = settled()
  for (const again of [paid, unpaid]) {
    for (const at of [url, twin.address]) {
      const answer = await callTool(at, again)
      t.equal(expectCompleted(t, answer).bytes, bytes)
      t.equal(answer._meta?.[REPLAYED], true)
    }
  }
  const other = await openWallet().createPaymentPayload(terms)
  const conflict = await callTool(url, { args, meta: { ...unpaid.meta, [PAYMENT]: other } })
  expectNonCompleted(t, conflict, 'failed', 'payment_conflict')
  t.equal(settled(), before)
})

t.test('other arguments under the same key are a conflict', async (t) => {
  const { held, paid, args } = await order()
  const other = { ...paid, args: { ...args, claim: 'It has three piers.' } }
  expectNonCompleted(t, await callTool(url, other), 'failed', 'idempotency_conflict')
  held.release()
  expectCompleted(t, await callTool(url, paid))
  expectNonCompleted(t, await callTool(url, other), 'failed', 'idempotency_conflict')
})

t.test('pending: not an error, no terms, and the recovery token', async (t) => {
  const { held, paid, unpaid, args, terms } = await order()
  const waiting = callTool(url, paid)
  await held.reached
  const before = settled()
  const other = { args, meta: { ...unpaid.meta, [PAYMENT]: await openWallet().createPaymentPayload(terms) } }
  const tokens = new Set<unknown>()
  for (const again of [paid, unpaid, other, { args, meta: { ...unpaid.meta, [PAYMENT]: 'garbage' } }]) {
    const answer = await askImpatiently(again)
    expectNonCompleted(t, answer, 'pending', 'processing')
    t.equal(answer._meta?.[KEY], unpaid.meta[KEY])
    t.ok(Number(answer._meta?.['service/retry-after-seconds']) >= 1)
    t.notOk(answer._meta?.['x402/payment-response'])
    tokens.add(answer._meta?.[TOKEN])
  }
  t.equal(tokens.size, 1)
  const [token] = tokens
  expectNonCompleted(t, await askImpatiently({ args: {}, meta: { [TOKEN]: token } }), 'pending', 'processing')
  const client = await payByClient(
    (params) => askImpatiently({ args: params.arguments, meta: { ...params._meta, ...unpaid.meta } }),
    args,
  )
  expectNonCompleted(t, client, 'pending')
  t.equal(settled(), before)
  held.release()
  const { bytes } = expectCompleted(t, await waiting)
  t.equal(expectCompleted(t, await callTool(url, { args: {}, meta: { [TOKEN]: token } })).bytes, bytes)
  t.equal(settled(), before + 1)
})

t.test('every process answers waiting calls when the work is done', async (t) => {
  const { held, paid, unpaid } = await order()
  const waiting = [callTool(url, paid), held.reached.then(() => callTool(twin.address, unpaid))]
  await held.reached
  held.release()
  const answers = (await Promise.all(waiting)) as ToolResult[]
  t.equal(new Set(answers.map((answer) => expectCompleted(t, answer).bytes)).size, 1)
})

t.test('failed: the same failure again, and nothing is charged', async (t) => {
  const { held, paid, unpaid } = await order({ status: 404, body: 'no' })
  held.release()
  const before = settled()
  const first = await callTool(url, paid)
  const body = expectNonCompleted(t, first, 'failed', 'source_http_status')
  for (const again of [paid, unpaid]) t.same((await callTool(url, again)).structuredContent, body)
  t.equal(settled(), before)
})

t.test('settlement unknown: no call in any form gets terms', async (t) => {
  const { held, paid, unpaid, args, terms } = await order()
  const unresolved = Promise.withResolvers<undefined>()
  const reached = Promise.withResolvers<void>()
  const stall = async () => {
    reached.resolve()
    return unresolved.promise
  }
  // For any worker, at the first attempt and at each later one.
  till.outcomes.push(stall)
  twinTill.outcomes.push(stall)
  held.release()
  const waiting = callTool(url, paid)
  await reached.promise
  const fresh = { args, meta: { ...unpaid.meta, [PAYMENT]: await openWallet().createPaymentPayload(terms) } }
  const keyless = { args, meta: { [PAYMENT]: paid.meta[PAYMENT] } }
  for (const again of [paid, unpaid, fresh]) {
    expectNonCompleted(t, await askImpatiently(again), 'pending', 'settlement_unknown')
  }
  // The payment shows that it is bound to another key.
  expectNonCompleted(t, await askImpatiently(keyless), 'failed', 'payment_conflict')
  unresolved.resolve(undefined)
  expectCompleted(t, await waiting)
  till.outcomes.length = twinTill.outcomes.length = 0
})

t.test('provably unpaid: the terms again, and the work is not repeated', async (t) => {
  const { held, paid, unpaid, args } = await order()
  const unpaidOnce = () => ({ kind: 'unpaid' as const, reason: 'insufficient_funds' })
  till.outcomes.push(unpaidOnce)
  twinTill.outcomes.push(unpaidOnce)
  held.release()
  const refused = await callTool(url, paid)
  const terms = termsOf(refused)
  t.match(terms.error, /nothing was charged/i)
  till.outcomes.length = twinTill.outcomes.length = 0
  const again = { args, meta: { ...unpaid.meta, [PAYMENT]: await openWallet().createPaymentPayload(terms) } }
  expectCompleted(t, await callTool(url, again))
  const path = new URL(String(args.source_url)).pathname
  t.equal(system.site.requests.filter((asked) => asked === path).length, 1)
})

t.test('a payment that names the request of another payer gets terms for a new request', async (t) => {
  const path = `/${randomUUID()}`
  system.site.pages.set(path, { body: PAGE })
  const args = { ...harbourClaim(system.site), source_url: system.site.url(path) }
  const { payment, key } = await sign(url, { args })
  const { result } = expectCompleted(t, await callTool(url, { args, meta: { [KEY]: key, [PAYMENT]: payment } }))
  const { payment: own } = await sign(url, { args })
  const extra = { ...own.accepted.extra, memo: result.request_id }
  const accepted = { ...own.accepted, amount: '1', extra }
  const fished = await callTool(url, { args, meta: { [PAYMENT]: { ...own, accepted } } })
  t.ok(termsOf(fished))
  t.not(fished._meta?.[KEY], key)
})

t.test('fifty calls with one key at two services at once: one purchase', async (t) => {
  const { held, unpaid, args, terms } = await order()
  const before = settled()
  const wallets = await Promise.all(Array.from({ length: 50 }, () => openWallet().createPaymentPayload(terms)))
  const calls = wallets.map((payment, caller) => {
    const meta =
      caller % 5 === 0 ? unpaid.meta : { ...unpaid.meta, [PAYMENT]: caller % 2 ? payment : JSON.stringify(payment) }
    return callTool(caller % 2 ? url : twin.address, { args, meta, modern: caller % 3 === 0 })
  })
  await held.reached
  held.release()
  await expectOnePurchase(t, await Promise.all(calls), unpaid.meta[KEY])
  t.equal(settled(), before + 1)
})

async function expectOnePurchase(t: Test, answers: ToolResult[], key: string) {
  const bytes = new Set<string>()
  let asked = 0
  let conflicts = 0
  for (const answer of answers) {
    if (!answer.isError) bytes.add(expectCompleted(t, answer).bytes)
    // Before the first payment is bound, unpaid calls get the terms.
    else if ((answer.structuredContent as { x402Version?: number }).x402Version)
      asked += Number(termsOf(answer) !== null)
    else conflicts += Number(expectNonCompleted(t, answer, 'failed', 'payment_conflict') !== null)
  }
  t.equal(bytes.size, 1, `${asked} got terms, ${conflicts} brought another payment too late`)
  t.ok(asked <= 10)
  const hash = `sha256(convert_to('${key}', 'UTF8'))`
  const rows = await system.sql(`
    select l.outcome from payment_ledger l join verification_requests r on r.id = l.request_id where r.key_hash = ${hash}`)
  t.same(rows, [{ outcome: 'settled' }])
}
