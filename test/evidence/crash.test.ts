// kill -9 at every place of a purchase whose page is captured: the purchase is completed, its capture is signed once, and what an
// interrupted worker left behind goes.
import t from 'tap'
import { dropCaptures } from '../../server/evidence/pruning.ts'
import type { PurchaseResult } from '../../server/interface/claims.ts'
import { recoveryToken } from '../../server/verification/recovery-token.ts'
import { openApiHarness } from '../api-harness.ts'
import { startChild } from '../children.ts'
import { buy, declareDead, openCrashHarness, openSurvivor, run } from '../crash-harness.ts'
import type { Place } from '../crash-worker.ts'
import { openLedger } from '../ledger.ts'
import { until } from '../until.ts'
import { askEvidence, openPackage } from './purchases.ts'

/** With the captures that each kill leaves without a request. */
const kills: [Place, number][] = [
  ['capture kept', 1],
  ['after settling', 0],
  ['head locked', 0],
  ['capture locked', 0],
  ['manifest written', 0],
  ['after receipt', 0],
]

t.test('killed at any place', async (t) => {
  await using harness = await openApiHarness({ SOURCE_CAPTURE: 'on' })
  await using ledger = await openLedger(harness.databaseUrl)
  await using workers = openCrashHarness(harness, kills.length)
  await using survivor = new AsyncDisposableStack()
  const results: PurchaseResult[] = []
  let orphans = 0
  let worker = await workers.next()
  for (const [n, [at, left]] of kills.entries())
    await t.test(at, async (t) => {
      await run(worker, { at, how: 'kill' })
      const purchase = buy(harness)
      t.same(await worker.ended, { code: null, signal: 'SIGKILL' }, 'the worker reached the place')
      await declareDead(harness)
      if (n < kills.length - 1) {
        worker = await workers.next()
        await run(worker)
      } else survivor.use(await openSurvivor(harness))
      const result = await purchase.result
      results.push(result)
      orphans += left
      t.equal((await ledger.charges()).length, results.length, 'one charge')
      const { rows } = await harness.tables.query(`
        select (select count(*)::int from captures where serial is not null) signed,
               (select count(*)::int from captures where serial is null) open,
               (select count(*)::int from receipts) receipts,
               (select count(*)::int from receipts where requested_by = 'source-capture') manifests`)
      t.same(rows[0], {
        signed: results.length,
        open: orphans,
        receipts: 2 * results.length,
        manifests: results.length,
      })
      const token = recoveryToken(harness.core.secrets.recovery, result.request_id)
      const { json } = await openPackage(await askEvidence(harness, { result, token }))
      const { result: own, capture } = json('evidence/receipts.json')
      t.equal(capture.attestation.serial, own.attestation.serial + 1, 'of the same batch')
      t.equal(json('evidence/manifest.json').result_sha256, result.receipt.envelope.result_sha256)
    })
  await t.test('what is left without a request is deleted, and nothing else', async (t) => {
    await harness.tables.query(`update captures set created_at = created_at - interval '1 hour'`)
    t.equal(await dropCaptures(harness.core.db, null, 1000), orphans)
    const { rows } = await harness.tables.query('select count(*)::int n from captures')
    t.equal(rows[0].n, results.length)
  })

  // A worker prunes every minute too, and its connection would be found in place of that of the process below.
  await survivor.disposeAsync()

  // The kill comes while the deletion of a package waits for a lock: of the results that are due, some are read and none is gone.
  for (const end of ['is given up', 'goes on'] as const)
    await t.test(`killed while it prunes, and what it had asked the database for ${end}`, async (t) => {
      const { tables } = harness
      const kept = async () => {
        const { rows } = await tables.query(`
          select count(*) filter (where r.result is not null)::int results, count(c.id)::int packages,
                 count(*) filter (where (r.result is null) <> (c.id is null))::int torn
          from verification_requests r left join captures c on c.id = r.capture_id`)
        return rows[0]
      }
      const whole = { results: results.length, packages: results.length, torn: 0 }
      t.same(await kept(), whole)
      await tables.query(`update verification_requests set changed_at = changed_at - interval '2 days'`)
      const client = await tables.connect()
      await client.query('begin; select from captures order by id limit 1 for update')
      await using pruning = startChild('test/evidence/pruning-process.ts', harness.env)
      let failed: Error | undefined
      pruning.logs('never').catch((error: Error) => {
        failed = error
      })
      const backend = await until(async () => {
        // It ended without a deletion that waits: its output says why.
        if (failed) throw failed
        // Not by the client: within a transaction the view does not change.
        const waiting = `select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
        return (await tables.query(waiting)).rows[0]?.pid
      })
      pruning.kill('SIGKILL')
      t.same(await pruning.ended, { code: null, signal: 'SIGKILL' })
      if (end === 'is given up') await tables.query('select pg_terminate_backend($1)', [backend])
      await client.query('commit')
      client.release()
      await until(
        async () => (await tables.query('select from pg_stat_activity where pid = $1', [backend])).rowCount === 0,
      )
      t.same(await kept(), end === 'goes on' ? { results: 0, packages: 0, torn: 0 } : whole)
      t.same((await tables.query('select count(*)::int n from captures')).rows, [
        { n: end === 'goes on' ? 0 : results.length },
      ])
      const totals = await tables.query('select rows::int, bytes::int from capture_totals')
      const summed = await tables.query('select count(*)::int rows, coalesce(sum(bytes), 0)::int bytes from captures')
      t.same(totals.rows, summed.rows, 'the totals are right after any kill')
    })
})
