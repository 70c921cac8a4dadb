// All faults between payment and settlement, on a real chain with the stock client. In every case the buyer is charged exactly
// once, or provably not at all; the last answer agrees with the chain; and while the outcome is open no answer is a 402,
// because a stock client signs a new payment at every 402.
//
// Prints the whole matrix as a table: npm run test:only -- test/payments/matrix.test.ts
import { decodePaymentResponseHeader } from '@x402/core/http'
import t, { type Test } from 'tap'
import type { Hex } from 'viem'
import type { Sold } from '../system.ts'
import { type EvmHarness, openEvmHarness, type Purchase } from './evm-harness.ts'
import { type Cell, cells, type Stage } from './faults.ts'

/** The cell whose first signed call ends without an answer. */
const apiKilled = 'API killed after verify'

interface Row {
  'what goes wrong': string
  'settle calls': number
  /** Answers between the first signature and the outcome on the chain. */
  '202 while open': number
  '402 while open': number
  'first authorization': string
  'answer to it': number | string
  'signed in all': number
  'moved in all': string
  'last answer': number
}
const table: Row[] = []

const shared = await openEvmHarness()
t.teardown(() => shared[Symbol.asyncDispose]())
/** Started ahead, because a process takes long to load. */
const processes = {
  'before call': shared.startCrashingProcess('worker', 'before call'),
  'after call': shared.startCrashingProcess('worker', 'after call'),
  'after receipt': shared.startCrashingProcess('worker', 'after receipt'),
  'after verify': shared.startCrashingProcess('api', 'after verify'),
}

/**
 * The buyer has a key of its own; or, at /buy, nothing but its signed payment; or buys several claims. Workers are killed for the first
 * alone; test/crash.test.ts kills them for several claims.
 */
const withoutKills = cells.filter(({ name }) => !name.startsWith('worker killed'))
const doors: { cell: Cell; keyless: boolean; sold: Sold }[] = [
  ...cells.map((cell) => ({ cell, keyless: false, sold: 'source' as const })),
  ...withoutKills.map((cell) => ({ cell, keyless: true, sold: 'source' as const })),
  ...withoutKills.map((cell) => ({ cell, keyless: false, sold: 'claims' as const })),
]
for (const { cell, keyless, sold } of doors) {
  const about = keyless ? `/buy: ${cell.name}` : sold === 'claims' ? `claims: ${cell.name}` : cell.name
  t.test(about, async (t) => {
    // On a slow machine other calls of this service could take longer than its timeout.
    const { settleTimeoutMs } = cell
    await using own = settleTimeoutMs ? await openEvmHarness({ overrides: { settleTimeoutMs } }) : undefined
    const harness = own ?? shared
    await using order = await openStage(harness, cell, keyless, sold)
    let open: number | undefined
    let answer: number | undefined
    const stage: Stage = {
      t,
      harness,
      order,
      processes,
      async staysOpen() {
        await order.buy()
        await harness.inDoubt(order)
        await expectPending(t, harness, order)
      },
      isProved: () => {
        open = order.answers.length
      },
    }
    await cell.play(stage)
    const charged = cell.first === 'charged'
    if (!charged) {
      if (order.signatures.length === 0) await order.buy()
      answer = await expectUnpaid(t, harness, order, keyless ? 'payment_invalid' : 'settlement_failed')
      t.type(open, 'number', 'the proof came first')
      await order.restoreClock()
    }
    const last = await order.buyAndWait()
    await expectPaid(t, harness, order, last)
    t.equal(order.signatures.length, charged ? 1 : 2, 'signatures asked of the wallet')
    t.equal(order.count(402, open), 0, 'no 402 before the proof')
    table.push(await rowOf(about, harness, order, { first: cell.first, answer: answer ?? last.status, open, last }))
  })
}

/** A purchase on a chain whose clock is reset when the purchase is disposed. */
async function openStage(harness: EvmHarness, cell: Cell, keyless: boolean, sold: Sold) {
  const order = await harness.order({ sold, ...(keyless && { keyless }) })
  const before = await harness.chain.controls.snapshot()
  const restoreClock = () => harness.chain.controls.revert({ id: before })
  harness.facilitator.asked.settle = 0
  harness.facilitator.script.push(...(cell.script ?? []))
  return {
    ...order,
    restoreClock,
    async [Symbol.asyncDispose]() {
      harness.facilitator.script.length = 0
      harness.facilitator.confirms = true
      harness.rpc.shut = false
      await harness.chain.controls.setAutomine(true)
    },
  }
}

t.test(apiKilled, async (t) => {
  const harness = shared
  const crashing = processes['after verify']
  const { address } = await crashing.logs('listening')
  const order = await harness.order({ url: `${address}/api/agent/v1/verify-source` })
  Object.assign(harness.facilitator.asked, { verify: 0, settle: 0 })
  await t.rejects(order.buy(), 'the connection breaks')
  t.match(await crashing.ended, { signal: 'SIGKILL' })
  t.equal(harness.facilitator.asked.verify, 1)
  order.goTo(harness.system.url('/api/agent/v1/verify-source'))
  const last = await order.buyAndWait()
  await expectPaid(t, harness, order, last)
  t.equal(order.signatures.length, 2)
  t.equal(harness.facilitator.asked.settle, 1, 'the first authorization was never given out of hand')
  table.push(await rowOf(apiKilled, harness, order, { first: 'never given to settle', answer: 'none', open: 1, last }))
})

t.teardown(() => console.log(formatTable(table)))

async function expectPending(t: Test, harness: EvmHarness, order: Purchase) {
  const id = await order.requestId
  const answers = [await order.buy(), await order.ask(), await order.buy(), await harness.recover(id)]
  t.same(
    answers.map((answer) => answer.status),
    [202, 202, 202, 202],
    'unresolved: 202 to the stock client, to an unsigned call and on recovery',
  )
  for (const answer of answers) t.match(await answer.json(), { error: { code: 'settlement_unknown', retryable: true } })
  t.equal(order.signatures.length, 1, 'the buyer did not have to sign again')
}

/** Checks every way of asking, and that no money moved. */
/** @param code of the answer to the same call */
async function expectUnpaid(t: Test, harness: EvmHarness, order: Purchase, code: string): Promise<number> {
  const answers = [await harness.recover(await order.requestId, { prefer: 'wait=25' }), await order.ask()]
  for (const [index, answer] of answers.entries()) {
    t.equal(answer.status, 402)
    t.match(await answer.json(), { error: { code: index === 0 ? 'settlement_failed' : code } })
  }
  t.equal(await order.spent(), 0n, 'nothing moved')
  t.equal(order.signatures.length, 1)
  return answers[0]?.status ?? 0
}

async function expectPaid(t: Test, harness: EvmHarness, order: Purchase, answer: Response) {
  t.equal(answer.status, 200, await answer.clone().text())
  const { payment, request_id } = (await answer.json()) as { payment: { transaction: Hex }; request_id: string }
  const header = decodePaymentResponseHeader(answer.headers.get('payment-response') ?? '')
  t.match(header, { success: true, transaction: payment.transaction, network: harness.chain.network })
  t.equal(await order.spent(), order.price, 'charged exactly once')
  t.equal(await order.earned(), order.price, 'and paid to us')
  const receipt = await harness.chain.reader.getTransactionReceipt({ hash: payment.transaction })
  t.equal(receipt.status, 'success', 'the transaction named is on the chain')
  t.equal(order.fetches(), 1, 'the work was done once')
  const booked = await harness.system.sql(
    `select transaction from payment_ledger where request_id = $1 and outcome = 'settled'`,
    [request_id],
  )
  t.same(booked, [{ transaction: payment.transaction }], 'one entry in the ledger')
}

async function rowOf(
  name: string,
  harness: EvmHarness,
  order: Purchase,
  seen: { first: string; answer: number | string; open?: number; last: Response },
): Promise<Row> {
  return {
    'what goes wrong': name,
    'settle calls': harness.facilitator.asked.settle,
    '202 while open': order.count(202, seen.open),
    '402 while open': order.count(402, seen.open),
    'first authorization': seen.first,
    'answer to it': seen.answer,
    'signed in all': order.signatures.length,
    'moved in all': `${await order.spent()}`,
    'last answer': seen.last.status,
  }
}

function formatTable(rows: Row[]): string {
  const names = Object.keys(rows[0] ?? {}) as (keyof Row)[]
  const widths = names.map((name) => Math.max(name.length, ...rows.map((row) => `${row[name]}`.length)))
  const line = (values: unknown[]) => `| ${values.map((value, i) => `${value}`.padEnd(widths[i] ?? 0)).join(' | ')} |`
  return [
    line(names),
    line(widths.map((width) => '-'.repeat(width))),
    ...rows.map((row) => line(names.map((n) => row[n]))),
  ].join('\n')
}
