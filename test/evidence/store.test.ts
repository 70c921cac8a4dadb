// The stored captures: where they are kept at all, what is in their table, and when they go.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { unpackCapture } from '../../server/evidence/packing.ts'
import { dropCaptures } from '../../server/evidence/pruning.ts'
import { measureCaptures } from '../../server/evidence/store.ts'
import { readStatus } from '../../server/operate/status.ts'
import { pruneRequests } from '../../server/verification/pruning.ts'
import { harbourClaim, type System, startSystem } from '../system.ts'
import { askEvidence, buyFrom } from './purchases.ts'

const DAY = 86_400

async function counts({ sql }: System) {
  const [row] = await sql(`
    select (select count(*) from captures)::int captures, (select count(*) from captures where serial is not null)::int signed,
           (select count(*) from receipts)::int receipts`)
  return row
}

/** Moves a purchase into the past. */
async function age({ sql }: System, seconds: number, requestId?: string) {
  await sql(
    `update verification_requests set changed_at = changed_at - $1 * interval '1 second' where $2::uuid is null or id = $2`,
    [seconds, requestId ?? null],
  )
}

/** A purchase of a page that no cache holds. */
async function buyAnew(system: System) {
  const path = `/${randomUUID()}`
  const body = 'The harbour was opened in 1874. A secret sentence of this page.'
  system.site.pages.set(path, { type: 'text/plain', body })
  return buyFrom(system, { ...harbourClaim(system.site), source_url: system.site.url(path) })
}

t.test('switched off, nothing is kept, and a purchase has one receipt', async (t) => {
  await using system = await startSystem({ env: { SOURCE_CAPTURE: 'off' } })
  const bought = await buyFrom(system, harbourClaim(system.site))
  t.same(await counts(system), { captures: 0, signed: 0, receipts: 1 })
  t.equal((await askEvidence(system, bought)).status, 404)
  const failing = `insert into timestamp_authorities values ('https://tsa.example/', now(), 60, $1, 'it answered 503')`
  await system.sql(failing, [3])
  const metrics = await (await fetch(system.url('/metrics'))).text()
  t.match(metrics, /^countersign_captures_max_bytes 0$/m)
  t.match(metrics, /^countersign_timestamp_authorities_failing 1$/m)
})

t.test('with captures', async (t) => {
  await using system = await startSystem({ env: { SOURCE_CAPTURE: 'on' } })
  const { db } = system.service.api
  const prune = (captureSeconds: number | null = null) => pruneRequests(db, DAY, { captureSeconds })

  await t.test('the page is not readable in the database', async (t) => {
    await buyAnew(system)
    const rows = await system.sql(
      `select sealed from captures where sealed::text like '%' || encode('secret sentence', 'hex') || '%'`,
    )
    t.same(rows, [])
    // Compressed bytes do not show the sentence either, so this is what tells that they are encrypted.
    const [kept] = await system.sql('select sealed from captures')
    t.throws(() => unpackCapture(kept?.sealed as Buffer), 'without the key they are nothing')
    const [row] = await system.sql('select bytes = octet_length(sealed) same from captures')
    t.same(row, { same: true })
    const metrics = await (await fetch(system.url('/metrics'))).text()
    t.match(metrics, /^countersign_captures_rows 1$/m)
    t.match(metrics, /^countersign_captures_max_bytes [1-9]\d{6,}$/m)
  })

  await t.test('a capture goes with its result, in the same statement', async (t) => {
    const kept = await buyAnew(system)
    const gone = await buyAnew(system)
    await age(system, DAY + 60, gone.result.request_id)
    t.equal(await prune(), 1)
    t.equal((await askEvidence(system, gone)).status, 404)
    t.equal((await askEvidence(system, kept)).status, 200)
    t.match(await counts(system), { captures: 2 }, 'that of the first test, and the one that is kept')
    await age(system, DAY + 60)
    await prune()
    t.match(await counts(system), { captures: 0 })
  })

  await t.test('a capture that two results share goes with the last of them', async (t) => {
    const claim = harbourClaim(system.site)
    const first = await buyFrom(system, claim)
    const second = await buyFrom(system, { ...claim, claim: 'Fishing ended in 1962.' })
    t.equal(second.result.cache.hit, true)
    await age(system, DAY + 60, first.result.request_id)
    await prune()
    t.equal((await askEvidence(system, first)).status, 404)
    t.equal((await askEvidence(system, second)).status, 200)
    await age(system, DAY + 60, second.result.request_id)
    await prune()
    t.match(await counts(system), { captures: 0 })
  })

  await t.test('a shorter time for captures leaves the results', async (t) => {
    const bought = await buyAnew(system)
    await system.sql(`update captures set created_at = created_at - interval '1 hour 1 minute'`)
    await prune()
    t.equal((await askEvidence(system, bought)).status, 200)
    await prune(3600)
    t.equal((await askEvidence(system, bought)).status, 404)
    t.equal((await system.recover(bought.result.request_id, bought.token)).status, 200)
  })

  await t.test('the totals are those of all rows, whatever adds or deletes them', async (t) => {
    const totals = () => system.sql('select rows::int, bytes::int from capture_totals')
    const summed = () => system.sql('select count(*)::int rows, coalesce(sum(bytes), 0)::int bytes from captures')
    const add = (bytes: number) => `insert into captures (id, sealed, bytes) select gen_random_uuid(), 'x', ${bytes}`
    await system.sql(`${add(7)} from generate_series(1, 5)`)
    await Promise.all(Array.from({ length: 8 }, (_, n) => system.sql(add(n + 1))))
    t.same(await totals(), await summed())
    t.match(await totals(), [{ bytes: 71 }])
    await t.rejects(system.sql(`with added as (${add(3)} returning bytes) select 1 / (bytes - 3) from added`))
    t.same(await totals(), await summed(), 'what is not committed does not count')
    t.match(await measureCaptures(db), { bytes: 71 })
    await system.sql(`delete from captures where bytes > 4`)
    t.same(await totals(), await summed())
    t.match(await totals(), [{ rows: 4, bytes: 10 }])
    await system.sql('delete from captures')
    t.same(await totals(), [{ rows: 0, bytes: 0 }])
  })

  await t.test('a capture that no request refers to is kept while one may still come, and then deleted', async (t) => {
    await system.sql(`insert into captures (id, sealed, bytes) values (gen_random_uuid(), 'x', 1)`)
    t.equal(await dropCaptures(db, null, 1000), 0)
    await system.sql(`update captures set created_at = created_at - interval '16 minutes'`)
    t.equal(await dropCaptures(db, null, 1000), 1)
  })
})

t.test('beyond the bound purchases go on without captures, and operators are told', async (t) => {
  await using system = await startSystem({ env: { SOURCE_CAPTURE: 'on', CAPTURE_MAX_BYTES: '100' } })
  const bought = await buyFrom(system, harbourClaim(system.site))
  t.same(await counts(system), { captures: 0, signed: 0, receipts: 1 })
  t.equal((await askEvidence(system, bought)).status, 404)
  t.match(
    system.logged.filter(({ event }) => event === 'captures_full'),
    [{ level: /warn|40/, max_bytes: 100 }],
  )
  t.match(await (await fetch(system.url('/metrics'))).text(), /^countersign_captures_total\{outcome="no_room"\} 1$/m)
  const { db, config } = system.service.api
  const warned = async () => (await readStatus(db, config)).warnings.filter(({ name }) => name === 'captures_full')
  t.same(await warned(), [], 'nothing is stored')
  await system.sql(`insert into captures (id, sealed, bytes) values (gen_random_uuid(), 'x', 96)`)
  t.match(await warned(), [{ what: /takes 96 of 100 octets/, cure: /CAPTURE_MAX_BYTES/ }])
})

t.test('a capture that cannot be stored costs no purchase', async (t) => {
  await using system = await startSystem({ env: { SOURCE_CAPTURE: 'on' } })
  await system.sql('alter table captures rename to captures_away')
  await system.sql('create table captures (id uuid, bytes integer, created_at timestamptz default now())')
  await buyFrom(system, harbourClaim(system.site))
  t.match(
    system.logged.filter(({ event }) => event === 'capture_failed'),
    [{ level: /warn|40/ }],
  )
})
