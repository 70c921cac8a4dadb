// The sweep: no request is left without a job, and none whose payment may have been charged is given up.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { sweepRequests } from '../../server/verification/stages/sweep.ts'
import { openWork } from '../../workers/context.ts'
import { type ApiHarness, openApiHarness, readResult } from '../api-harness.ts'
import { type Deed, openLedger, openLedgerFacilitator } from '../ledger.ts'
import { openQueue } from '../queue.ts'
import { payingFetch } from '../system.ts'

async function openAccountHarness(script: Deed[] = []) {
  await using opened = new AsyncDisposableStack()
  const front = opened.use(await openApiHarness())
  const ledger = opened.use(await openLedger(front.databaseUrl))
  const facilitator = opened.use(openLedgerFacilitator(ledger, () => script.shift()))
  const work = { ...opened.use(await openWork(front.core)), facilitator }
  const queue = opened.use(openQueue(work))
  const closing = opened.move()
  return { front, ledger, work, queue, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

/** Makes an accepted and paid request; answers its key. */
async function order(front: ApiHarness): Promise<string> {
  const key = randomUUID()
  const { status } = await front.ask({ key, fetch: payingFetch() })
  if (status !== 202) throw new Error(`${status}`)
  return key
}

/** Uses up the attempts of all jobs. */
function exhaust({ tables }: ApiHarness) {
  return tables.query('update graphile_worker._private_jobs set attempts = max_attempts')
}

function loseJobs({ tables }: ApiHarness) {
  return tables.query('delete from graphile_worker._private_jobs')
}

async function jobs({ tables }: ApiHarness) {
  const { rows } = await tables.query('select attempts, max_attempts from graphile_worker.jobs')
  return rows
}

t.test('a request whose job is gone gets a new one', async (t) => {
  await using office = await openAccountHarness()
  const { front, work, queue } = office
  const key = await order(front)
  await loseJobs(front)
  t.same(await sweepRequests(work, 0), { requeued: 1, failed: 0 })
  t.match(await jobs(front), [{ attempts: 0, max_attempts: 5 }])
  await queue.drain()
  await readResult(await front.ask({ key }))
})

t.test('before settling, a request whose attempts are used up fails uncharged, and its payment is free', async (t) => {
  await using office = await openAccountHarness()
  const { front, ledger, work } = office
  const key = await order(front)
  await exhaust(front)
  t.same(await sweepRequests(work, 0), { requeued: 0, failed: 1 })
  const failed = await front.tables.query('select state, error from verification_requests')
  t.match(failed.rows, [{ state: 'failed', error: { code: 'execution_failed', retryable: true } }])
  const answer = await front.ask({ key })
  t.equal(answer.status, 402, 'it may be paid and tried again')
  t.match(await answer.json(), { error: { message: /execution_failed.*Nothing was charged\./ } })
  t.same(await ledger.charges(), [])
  const { rows } = await front.tables.query('select request_id from payment_claims')
  t.same(rows, [], 'its payment is free again')
  t.same(await sweepRequests(work, 0), { requeued: 0, failed: 0 })
  t.same(await jobs(front), [], 'the dead job is not kept')
})

t.test('from settling on, a request gets new jobs until it is done', async (t) => {
  for (const deeds of [['throws'], ['throws, but charged']] as Deed[][])
    await t.test(String(deeds), async (t) => {
      const script = [...deeds]
      await using office = await openAccountHarness(script)
      const { front, ledger, work, queue } = office
      const key = await order(front)
      await queue.pass()
      const { rows } = await front.tables.query('select state from verification_requests')
      t.same(rows, [{ state: 'settling' }])
      for (let time = 0; time < 3; time++) {
        await exhaust(front)
        t.same(await sweepRequests(work, 0), { requeued: 1, failed: 0 })
      }
      await queue.drain()
      await readResult(await front.ask({ key }))
      t.equal((await ledger.charges()).length, 1)
      t.same(await jobs(front), [])
    })
})

t.test('a charged request is completed even if its job is gone', async (t) => {
  await using office = await openAccountHarness()
  const { front, work, queue } = office
  const key = await order(front)
  // Makes appending to the chain fail.
  await front.tables.query('alter table chain_head rename to mislaid')
  await queue.pass()
  const { rows } = await front.tables.query('select state from verification_requests')
  t.same(rows, [{ state: 'settled' }])
  t.equal((await front.ask({ key })).status, 202)
  await front.tables.query('alter table mislaid rename to chain_head')
  await loseJobs(front)
  t.same(await sweepRequests(work, 0), { requeued: 1, failed: 0 })
  await queue.drain()
  await readResult(await front.ask({ key }))
})

t.test('a request whose job waits or runs, or that moved a moment ago, is not swept', async (t) => {
  await using office = await openAccountHarness()
  const { front, work } = office
  const nothing = { requeued: 0, failed: 0 }
  await order(front)
  t.same(await sweepRequests(work, 0), nothing, 'it waits')
  await front.tables.query(`update graphile_worker._private_jobs set run_at = now() + interval '1 hour', attempts = 4`)
  t.same(await sweepRequests(work, 0), nothing, 'its job waits for the next attempt')
  await front.tables.query(`
    update graphile_worker._private_jobs set locked_at = now(), locked_by = 'somebody', attempts = max_attempts`)
  t.same(await sweepRequests(work, 0), nothing, 'its last attempt runs')
  await loseJobs(front)
  t.same(await sweepRequests(work), nothing, 'it has moved within the last minute')
  await front.tables.query(`update verification_requests set changed_at = now() - interval '61 seconds'`)
  t.same(await sweepRequests(work), { requeued: 1, failed: 0 })
})

t.test('two sweeps at the same time make one job', async (t) => {
  await using office = await openAccountHarness()
  const { front, work, queue } = office
  const keys = [await order(front), await order(front)]
  await loseJobs(front)
  await Promise.all([sweepRequests(work, 0), sweepRequests(work, 0)])
  t.equal((await jobs(front)).length, keys.length)
  await queue.drain()
  for (const key of keys) await readResult(await front.ask({ key }))
  t.same(front.site.requests, ['/harbour'], 'and the page was fetched once for both')
})
