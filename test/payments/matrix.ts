// Plays one fault between payment and settlement for one buyer, checks what must hold in every case, and notes it as a row of a table.
import { decodePaymentResponseHeader } from '@x402/core/http'
import type { Test } from 'tap'
import type { Hex } from 'viem'
import type { Child } from '../children.ts'
import type { Sold } from '../system.ts'
import { type EvmHarness, openEvmHarness, type Purchase } from './evm-harness.ts'
import type { Cell, Stage } from './faults.ts'

export interface Row {
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

export interface Door {
  cell: Cell
  /** The buyer has no key, but its signed payment, and calls /buy. */
  keyless: boolean
  sold: Sold
}

export const nameOf = ({ cell, keyless, sold }: Door) =>
  keyless ? `/buy: ${cell.name}` : sold === 'claims' ? `claims: ${cell.name}` : cell.name

/** @param crashing the process that crashes at the place of the cell, for a cell that has one */
export async function playCell(t: Test, shared: EvmHarness, door: Door, crashing?: Child): Promise<Row> {
  const { cell, keyless, sold } = door
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
    ...(crashing && { crashing }),
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
  return rowOf(nameOf(door), harness, order, { first: cell.first, answer: answer ?? last.status, open, last })
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

export async function expectPaid(t: Test, harness: EvmHarness, order: Purchase, answer: Response) {
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

export async function rowOf(
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

export function formatTable(rows: Row[]): string {
  const names = Object.keys(rows[0] ?? {}) as (keyof Row)[]
  const widths = names.map((name) => Math.max(name.length, ...rows.map((row) => `${row[name]}`.length)))
  const line = (values: unknown[]) => `| ${values.map((value, i) => `${value}`.padEnd(widths[i] ?? 0)).join(' | ')} |`
  return [
    line(names),
    line(widths.map((width) => '-'.repeat(width))),
    ...rows.map((row) => line(names.map((n) => row[n]))),
  ].join('\n')
}
