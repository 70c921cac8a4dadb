// kill -9 at every place of a verification. Each time the caller gets its result, is charged once, and gets one receipt; the chain
// has no gap; and no committed work is done twice.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { PurchaseResult } from '../server/interface/claims.ts'
import { audit, listen, openApiHarness, outcomeOf, readResult } from './api-harness.ts'
import { startChild } from './children.ts'
import {
  allJobsEnded,
  bodyOf,
  buy,
  buyClaims,
  checkBooks,
  declareDead,
  ONCE,
  openCrashHarness,
  openSurvivor,
  run,
  type Spent,
  spentOn,
} from './crash-harness.ts'
import type { Place } from './crash-worker.ts'
import { openLedger } from './ledger.ts'
import { PAGE, signPayment, termsOf } from './system.ts'

const BUY = '/api/agent/v1/buy'

/**
 * The work that each kill causes: only work that was not committed is done twice. A worker without a model commits observation
 * and assessment with the intent to settle.
 */
const kills: [Place, Spent][] = [
  ['before observed', { ...ONCE, fetches: 2 }],
  ['after observed', ONCE],
  ['before assessed', { ...ONCE, assessments: 2 }],
  ['after assessed', ONCE],
  ['before settling', { ...ONCE, fetches: 2, assessments: 2 }],
  ['after settling', ONCE],
  ['before charge', ONCE],
  // Charged, but not recorded: the next attempt looks up the charge before it settles.
  ['after charge', ONCE],
  ['before receipt', ONCE],
  ['head locked', ONCE],
  ['receipt written', ONCE],
  ['after receipt', ONCE],
  ['after notification', ONCE],
]

/** The words with which the table at the top of server/verification/stages/stages.ts names the work that a crash before a commit repeats. */
const REPEATED: Record<string, Spent> = {
  'the fetch': { ...ONCE, fetches: 2 },
  'the question to the model': { ...ONCE, assessments: 2 },
  'fetch and literal assessment': { ...ONCE, fetches: 2, assessments: 2 },
  nothing: ONCE,
}

/** The rows of that table: the commit, named after the last state it stores, and what a crash before it repeats. */
function repeatedByCommit(): [string, string][] {
  const source = readFileSync(join(import.meta.dirname, '../server/verification/stages/stages.ts'), 'utf8')
  const [, table = ''] = source.match(/^\/\/ {3}commit .*\n((?:\/\/ {3}.*\n)+)/m) ?? []
  return [...table.matchAll(/^\/\/ {3}(\S.*?\S) {2,}(\S[^:\n]*)/gm)].map(([, commit = '', repeats = '']) => [
    commit
      .replace(/ \([^)]*\)/g, '')
      .split(', ')
      .at(-1) ?? '',
    repeats,
  ])
}

t.test(
  'the kills below are one before and one after each commit, and repeat what server/verification/stages/stages.ts says',
  async (t) => {
    const rows = repeatedByCommit()
    const expected = rows.flatMap(([commit, repeats]): [string, Spent | undefined][] => [
      [`before ${commit}`, REPEATED[repeats]],
      [`after ${commit}`, ONCE],
    ])
    const flushes = new Set(expected.map(([place]) => place))
    t.same(
      rows.map(([commit]) => commit),
      ['observed', 'assessed', 'settling', 'receipt'],
    )
    t.same(
      kills.filter(([place]) => flushes.has(place)),
      expected,
    )
    // A kill between two commits, or inside one, repeats no work that cost money.
    t.same(
      kills.filter(([place, { settles }]) => !flushes.has(place) && settles !== 1),
      [],
    )
  },
)

const sellers = { 'a verification': buy, 'one of several claims': buyClaims }

for (const [sold, buy] of Object.entries(sellers))
  t.test(`killed at any place, ${sold} is completed by the next worker`, async (t) => {
    await using harness = await openApiHarness()
    await using ledger = await openLedger(harness.databaseUrl)
    await using workers = openCrashHarness(harness, kills.length + 1)
    const results: PurchaseResult[] = []
    let worker = await workers.next()
    for (const [at, expected] of kills) {
      await t.test(at, async (t) => {
        await run(worker, { at, how: 'kill' })
        const purchase = buy(harness)
        t.same(await worker.ended, { code: null, signal: 'SIGKILL' }, 'the worker reached the place')
        await declareDead(harness)
        worker = await workers.next()
        await run(worker)
        results.push(await purchase.result)
        t.same(await spentOn(purchase, harness, ledger), expected)
        t.equal((await ledger.charges()).length, results.length, 'one charge')
        t.equal((await audit(harness, results)).receipts, results.length, 'one receipt')
      })
    }
    await allJobsEnded(harness)
    worker.kill('SIGTERM')
    t.same(await worker.ended, { code: 0, signal: null })
    await checkBooks(t, harness, results)
  })

for (const [sold, buy] of Object.entries(sellers))
  t.test(
    `a worker that finds the settlement of ${sold} under way commits it by itself, and may be killed there, too`,
    async (t) => {
      await using harness = await openApiHarness()
      await using ledger = await openLedger(harness.databaseUrl)
      await using workers = openCrashHarness(harness, 5)
      const results: PurchaseResult[] = []
      let worker = await workers.next()
      for (const at of ['before settled', 'after settled'] as const)
        await t.test(at, async (t) => {
          await run(worker, { at: 'after charge', how: 'kill' })
          const purchase = buy(harness)
          for (const next of [{ at, how: 'kill' as const }, undefined]) {
            t.same(await worker.ended, { code: null, signal: 'SIGKILL' })
            await declareDead(harness)
            worker = await workers.next()
            await run(worker, next)
          }
          results.push(await purchase.result)
          t.same(await spentOn(purchase, harness, ledger), ONCE)
          t.equal((await ledger.charges()).length, results.length, 'one charge')
        })
      await allJobsEnded(harness)
      worker.kill('SIGTERM')
      await worker.ended
      await checkBooks(t, harness, results)
    },
  )

t.test('the next worker does everything that a killed one had begun or fetched ahead', async (t) => {
  await using harness = await openApiHarness({ WORKER_CONCURRENCY: '2' })
  await using ledger = await openLedger(harness.databaseUrl)
  await using workers = openCrashHarness(harness, 1)
  const purchases = Array.from({ length: 8 }, () => buy(harness))
  const victim = await workers.next()
  await run(victim, { at: 'receipt written', how: 'kill' })
  await victim.ended
  await declareDead(harness)
  const results: PurchaseResult[] = []
  {
    await using _next = await openSurvivor(harness)
    results.push(...(await Promise.all(purchases.map(({ result }) => result))))
    await allJobsEnded(harness)
  }
  t.equal((await ledger.charges()).length, purchases.length)
  await checkBooks(t, harness, results)
})

t.test('a purchase at /buy without a key survives both: the same signed payment finds it', async (t) => {
  await using harness = await openApiHarness()
  await using ledger = await openLedger(harness.databaseUrl)
  await using workers = openCrashHarness(harness, 1)
  await using api = startChild('server/main.ts', harness.env)
  const { address } = await api.logs('listening')
  await using taken = await listen(harness.databaseUrl, 'jobs:insert')
  const path = `/${randomUUID()}`
  harness.site.pages.set(path, { body: PAGE })
  const body = JSON.stringify(bodyOf(harness, { path, claim: 'The harbour was opened in 1874.' }))
  const { headers } = await signPayment(termsOf(await fetch(harness.url(BUY))))
  const post = (at: string, wait: string) => {
    const sent = { 'content-type': 'application/json', prefer: `wait=${wait}`, ...headers }
    return fetch(new URL(BUY, at), { method: 'POST', headers: sent, body })
  }
  const lost = t.rejects(post(String(address), '25'), 'its caller gets no answer')
  await taken.heard
  api.kill('SIGKILL')
  await lost
  const worker = await workers.next()
  await run(worker, { at: 'after charge', how: 'kill' })
  t.equal((await post(harness.url('/'), '0')).status, 202)
  await worker.ended
  await declareDead(harness)
  await using _next = await openSurvivor(harness)
  const answer = await post(harness.url('/'), '25')
  t.equal(answer.status, 200)
  t.equal((await ledger.charges()).length, 1, 'charged once')
  t.equal(await (await post(harness.url('/'), '25')).text(), await answer.text())
})

t.test('a payment that an API process accepted before it was killed stays accepted', async (t) => {
  await using harness = await openApiHarness()
  await using ledger = await openLedger(harness.databaseUrl)
  await using api = startChild('server/main.ts', harness.env)
  const { address } = await api.logs('listening')
  await using taken = await listen(harness.databaseUrl, 'jobs:insert')
  const purchase = buy(harness, { body: PAGE }, String(address))
  const outcome = t.rejects(purchase.result, 'its caller gets no answer')
  await taken.heard
  api.kill('SIGKILL')
  await outcome
  const again = await harness.ask({ key: purchase.key, body: bodyOf(harness, purchase) })
  t.equal(again.status, 202, 'the caller is not asked to pay again')
  await using _worker = await openSurvivor(harness)
  const result = await readResult(await outcomeOf(again))
  t.equal((await ledger.charges()).length, 1)
  await checkBooks(t, harness, [result], { jobs: false })
})
