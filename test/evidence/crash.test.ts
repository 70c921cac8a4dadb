// kill -9 at every place of a purchase whose page is captured: the purchase is completed, its capture is signed once, and what an
// interrupted worker left behind goes.
import t from 'tap'
import { dropCaptures } from '../../server/evidence/pruning.ts'
import type { PurchaseResult } from '../../server/interface/claims.ts'
import { recoveryToken } from '../../server/verification/recovery-token.ts'
import { openApiHarness } from '../api-harness.ts'
import { buy, declareDead, openCrashHarness, run } from '../crash-harness.ts'
import type { Place } from '../crash-worker.ts'
import { openLedger } from '../ledger.ts'
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
  await using workers = openCrashHarness(harness, kills.length + 1)
  const results: PurchaseResult[] = []
  let orphans = 0
  let worker = await workers.next()
  for (const [at, left] of kills)
    await t.test(at, async (t) => {
      await run(worker, { at, how: 'kill' })
      const purchase = buy(harness)
      t.same(await worker.ended, { code: null, signal: 'SIGKILL' }, 'the worker reached the place')
      await declareDead(harness)
      worker = await workers.next()
      await run(worker)
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
})
