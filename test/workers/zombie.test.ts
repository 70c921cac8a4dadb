// Workers that were taken for dead but were only slow. They cannot be stopped, but their late commits are refused.
import t from 'tap'
import type { CompletedResult } from '../../server/interface/result.ts'
import { type ApiHarness, audit, openApiHarness } from '../api-harness.ts'
import type { Child, Heard } from '../children.ts'
import {
  bodyOf,
  buy,
  checkBooks,
  declareDead,
  ONCE,
  openCrashHarness,
  openSurvivor,
  type Purchase,
  run,
  type Spent,
  spentOn,
} from '../crash-harness.ts'
import type { Order, Place } from '../crash-worker.ts'
import { openLedger } from '../ledger.ts'

/** The place where the worker pauses, its late commit, and the work that is done twice meanwhile. */
const pauses: [Place, string, Spent][] = [
  ['before observed', 'observed', { ...ONCE, fetches: 2 }],
  ['before assessed', 'assessed', { ...ONCE, assessments: 2 }],
  ['before settling', 'settling', { ...ONCE, fetches: 2, assessments: 2 }],
  // Both settle the same authorization: the money moves once.
  ['before charge', 'completed', { ...ONCE, settles: 2 }],
  ['before receipt', 'completed', ONCE],
  ['receipt written', 'completed', ONCE],
]

t.test('a worker that was taken for dead and comes back commits nothing', async (t) => {
  await using front = await openApiHarness()
  await using ledger = await openLedger(front.databaseUrl)
  await using workers = openCrashHarness(front, pauses.length)
  await using survivor = new AsyncDisposableStack()
  const results: CompletedResult[] = []
  let worker = await workers.next()
  for (const [n, [at, commit, expected]] of pauses.entries()) {
    // The worker of a case that failed is stopped, and the next case would wait for it.
    if (!t.passing()) break
    await t.test(at, async (t) => {
      const zombie = worker
      const purchase = await holdAt(zombie, at, front)
      const before = zombie.heard.length
      const isLate = nextCommit(zombie)
      zombie.kill('SIGSTOP')
      await declareDead(front)
      if (at === 'receipt written') await endOpenAppend(front)
      if (n < pauses.length - 1) {
        worker = await workers.next()
        await run(worker)
      } else survivor.use(await openSurvivor(front))
      results.push(await purchase.result)
      zombie.kill('SIGCONT')
      zombie.send({ do: 'go' } satisfies Order)
      await Promise.all([zombie.logs('fenced'), zombie.hears(isLate)])
      const commits = zombie.heard.slice(before).filter((heard) => heard.type === 'committed')
      t.match(commits, [{ to: commit, taken: false }])
      t.equal(commits.length, 1)
      t.same(await spentOn(purchase, front, ledger), expected)
      const replay = await front.ask({ key: purchase.key, body: bodyOf(front, purchase) })
      t.same(await replay.json(), results.at(-1), 'the result is the one that was served')
      t.equal((await ledger.charges()).length, results.length, 'one charge')
      t.equal((await audit(front, results)).receipts, results.length, 'one receipt')
      zombie.kill('SIGTERM')
      t.same(await zombie.ended, { code: 0, signal: null }, 'it ends like any other worker')
    })
  }
  await survivor.disposeAsync()
  await checkBooks(t, front, results)
})

const rivals: [Place, string][] = [
  ['before observed', 'observed'],
  ['before assessed', 'assessed'],
  ['before settling', 'settling'],
  ['before receipt', 'completed'],
]

t.test('it commits nothing while its successor has not committed yet', async (t) => {
  await using front = await openApiHarness()
  await using ledger = await openLedger(front.databaseUrl)
  await using workers = openCrashHarness(front, rivals.length + 1)
  const results: CompletedResult[] = []
  let worker = await workers.next()
  for (const [at, commit] of rivals) {
    if (!t.passing()) break
    await t.test(at, async (t) => {
      const zombie = worker
      const purchase = await holdAt(zombie, at, front)
      const isLate = nextCommit(zombie)
      zombie.kill('SIGSTOP')
      await declareDead(front)
      worker = await workers.next()
      await run(worker, { at, how: 'hold' })
      await worker.hears((heard) => heard.type === 'held' && heard.at === at)
      zombie.kill('SIGCONT')
      zombie.send({ do: 'go' } satisfies Order)
      await Promise.all([zombie.logs('fenced'), zombie.hears(isLate)])
      t.match(
        zombie.heard.findLast(({ type }) => type === 'committed'),
        { to: commit, taken: false },
      )
      zombie.kill('SIGTERM')
      await zombie.ended
      worker.send({ do: 'go' } satisfies Order)
      results.push(await purchase.result)
      t.equal((await ledger.charges()).length, results.length, 'one charge')
    })
  }
  worker.kill('SIGTERM')
  await worker.ended
  await checkBooks(t, front, results)
})

/**
 * Matches the next commit that the worker reports. Commits are reported by messages and a stale attempt in the log: these are
 * two channels, so a test waits for both.
 */
function nextCommit(worker: Child) {
  const known = new Set(worker.heard)
  return (heard: Heard) => heard.type === 'committed' && !known.has(heard)
}

/** A purchase that a worker holds at that place. Its next beat, which would stop the work, may come before its late commit. */
async function holdAt(worker: Child, at: Place, front: ApiHarness): Promise<Purchase> {
  await run(worker, { at, how: 'hold', isDeaf: true })
  const purchase = buy(front)
  await worker.hears((heard) => heard.type === 'held' && heard.at === at)
  return purchase
}

/**
 * Ends the transaction that has written a receipt and does not continue, as the database does after 30 seconds. A worker
 * that is starting has short transactions of its own, which continue.
 */
async function endOpenAppend({ tables }: ApiHarness) {
  const { rowCount } = await tables.query(`
    select pg_terminate_backend(pid) from pg_locks
    where relation = 'receipts'::regclass and mode = 'RowExclusiveLock' and granted
      -- Databases that are copies of one template name a table by the same number.
      and database = (select oid from pg_database where datname = current_database())`)
  if (rowCount !== 1) throw new Error(`${rowCount} transactions have written receipts, not 1`)
}
