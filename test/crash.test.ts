// kill -9 at every place of a verification. Whatever the moment: the caller gets its result, is charged once, and gets one
// receipt; the chain has no gap; and nothing that was committed is done a second time.
import t, { type Test } from 'tap'
import type { CompletedResult } from '../server/verification/result.ts'
import type { Order, Place } from './crash-worker.ts'
import { buy, declareDead, openCrew, run, type Spent, spentOn } from './crew.ts'
import { audit, type Front, openFront, openSlowPage } from './front.ts'
import { openLedger } from './ledger.ts'
import { PAGE } from './system.ts'

const once: Spent = { fetches: 1, assessments: 1, settles: 1 }

/** What is done twice because its commit had not happened, and nothing else. */
const kills: [Place, Spent][] = [
  ['before observed', { ...once, fetches: 2 }],
  ['after observed', once],
  ['before assessed', { ...once, assessments: 2 }],
  ['after assessed', once],
  ['before settling', once],
  ['after settling', once],
  ['before charge', once],
  // Charged, and nobody knows: the next attempt looks before it asks again.
  ['after charge', once],
  ['before settled', once],
  ['after settled', once],
  ['before receipt', once],
  ['head locked', once],
  ['receipt written', once],
  ['after receipt', once],
  ['after announcement', once],
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

/** The commit that comes too late, and what was done twice because nobody can stop a worker that is only slow. */
const pauses: [Place, string, Spent][] = [
  ['before observed', 'observed', { ...once, fetches: 2 }],
  ['before assessed', 'assessed', { ...once, assessments: 2 }],
  ['before settling', 'settling', once],
  ['before charge', 'settled', { ...once, settles: 2 }],
  ['before settled', 'settled', once],
  ['before receipt', 'completed', once],
  ['receipt written', 'completed', once],
]

t.test('a worker that was thought dead and comes back commits nothing', async (t) => {
  await using front = await openFront()
  await using ledger = await openLedger(front.databaseUrl)
  await using crew = openCrew(front)
  const results: CompletedResult[] = []
  let worker = await crew.next()
  for (const [at, commit, expected] of pauses) {
    await t.test(at, async (t) => {
      const zombie = worker
      await run(zombie, { at, how: 'hold' })
      const purchase = buy(front)
      await zombie.hears((heard) => heard.told === 'held' && heard.at === at)
      const before = zombie.heard.length
      zombie.kill('SIGSTOP')
      await declareDead(front)
      if (at === 'receipt written') await endIdleTransactions(front)
      worker = await crew.next()
      await run(worker)
      results.push(await purchase.result)
      zombie.kill('SIGCONT')
      zombie.tell({ do: 'go' } satisfies Order)
      await zombie.logs('fenced')
      const commits = zombie.heard.slice(before).filter((heard) => heard.told === 'committed')
      t.match(commits, [{ to: commit, taken: false }])
      t.equal(commits.length, 1)
      t.same(await spentOn(purchase, front, ledger), expected)
      const replay = await front.ask({ key: purchase.key, body: bodyOf(front, purchase) })
      t.same(await replay.json(), results.at(-1), 'the result is the one that was served')
      t.equal((await ledger.charges()).length, results.length, 'one charge')
      t.equal((await audit(front, results)).receipts, results.length, 'one receipt')
      zombie.kill('SIGTERM')
      t.same(await zombie.ended, { code: 0, signal: null }, 'it is as good as any other worker')
    })
  }
  worker.kill('SIGTERM')
  await worker.ended
  await checkBooks(t, front, results)
})

t.test('without any help a killed worker is noticed and its work done within 30 seconds', async (t) => {
  await using front = await openFront()
  await using crew = openCrew(front)
  const [victim, other] = [await crew.next(), await crew.next()]
  await run(victim, { at: 'after charge', how: 'hold' })
  const purchase = buy(front)
  await victim.tells('held')
  await run(other)
  const killed = performance.now()
  victim.kill('SIGKILL')
  const result = await purchase.result
  const seconds = (performance.now() - killed) / 1000
  t.comment(`rescued and completed ${seconds.toFixed(1)} s after kill -9`)
  t.ok(seconds < 30, `${seconds.toFixed(1)} s`)
  await checkBooks(t, front, [result], { jobs: false })
})

t.test('pages that a killed worker was reading are read again within 30 seconds', async (t) => {
  await using front = await openFront()
  await using crew = openCrew(front)
  const victim = await crew.next()
  await run(victim)
  // As many as one site may be asked for at once.
  const pages = Array.from({ length: 4 }, () => openSlowPage(PAGE))
  const purchases = pages.map(({ page }) => buy(front, page))
  await Promise.all(pages.map(({ asked }) => asked))
  victim.kill('SIGKILL')
  await victim.ended
  for (const { serve } of pages) serve()
  await declareDead(front)
  await run(await crew.next())
  const started = performance.now()
  const results = await Promise.all(purchases.map(({ result }) => result))
  const seconds = (performance.now() - started) / 1000
  t.ok(seconds < 15, `${seconds.toFixed(1)} s after the rescue`)
  await checkBooks(t, front, results, { jobs: false })
})

function bodyOf(front: Front, { path, claim }: { path: string; claim: string }) {
  return { source_url: front.site.url(path), claim, options: { max_age_seconds: 0 } }
}

/** What the database does by itself with a transaction that has been left alone for 30 seconds. */
async function endIdleTransactions({ tables }: Front) {
  await tables.query(`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and state = 'idle in transaction'`)
}

async function checkBooks(t: Test, front: Front, results: CompletedResult[], { jobs = true } = {}) {
  t.same(await audit(front, results), { badResults: {}, badLinks: [], receipts: results.length })
  if (!jobs) return
  const { rows } = await front.tables.query('select count(*)::int from graphile_worker.jobs')
  t.equal(rows[0].count, 0, 'no job is left')
}
