// The cover of a payer: how many verifications its balance pays for.
import { setTimeout as pause } from 'node:timers/promises'
import { AccountRole, type Address, generateKeyPairSigner } from '@solana/kit'
import { AccountState } from '@solana-program/token'
import t from 'tap'
import { buildCovers } from '../../server/payments/cover.ts'
import { openLiveFacilitator } from '../../server/payments/facilitators/live-setup.ts'
import { openOfflineFacilitator } from '../../server/payments/facilitators/offline-facilitator.ts'
import type { Facilitator } from '../../server/payments/x402.ts'
import { openLog } from '../../server/telemetry.ts'
import { openEvmHarness, PRICE, type Purchase } from './evm-harness.ts'
import { openSolanaHarness } from './solana-harness.ts'
import { makeTransaction } from './solana-payment.ts'

const RESOURCE = { url: 'https://shop.example/', description: 'A test', assessment: 'literal' } as const
const harness = await openEvmHarness()
t.teardown(() => harness[Symbol.asyncDispose]())

async function offerOf(facilitator: Facilitator, order: Pick<Purchase, 'ask' | 'sign' | 'requestId'>) {
  const header = await order.sign(await order.ask())
  return facilitator.read(header, await order.requestId, () => RESOURCE)
}

function open(changes: Partial<typeof harness.config> = {}, overrides = {}) {
  return openLiveFacilitator({ ...harness.config, ...changes }, openLog('silent'), overrides)
}

t.test('the balance on the chain, in whole prices, is read once and cached', async (t) => {
  await using facilitator = await open()
  const order = await harness.order()
  const offer = await offerOf(facilitator, order)
  t.equal(await facilitator.cover(offer), 10)
  harness.rpc.calls.length = 0
  await harness.chain.mint(order.wallet.address, 100n * PRICE)
  t.same(await Promise.all([facilitator.cover(offer), facilitator.cover(offer)]), [10, 10], 'cached')
  t.same(harness.rpc.calls, [])
  await using fresh = await open()
  t.same(await Promise.all([fresh.cover(offer), fresh.cover(offer)]), [110, 110])
  t.same(
    harness.rpc.calls.filter((method) => method === 'eth_call'),
    ['eth_call'],
    'read once for both',
  )
})

t.test('less than the price covers nothing', async (t) => {
  await using facilitator = await open()
  const order = await harness.order()
  const offer = await offerOf(facilitator, order)
  const thief = harness.chain.walletOf(order.wallet)
  await harness.chain.send('transfer', [harness.payTo, 9n * PRICE + 1n], thief)
  t.equal(await facilitator.cover(offer), 0)
})

t.test('without an answer of the node there is no cover, after the timeout', async (t) => {
  await using facilitator = await open({}, { chainTimeoutMs: 200 })
  const offer = await offerOf(facilitator, await harness.order())
  for (const how of ['shut', 'silent'] as const) {
    harness.rpc[how] = true
    t.equal(await facilitator.cover(offer), 0, how)
    harness.rpc[how] = false
  }
})

t.test('a balance that could not be read is read again soon, any other is cached', async (t) => {
  const covers = buildCovers(50)
  let asked = 0
  const answers = [() => pause(10_000, 0n, { ref: false }), async () => 5n]
  const read = () => (answers[asked++] ?? (async () => 9n))()
  t.equal(await covers.coverOf('a', 1n, read), 0)
  t.equal(await covers.coverOf('a', 1n, read), 0, 'not at once')
  t.equal(asked, 1)
  t.equal(await covers.coverOf('b', 2n, read), 2, 'another account is')
  t.equal(await covers.coverOf('b', 2n, read), 2)
  t.equal(asked, 2)
})

t.test('on Solana: the balance of the paying token account', async (t) => {
  await using solana = await openSolanaHarness()
  const { facilitator } = solana.system.service.work
  const order = await solana.order()
  t.equal(await facilitator.cover(await offerOf(facilitator, order)), 10)
  solana.rpc.shut = true
  t.equal(await facilitator.cover(await offerOf(facilitator, await solana.order())), 0)
  solana.rpc.shut = false
})

t.test('on Solana: only what the payer may spend covers', async (t) => {
  await using solana = await openSolanaHarness()
  const { facilitator } = solana.system.service.work
  const order = await offerOf(facilitator, await solana.order())
  /** The cover of a payment from the account of another owner. */
  async function coverFrom(fund: (owner: Address, payer: Address) => Promise<void>) {
    const owner = (await generateKeyPairSigner()).address
    const source = await solana.ledger.accountOf(owner)
    const { transaction, payer } = await makeTransaction({
      change: ({ transfer, memo }) => [
        { ...transfer, accounts: transfer.accounts?.with(0, { address: source, role: AccountRole.WRITABLE }) ?? [] },
        memo,
      ],
    })
    await fund(owner, payer)
    return facilitator.cover({ ...order, payload: { ...order.payload, payload: { transaction } } })
  }
  const { fund } = solana.ledger
  t.equal(await coverFrom((owner) => fund(owner, 10n * PRICE)), 0, 'an account of another')
  t.equal(
    await coverFrom((owner, payer) => fund(owner, 10n * PRICE, { owner: payer })),
    10,
    'a second one of the payer',
  )
  for (const delegatedAmount of [3n * PRICE, 30n * PRICE])
    t.equal(
      await coverFrom((owner, delegate) => fund(owner, 10n * PRICE, { delegate, delegatedAmount })),
      Math.min(10, Number(delegatedAmount / PRICE)),
      'what the payer may spend of it',
    )
  const stranger = (await generateKeyPairSigner()).address
  const delegation = { delegate: stranger, delegatedAmount: 10n * PRICE }
  t.equal(await coverFrom((owner) => fund(owner, 10n * PRICE, delegation)), 0, 'what a stranger may spend of it')
  const frozen = { state: AccountState.Frozen }
  t.equal(await coverFrom((owner, payer) => fund(owner, 10n * PRICE, { owner: payer, ...frozen })), 0, 'a frozen one')
  t.equal(
    await coverFrom((owner, payer) => fund(owner, 10n * PRICE, { owner: payer }, stranger)),
    0,
    'one that another program wrote',
  )
})

t.test('offline no money moves, and no balance limits', async (t) => {
  await using facilitator = openOfflineFacilitator()
  t.equal(await facilitator.cover({} as never), null)
})
