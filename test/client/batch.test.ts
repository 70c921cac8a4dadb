// `countersign batch` against the whole service: interrupted, killed, out of budget, refused.
import { parse } from 'csv-parse/sync'
import t from 'tap'
import { verifyResult } from '../../client/verification.ts'
import { csvOf, openBatchHarness } from './batch-harness.ts'

const PIER = `<!doctype html><title>Pier</title><p>${Array.from({ length: 12 }, (_, n) => `The pier was opened in 18${70 + n}.`).join(' ')}</p>`

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
  for (const { result_base64, receipt, claim, explanation, risk_flags } of results) {
    const result = JSON.parse(Buffer.from(String(result_base64), 'base64').toString())
    t.ok(verifyResult(result, { keys }).ok)
    t.same(receipt, result.receipt)
    t.equal(claim, result.claim)
    t.same([explanation, risk_flags], [result.explanation, result.risk_flags], 'why, and what raises doubt')
  }
  const [header, ...table] = parse(await harness.read('out/results.csv')) as string[][]
  t.equal(header?.join(), 'id,source_url,claim,claim_support,quote,fragment_url,receipt_serial,cost_usd,error')
  t.equal(table.length, rows)
  t.match(table[0], [/^row\d+$/, /^https:/, /./, 'not_assessed', /1874/, /#:~:text=/, /^\d+$/, '0.03', ''])
})

t.test('--group buys the rows of one page together', async (t) => {
  const moody = { status: 500, body: 'not now' }
  await using harness = await openBatchHarness({
    pages: {
      '/pier': PIER,
      '/moody': () => (moody.status === 200 ? { body: PIER } : moody),
      '/gone': { status: 404, body: 'no' },
    },
  })
  const { system, lines } = harness
  const claim = (path: string, n: number) => `${path}${n},${system.site.url(path)},"The pier was opened in 18${n}."`
  const rows = [
    ...Array.from({ length: 12 }, (_, n) => claim('/pier', 70 + n)),
    claim('/harbour', 74),
    claim('/gone', 1),
    claim('/moody', 1),
    `twin,${system.site.url('/pier')},"The pier was opened in 1871."`,
    claim('/gone', 2),
    claim('/moody', 2),
  ]
  const file = await harness.file('claims.csv', ['id,source_url,claim', ...rows, ''].join('\n'))
  const out = (name: string) => ['--budget', '1', '--out', `${harness.folder}/${name}`]
  const settledAmounts = async () =>
    (await system.sql(`select amount_atomic::int amount from payment_ledger where outcome = 'settled' order by 1`)).map(
      ({ amount }) => amount,
    )
  const shape = (table: string[][]) => table.map(([id, , , support, , , , cost, error]) => [id, support, cost, error])
  const tableOf = async (name: string) => (parse(await harness.read(`${name}/results.csv`)) as string[][]).slice(1)

  await t.test(
    'killed and resumed, it pays each group once; one line of each row, in the order of the input',
    async (t) => {
      // One after the other, so that the first result is there before the last purchase has begun.
      const slow = [...out('out'), '--group', '--concurrency', '1']
      const killed = await harness.batchUntil((results) => results > 0, file, ...slow)
      t.equal(killed.code, null, killed.stderr)
      const ended = await harness.batch(file, ...out('out'), '--resume', '--json')
      t.equal(ended.code, 1, ended.stderr)
      t.match(JSON.parse(ended.stdout), { rows: 18, completed: 14, failed: 4, untouched: 0, spent_usd: '0.19' })
      t.same(await settledAmounts(), [30_000, 40_000, 120_000], '10 rows, 2 rows and 1 row')
      const [header] = parse(await harness.read('out/results.csv')) as string[][]
      t.equal(header?.join(), 'id,source_url,claim,claim_support,quote,fragment_url,receipt_serial,cost_usd,error')
      const table = shape(await tableOf('out'))
      t.same(
        table.map(([id]) => id),
        rows.map((row) => row.split(',')[0]),
      )
      const costs = table.map(([, , cost]) => cost)
      t.same(costs.slice(0, 13), ['0.03', ...Array(9).fill('0.01'), '0.03', '0.01', '0.03'], 'which add up')
      t.same(costs.slice(13), ['0.00', '0.00', '0.00', '0.00', '0.00'])
      const { keys } = (await (await fetch(system.url('/v1/keys'))).json()) as { keys: never[] }
      const results = await lines('out/results.jsonl')
      t.equal(new Set(results.map(({ id }) => id)).size, results.length)
      for (const { result_base64, receipt_serial, claim, claim_support, quote, id } of results) {
        const result = JSON.parse(Buffer.from(String(result_base64), 'base64').toString())
        t.ok(verifyResult(result, { keys }).ok)
        t.equal(receipt_serial, result.receipt.attestation.serial)
        const found = id === '/harbour74' ? result : result.claims.find((one: { claim: string }) => one.claim === claim)
        t.equal(claim_support, found.claim_support)
        t.equal(quote, found.evidence[0]?.quote ?? null)
      }
    },
  )

  await t.test('a crash between the lines of a group: the others are fetched, not bought', async (t) => {
    const whole = (await harness.read('out/results.jsonl')).split('\n').filter(Boolean)
    const kept = whole.filter((line) => !/"id":"\/pier7[3-6]"/.test(line))
    t.equal(kept.length, whole.length - 4)
    await harness.file('out/results.jsonl', kept.map((line) => `${line}\n`).join(''))
    const before = await harness.read('out/results.csv')
    const ended = await harness.batch(file, ...out('out'), '--resume')
    t.match(ended, { code: 1, stderr: /4 rows of 18 left/ })
    t.equal(await harness.settled(), 3)
    t.equal(await harness.read('out/results.csv'), before)
    t.equal((await lines('out/results.jsonl')).length, whole.length)
  })

  await t.test('--retry-errors buys the rows of a failed group again', async (t) => {
    moody.status = 200
    const ended = await harness.batch(file, ...out('out'), '--retry-errors')
    t.match(ended, { code: 1, stderr: /2 rows of 18 left, 2 failures tried again/ })
    t.same(await settledAmounts(), [30_000, 40_000, 40_000, 120_000])
    t.match(shape(await tableOf('out')).slice(-2), [['/gone2'], ['/moody2', 'not_assessed', '0.01', '']])
  })

  await t.test('a batch that the version before has begun goes on row by row', async (t) => {
    const before = await harness.settled()
    const first = await harness.batch(file, ...out('old'), '--budget', '0.09')
    t.equal(first.code, 3, first.stderr)
    const [header] = await lines('old/journal.jsonl')
    t.same(Object.keys(header ?? {}), [
      'type',
      'version',
      'run',
      'secret',
      'service',
      'input_sha256',
      'terms',
      'created_at',
    ])
    t.equal(header?.version, 1, 'which that version also reads')
    const ended = await harness.batch(file, ...out('old'), '--resume', '--group', '--json')
    t.match(ended, { code: 1, stderr: /begun without --group, and goes on row by row/ })
    t.match(JSON.parse(ended.stdout), { completed: 16, failed: 2, spent_usd: '0.45' })
    t.equal(await harness.settled(), before + 15)
    const [grouped] = await lines('out/journal.jsonl')
    t.match(grouped, { version: 2, grouped: true }, 'which a client without groups does not read')
  })
})
