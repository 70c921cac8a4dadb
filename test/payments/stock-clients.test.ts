// Stock x402 clients at the door that was made for them, without a line of our own: one call, one paid result, one settlement.
import { wrapAxiosWithPayment } from '@x402/axios'
import { decodePaymentResponseHeader, wrapFetchWithPayment, type x402Client } from '@x402/fetch'
import axios from 'axios'
import t, { type Test } from 'tap'
import { claimsResult } from '../../server/interface/claims.ts'
import { SOLANA_DEVNET } from '../../server/interface/networks.ts'
import { priceOf } from '../../server/interface/price.ts'
import { openSolanaNetwork } from '../../server/payments/chains/solana.ts'
import { reconcile } from '../../server/payments/reconciliation.ts'
import { checkResult, type Result } from '../interface.schema.ts'
import { VERIFY } from '../system.ts'
import { openEvmHarness, PRICE } from './evm-harness.ts'
import { openSolanaHarness } from './solana-harness.ts'
import type { openPurchase } from './test-purchase.ts'

const BUY = '/api/agent/v1/buy'

/** POSTs a body once, and answers what the caller of the client gets. */
type Send = (client: x402Client, url: string, body: object) => Promise<Got>
interface Got {
  status: number
  result: Result
  paid: string | null | undefined
}

const clients: Record<string, Send> = {
  '@x402/fetch': async (client, url, body) => {
    const answer = await wrapFetchWithPayment(fetch, client)(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return { status: answer.status, result: await answer.json(), paid: answer.headers.get('payment-response') }
  },
  '@x402/axios': async (client, url, body) => {
    // The types of its own, older core differ in names only.
    const paying = wrapAxiosWithPayment(axios.create(), client as never)
    const { status, data, headers } = await paying.post(url, body)
    return { status, result: data, paid: headers['payment-response'] }
  },
}

const chains = [
  {
    name: 'Base',
    open: async () => openEvmHarness(),
  },
  {
    name: 'Solana',
    open: async () => openSolanaHarness(),
  },
]

for (const { name, open } of chains)
  t.test(name, async (t) => {
    await using harness = await open()
    for (const [about, send] of Object.entries(clients))
      await t.test(about, async (t) => {
        const order = await harness.order()
        const got = await send(order.client, harness.system.url(BUY), order.body)
        await expectOne(t, harness, order, got)
      })
    await t.test('three claims on one page', async (t) => {
      const order = await harness.order()
      const { source_url, claim } = order.body
      const body = { source_url, claims: [claim, 'It has three piers.', 'Fishing ended in 1962.'] }
      const got = await clients['@x402/fetch']!(order.client, harness.system.url(BUY), body)
      t.equal(got.status, 200, JSON.stringify(got.result).slice(0, 300))
      t.equal(claimsResult.parse(got.result).claims.length, 3)
      t.equal(await order.spent(), BigInt(priceOf(3).atomic), 'charged once, by the number of claims')
      t.equal(await order.earned(), BigInt(priceOf(3).atomic), 'and paid to us')
      t.equal(order.fetches(), 1)
    })
  })

t.test('on Solana a payment names its request: the terms of either door are good at the other', async (t) => {
  await using harness = await openSolanaHarness()
  const at = async (
    order: Awaited<ReturnType<typeof harness.order>>,
    door: string,
    headers: Record<string, string>,
  ) => {
    order.goTo(harness.system.url(door))
    return order.ask({ prefer: 'wait=25', ...headers })
  }
  const keyless = await harness.order({ keyless: true })
  const signed = {
    'payment-signature': await keyless.sign(await at(keyless, VERIFY, { 'idempotency-key': keyless.key })),
  }
  const bought = await at(keyless, BUY, signed)
  t.equal(bought.status, 200, 'terms of verify-source, without a key')
  t.equal((await at(keyless, BUY, signed)).headers.get('x-service-idempotent-replay'), 'true')
  t.equal(
    (await at(keyless, VERIFY, { ...signed, 'idempotency-key': keyless.key })).status,
    200,
    'its own key finds it',
  )
  t.equal(await keyless.spent(), PRICE)

  const keyed = await harness.order()
  const terms = { 'payment-signature': await keyed.sign(await fetch(harness.system.url(BUY))) }
  t.equal((await at(keyed, VERIFY, terms)).status, 200, 'terms of /buy, with a key')
  const stranger = await harness.order()
  t.equal((await at(stranger, VERIFY, terms)).status, 402, 'and for no other request')
  t.equal(await keyed.spent(), PRICE)
})

t.test('on Solana too, a payment whose purchase failed is free for another body', async (t) => {
  await using harness = await openSolanaHarness()
  const { system } = harness
  const gone = await harness.order({ keyless: true })
  system.site.pages.set(gone.path, { status: 404, body: 'gone' })
  const post = async (body: object, more: Record<string, string> = {}) => {
    const answer = await fetch(system.url(BUY), {
      method: 'POST',
      headers: { 'content-type': 'application/json', prefer: 'wait=25', ...headers, ...more },
      body: JSON.stringify(body),
    })
    return { status: answer.status, text: await answer.text(), header: answer.headers.get('payment-response') }
  }
  const headers = { 'payment-signature': await gone.sign(await fetch(system.url(BUY))) }
  const failed = await post(gone.body)
  t.equal(failed.status, 422, failed.text)
  t.same(await post(gone.body), failed, 'the same 422 for the same body')

  const other = await harness.order()
  const bought = await post(other.body)
  t.equal(bought.status, 200, bought.text)
  t.match(decodePaymentResponseHeader(bought.header ?? ''), { success: true })
  t.same(await post(other.body), bought, 'a replay')
  t.same(await post(gone.body), failed, 'and the first answer stays')
  t.equal((await post({ ...other.body, claim: 'Another.' })).status, 409, 'bound: not for a third body')
  t.equal((await post(other.body, { 'idempotency-key': other.key })).status, 409, 'nor for a key')
  t.equal(await gone.spent(), PRICE, 'charged once')

  const ledger = await system.sql('select outcome from payment_ledger order by entry')
  t.same(ledger, [{ outcome: 'failed' }, { outcome: 'settled' }])
  const { payTo, rpc } = harness
  const network = await openSolanaNetwork({ id: SOLANA_DEVNET, payTo, rpcUrl: rpc.url, proves: true })
  const audited = await reconcile(system.service.work.db, [network])
  t.match(
    audited,
    { agrees: 2, differs: [], open: [], unbooked: [] },
    'the chain shows one settlement, and contradicts neither entry',
  )
})

async function expectOne(
  t: Test,
  { system }: Pick<Awaited<ReturnType<typeof openEvmHarness>>, 'system'>,
  order: Awaited<ReturnType<typeof openPurchase>>,
  { status, result, paid }: Got,
) {
  t.equal(status, 200, JSON.stringify(result).slice(0, 300))
  t.same(checkResult(result), [])
  t.match(decodePaymentResponseHeader(paid ?? ''), { success: true, transaction: result.payment.transaction })
  t.equal(await order.spent(), PRICE, 'charged once')
  t.equal(await order.earned(), PRICE, 'and paid to us')
  t.equal(order.fetches(), 1)
  const booked = await system.sql(
    `select count(*)::int n from payment_ledger where request_id = $1 and outcome = 'settled'`,
    [result.request_id],
  )
  t.same(booked, [{ n: 1 }], 'one settlement')
}
