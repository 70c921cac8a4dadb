// Pages of the chain that are kept: the bytes are those of the database, and only a page that cannot change is kept as full.
import t from 'tap'
import { findAttestations } from '../../server/receipts/archive.ts'
import { findHead, type Head } from '../../server/receipts/head.ts'
import { isFullPage, openPages, type Page, type Pages, type Range } from '../../server/receipts/pages.ts'
import { openTestLog, type TestLog } from './log.ts'

/**
 * Receipts with a real form and invented values. Their labels contain the separator of receipts, and letters of several
 * bytes.
 */
async function plant(log: TestLog, from: number, to: number): Promise<Head> {
  await log.damage(
    `insert into receipts (serial, ts_ms, subject_sha256, label, requested_by, key_id, prev_hash, receipt_hash, sig_ed25519)
     select n, n, sha256(''), (array[null, 'a', '},{"v":1', 'größer 😀'])[1 + n % 4], 'tester', 1,
            sha256(('before ' || n)::bytea), sha256(('leaf ' || n)::bytea), decode(repeat('00', 64), 'hex')
     from generate_series(${from}, ${to}) n`,
  )
  return { ...(await findHead(log.db)), serial: to }
}

const json = (page: Page) => JSON.parse(page.body.toString())
const first: Range = { from: 1, to: 1000 }
const second: Range = { from: 1001, to: 2000 }

async function rendered(log: TestLog, { from, to }: Range, headSerial: number) {
  const serials = Array.from({ length: to - from + 1 }, (_, n) => from + n)
  const attestations = await findAttestations(log.db, serials)
  return JSON.stringify({ from, to, head_serial: headSerial, attestations })
}

t.test('a full page is the one that the database renders, is rendered once, and names the head of now', async (t) => {
  await using log = await openTestLog()
  const head = await plant(log, 1, 1200)
  const pages = openPages(log.db)
  const page = await pages.read(first, head)
  t.equal(page.body.toString(), await rendered(log, first, 1200))
  t.equal(page.etag, `W/"1-1000-${json(page).attestations.at(-1).receipt_hash}"`)
  t.equal((await pages.read(first, head)).body, page.body, 'the same bytes while the head has not moved')
  const grown = await plant(log, 1201, 1201)
  const later = await rendered(log, first, 1201)

  await log.damage('delete from receipts')
  t.equal((await pages.read(first, grown)).body.toString(), later)
  const part = await pages.read({ from: 2, to: 999 }, grown)
  t.same(json(part).attestations, json(page).attestations.slice(1, -1), 'parts are cut from it')
})

t.test('a page that is not full is not kept as full', async (t) => {
  await using log = await openTestLog()
  let head = await plant(log, 1, 1500)
  const pages = openPages(log.db)
  const short = await pages.read({ from: 1001, to: 1500 }, head)
  t.equal(short.body.toString(), await rendered(log, { from: 1001, to: 1500 }, 1500))
  head = await plant(log, 1501, 1999)
  t.equal(json(await pages.read({ from: 1001, to: 1999 }, head)).attestations.length, 999)
  head = await plant(log, 2000, 2000)
  t.equal((await pages.read(second, head)).body.toString(), await rendered(log, second, 2000))
  t.notOk(isFullPage({ from: 1001, to: 1999 }))
  t.notOk(isFullPage({ from: 1000, to: 1999 }))
})

t.test('any range is the one that the database renders, whichever pages are kept', async (t) => {
  await using log = await openTestLog()
  const head = await plant(log, 1, 2100)
  const cold = openPages(log.db)
  const warm = openPages(log.db)
  for (const range of [first, second]) await warm.read(range, head)
  const compare = async (pages: Pages, range: Range, name: string) => {
    const page = await pages.read(range, head)
    t.equal(page.body.toString(), await rendered(log, range, 2100), `${name}: ${range.from} to ${range.to}`)
    t.equal(page.etag, `W/"${range.from}-${range.to}-${json(page).attestations.at(-1).receipt_hash}"`)
  }
  for (const [from, to] of [
    [1, 1],
    [1000, 1000],
    [1000, 1001],
    [1, 999],
    [2, 1000],
    [999, 1998],
    [700, 1010],
    [1101, 2100],
    [2001, 2100],
    [2100, 2100],
  ] as const) {
    await compare(cold, { from, to }, 'cold')
    await compare(warm, { from, to }, 'warm')
  }
  t.same(json(await warm.read({ from: 2101, to: 2100 }, head)), {
    from: 2101,
    to: 2100,
    head_serial: 2100,
    attestations: [],
  })
})

t.test('a page with a hole is an error, which is not kept', async (t) => {
  await using log = await openTestLog()
  const head = await plant(log, 1, 1000)
  const pages = openPages(log.db)
  const ask = () => pages.read(first, head)
  await log.damage(
    'create table kept as select * from receipts where serial = 9',
    'delete from receipts where serial = 9',
  )
  await t.rejects(ask(), /has a hole/)
  await log.damage('insert into receipts select * from kept')
  t.equal((await ask()).body.toString(), await rendered(log, first, 1000))
})
