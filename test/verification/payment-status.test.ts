// The payment status for payers and the commands for operators agree.
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import type { Hex } from 'viem'
import { readConfig } from '../../server/config.ts'
import { paymentCommands } from '../../server/payments/commands.ts'
import { recoveryToken } from '../../server/verification/recovery-token.ts'
import { deeds } from '../payments/evm-facilitator.ts'
import { type Order, openMarket } from '../payments/evm-harness.ts'
import { holdPage } from '../site.ts'
import { PAGE } from '../system.ts'

const market = await openMarket()
t.teardown(() => market[Symbol.asyncDispose]())
const PAYMENTS = '/api/agent/v1/payments'

interface Answer {
  request_id: string
  payments: { fate: string; charged: boolean | null; transaction: string | null; nonce: string }[]
}

/** Asks by recovery token and by the authorization: both answers must be the same. */
async function fateOf(t: Test, order: Order, signature = order.signatures.at(-1) ?? ''): Promise<Answer> {
  const id = await order.requestId
  const token = recoveryToken(market.system.service.work.secrets.recovery, id)
  const byToken = await fetch(market.system.url(`${PAYMENTS}/${id}`), { headers: { authorization: `Bearer ${token}` } })
  const byPayment = await fetch(market.system.url(PAYMENTS), { headers: { 'payment-signature': signature } })
  t.equal(byToken.status, 200)
  t.equal(byPayment.status, 200)
  t.equal(byToken.headers.get('cache-control'), 'no-store')
  t.equal(byPayment.headers.get('cache-control'), 'no-store')
  const [all, one] = [(await byToken.json()) as Answer, (await byPayment.json()) as Answer]
  t.equal(all.request_id, id)
  t.equal(one.request_id, id)
  t.equal(one.payments.length, 1)
  t.same(
    all.payments.find((payment) => payment.nonce === one.payments[0]?.nonce),
    one.payments[0],
  )
  return all
}

async function runCommand(name: string, ...args: string[]) {
  const printed: string[] = []
  const log = console.log
  console.log = (line: string) => printed.push(line)
  try {
    const config = readConfig({ ...market.env, FIXTURE_HOSTS: undefined })
    const code = await paymentCommands[name]?.run(market.system.service.work.db, config, args)
    return { code, text: printed.join('\n') }
  } finally {
    console.log = log
  }
}

t.test('verified, settling, delivered', async (t) => {
  const order = await market.order()
  const held = holdPage({ body: PAGE })
  market.system.site.pages.set(new URL(order.body.source_url).pathname, held.page)
  await order.buy()
  await held.reached
  t.match(await fateOf(t, order), { payments: [{ fate: 'verified', charged: false, transaction: null }] })

  market.facilitator.script.push(deeds.neverSends)
  held.release()
  await market.inDoubt(order)
  t.match(await fateOf(t, order), { payments: [{ fate: 'settling', charged: null, transaction: null }] })
  const id = await order.requestId
  const unresolved = await runCommand('payments list-unresolved')
  t.equal(unresolved.code, 1)
  t.match(unresolved.text, new RegExp(`${id} settling for \\d+ s on eip155:84532`))

  await market.hurry()
  const paid = (await (await order.buyAndWait()).json()) as { payment: { transaction: string } }
  const { transaction } = paid.payment
  t.match(await fateOf(t, order), { payments: [{ fate: 'delivered', charged: true, transaction }] })
  t.match(await runCommand('payments list-unresolved'), { code: 0, text: /none/ })
  const shown = await runCommand('payments show', id)
  t.match(JSON.parse(shown.text), { request_id: id, state: 'completed', ledger: [{ outcome: 'settled', transaction }] })
})

t.test('unpaid, then paid by a second payment: both are listed', async (t) => {
  const order = await market.order()
  const before = await market.chain.controls.snapshot()
  market.facilitator.script.push(async (call) => {
    const { validBefore } = (call.payload.payload as { authorization: { validBefore: string } }).authorization
    await market.chain.passTime(Number(validBefore))
    await deeds.settles(call)
  })
  await order.buy()
  await market.recover(await order.requestId, { prefer: 'wait=25' })
  t.match(await fateOf(t, order), { payments: [{ fate: 'unpaid', charged: false, transaction: null }] })
  await market.chain.controls.revert({ id: before })
  await order.buyAndWait()
  const both = await fateOf(t, order)
  t.match(both.payments, [
    { fate: 'delivered', charged: true },
    { fate: 'unpaid', charged: false },
  ])
  t.match(await fateOf(t, order, order.signatures[0]), both)
})

t.test('failed: not charged', async (t) => {
  const order = await market.order()
  market.system.site.pages.set(new URL(order.body.source_url).pathname, { status: 500, body: '' })
  t.equal((await order.buyAndWait()).status, 422)
  t.match(await fateOf(t, order), { payments: [{ fate: 'failed', charged: false, transaction: null }] })
  t.equal(await order.spent(), 0n)
})

t.test('other callers get 404', async (t) => {
  const order = await market.order()
  await order.buyAndWait()
  const id = await order.requestId
  const [header = ''] = order.signatures
  const payment = JSON.parse(Buffer.from(header, 'base64').toString())
  const forged = { ...payment, payload: { ...payment.payload, signature: `0x${'11'.repeat(65)}` as Hex } }
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')
  const questions: [about: string, path: string, headers: Record<string, string>][] = [
    ['no token', `${PAYMENTS}/${id}`, {}],
    ['another token', `${PAYMENTS}/${id}`, { authorization: `Bearer crt_${'A'.repeat(43)}` }],
    ['another request', `${PAYMENTS}/${randomUUID()}`, { authorization: 'Bearer x' }],
    ['no id', `${PAYMENTS}/x`, { authorization: 'Bearer x' }],
    ['no payment', PAYMENTS, {}],
    ['no payment at all', PAYMENTS, { 'payment-signature': 'garbage' }],
    ['the payer known, the signature not', PAYMENTS, { 'payment-signature': encode(forged) }],
  ]
  for (const [about, path, headers] of questions) {
    const response = await fetch(market.system.url(path), { headers })
    t.equal(response.status, 404, about)
    t.match(await response.json(), { status: 'failed', error: { code: 'not_found' } }, about)
  }
})

t.test('reconcile: the ledger agrees with the chain, until one of them is wrong', async (t) => {
  const clean = await runCommand('payments reconcile')
  t.match(clean, { code: 0, text: /^\d+ entries agree with the chain, 0 differ/ }, clean.text)

  const stray = await market.order()
  const direct = market.chain.walletOf(stray.wallet)
  const { transactionHash } = await market.chain.send('transfer', [market.payTo, 30_000n], direct)
  const last = await market.order()
  await last.buyAndWait()
  const income = await runCommand('payments reconcile')
  t.equal(income.code, 1)
  t.match(income.text, `NO ENTRY eip155:84532 ${transactionHash}: 30000`)

  await market.system.sql(
    `update payment_ledger set transaction = $1, reconciled_at = null, chain_says = null where request_id = $2`,
    [`0x${'ab'.repeat(32)}`, await last.requestId],
  )
  const wrong = await runCommand('payments reconcile')
  t.equal(wrong.code, 1)
  t.match(wrong.text, new RegExp(`DIFFERS entry \\d+: settled, request ${await last.requestId}`))
})

t.test('export: one line of CSV per entry', async (t) => {
  const { write } = process.stdout
  let text = ''
  process.stdout.write = ((chunk: string) => {
    text += chunk
    return true
  }) as typeof write
  try {
    await paymentCommands['payments export']?.run(market.system.service.work.db, readConfig({}), [])
  } finally {
    process.stdout.write = write
  }
  const [headings = '', ...lines] = text.trimEnd().split('\r\n')
  const [{ n } = { n: 0 }] = await market.system.sql('select count(*)::int n from payment_ledger')
  t.equal(lines.length, n)
  const names = headings.split(',')
  t.ok(names.includes('transaction'))
  for (const line of lines) t.equal(line.split(',').length, names.length)
})
