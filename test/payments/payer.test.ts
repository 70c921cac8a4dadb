// The payer is proved before anything is looked up by payer, and by the service itself if that needs no outside call.
import { randomBytes, randomUUID } from 'node:crypto'
import { generateKeyPairSigner } from '@solana/kit'
import { appendPaymentIdentifierToExtensions } from '@x402/extensions/payment-identifier'
import t, { type Test } from 'tap'
import { privateKeyToAddress } from 'viem/accounts'
import { holdPage } from '../site.ts'
import { type EvmHarness, openEvmHarness } from './evm-harness.ts'
import { openSolanaHarness } from './solana-harness.ts'

const harness = await openEvmHarness()
t.teardown(() => harness[Symbol.asyncDispose]())
const nodeless = await openEvmHarness({ nodeless: true })
t.teardown(() => nodeless[Symbol.asyncDispose]())

// biome-ignore lint/suspicious/noExplicitAny: payments that are wrong on purpose
type Loose = any
const read = (header: string): Loose => JSON.parse(Buffer.from(header, 'base64').toString())
const encode = (payment: unknown) => Buffer.from(JSON.stringify(payment)).toString('base64')
const randomSignature = (bytes: number) => `0x${randomBytes(bytes).toString('hex')}`
const asValid = (payload: Loose) => ({
  status: 200,
  body: { isValid: true, payer: payload.payload.authorization.from },
})

/** The code of a contract wallet that accepts every signature: it always answers ERC-1271's magic value. */
const TAKES_ANY = '0x631626ba7e60e01b60005260206000f3'
const TAKES_NONE = '0x60206000f3'

/** The address of a deployed contract. */
async function openContract({ chain }: EvmHarness, bytecode: `0x${string}`): Promise<string> {
  const address = privateKeyToAddress(`0x${randomBytes(32).toString('hex')}`)
  await chain.controls.setCode({ address, bytecode })
  return address
}

/** A purchase paid in the name of another address, with a signature of so many bytes. */
async function payAs(where: EvmHarness, from: string, bytes: number, change: (payment: Loose) => void = () => {}) {
  const order = await where.order()
  const payment = read(await order.sign(await order.ask()))
  payment.payload.authorization.from = from
  payment.payload.signature = randomSignature(bytes)
  change(payment)
  return { order, payment, headers: { 'payment-signature': encode(payment) } }
}

/** Checks that neither facilitator nor node got a call. */
async function asksNoOne(t: Test, { facilitator, rpc }: EvmHarness, call: () => Promise<void>) {
  facilitator.received.length = 0
  rpc.calls.length = 0
  await call()
  t.same(facilitator.received, [], 'the facilitator was not asked')
  t.same(rpc.calls, [], 'the node was not asked')
}

async function expectRefused(t: Test, answer: Response, message: RegExp) {
  t.equal(answer.status, 402)
  const text = await answer.text()
  t.match(JSON.parse(text), { error: { code: 'payment_invalid', message } })
}

t.test("a key's signature that is not the payer's is refused without asking the facilitator", async (t) => {
  const victim = (await harness.chain.openAccount()).address
  const { order, headers } = await payAs(harness, victim, 65)
  harness.facilitator.verdicts.push(asValid)
  await asksNoOne(t, harness, async () => {
    await expectRefused(t, await order.ask(headers), /not signed by its payer/)
    const payments = await fetch(harness.system.url('/api/agent/v1/payments'), { headers })
    t.equal(payments.status, 404)
  })
  harness.facilitator.verdicts.length = 0
})

/** A completed purchase whose payment has an identifier. */
async function buyNamed(where: EvmHarness) {
  const order = await where.order()
  const name = `pay_${randomUUID()}`
  const payment = read(await order.sign(await order.ask()))
  appendPaymentIdentifierToExtensions(payment.extensions, name)
  const headers = { 'payment-signature': encode(payment) }
  t.equal((await order.ask({ ...headers, prefer: 'wait=25' })).status, 200)
  return { order, name, payment, headers }
}

function post(where: EvmHarness, body: unknown, headers: Record<string, string>) {
  return fetch(where.system.url('/api/agent/v1/verify-source'), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID(), ...headers },
    body: JSON.stringify(body),
  })
}

t.test(
  'a caller who names another payer, its payment and its request gets nothing without its signature',
  async (t) => {
    const bought = await buyNamed(harness)
    const { from } = bought.payment.payload.authorization
    for (const bytes of [65, 66, 500]) {
      const forged = await payAs(harness, from, bytes, ({ extensions }) => {
        appendPaymentIdentifierToExtensions(extensions, bought.name)
      })
      const again = await payAs(harness, from, bytes, ({ payload }) => {
        payload.authorization = bought.payment.payload.authorization
      })
      harness.facilitator.verdicts.push(asValid, asValid)
      for (const { headers } of [forged, again]) {
        const answer = await post(harness, bought.order.body, headers)
        t.equal(answer.headers.get('x-service-recovery-token'), null)
        await expectRefused(t, answer, /not signed by its payer/)
      }
      harness.facilitator.verdicts.length = 0
    }
  },
)

t.test(
  'without a node, an identifier is looked up only after the facilitator has proved a contract wallet',
  async (t) => {
    const bought = await buyNamed(nodeless)
    const { from } = bought.payment.payload.authorization
    const forge = () =>
      payAs(nodeless, from, 200, ({ extensions }) => {
        appendPaymentIdentifierToExtensions(extensions, bought.name)
      })
    const refused = await forge()
    await expectRefused(t, await post(nodeless, bought.order.body, refused.headers), /was not accepted/)
    for (const [payer, status] of [
      [undefined, 402],
      ['', 402],
      [(await nodeless.chain.openAccount()).address, 503],
    ] as const) {
      const { headers } = await forge()
      nodeless.facilitator.verdicts.push(() => ({ status: 200, body: { isValid: true, payer } }))
      const answer = await post(nodeless, bought.order.body, headers)
      t.equal(answer.status, status, `the facilitator names ${payer || 'no payer'}`)
      t.equal(answer.headers.get('x-service-recovery-token'), null)
    }
    const proved = await forge()
    nodeless.facilitator.verdicts.push(asValid)
    t.equal((await post(nodeless, bought.order.body, proved.headers)).status, 200, 'its word is what there is')
  },
)

t.test('a facilitator that names another payer than the signer is not believed', async (t) => {
  const order = await harness.order()
  harness.facilitator.verdicts.push(() => ({ status: 200, body: { isValid: true, payer: harness.payTo } }))
  t.equal((await order.buy()).status, 503)
  t.equal((await order.buyAndWait()).status, 200, 'until it names the right one')
})

t.test('a contract wallet is asked on the configured node before the facilitator is asked', async (t) => {
  const wallet = await openContract(harness, TAKES_ANY)
  const other = await openContract(harness, TAKES_NONE)
  const refused = await payAs(harness, other, 100)
  harness.facilitator.received.length = 0
  await expectRefused(t, await refused.order.ask(refused.headers), /not signed by its payer/)
  t.same(harness.facilitator.received, [])
  const accepted = await payAs(harness, wallet, 100)
  // The page is held during the checks: nothing settles, and no later call to the chain disturbs another test.
  const page = holdPage({ status: 404, body: '' })
  harness.system.site.pages.set(new URL(accepted.order.body.source_url).pathname, page.page)
  harness.facilitator.verdicts.push(asValid)
  t.equal((await accepted.order.ask(accepted.headers)).status, 202)
  await page.reached

  const payments = harness.system.url('/api/agent/v1/payments')
  await asksNoOne(t, harness, async () => {
    const known = await fetch(payments, { headers: accepted.headers })
    t.equal(known.status, 200, 'known by its signature')
    const elsewhere = await post(harness, accepted.order.body, accepted.headers)
    t.equal(elsewhere.status, 409)
    t.match(await elsewhere.json(), { error: { code: 'payment_conflict' } })
    const repeated = await accepted.order.ask(accepted.headers)
    t.equal(repeated.status, 202)
  })
  page.release()
  t.equal((await accepted.order.ask({ ...accepted.headers, prefer: 'wait=20' })).status, 422)
  harness.rpc.shut = true
  const away = await payAs(harness, wallet, 100)
  t.equal((await away.order.ask(away.headers)).status, 503)
  harness.rpc.shut = false
})

t.test('an impossible signature or wrong terms are refused without a call', async (t) => {
  const wallet = await openContract(harness, TAKES_ANY)
  const changes: [about: string, bytes: number, change: (payment: Loose) => void][] = [
    ['too short', 64, () => {}],
    ['longer than any wallet signs', 4097, () => {}],
    [
      'half a byte',
      100,
      ({ payload }) => {
        payload.signature += '0'
      },
    ],
    [
      'another value',
      100,
      ({ payload }) => {
        payload.authorization.value = '29999'
      },
    ],
    [
      'another recipient',
      100,
      ({ payload }) => {
        payload.authorization.to = wallet
      },
    ],
    [
      'expired',
      100,
      ({ payload }) => {
        payload.authorization.validBefore = '1'
      },
    ],
    [
      'a short nonce',
      100,
      ({ payload }) => {
        payload.authorization.nonce = '0x01'
      },
    ],
    [
      'terms that are not ours',
      100,
      ({ accepted }) => {
        accepted.amount = '1'
      },
    ],
  ]
  for (const [about, bytes, change] of changes) {
    const { order, headers } = await payAs(harness, wallet, bytes, change)
    await asksNoOne(t, harness, async () => {
      t.equal((await order.ask(headers)).status, 402, about)
    })
  }
})

t.test("on Solana the payer's signature is checked here too", async (t) => {
  await using solana = await openSolanaHarness()
  const order = await solana.order()
  const other = (await generateKeyPairSigner()).address
  const payment = read(await order.sign(await order.ask()))
  const bytes = Buffer.from(payment.payload.transaction, 'base64')
  // One byte for the number of signatures, the empty one of the fee payer, then the payer's.
  bytes[1 + 64] = (bytes[1 + 64] ?? 0) ^ 1
  const forged = { ...payment, payload: { transaction: bytes.toString('base64') } }
  solana.facilitator.verdicts.push(() => ({ status: 200, body: { isValid: true, payer: other } }))
  solana.facilitator.received.length = 0
  solana.rpc.calls.length = 0
  await expectRefused(t, await order.ask({ 'payment-signature': encode(forged) }), /not signed by its payer/)
  t.same(solana.facilitator.received, [])
  t.same(solana.rpc.calls, [])
  const misnamed = await order.ask({ 'payment-signature': encode(payment) })
  t.equal(misnamed.status, 503, 'the facilitator names another payer')
  t.equal((await order.ask({ 'payment-signature': encode(payment), prefer: 'wait=25' })).status, 200)
})
