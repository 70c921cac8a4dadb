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
import type { EvmHarness, Purchase } from './evm-harness.ts'

export interface Cell {
  /** The fault. */
  name: string
  /** Deeds for the first calls of /settle. */
  script?: Deed[]
  /** Of a service for this fault alone. */
  settleTimeoutMs?: number
  /** Where a worker is killed. */
  kills?: Place
  /** Causes the fault, and continues until the chain shows the outcome. */
  play(stage: Stage): Promise<void>
  /** The final state of the first authorization on the chain. */
  first: 'charged' | 'never charged'
}

export interface Stage {
  t: Test
  harness: EvmHarness
  order: Purchase
  /** The process that crashes at the place of the cell, and takes no job before it gets a message. */
  crashing?: Child
  /** Checks that the one settlement is uncertain, and that every way of asking again is answered 202. */
  staysOpen(): Promise<void>
  /** Lets the first authorization expire on the chain. */
  isProved(): void
}

const pays = async () => {}
const retries: Cell['play'] = async ({ harness, staysOpen }) => {
  await staysOpen()
  await harness.hurry()
}
export const cells: Cell[] = [
  { name: 'nothing', play: pays, first: 'charged' },
  {
    name: 'answer lost before broadcast',
    script: [deeds.lostBefore],
    play: retries,
    first: 'charged',
  },
  { name: 'answer lost after broadcast', script: [deeds.lostAfter], play: pays, first: 'charged' },
  {
    name: 'settle times out, the block comes later',
    script: [deeds.neverAnswers],
    settleTimeoutMs: 400,
    play: async ({ harness, order, staysOpen }) => {
      await harness.chain.controls.setAutomine(false)
      await staysOpen()
      await harness.hurry()
      await harness.inDoubt(order)
      await harness.chain.controls.mine({ blocks: 1 })
      await harness.chain.controls.setAutomine(true)
      await harness.hurry()
    },
    first: 'charged',
  },
  {
    name: 'never broadcast, then settled',
    script: [deeds.neverSends, deeds.neverSends],
    play: async ({ harness, order, staysOpen }) => {
      await staysOpen()
      await harness.hurry()
      await harness.inDoubt(order)
      await harness.hurry()
    },
    first: 'charged',
  },
  {
    name: 'never broadcast until it expires',
    script: [deeds.neverSends],
    play: async ({ harness, order, staysOpen, isProved }) => {
      await staysOpen()
      await expire(harness, order)
      isProved()
      await harness.hurry()
    },
    first: 'never charged',
  },
  {
    name: 'HTTP 500 settlement_pending, the block comes later',
    script: [deeds.answers500],
    play: async ({ harness, staysOpen }) => {
      harness.facilitator.confirms = false
      await harness.chain.controls.setAutomine(false)
      await staysOpen()
      await harness.chain.controls.mine({ blocks: 1 })
      await harness.hurry()
    },
    first: 'charged',
  },
  {
    name: 'HTTP 500 settlement_pending, requested again before the block',
    script: [deeds.answers500],
    play: async ({ harness, staysOpen }) => {
      harness.facilitator.confirms = false
      await harness.chain.controls.setAutomine(false)
      await staysOpen()
      harness.facilitator.confirms = true
      harness.facilitator.script.push(async (call) => {
        const settled = call.perform()
        await harness.chain.controls.mine({ blocks: 1 })
        call.answer(200, await settled)
      })
      await harness.hurry()
    },
    first: 'charged',
  },
  {
    name: 'non-JSON 503 before broadcast',
    script: [deeds.notJsonBefore],
    play: retries,
    first: 'charged',
  },
  { name: 'non-JSON 503 after broadcast', script: [deeds.notJsonAfter], play: pays, first: 'charged' },
  {
    name: 'nonce already used: a third party sent the authorization',
    play: async ({ harness }) => {
      harness.facilitator.script.push(async (call) => {
        await sendAuthorization(harness.chain, readAuthorization(call.payload.payload))
        await deeds.settles(call)
      })
    },
    first: 'charged',
  },
  {
    name: 'nonce used for something else by the payer',
    play: async ({ harness, order, isProved }) => {
      harness.facilitator.script.push(async (call) => {
        await spendElsewhere(harness, order, readAuthorization(call.payload.payload))
        await harness.chain.makeFinal()
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
    play: async ({ t, harness, order }) => {
      const reached = Promise.withResolvers<void>()
      const released = Promise.withResolvers<void>()
      harness.facilitator.script.push(async (call) => {
        reached.resolve()
        await released.promise
        await deeds.settles(call)
      })
      const bought = order.buy()
      await reached.promise
      const id = await order.requestId
      // Frees the job, as the rescue does.
      await harness.system.sql(
        `select graphile_worker.add_job('verify_request', json_build_object('request_id', $1::text))`,
        [id],
      )
      await bought
      t.equal((await order.buyAndWait()).status, 200)
      released.resolve()
      await harness.logLines.next('fenced', { request_id: id })
    },
    first: 'charged',
  },
  {
    name: 'RPC down during reconciliation',
    play: async ({ harness, order, staysOpen }) => {
      harness.facilitator.script.push(async (call) => {
        harness.rpc.shut = true
        await deeds.lostAfter(call)
      })
      await staysOpen()
      await harness.hurry()
      await harness.inDoubt(order)
      harness.rpc.shut = false
      await harness.hurry()
    },
    first: 'charged',
  },
  {
    name: 'RPC down from the intent on, nothing sent',
    script: [deeds.lostBefore],
    play: async ({ harness, order, staysOpen }) => {
      harness.rpc.shut = true
      await staysOpen()
      await harness.hurry()
      await harness.inDoubt(order)
      harness.rpc.shut = false
      await harness.hurry()
    },
    first: 'charged',
  },
  {
    name: 'worker killed between intent and call',
    kills: 'before call',
    play: (stage) => killWorker(stage, 'before call'),
    first: 'charged',
  },
  {
    name: 'worker killed between call and outcome',
    kills: 'after call',
    play: (stage) => killWorker(stage, 'after call'),
    first: 'charged',
  },
  {
    name: 'worker killed between receipt and answer',
    kills: 'after receipt',
    play: (stage) => killWorker(stage, 'after receipt'),
    first: 'charged',
  },
  {
    name: 'authorization expires during the work',
    play: async ({ harness, isProved }) => {
      harness.facilitator.script.push(async (call) => {
        await harness.chain.passTime(Number(readAuthorization(call.payload.payload).validBefore))
        isProved()
        await deeds.settles(call)
      })
    },
    first: 'never charged',
  },
  {
    name: 'expired, and not final for a while',
    play: async ({ harness, order, staysOpen, isProved }) => {
      harness.facilitator.script.push(async (call) => {
        const { validBefore } = readAuthorization(call.payload.payload)
        await harness.chain.controls.setNextBlockTimestamp({ timestamp: BigInt(validBefore) })
        await harness.chain.controls.mine({ blocks: 1 })
        await deeds.settles(call)
      })
      await staysOpen()
      await harness.hurry()
      await harness.inDoubt(order)
      await harness.chain.makeFinal()
      isProved()
      await harness.hurry()
    },
    first: 'never charged',
  },
  {
    name: 'authorization cancelled by the payer',
    play: async ({ harness, order, staysOpen, isProved }) => {
      harness.facilitator.script.push(async (call) => {
        await cancelAuthorization(harness.chain, order.wallet, readAuthorization(call.payload.payload).nonce)
        await deeds.settles(call)
      })
      await staysOpen()
      await harness.chain.makeFinal()
      isProved()
      await harness.hurry()
    },
    first: 'never charged',
  },
]

async function killWorker({ t, harness, order, crashing }: Stage, place: Place) {
  if (!crashing) throw new Error('This cell needs a process that crashes.')
  await harness.stopWorker()
  await crashing.reports('ready')
  crashing.send({ do: 'run' })
  await crashing.reports('running')
  await order.buy()
  t.match(await crashing.ended, { signal: 'SIGKILL' })
  const asked = await order.ask()
  t.equal(asked.status, place === 'after receipt' ? 200 : 202)
  await harness.startWorker()
}

async function expire({ chain }: EvmHarness, order: Purchase) {
  const [header = ''] = order.signatures
  const { payload } = JSON.parse(Buffer.from(header, 'base64').toString())
  await chain.passTime(Number(readAuthorization(payload).validBefore))
}

/** A second authorization with the same nonce, to another address of the payer. */
async function spendElsewhere({ chain }: EvmHarness, order: Purchase, given: Authorization) {
  const other = { ...given, to: (await chain.openAccount()).address, value: '0' }
  await sendAuthorization(chain, await sign(chain, order.wallet, other))
}
