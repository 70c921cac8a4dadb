// A facilitator that reports false successes. No result is delivered unless the chain shows its payment, no caller is asked
// to pay while the outcome is open, and in the end an uncharged payment is proved unpaid.
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import type { Hex } from 'viem'
import { openLiveFacilitator } from '../../server/payments/facilitators/live-setup.ts'
import { openLog } from '../../server/telemetry.ts'
import { readAuthorization, type Signed, transferArguments } from './authorizations.ts'
import { claims, type Deed, deeds } from './evm-facilitator.ts'
import { type EvmHarness, openEvmHarness, PRICE, type Purchase } from './evm-harness.ts'

const harness = await openEvmHarness()
t.teardown(() => harness[Symbol.asyncDispose]())

const RESOURCE = { url: 'https://shop.example/', description: 'A test', assessment: 'literal' } as const
const newHash = (): Hex => `0x${randomBytes(32).toString('hex')}`
const read = (header = '') => JSON.parse(Buffer.from(header, 'base64').toString())

async function transactionOf(answer: Response): Promise<string> {
  const { payment } = (await answer.json()) as { payment: { transaction: string } }
  return payment.transaction
}

/** Checks every way of asking: no result, no ledger entry, no 402. */
async function expectHeld(t: Test, where: EvmHarness, order: Purchase, about: string) {
  const id = await order.requestId
  const answers = [await order.buy(), await order.ask(), await where.recover(id)]
  t.same(
    answers.map(({ status }) => status),
    [202, 202, 202],
    about,
  )
  for (const answer of answers) t.match(await answer.json(), { error: { code: 'settlement_unknown' } }, about)
  t.equal(order.signatures.length, 1, `${about}: nothing is signed again`)
  t.same(await bookOf(where, order), [], `${about}: nothing is booked`)
}

async function bookOf(where: EvmHarness, order: Purchase) {
  return where.system.sql(
    'select outcome, transaction, proof, log_index from payment_ledger where request_id = $1 order by entry',
    [await order.requestId],
  )
}

/** Moves the contradiction back, so that the settlement is requested again. */
async function passDenial(where: EvmHarness, order: Purchase) {
  await where.system.sql(
    `update verification_requests
     set settlement_intent = jsonb_set(settlement_intent::jsonb, '{denied_at}', to_jsonb((settlement_intent ->> 'denied_at')::int - 60))::json
     where id = $1 and settlement_intent ->> 'denied_at' is not null`,
    [await order.requestId],
  )
}

/** False successes: transactions that do not pay this purchase. */
async function openLies(order: Purchase): Promise<Record<string, Deed>> {
  const { chain } = harness
  const bought = await harness.order()
  const theirs = await transactionOf(await bought.buyAndWait())
  const direct = await chain.send('transfer', [harness.payTo, PRICE], chain.walletOf(bought.wallet))
  // With a fixed gas limit, a failing call is mined.
  const failed = await chain
    .walletOf(bought.wallet)
    .sendTransaction({ to: chain.token, data: '0x12345678', gas: 100_000n })
  await chain.receiptOf(failed)
  return {
    'the transaction of another request': claims(theirs, { payer: order.wallet.address }),
    'the same again, in capitals': claims(`0x${theirs.slice(2).toUpperCase()}`),
    'a transaction that failed': claims(failed),
    'a transaction that does not exist': claims(newHash()),
    'a plain transfer of the price': claims(direct.transactionHash),
    'no transaction': claims(''),
    'text in place of a transaction': claims('paid'),
    'another payer': async (call) => claims(theirs, { payer: bought.wallet.address })(call),
    'another network': (call) => call.answer(200, { success: true, transaction: theirs, network: 'eip155:8453' }),
  }
}

t.test('a success that the chain does not show does not count, and a true one after it does', async (t) => {
  const names = Object.keys(await openLies(await harness.order()))
  for (const name of names) {
    const order = await harness.order()
    const lie = (await openLies(order))[name] as Deed
    harness.facilitator.script.push(lie)
    await order.buy()
    await harness.inDoubt(order)
    await expectHeld(t, harness, order, name)
    harness.facilitator.script.push(lie)
    await passDenial(harness, order)
    await harness.hurry()
    await harness.inDoubt(order)
    await expectHeld(t, harness, order, `${name}, twice`)
    await passDenial(harness, order)
    await harness.hurry()
    const paid = await order.buyAndWait()
    t.equal(paid.status, 200, name)
    const transaction = await transactionOf(paid)
    const { logs } = await harness.chain.reader.getTransactionReceipt({ hash: transaction as Hex })
    t.same(
      await bookOf(harness, order),
      [{ outcome: 'settled', transaction, proof: 'chain', log_index: logs[0]?.logIndex }],
      name,
    )
    t.equal(await order.spent(), PRICE, `${name}: charged once`)
  }
})

t.test(
  'a false success is proved unpaid when the authorization expires, and only then is a new payment asked for',
  async (t) => {
    const order = await harness.order()
    const before = await harness.chain.controls.snapshot()
    harness.facilitator.script.push(claims(newHash()))
    await order.buy()
    await harness.inDoubt(order)
    await expectHeld(t, harness, order, 'open')
    const { validBefore } = readAuthorization(read(order.signatures[0]).payload)
    await harness.chain.passTime(Number(validBefore))
    await harness.hurry()
    const unpaid = await harness.recover(await order.requestId, { prefer: 'wait=25' })
    t.equal(unpaid.status, 402)
    t.match(await unpaid.json(), { error: { code: 'settlement_failed' } })
    t.equal(await order.spent(), 0n)
    await harness.chain.controls.revert({ id: before })
  },
)

t.test('a true success, on a node that is some blocks behind, is found and not requested again', async (t) => {
  const order = await harness.order()
  harness.facilitator.asked.settle = 0
  harness.rpc.height = Number(await harness.chain.reader.getBlockNumber())
  await order.buy()
  await harness.inDoubt(order)
  await expectHeld(t, harness, order, 'behind')
  await harness.hurry()
  await harness.inDoubt(order)
  await expectHeld(t, harness, order, 'still behind')
  harness.rpc.height = null
  await harness.hurry()
  t.equal((await order.buyAndWait()).status, 200)
  t.equal(harness.facilitator.asked.settle, 1)
  t.equal(await order.spent(), PRICE)
})

t.test('a contradicted success does not count later, while the node does not answer', async (t) => {
  const order = await harness.order()
  const lie = claims(newHash())
  harness.facilitator.script.push(lie)
  await order.buy()
  await harness.inDoubt(order)
  await using facilitator = await openLiveFacilitator(harness.config, openLog('silent'), { chainTimeoutMs: 300 })
  const id = await order.requestId
  const offer = facilitator.read(order.signatures[0], id, () => RESOURCE)
  const [row] = await harness.system.sql('select settlement_intent from verification_requests where id = $1', [id])
  const intent = row?.settlement_intent as { at: number; block: number; transaction: string; denied_at: number }
  t.type(intent.denied_at, 'number')
  t.match(await facilitator.resolve(offer, intent), { kind: 'unknown', reason: 'settlement_not_shown' })
  const later = { ...intent, denied_at: intent.denied_at - 31 }
  t.same(await facilitator.resolve(offer, later), { kind: 'open' }, 'after 30 s the same settlement is requested again')
  harness.rpc.shut = true
  harness.facilitator.script.push(lie)
  t.match(await facilitator.settle(offer, later), { kind: 'unknown' })
  t.match(await facilitator.resolve(offer, later), { kind: 'unknown', reason: 'chain_unreadable' })
  t.match(
    await facilitator.resolve(offer, { ...intent, at: 1, denied_at: 1 }),
    { kind: 'unknown' },
    'as long as the node does not answer',
  )
  harness.rpc.shut = false
  await passDenial(harness, order)
  await harness.hurry()
  t.equal((await order.buyAndWait()).status, 200)
})

t.test('a success whose chain does not answer counts, and is booked as unconfirmed', async (t) => {
  // Only this test has a short timeout: with it, on a busy machine, a node that answers late would count as one that does
  // not answer.
  await using impatient = await openEvmHarness({ overrides: { chainTimeoutMs: 300 } })
  for (const how of ['shut', 'silent'] as const) {
    const order = await impatient.order()
    impatient.facilitator.script.push(async (call) => {
      impatient.rpc[how] = true
      await deeds.settles(call)
    })
    const paid = await order.buyAndWait()
    impatient.rpc[how] = false
    t.equal(paid.status, 200, how)
    const transaction = await transactionOf(paid)
    t.same(
      await bookOf(impatient, order),
      [{ outcome: 'settled', transaction, proof: 'unconfirmed', log_index: null }],
      how,
    )
    t.equal(await order.spent(), PRICE, how)
  }
})

t.test('two authorizations in one transaction pay two requests, each by its own log', async (t) => {
  const orders = [await harness.order(), await harness.order()]
  const waiting: Signed[] = []
  const both = Promise.withResolvers<string>()
  const together: Deed = async (call) => {
    waiting.push(readAuthorization(call.payload.payload))
    if (waiting.length === 2) {
      const calls = waiting.map((signed) => ({
        functionName: 'transferWithAuthorization',
        args: transferArguments(signed),
      }))
      both.resolve((await harness.chain.sendTogether(calls)).transactionHash)
    }
    claims(await both.promise)(call)
  }
  harness.facilitator.script.push(together, together)
  const answers = await Promise.all(orders.map((order) => order.buyAndWait()))
  t.same(
    answers.map(({ status }) => status),
    [200, 200],
  )
  const books = (await Promise.all(orders.map((order) => bookOf(harness, order)))).flat()
  t.same(
    books.map(({ transaction, proof }) => ({ transaction, proof })),
    Array(2).fill({ transaction: await both.promise, proof: 'chain' }),
  )
  t.same(books.map(({ log_index }) => log_index).sort(), [0, 2])
})

t.test('without a node the facilitator counts, but one transaction pays one request', async (t) => {
  await using nodeless = await openEvmHarness({ nodeless: true })
  const honest = await nodeless.order()
  const transaction = await transactionOf(await honest.buyAndWait())
  t.same(await bookOf(nodeless, honest), [{ outcome: 'settled', transaction, proof: 'facilitator', log_index: null }])

  const orders = [await nodeless.order(), await nodeless.order()]
  const names = [transaction, `0x${transaction.slice(2).toUpperCase()}`]
  for (const [index, order] of orders.entries()) {
    nodeless.facilitator.script.push(claims(names[index] as string))
    await order.buy()
    t.match(await nodeless.logLines.next('transaction_taken', { request_id: await order.requestId }), {
      level: 'error',
      transaction,
    })
  }
  const other = await nodeless.order()
  t.equal((await other.buyAndWait()).status, 200, 'others are served meanwhile')
  for (const order of orders) await expectHeld(t, nodeless, order, 'held')
  for (const order of orders) {
    nodeless.facilitator.script.push(claims(newHash()))
    await passDenial(nodeless, order)
    await nodeless.hurry()
    await nodeless.inDoubt(order)
    await expectHeld(t, nodeless, order, 'from here on only the chain counts')
    await passDenial(nodeless, order)
    await nodeless.hurry()
    t.equal((await order.buyAndWait()).status, 200)
    t.match(await bookOf(nodeless, order), [{ proof: 'chain' }])
    t.equal(await order.spent(), PRICE)
  }
})
