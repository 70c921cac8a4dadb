// kill -9 at every place of a verification. Whatever the moment: the caller gets its result, is charged once, and gets one
// receipt; the chain has no gap; and nothing that was committed is done a second time.
import t from 'tap'
import type { CompletedResult } from '../server/interface/result.ts'
import { startChild } from './children.ts'
import type { Place } from './crash-worker.ts'
import { bodyOf, buy, checkBooks, declareDead, ONCE, openCrew, run, type Spent, spentOn } from './crew.ts'
import { audit, listen, openFront, outcomeOf, readResult } from './front.ts'
import { openLedger } from './ledger.ts'
import { PAGE } from './system.ts'

/** What is done twice because its commit had not happened, and nothing else. */
const kills: [Place, Spent][] = [
  ['before observed', { ...ONCE, fetches: 2 }],
  ['after observed', ONCE],
  ['before assessed', { ...ONCE, assessments: 2 }],
  ['after assessed', ONCE],
  ['before settling', ONCE],
  ['after settling', ONCE],
  ['before charge', ONCE],
  // Charged, and nobody knows: the next attempt looks before it asks again.
  ['after charge', ONCE],
  ['before settled', ONCE],
  ['after settled', ONCE],
  ['before receipt', ONCE],
  ['head locked', ONCE],
  ['receipt written', ONCE],
  ['after receipt', ONCE],
  ['after notification', ONCE],
]

t.test('killed at any place, a verification is completed by the next worker', async (t) => {
  await using front = await openFront()
  await using ledger = await openLedger(front.databaseUrl)
  await using crew = openCrew(front)
  const results: CompletedResult[] = []
  let worker = await crew.next()
  for (const [at, expected] of kills) {
    await t.test(at, async (t) => {
      await run(worker, { at, how: 'kill' })
      const purchase = buy(front)
      t.same(await worker.ended, { code: null, signal: 'SIGKILL' }, 'it came by there')
      await declareDead(front)
      worker = await crew.next()
      await run(worker)
      results.push(await purchase.result)
      t.same(await spentOn(purchase, front, ledger), expected)
      t.equal((await ledger.charges()).length, results.length, 'one charge')
      t.equal((await audit(front, results)).receipts, results.length, 'one receipt')
    })
  }
  worker.kill('SIGTERM')
  t.same(await worker.ended, { code: 0, signal: null })
  await checkBooks(t, front, results)
})

t.test('all that a killed worker had begun or fetched ahead is done by the next one', async (t) => {
  await using front = await openFront({ WORKER_CONCURRENCY: '2' })
  await using ledger = await openLedger(front.databaseUrl)
  await using crew = openCrew(front)
  const purchases = Array.from({ length: 8 }, () => buy(front))
  const victim = await crew.next()
  await run(victim, { at: 'receipt written', how: 'kill' })
  await victim.ended
  await declareDead(front)
  const next = await crew.next()
  await run(next)
  const results = await Promise.all(purchases.map(({ result }) => result))
  next.kill('SIGTERM')
  await next.ended
  t.equal((await ledger.charges()).length, purchases.length)
  await checkBooks(t, front, results)
})

t.test('an API process killed once it has taken the payment has taken it', async (t) => {
  await using front = await openFront()
  await using ledger = await openLedger(front.databaseUrl)
  await using crew = openCrew(front)
  await using api = startChild('server/main.ts', front.env)
  const { address } = await api.logs('listening')
  await using taken = await listen(front.databaseUrl, 'jobs:insert')
  const purchase = buy(front, { body: PAGE }, String(address))
  const outcome = t.rejects(purchase.result, 'its caller learns nothing')
  await taken.heard
  api.kill('SIGKILL')
  await outcome
  const again = await front.ask({ key: purchase.key, body: bodyOf(front, purchase) })
  t.equal(again.status, 202, 'and is not asked to pay again')
  await run(await crew.next())
  const result = await readResult(await outcomeOf(again))
  t.equal((await ledger.charges()).length, 1)
  await checkBooks(t, front, [result], { jobs: false })
})
