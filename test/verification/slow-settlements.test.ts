// A facilitator that takes its time over one payment holds no slot of the queue, and the payment is made once.
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import type { Facilitator } from '../../server/payments/x402.ts'
import { openWork } from '../../workers/context.ts'
import { openRunner } from '../../workers/runner.ts'
import { type ApiHarness, openApiHarness, outcomeOf, readResult } from '../api-harness.ts'
import { type Deed, type Ledger, openLedger, openLedgerFacilitator } from '../ledger.ts'
import { payingFetch } from '../system.ts'
import { until } from '../until.ts'

const order = (front: ApiHarness) => front.ask({ key: randomUUID(), fetch: payingFetch() })

/** A facilitator that takes its time over the first payment of all. */
async function openShop(t: Test) {
  const front = await openApiHarness({ WORKER_FETCHES: '4' })
  t.teardown(() => front[Symbol.asyncDispose]())
  const ledger = await openLedger(front.databaseUrl)
  t.teardown(() => ledger[Symbol.asyncDispose]())
  const asked = Promise.withResolvers<void>()
  const answering = Promise.withResolvers<void>()
  let slow: string | undefined
  const facilitatorOf = (script: Deed[]): Facilitator => {
    const facilitator = openLedgerFacilitator(ledger, ({ nonce }) => (nonce === slow ? script.shift() : undefined))
    t.teardown(() => facilitator[Symbol.asyncDispose]())
    return {
      ...facilitator,
      async settle(offer, intent) {
        slow ??= offer.bound.identity.nonce
        if (slow === offer.bound.identity.nonce) {
          asked.resolve()
          await answering.promise
        }
        return facilitator.settle(offer, intent)
      },
    }
  }
  return { front, ledger, facilitatorOf, asked: asked.promise, answer: () => answering.resolve() }
}

/** A worker of one slot, in which all work is slow. */
async function openWorker(front: ApiHarness, facilitator: Facilitator) {
  const opened = new AsyncDisposableStack()
  const work = opened.use(await openWork(front.core, { slowMs: 1 }))
  const runner = opened.use(await openRunner({ ...work, facilitator }, { concurrency: 1 }))
  runner.died.catch(() => {})
  return { work, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

/** Waits until no job runs, and tells what the queue and the table have of the one request that is settling. */
async function settlingRow({ tables }: ApiHarness) {
  const locked = () => tables.query('select from graphile_worker.jobs where locked_at is not null')
  await until(async () => (await locked()).rowCount === 0)
  const { rows } = await tables.query(`
    select r.state, j.run_at <= now() due, j.attempts from verification_requests r
    join graphile_worker.jobs j on j.key = 'verify:' || r.id where r.state = 'settling'`)
  return rows
}

const chargesOf = async (ledger: Ledger) => (await ledger.charges()).length

t.test(
  'a slow settlement leaves its job, and the request is completed when the facilitator has answered',
  async (t) => {
    const { front, ledger, facilitatorOf, asked, answer } = await openShop(t)
    await using worker = await openWorker(front, facilitatorOf([]))
    const slow = await order(front)
    await asked
    await readResult(await outcomeOf(await order(front)))
    t.equal(await chargesOf(ledger), 1, 'another payer is served in the only slot')
    t.match(await settlingRow(front), [{ due: false, attempts: 0 }], 'its job is due only if this process is killed')
    t.equal(worker.work.slowWork.size, 1)
    answer()
    await readResult(await outcomeOf(slow))
    t.equal(await chargesOf(ledger), 2)
  },
)

t.test('what a slow facilitator answers at last counts as it does in a job', async (t) => {
  const { front, ledger, facilitatorOf, asked, answer } = await openShop(t)
  await using worker = await openWorker(front, facilitatorOf(['is unpaid']))
  const slow = await order(front)
  await asked
  await settlingRow(front)
  answer()
  const refused = await outcomeOf(slow)
  t.equal(refused.status, 402, 'nothing was charged, so the caller may pay anew')
  t.equal(await chargesOf(ledger), 0)
  await until(() => worker.work.slowWork.size === 0)
})

t.test('an answer that fails leaves the payment in doubt, and it is charged once', async (t) => {
  const { front, ledger, facilitatorOf, asked, answer } = await openShop(t)
  await using worker = await openWorker(front, facilitatorOf(['throws, but charged']))
  const slow = await order(front)
  await asked
  await settlingRow(front)
  answer()
  await until(() => worker.work.slowWork.size === 0)
  t.match(await settlingRow(front), [{ due: false, attempts: 0 }], 'it is tried again later')
  await front.tables.query(`
    select graphile_worker.reschedule_jobs(array(select id from graphile_worker.jobs where key like 'verify:%'), run_at => now())`)
  await readResult(await outcomeOf(slow))
  t.equal(await chargesOf(ledger), 1)
})

t.test('a worker that stops hands back the request, which the next one completes with the same payment', async (t) => {
  const { front, ledger, facilitatorOf, asked, answer } = await openShop(t)
  const slow = await order(front)
  {
    await using worker = await openWorker(front, facilitatorOf([]))
    await asked
    await settlingRow(front)
    t.equal(worker.work.slowWork.size, 1)
  }
  t.match(await settlingRow(front), [{ due: true, attempts: 0 }])
  // The first worker's call has reached the facilitator, and may be answered at any time.
  answer()
  await using _ = await openWorker(front, facilitatorOf([]))
  await readResult(await outcomeOf(slow))
  t.equal(await chargesOf(ledger), 1)
})
