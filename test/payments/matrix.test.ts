// Everything that can go wrong between "pay" and "paid", on a real chain with the stock client. Whatever happens: the buyer
// is charged exactly once, or provably not at all; the last answer says what the chain says; and while that is open, no
// answer is a 402, because a stock client signs a second payment at every one.
//
// Prints the whole matrix as a table: npm run test:only -- test/payments/matrix.test.ts
import { decodePaymentResponseHeader } from '@x402/core/http'
import t, { type Test } from 'tap'
import type { Hex } from 'viem'
import {
  type Authorization,
  cancelAuthorization,
  readAuthorization,
  sendAuthorization,
  sign,
} from './authorizations.ts'
import { type Deed, deeds } from './evm-facilitator.ts'
import { type Market, type Order, openMarket, PRICE } from './market.ts'

interface Cell {
  /** What goes wrong. */
  name: string
  /** What becomes of the first calls of /settle. */
  script?: Deed[]
  /** Brings it about, and leads it to where the chain can tell. */
  play(stage: Stage): Promise<void>
  /** What the chain says in the end of the authorization signed first. */
  first: 'charged' | 'never charged'
}

interface Stage {
  market: Market
  order: Order
  /** One settlement has been asked for and is in doubt; every way of asking again is answered 202. */
  staysOpen(): Promise<void>
  /** From now on the chain proves that the first authorization was not charged. */
  isProved(): void
}

const pays = async () => {}
const cells: Cell[] = [
  { name: 'nothing', play: pays, first: 'charged' },
  {
    name: 'answer lost before broadcast',
    script: [deeds.lostBefore],
    play: async ({ market, staysOpen }) => {
      await staysOpen()
      await market.hurry()
    },
    first: 'charged',
  },
  { name: 'answer lost after broadcast', script: [deeds.lostAfter], play: pays, first: 'charged' },
  {
    name: 'settle times out, the block comes later',
    script: [deeds.neverAnswers],
    play: async ({ market, order, staysOpen }) => {
      await market.chain.controls.setAutomine(false)
      await staysOpen()
      await market.hurry()
      await market.inDoubt(order)
      await market.chain.controls.mine({ blocks: 1 })
      await market.chain.controls.setAutomine(true)
      await market.hurry()
    },
    first: 'charged',
  },
  {
    name: 'never broadcast, then settled',
    script: [deeds.neverSends, deeds.neverSends],
    play: async ({ market, order, staysOpen }) => {
      await staysOpen()
      await market.hurry()
      await market.inDoubt(order)
      await market.hurry()
    },
    first: 'charged',
  },
  {
    name: 'never broadcast until it expires',
    script: [deeds.neverSends],
    play: async ({ market, order, staysOpen, isProved }) => {
      await staysOpen()
      await expire(market, order)
      isProved()
      await market.hurry()
    },
    first: 'never charged',
  },
  {
    name: 'HTTP 500 settlement_pending, the block comes later',
    script: [deeds.answers500],
    play: async ({ market, staysOpen }) => {
      market.facilitator.confirms = false
      await market.chain.controls.setAutomine(false)
      await staysOpen()
      await market.chain.controls.mine({ blocks: 1 })
      await market.hurry()
    },
    first: 'charged',
  },
  {
    name: 'HTTP 500 settlement_pending, asked again before the block',
    script: [deeds.answers500],
    play: async ({ market, staysOpen }) => {
      market.facilitator.confirms = false
      await market.chain.controls.setAutomine(false)
      await staysOpen()
      market.facilitator.confirms = true
      market.facilitator.script.push(async (call) => {
        const settled = call.perform()
        await market.chain.controls.mine({ blocks: 1 })
        call.answer(200, await settled)
      })
      await market.hurry()
    },
    first: 'charged',
  },
  {
    name: 'non-JSON 503 before broadcast',
    script: [deeds.notJsonBefore],
    play: async ({ market, staysOpen }) => {
      await staysOpen()
      await market.hurry()
    },
    first: 'charged',
  },
  { name: 'non-JSON 503 after broadcast', script: [deeds.notJsonAfter], play: pays, first: 'charged' },
  {
    name: 'nonce already used: somebody else has sent it',
    play: async ({ market }) => {
      market.facilitator.script.push(async (call) => {
        await sendAuthorization(market.chain, readAuthorization(call.payload.payload))
        await deeds.settles(call)
      })
    },
    first: 'charged',
  },
  {
    name: 'nonce used for something else by the payer',
    play: async ({ market, order, isProved }) => {
      market.facilitator.script.push(async (call) => {
        await spendElsewhere(market, order, readAuthorization(call.payload.payload))
        await market.chain.makeFinal()
        isProved()
        await deeds.settles(call)
      })
    },
    first: 'never charged',
  },
  {
    name: 'two settles at once, the answer of the failed one',
    script: [
      async (call) => {
        const answers = await Promise.all([call.perform(), call.perform()])
        call.answer(200, answers.find((answer) => !answer.success) ?? answers[0])
      },
    ],
    play: pays,
    first: 'charged',
  },
  {
    name: 'taken over by another worker during the call',
    play: async ({ market, order }) => {
      const reached = Promise.withResolvers<void>()
      const released = Promise.withResolvers<void>()
      market.facilitator.script.push(async (call) => {
        reached.resolve()
        await released.promise
        await deeds.settles(call)
      })
      const bought = order.buy()
      await reached.promise
      const id = await order.requestId
      // What the rescue does with the job of a worker that was thought dead.
      await market.system.sql(
        `select graphile_worker.add_job('verify_request', json_build_object('request_id', $1::text))`,
        [id],
      )
      await bought
      t.equal((await order.buyAndWait()).status, 200)
      released.resolve()
      await market.book.next('fenced', { request_id: id })
    },
    first: 'charged',
  },
  {
    name: 'RPC down during reconciliation',
    play: async ({ market, order, staysOpen }) => {
      market.facilitator.script.push(async (call) => {
        market.rpc.shut = true
        await deeds.lostAfter(call)
      })
      await staysOpen()
      await market.hurry()
      await market.inDoubt(order)
      market.rpc.shut = false
      await market.hurry()
    },
    first: 'charged',
  },
  {
    name: 'RPC down from the intent on, nothing sent',
    script: [deeds.lostBefore],
    play: async ({ market, order, staysOpen }) => {
      market.rpc.shut = true
      await staysOpen()
      await market.hurry()
      await market.inDoubt(order)
      market.rpc.shut = false
      await market.hurry()
    },
    first: 'charged',
  },
  {
    name: 'worker killed between intent and call',
    play: (stage) => killWorker(stage, 'before call'),
    first: 'charged',
  },
  {
    name: 'worker killed between call and outcome',
    play: (stage) => killWorker(stage, 'after call'),
    first: 'charged',
  },
  {
    name: 'worker killed between outcome and receipt',
    play: (stage) => killWorker(stage, 'after settled'),
    first: 'charged',
  },
  {
    name: 'authorization expires during the work',
    play: async ({ market, isProved }) => {
      market.facilitator.script.push(async (call) => {
        await market.chain.passTime(Number(readAuthorization(call.payload.payload).validBefore))
        isProved()
        await deeds.settles(call)
      })
    },
    first: 'never charged',
  },
  {
    name: 'expired, and not final for a while',
    play: async ({ market, order, staysOpen, isProved }) => {
      market.facilitator.script.push(async (call) => {
        const { validBefore } = readAuthorization(call.payload.payload)
        await market.chain.controls.setNextBlockTimestamp({ timestamp: BigInt(validBefore) })
        await market.chain.controls.mine({ blocks: 1 })
        await deeds.settles(call)
      })
      await staysOpen()
      await market.hurry()
      await market.inDoubt(order)
      await market.chain.makeFinal()
      isProved()
      await market.hurry()
    },
    first: 'never charged',
  },
  {
    name: 'authorization cancelled by the payer',
    play: async ({ market, order, staysOpen, isProved }) => {
      market.facilitator.script.push(async (call) => {
        await cancelAuthorization(market.chain, order.wallet, readAuthorization(call.payload.payload).nonce)
        await deeds.settles(call)
      })
      await staysOpen()
      await market.chain.makeFinal()
      isProved()
      await market.hurry()
    },
    first: 'never charged',
  },
]

/** Cells whose first signed call ends without an answer; what they leave behind is told by the chain all the same. */
const apiKilled = 'API killed after verify'

interface Row {
  'what goes wrong': string
  'settle calls': number
  /** Answers between the first signature and the moment the chain decides. */
  '202 while open': number
  '402 while open': number
  'first authorization': string
  'answer to it': string
  'signed in all': number
  'moved in all': string
  'last answer': number
}
const table: Row[] = []

const market = await openMarket({ overrides: { settleTimeoutMs: 400 } })
t.teardown(() => market[Symbol.asyncDispose]())
/** Started ahead, so that nobody waits for a process to load. */
const victims = {
  'before call': market.startVictim('worker', 'before call'),
  'after call': market.startVictim('worker', 'after call'),
  'after settled': market.startVictim('worker', 'after settled'),
  'after verify': market.startVictim('api', 'after verify'),
}

for (const cell of cells) {
  t.test(cell.name, async (t) => {
    await using order = await openStage(cell)
    let open: number | undefined
    const stage: Stage = {
      market,
      order,
      async staysOpen() {
        await order.buy()
        await market.inDoubt(order)
        await expectPending(t, market, order)
      },
      isProved: () => {
        open = order.answers.length
      },
    }
    await cell.play(stage)
    const charged = cell.first === 'charged'
    if (!charged) {
      if (order.signatures.length === 0) await order.buy()
      open ??= order.answers.length
      await expectUnpaid(t, market, order)
      await order.restoreClock()
    }
    const last = await order.buyAndWait()
    await expectPaid(t, market, order, last)
    t.equal(order.signatures.length, charged ? 1 : 2, 'signatures asked of the wallet')
    t.equal(order.count(402, open), 0, 'no 402 before the proof')
    table.push(rowOf(cell.name, order, { first: cell.first, answer: charged ? '200' : '402', open, last }))
  })
}

/** An order on a chain whose clock goes back to what it was when the order is done with. */
async function openStage(cell: Cell) {
  const order = await market.order()
  const before = await market.chain.controls.snapshot()
  const restoreClock = () => market.chain.controls.revert({ id: before })
  market.facilitator.asked.settle = 0
  market.facilitator.script.push(...(cell.script ?? []))
  return {
    ...order,
    restoreClock,
    async [Symbol.asyncDispose]() {
      market.facilitator.script.length = 0
      market.facilitator.confirms = true
      market.rpc.shut = false
      await market.chain.controls.setAutomine(true)
    },
  }
}

t.test(apiKilled, async (t) => {
  const victim = victims['after verify']
  const { address } = await victim.logs('listening')
  const order = await market.order({ url: `${address}/api/agent/v1/verify-source` })
  Object.assign(market.facilitator.asked, { verify: 0, settle: 0 })
  await t.rejects(order.buy(), 'the connection breaks')
  t.match(await victim.ended, { signal: 'SIGKILL' })
  t.equal(market.facilitator.asked.verify, 1)
  order.goTo(market.system.url('/api/agent/v1/verify-source'))
  const last = await order.buyAndWait()
  await expectPaid(t, market, order, last)
  t.equal(order.signatures.length, 2)
  t.equal(market.facilitator.asked.settle, 1, 'the first authorization was never given out of hand')
  table.push(rowOf(apiKilled, order, { first: 'never given to settle', answer: 'none', open: 1, last }))
})

t.teardown(() => console.log(formatTable(table)))

async function expectPending(t: Test, market: Market, order: Order) {
  const id = await order.requestId
  const answers = [await order.buy(), await order.ask(), await order.buy(), await market.recover(id)]
  t.same(
    answers.map((answer) => answer.status),
    [202, 202, 202, 202],
    'unresolved: 202 to the stock client, to an unsigned call and on recovery',
  )
  for (const answer of answers) t.match(await answer.json(), { error: { code: 'settlement_unknown', retryable: true } })
  t.equal(order.signatures.length, 1, 'nobody was made to sign again')
}

/** By all ways of asking; and nothing has moved. */
async function expectUnpaid(t: Test, market: Market, order: Order) {
  const answers = [await market.recover(await order.requestId, { prefer: 'wait=25' }), await order.ask()]
  for (const answer of answers) {
    t.equal(answer.status, 402)
    t.match(await answer.json(), { error: { code: 'settlement_failed' } })
  }
  t.equal(await order.spent(), 0n, 'nothing moved')
  t.equal(order.signatures.length, 1)
}

async function expectPaid(t: Test, market: Market, order: Order, answer: Response) {
  t.equal(answer.status, 200, await answer.clone().text())
  const { payment } = (await answer.json()) as { payment: { transaction: Hex } }
  const header = decodePaymentResponseHeader(answer.headers.get('payment-response') ?? '')
  t.match(header, { success: true, transaction: payment.transaction, network: market.chain.network })
  t.equal(await order.spent(), PRICE, 'charged exactly once')
  t.equal(await order.earned(), PRICE, 'and paid to us')
  const receipt = await market.chain.reader.getTransactionReceipt({ hash: payment.transaction })
  t.equal(receipt.status, 'success', 'the transaction named is on the chain')
  t.equal(order.fetches(), 1, 'the work was done once')
  const booked = await market.system.sql(
    `select transaction from payment_ledger where request_id = $1 and outcome = 'settled'`,
    [await order.requestId],
  )
  t.same(booked, [{ transaction: payment.transaction }], 'one entry in the ledger')
}

async function killWorker({ market, order }: Stage, place: 'before call' | 'after call' | 'after settled') {
  await market.stopWorker()
  const victim = victims[place]
  await victim.tells('ready')
  victim.tell({ do: 'run' })
  await victim.tells('running')
  await order.buy()
  t.match(await victim.ended, { signal: 'SIGKILL' })
  const asked = await order.ask()
  t.equal(asked.status, 202)
  await market.startWorker()
}

async function expire({ chain }: Market, order: Order) {
  const [header = ''] = order.signatures
  const { payload } = JSON.parse(Buffer.from(header, 'base64').toString())
  await chain.passTime(Number(readAuthorization(payload).validBefore))
}

/** A second authorization with the same nonce, to the payer's own other pocket. */
async function spendElsewhere({ chain }: Market, order: Order, given: Authorization) {
  const other = { ...given, to: (await chain.openAccount()).address, value: '0' }
  await sendAuthorization(chain, await sign(chain, order.wallet, other))
}

function rowOf(
  name: string,
  order: Order,
  seen: { first: string; answer: string; open?: number; last: Response },
): Row {
  return {
    'what goes wrong': name,
    'settle calls': market.facilitator.asked.settle,
    '202 while open': order.count(202, seen.open),
    '402 while open': order.count(402, seen.open),
    'first authorization': seen.first,
    'answer to it': seen.answer,
    'signed in all': order.signatures.length,
    'moved in all': `${PRICE}`,
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
