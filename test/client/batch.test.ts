// `countersign batch` against the whole service: interrupted, killed, out of budget, refused.
import { parse } from 'csv-parse/sync'
import t from 'tap'
import { verifyResult } from '../../client/verification.ts'
import { csvOf, openBatchHarness } from './batch-harness.ts'

t.test('a batch that is killed again and again buys each row once', async (t) => {
  await using harness = await openBatchHarness()
  const { system, lines } = harness
  const rows = 60
  const file = await harness.file(
    'claims.csv',
    csvOf(
      system,
      Array.from({ length: rows }, () => '/harbour'),
    ),
  )
  const args = [file, '--budget', '1.80', '--out', `${harness.folder}/out`]
  for (const most of [0, 7, 20, 33, 47]) {
    const { code, stderr } = await harness.batchUntil((done) => done > most, ...args, ...(most > 0 ? ['--resume'] : []))
    t.equal(code, null, stderr)
  }
  const { code, stdout, stderr } = await harness.batch(...args, '--resume', '--json')
  t.equal(code, 0, stderr)
  const results = await lines('out/results.jsonl')
  t.equal(new Set(results.map(({ id }) => id)).size, rows, 'each row has a result')
  t.equal(results.length, rows, 'and no row two')
  t.equal(await harness.settled(), rows, 'each was paid once')
  t.match(JSON.parse(stdout), { rows, completed: rows, failed: 0, spent_usd: '1.80', stopped: null })
  const { keys } = (await (await fetch(system.url('/v1/keys'))).json()) as { keys: never[] }
  for (const { result_base64, receipt, claim } of results) {
    const result = JSON.parse(Buffer.from(String(result_base64), 'base64').toString())
    t.ok(verifyResult(result, { keys }).ok)
    t.same(receipt, result.receipt)
    t.equal(claim, result.claim)
  }
  const [header, ...table] = parse(await harness.read('out/results.csv')) as string[][]
  t.equal(header?.join(), 'id,source_url,claim,claim_support,quote,fragment_url,receipt_serial,cost_usd,error')
  t.equal(table.length, rows)
  t.match(table[0], [/^row\d+$/, /^https:/, /./, 'not_assessed', /1874/, /#:~:text=/, /^\d+$/, '0.03', ''])
})
