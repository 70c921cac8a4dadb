// The payment status for payers and the commands for operators agree.
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import type { Hex } from 'viem'
import { readConfig } from '../../server/config.ts'
import { paymentCommands } from '../../server/payments/commands.ts'
import { recoveryToken } from '../../server/verification/recovery-token.ts'
import { deeds } from '../payments/evm-facilitator.ts'
import { openEvmHarness, type Purchase } from '../payments/evm-harness.ts'
import { holdPage } from '../site.ts'
import { PAGE } from '../system.ts'

const harness = await openEvmHarness()
t.teardown(() => harness[Symbol.asyncDispose]())
const PAYMENTS = '/api/agent/v1/payments'

interface Answer {
  request_id: string
  payments: { fate: string; charged: boolean | null; transaction: string | null; nonce: string }[]
}

/** Asks by recovery token and by the authorization: both answers must be the same. */
async function statusOf(t: Test, order: Purchase, signature = order.signatures.at(-1) ?? ''): Promise<Answer> {
  const id = await order.requestId
  const token = recoveryToken(harness.system.service.work.secrets.recovery, id)
  const byToken = await fetch(harness.system.url(`${PAYMENTS}/${id}`), {
    headers: { authorization: `Bearer ${token}` },
  })
  const byPayment = await fetch(harness.system.url(PAYMENTS), { headers: { 'payment-signature': signature } })
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
    const config = readConfig({ ...harness.env, FIXTURE_HOSTS: undefined })
    const code = await paymentCommands[name]?.run(harness.system.service.work.db, config, {
      args,
      json: false,
    })
    return { code, text: printed.join('\n') }
  } finally {
    console.log = log
  }
}

t.test('verified, settling, delivered', async (t) => {
  const order = await harness.order()
  const held = holdPage({ body: PAGE })
  harness.system.site.pages.set(new URL(order.body.source_url).pathname, held.page)
  await order.buy()
  await held.reached
  t.match(await statusOf(t, order), { payments: [{ fate: 'verified', charged: false, transaction: null }] })

  harness.facilitator.script.push(deeds.neverSends)
  held.release()
  await harness.inDoubt(order)
  t.match(await statusOf(t, order), { payments: [{ fate: 'settling', charged: null, transaction: null }] })
  const id = await order.requestId
  const unresolved = await runCommand('payments list-unresolved')
  t.equal(unresolved.code, 1)
  t.match(unresolved.text, new RegExp(`${id} settling for \\d+ s on eip155:84532`))

  await harness.hurry()
  const paid = (await (await order.buyAndWait()).json()) as { payment: { transaction: string } }
  const { transaction } = paid.payment
  t.match(await statusOf(t, order), { payments: [{ fate: 'delivered', charged: true, transaction }] })
  t.match(await runCommand('payments list-unresolved'), { code: 0, text: /none/ })
  const shown = await runCommand('payments show', id)
  t.match(JSON.parse(shown.text), { request_id: id, state: 'completed', ledger: [{ outcome: 'settled', transaction }] })
})

t.test('unpaid, then paid by a second payment: both are listed', async (t) => {
  const order = await harness.order()
  const before = await harness.chain.controls.snapshot()
  harness.expireNext()
  await order.buy()
  await harness.recover(await order.requestId, { prefer: 'wait=25' })
  t.match(await statusOf(t, order), { payments: [{ fate: 'unpaid', charged: false, transaction: null }] })
  await harness.chain.controls.revert({ id: before })
  await order.buyAndWait()
  const both = await statusOf(t, order)
  t.match(both.payments, [
    { fate: 'delivered', charged: true },
    { fate: 'unpaid', charged: false },
  ])
  t.match(await statusOf(t, order, order.signatures[0]), both)
})

t.test('failed: not charged', async (t) => {
  const order = await harness.order()
  harness.system.site.pages.set(new URL(order.body.source_url).pathname, { status: 500, body: '' })
  t.equal((await order.buyAndWait()).status, 422)
  t.match(await statusOf(t, order), { payments: [{ fate: 'failed', charged: false, transaction: null }] })
  t.equal(await order.spent(), 0n)
})

t.test('other callers get 404', async (t) => {
  const order = await harness.order()
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
    const response = await fetch(harness.system.url(path), { headers })
    t.equal(response.status, 404, about)
    t.match(await response.json(), { status: 'failed', error: { code: 'not_found' } }, about)
  }
})

t.test('reconcile: the ledger agrees with the chain, until one of them is wrong', async (t) => {
  const clean = await runCommand('payments reconcile')
  t.match(clean, { code: 0, text: /^\d+ entries agree with the chain, 0 differ/ }, clean.text)

  const stray = await harness.order()
  const direct = harness.chain.walletOf(stray.wallet)
  const { transactionHash } = await harness.chain.send('transfer', [harness.payTo, 30_000n], direct)
  const last = await harness.order()
  await last.buyAndWait()
  const income = await runCommand('payments reconcile')
  t.equal(income.code, 1)
  t.match(income.text, `NO ENTRY eip155:84532 ${transactionHash}: 30000`)

  await harness.system.sql(
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
    const call = { args: [], json: false }
    await paymentCommands['payments export']?.run(harness.system.service.work.db, readConfig({}), call)
  } finally {
    process.stdout.write = write
  }
  const [headings = '', ...lines] = text.trimEnd().split('\r\n')
  const [{ n } = { n: 0 }] = await harness.system.sql('select count(*)::int n from payment_ledger')
  t.equal(lines.length, n)
  const names = headings.split(',')
  t.ok(names.includes('transaction'))
  for (const line of lines) t.equal(line.split(',').length, names.length)
})
