// A facilitator receives, and the database stores, only the checked members of a payment and this service's own terms; nothing
// else that a caller wrote.
import { randomUUID } from 'node:crypto'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { appendPaymentIdentifierToExtensions } from '@x402/extensions/payment-identifier'
import { x402Client } from '@x402/fetch'
import t, { type Test } from 'tap'
import { openPayload } from '../../server/payments/seal.ts'
import { callTool, PAYMENT, termsOf } from '../mcp/paid-tool.ts'
import { harbourClaim, VERIFY } from '../system.ts'
import { deeds } from './evm-facilitator.ts'
import { openEvmHarness, PRICE, type Purchase } from './evm-harness.ts'
import { openSolanaHarness } from './solana-harness.ts'

const harness = await openEvmHarness()
t.teardown(() => harness[Symbol.asyncDispose]())
const { received } = harness.facilitator

// biome-ignore lint/suspicious/noExplicitAny: payments that are wrong on purpose
type Loose = any
const read = (header: string): Loose => JSON.parse(Buffer.from(header, 'base64').toString())
const encode = (payment: unknown) => Buffer.from(JSON.stringify(payment)).toString('base64')

/** A purchase whose payment was changed after a stock client signed it. */
async function openChanged(
  change: (payment: Loose) => void,
  { orders = harness as { order(): Promise<Purchase> } } = {},
) {
  const order = await orders.order()
  const asked = await order.ask()
  const { payment_required: terms } = (await asked.clone().json()) as Loose
  const payment = read(await order.sign(asked))
  change(payment)
  received.length = 0
  return { order, terms, headers: { 'payment-signature': encode(payment) } }
}

const members: [about: string, change: (payment: Loose) => void][] = [
  [
    'a Permit2 authorization beside the one that is checked',
    ({ payload }) => {
      payload.permit2Authorization = {
        permitted: { token: harness.chain.token, amount: `${PRICE}` },
        from: payload.authorization.from,
        spender: '0x402085c248EeA27D92E8b30b2C58ed07f9E20001',
        nonce: '1',
        deadline: payload.authorization.validBefore,
        witness: { to: harness.payTo, validAfter: '0' },
      }
    },
  ],
  [
    'an unknown member',
    ({ payload }) => {
      payload.more = 1
    },
  ],
  [
    'a further member of the authorization',
    ({ payload }) => {
      payload.authorization.salt = '0x00'
    },
  ],
]

for (const [about, change] of members)
  t.test(`${about} is refused, and not sent to the facilitator`, async (t) => {
    const { order, headers } = await openChanged(change)
    const refused = await order.ask(headers)
    t.equal(refused.status, 402)
    t.match(await refused.json(), { error: { code: 'payment_invalid' } })
    t.same(received, [])
    const { body } = order
    const payments = harness.system.url('/api/agent/v1/payments')
    t.equal((await fetch(payments, { headers })).status, 404)
    const answer = await callTool(harness.system.url('/'), {
      args: body,
      meta: { [PAYMENT]: read(headers['payment-signature']) },
    })
    t.equal(termsOf(answer).x402Version, 2, 'over MCP: the terms again')
    t.same(received, [])
  })

const FOREIGN = {
  url: 'https://elsewhere.example/paid',
  description: 'Buy here',
  serviceName: 'Elsewhere',
  tags: ['x'],
}

/** Changes to the caller's copy of the resource, extensions and terms. */
function embellish(payment: Loose) {
  payment.resource = FOREIGN
  payment.extensions.bazaar.routeTemplate = 'https://elsewhere.example/:anything'
  payment.extensions.bazaar.schema = { elsewhere: true }
  payment.extensions.elsewhere = { info: { text: 'elsewhere' } }
  payment.accepted.extra.elsewhere = 1
  payment.elsewhere = 1
}

function expectOwn(t: Test, given: Loose, expected: { payload: unknown; terms: Loose }, about: string) {
  const { terms, payload } = expected
  t.same(
    given,
    {
      x402Version: 2,
      resource: terms.resource,
      accepted: terms.accepts[0],
      payload,
      extensions: terms.extensions,
    },
    about,
  )
}

t.test("the facilitator receives the service's own resource, extensions and terms", async (t) => {
  const { order, terms, headers } = await openChanged(embellish)
  const { signature, authorization } = read(headers['payment-signature']).payload
  const payload = { signature, authorization }
  harness.facilitator.script.push(deeds.lostBefore)
  t.equal((await order.ask(headers)).status, 202)
  await harness.inDoubt(order)
  const id = await order.requestId
  const [row] = await harness.system.sql(
    'select payment_sealed, payment::text from verification_requests where id = $1',
    [id],
  )
  const kept = openPayload(harness.system.service.work.secrets.payload, id, row?.payment_sealed as Buffer)
  expectOwn(t, kept, { payload, terms }, 'kept')
  t.notMatch(row?.payment as string, 'elsewhere')
  await harness.hurry()
  t.equal((await order.ask({ prefer: 'wait=25' })).status, 200)
  t.same(
    received.map(({ path }) => path),
    ['/verify', '/settle', '/settle'],
  )
  for (const { path, paymentPayload, paymentRequirements } of received) {
    expectOwn(t, paymentPayload, { payload, terms }, path)
    t.same(paymentRequirements, terms.accepts[0], path)
  }
  t.same(Object.keys(authorization).sort(), ['from', 'nonce', 'to', 'validAfter', 'validBefore', 'value'])
})

t.test('a payment without an echo is passed on with the listing too', async (t) => {
  const { order, terms, headers } = await openChanged((payment) => {
    delete payment.resource
    delete payment.extensions
  })
  t.equal((await order.ask({ ...headers, prefer: 'wait=25' })).status, 200)
  for (const { path, paymentPayload } of received)
    t.match(paymentPayload, { resource: terms.resource, extensions: terms.extensions }, path)
})

t.test('the payment identifier of a client is passed on', async (t) => {
  const id = `pay_${randomUUID()}`
  const { order, terms, headers } = await openChanged(({ extensions }) => {
    appendPaymentIdentifierToExtensions(extensions, id)
    extensions['payment-identifier'].info.more = 'elsewhere'
  })
  t.equal((await order.ask({ ...headers, prefer: 'wait=25' })).status, 200)
  const offered = terms.extensions['payment-identifier']
  for (const { path, paymentPayload } of received)
    t.same(paymentPayload.extensions?.['payment-identifier'], { ...offered, info: { required: false, id } }, path)
})

t.test('a payment over MCP is passed on with the listing of the tool', async (t) => {
  const wallet = await harness.chain.openAccount()
  await harness.chain.mint(wallet.address, PRICE)
  const client = new x402Client().register(harness.chain.network, new ExactEvmScheme(wallet))
  const args = harbourClaim(harness.system.site)
  const terms = termsOf(await callTool(harness.system.url('/'), { args }))
  t.match(terms.extensions, { 'payment-identifier': { info: { required: false } } })
  const payment: Loose = structuredClone(await client.createPaymentPayload(terms))
  payment.extensions.bazaar.routeTemplate = 'elsewhere'
  payment.resource.description = 'elsewhere'
  received.length = 0
  const bought = await callTool(harness.system.url('/'), { args, meta: { [PAYMENT]: payment } })
  t.notOk(bought.isError)
  t.same(
    received.map(({ path }) => path),
    ['/verify', '/settle'],
  )
  for (const { path, paymentPayload } of received)
    t.match(paymentPayload, { resource: terms.resource, extensions: terms.extensions }, path)
  t.notMatch(JSON.stringify(received), 'elsewhere')
  t.notMatch(JSON.stringify(received), VERIFY)
})

t.test('of a Solana payment only the transaction is passed on', async (t) => {
  await using solana = await openSolanaHarness()
  const { received } = solana.facilitator
  const more = await openChanged(
    ({ payload }) => {
      payload.permit2Authorization = {}
    },
    { orders: solana as Loose },
  )
  received.length = 0
  t.equal((await more.order.ask(more.headers)).status, 402)
  t.same(received, [])
  const { order, terms, headers } = await openChanged(embellish, { orders: solana as Loose })
  const { transaction } = read(headers['payment-signature']).payload
  const answer = await order.ask({ ...headers, prefer: 'wait=25' })
  t.equal(answer.status, 200, await answer.text())
  t.same(
    received.map(({ path }) => path),
    ['/verify', '/settle'],
  )
  for (const { path, paymentPayload } of received)
    expectOwn(t, paymentPayload, { payload: { transaction }, terms }, path)
})
