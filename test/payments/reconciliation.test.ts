// Reconciliation confirms settlements that only a facilitator has reported, or reports them as wrong.
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { readConfig } from '../../server/config.ts'
import { paymentCommands } from '../../server/payments/commands.ts'
import { claims, type Deed, deeds } from './evm-facilitator.ts'
import { type EvmHarness, openEvmHarness, type Purchase } from './evm-harness.ts'

async function runReconcile(harness: EvmHarness) {
  const printed: string[] = []
  const { log } = console
  console.log = (line: string) => printed.push(line)
  try {
    const config = readConfig({ ...harness.env, EVM_RPC_URL: harness.rpc.url, FIXTURE_HOSTS: undefined })
    const code = await paymentCommands['payments reconcile']?.run(harness.system.service.work.db, config, {
      args: [],
      json: false,
    })
    return { code, text: printed.join('\n') }
  } finally {
    console.log = log
  }
}

async function entryOf(harness: EvmHarness, order: Purchase) {
  const columns = 'entry::int, transaction, proof, log_index, chain_says'
  const rows = await harness.system.sql(`select ${columns} from payment_ledger where request_id = $1`, [
    await order.requestId,
  ])
  return rows[0] as {
    entry: number
    transaction: string
    proof: string
    log_index: number | null
    chain_says: string | null
  }
}

/** A purchase that is paid while the node does not answer. */
async function buyUnconfirmed(harness: EvmHarness, deed: Deed) {
  const order = await harness.order()
  harness.facilitator.script.push(async (call) => {
    harness.rpc.shut = true
    await deed(call)
  })
  t.equal((await order.buyAndWait()).status, 200)
  t.equal((await entryOf(harness, order)).proof, 'unconfirmed')
  return order
}

t.test('an unconfirmed settlement stays open until the chain can be read, and is then confirmed', async (t) => {
  await using harness = await openEvmHarness({ overrides: { chainTimeoutMs: 100 } })
  const order = await buyUnconfirmed(harness, deeds.settles)
  const { entry, transaction } = await entryOf(harness, order)
  const away = await runReconcile(harness)
  t.equal(away.code, 0)
  t.match(away.text, /^0 entries agree with the chain, 0 differ, 1 are still open/)
  t.match(away.text, new RegExp(`open +entry ${entry}: settled.*, booked as unconfirmed`))
  harness.rpc.shut = false
  const read = await runReconcile(harness)
  t.equal(read.code, 0)
  t.match(read.text, /^1 entries agree with the chain, 0 differ/)
  t.match(read.text, "1 of them rested on the facilitator's report only")
  t.same(await entryOf(harness, order), { entry, transaction, proof: 'chain', log_index: 0, chain_says: 'agrees' })
  t.notMatch((await runReconcile(harness)).text, 'rested on', 'once')
})

t.test('an unconfirmed settlement that did not happen is reported', async (t) => {
  await using harness = await openEvmHarness({ overrides: { chainTimeoutMs: 100 } })
  const order = await buyUnconfirmed(harness, claims(`0x${randomBytes(32).toString('hex')}`))
  harness.rpc.shut = false
  const read = await runReconcile(harness)
  t.equal(read.code, 1)
  t.match(read.text, new RegExp(`DIFFERS entry \\d+: settled, request ${await order.requestId}`))
  t.match(await entryOf(harness, order), { proof: 'unconfirmed', log_index: null, chain_says: 'differs' })
})

t.test('settlements without a configured node are confirmed once there is one', async (t) => {
  await using harness = await openEvmHarness({ nodeless: true })
  const orders = [await harness.order(), await harness.order()]
  for (const order of orders) t.equal((await order.buyAndWait()).status, 200)
  t.match(await runReconcile(harness), { code: 0, text: "2 of them rested on the facilitator's report only" })
  for (const order of orders) t.match(await entryOf(harness, order), { proof: 'chain', chain_says: 'agrees' })
})
