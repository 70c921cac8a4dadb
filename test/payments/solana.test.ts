// The payment faults on Solana: a stock client with a Solana wallet, the packages' own facilitator, a ledger in memory.
import { randomBytes } from 'node:crypto'
import { generateKeyPairSigner, getBase58Decoder } from '@solana/kit'
import { decodePaymentRequiredHeader, decodePaymentResponseHeader } from '@x402/core/http'
import t, { type Test } from 'tap'
import { SOLANA_DEVNET } from '../../server/interface/networks.ts'
import { completedResult } from '../../server/interface/result.ts'
import { openSolanaNetwork } from '../../server/payments/chains/solana.ts'
import { inspectPayments, openLiveFacilitator } from '../../server/payments/facilitators/live-setup.ts'
import { reconcile } from '../../server/payments/reconciliation.ts'
import { openLog } from '../../server/telemetry.ts'
import { openEvmChain } from './evm-chain.ts'
import { claims, type Deed, deeds } from './evm-facilitator.ts'
import { openSolanaHarness } from './solana-harness.ts'
import type { Purchase } from './test-purchase.ts'

const harness = await openSolanaHarness()
t.teardown(() => harness[Symbol.asyncDispose]())
const { ledger } = harness

async function expectPaid(t: Test, order: Purchase, response: Response) {
  t.equal(response.status, 200, await response.clone().text())
  const { payment } = completedResult.parse(await response.json())
  t.equal(await order.spent(), 30_000n, 'charged exactly once')
  t.equal(await order.earned(), 30_000n)
  t.match(payment, { network: SOLANA_DEVNET, mode: 'testnet', simulated: false, facilitator_fee_usd: null })
  const header = decodePaymentResponseHeader(response.headers.get('payment-response') ?? '')
  t.match(header, { success: true, network: SOLANA_DEVNET, transaction: payment.transaction ?? '' })
  const [landed] = ledger.landed.filter(({ signature }) => signature === payment.transaction)
  t.match(
    landed,
    { memo: await order.requestId, err: null },
    'the named transaction is on the ledger, for this request',
  )
  t.equal(order.fetches(), 1, 'the work was done once')
}

async function expectPending(t: Test, order: Purchase) {
  const answers = [await order.buy(), await order.ask(), await harness.recover(await order.requestId)]
  t.same(
    answers.map((answer) => answer.status),
    [202, 202, 202],
  )
  t.equal(order.signatures.length, 1)
}

t.test('a stock client buys', async (t) => {
  const order = await harness.order()
  await expectPaid(t, order, await order.buyAndWait())
  t.equal((await order.buy()).headers.get('x-service-idempotent-replay'), 'true')
})

const lost: [about: string, deed: Deed, settles: number][] = [
  ['the answer is lost after the transaction was sent', deeds.lostAfter, 1],
  ['the answer is not JSON', deeds.notJsonAfter, 1],
  [
    'two settlements at once, the answer of the one that is refused as a duplicate',
    async (call) => {
      const answers = await Promise.all([call.perform(), call.perform()])
      call.answer(200, answers.find((answer) => !answer.success) ?? answers[0])
    },
    1,
  ],
]
for (const [about, deed, settles] of lost) {
  t.test(`${about}: found by the memo`, async (t) => {
    const order = await harness.order()
    harness.facilitator.asked.settle = 0
    harness.facilitator.script.push(deed)
    await expectPaid(t, order, await order.buyAndWait())
    t.equal(harness.facilitator.asked.settle, settles)
  })
}

t.test('the answer is lost before: open, and settled within the life of the blockhash', async (t) => {
  const order = await harness.order()
  harness.facilitator.script.push(deeds.lostBefore)
  await order.buy()
  await harness.inDoubt(order)
  await expectPending(t, order)
  await harness.hurry()
  await expectPaid(t, order, await order.buyAndWait())
  t.equal(order.signatures.length, 1)
})

t.test('landed, but not known to the node yet', async (t) => {
  const order = await harness.order()
  harness.facilitator.script.push(async (call) => {
    const performed = call.perform()
    await performed.catch(() => {})
    ledger.confirms = false
    call.drop()
  })
  await order.buy()
  await harness.inDoubt(order)
  await expectPending(t, order)
  ledger.confirms = true
  await harness.hurry()
  await expectPaid(t, order, await order.buyAndWait())
})

t.test('not sent until the blockhash expired: provably unpaid, then paid again with the work kept', async (t) => {
  const order = await harness.order()
  harness.facilitator.script.push(deeds.neverSends)
  await order.buy()
  await harness.inDoubt(order)
  await expectPending(t, order)
  ledger.expireBlockhash()
  await harness.hurry()
  const unpaid = await harness.recover(await order.requestId, { prefer: 'wait=25' })
  t.equal(unpaid.status, 402)
  t.match(await unpaid.json(), { error: { code: 'settlement_failed' } })
  t.equal(await order.spent(), 0n)
  await expectPaid(t, order, await order.buyAndWait())
  t.equal(order.signatures.length, 2)
  const booked = await harness.system.sql(
    'select outcome, reason from payment_ledger where request_id = $1 order by entry',
    [await order.requestId],
  )
  t.same(booked, [
    { outcome: 'unpaid', reason: 'transaction_expired' },
    { outcome: 'settled', reason: null },
  ])
})

t.test('a success that the ledger does not show does not count, and a true one after it does', async (t) => {
  const bought = await harness.order()
  const { payment } = completedResult.parse(await (await bought.buyAndWait()).json())
  const other = await generateKeyPairSigner()
  const lies: Record<string, Deed> = {
    'the transaction of another request': claims(payment.transaction ?? ''),
    'the same once more': claims(payment.transaction ?? ''),
    'a transaction that does not exist': claims(getBase58Decoder().decode(randomBytes(64))),
    'a transaction of another form': claims(await ledger.landMemo()),
    'no transaction': claims(''),
    'a text that is no transaction': claims('1'.repeat(87)),
    'another payer': claims(payment.transaction ?? '', { payer: other.address }),
  }
  for (const [about, lie] of Object.entries(lies)) {
    const order = await harness.order()
    harness.facilitator.script.push(lie)
    await order.buy()
    await harness.inDoubt(order)
    await expectPending(t, order)
    t.same(await bookOf(order), [], about)
    await harness.system.sql(
      `update verification_requests set settlement_intent = jsonb_set(settlement_intent::jsonb, '{denied_at}', '1')::json
       where id = $1`,
      [await order.requestId],
    )
    await harness.hurry()
    await expectPaid(t, order, await order.buyAndWait())
    t.match(await bookOf(order), [{ outcome: 'settled', proof: 'chain', log_index: 0 }], about)
  }
})

async function bookOf(order: Purchase) {
  return harness.system.sql(
    'select outcome, proof, log_index from payment_ledger where request_id = $1 order by entry',
    [await order.requestId],
  )
}

t.test('a success while the node does not answer counts, and is booked as unconfirmed', async (t) => {
  const order = await harness.order()
  harness.facilitator.script.push(async (call) => {
    harness.rpc.shut = true
    await deeds.settles(call)
  })
  await expectPaid(t, order, await order.buyAndWait())
  harness.rpc.shut = false
  t.match(await bookOf(order), [{ outcome: 'settled', proof: 'unconfirmed', log_index: null }])
})

t.test('the node is down during reconciliation', async (t) => {
  const order = await harness.order()
  harness.facilitator.script.push(async (call) => {
    harness.rpc.shut = true
    await deeds.lostAfter(call)
  })
  await order.buy()
  await harness.inDoubt(order)
  await expectPending(t, order)
  harness.rpc.shut = false
  await harness.hurry()
  await expectPaid(t, order, await order.buyAndWait())
})

t.test('a payment pays for its own request only', async (t) => {
  const order = await harness.order()
  const header = await order.sign(await order.ask())
  const other = await harness.order()
  const { status } = await other.ask({ 'payment-signature': header })
  t.equal(status, 402, 'the memo is of another request')
  t.equal(other.fetches(), 0)

  const payment = JSON.parse(Buffer.from(header, 'base64').toString())
  const terms = decodePaymentRequiredHeader((await other.ask()).headers.get('payment-required') ?? '')
  const renamed = Buffer.from(JSON.stringify({ ...payment, accepted: terms.accepts[0] })).toString('base64')
  const refused = await other.ask({ 'payment-signature': renamed })
  t.equal(refused.status, 402)
  t.match(await refused.json(), { error: { code: 'payment_invalid', message: /memo/ } })
  for (const transaction of ['', 'AAAA', randomBytes(400).toString('base64')]) {
    const broken = { ...payment, payload: { transaction } }
    const answer = await order.ask({ 'payment-signature': Buffer.from(JSON.stringify(broken)).toString('base64') })
    t.equal(answer.status, 402)
    t.match(await answer.json(), { error: { code: 'payment_invalid', message: /not a Solana transaction/ } })
  }
  t.equal((await order.ask({ 'payment-signature': header, prefer: 'wait=25' })).status, 200, 'and pays for that one')
})

t.test('the payer gets the status by the signature on the transaction', async (t) => {
  const order = await harness.order()
  await order.buyAndWait()
  const url = harness.system.url('/api/agent/v1/payments')
  const answer = await fetch(url, { headers: { 'payment-signature': order.signatures[0] ?? '' } })
  t.equal(answer.status, 200)
  t.match(await answer.json(), { request_id: await order.requestId, payments: [{ fate: 'delivered', charged: true }] })
  const unused = await harness.order()
  const header = await unused.sign(await unused.ask())
  t.equal((await fetch(url, { headers: { 'payment-signature': header } })).status, 404, 'this service never got it')
})

t.test('the ledger agrees with the chain', async (t) => {
  const network = await openSolanaNetwork({
    id: SOLANA_DEVNET,
    payTo: harness.payTo,
    rpcUrl: ledger.url,
    proves: true,
  })
  const { db } = harness.system.service.work
  const result = await reconcile(db, [network])
  t.match(result, { differs: [], open: [], unbooked: [] })
  const [{ n } = { n: 0 }] = await harness.system.sql('select count(*)::int n from payment_ledger')
  t.equal(result.agrees, n)
  await harness.system.sql(
    `update payment_ledger set reconciled_at = null, chain_says = null, nonce = 'x' where entry = 1`,
  )
  t.match((await reconcile(db, [network])).differs, [{ entry: 1 }])
})

t.test('no transaction is stored or logged in a form that could be sent', async (t) => {
  const order = await harness.order()
  harness.facilitator.script.push(deeds.lostBefore)
  await order.buy()
  await harness.inDoubt(order)
  await harness.hurry()
  await order.buyAndWait()
  const { payload } = JSON.parse(Buffer.from(order.signatures[0] ?? '', 'base64').toString())
  const log = JSON.stringify(harness.logLines.lines)
  const rows = await harness.system.sql('select r::text from verification_requests r')
  for (const text of [log, JSON.stringify(rows)]) {
    t.notOk(text.includes(payload.transaction.slice(0, 80)))
    t.notOk(text.includes(order.signatures[0]?.slice(200, 280) ?? ''))
  }
})

t.test('a wrong setup is refused with its cure', async (t) => {
  const config = {
    paymentMode: 'testnet' as const,
    facilitatorUrl: harness.facilitator.url,
    cdpKey: undefined,
    payToEvm: undefined,
    payToSolana: harness.payTo as string,
    evmRpcUrl: undefined,
    solanaRpcUrl: ledger.url,
  }
  t.same(
    (await inspectPayments(config)).map(({ verdict }) => verdict),
    ['right', 'right', 'right'],
  )
  const nobody = (await generateKeyPairSigner()).address
  const open = (changes: Partial<typeof config>) => openLiveFacilitator({ ...config, ...changes }, openLog('silent'))
  await t.rejects(open({ payToSolana: nobody }), {
    message: /PAY_TO_SOLANA: has no USDC account.*spl-token create-account/,
  })
  ledger.genesis = '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d'
  await t.rejects(open({}), { message: /SOLANA_RPC_URL/ })
  ledger.genesis = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG'
})

t.test('both networks: Base comes first, and a Solana wallet uses the second', async (t) => {
  await using chain = await openEvmChain('eip155:84532')
  await using both = await openSolanaHarness(chain)
  const order = await both.order()
  const terms = decodePaymentRequiredHeader((await order.ask()).headers.get('payment-required') ?? '')
  t.match(terms.accepts, [
    { network: 'eip155:84532', extra: { name: 'USDC', version: '2' } },
    { network: SOLANA_DEVNET, extra: { memo: await order.requestId, feePayer: both.facilitator.feePayer } },
  ])
  t.equal((await order.buyAndWait()).status, 200)
  t.equal(await order.earned(), 30_000n)
})
