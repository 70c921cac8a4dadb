// The faults between payment and settlement: for each, a script for the facilitator, and steps for the service.
import type { Test } from 'tap'
import type { Child } from '../children.ts'
import {
  type Authorization,
  cancelAuthorization,
  readAuthorization,
  sendAuthorization,
  sign,
} from './authorizations.ts'
import type { Place } from './crashing-process.ts'
import { type Deed, deeds } from './evm-facilitator.ts'
import type { Market, Order } from './evm-harness.ts'

export interface Cell {
  /** The fault. */
  name: string
  /** Deeds for the first calls of /settle. */
  script?: Deed[]
  /** Causes the fault, and continues until the chain shows the outcome. */
  play(stage: Stage): Promise<void>
  /** The final state of the first authorization on the chain. */
  first: 'charged' | 'never charged'
}

export interface Stage {
  t: Test
  market: Market
  order: Order
  /** Processes that crash at their places, and take no job before they get a message. */
  victims: Record<Place, Child>
  /** Checks that the one settlement is uncertain, and that every way of asking again is answered 202. */
  staysOpen(): Promise<void>
  /** Lets the first authorization expire on the chain. */
  isProved(): void
}

const pays = async () => {}
export const cells: Cell[] = [
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
    name: 'HTTP 500 settlement_pending, requested again before the block',
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
    name: 'nonce already used: a third party sent the authorization',
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
    play: async ({ t, market, order }) => {
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
      // Frees the job, as the rescue does.
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

async function killWorker({ t, market, order, victims }: Stage, place: Place) {
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

/** A second authorization with the same nonce, to another address of the payer. */
async function spendElsewhere({ chain }: Market, order: Order, given: Authorization) {
  const other = { ...given, to: (await chain.openAccount()).address, value: '0' }
  await sendAuthorization(chain, await sign(chain, order.wallet, other))
}
