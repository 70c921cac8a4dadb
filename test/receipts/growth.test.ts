// Growth of the chain and search by digest, compared with the table.
import t from 'tap'
import { sha256 } from '../../server/receipts/format.ts'
import { countUpTo, findByHash, measureGrowth } from '../../server/receipts/growth.ts'
import { query } from '../system.ts'
import { openTestLog } from './log.ts'

const DAY_MS = 86_400_000

t.test('counts up to a time are those of the table', async (t) => {
  await using log = await openTestLog()
  t.same(await countUpTo(log.db, [0, Date.now()]), [0, 0], 'an empty chain')
  await log.append(97)
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS
  // Uneven days, two of them empty, and many receipts of one time.
  await log.damage(`update receipts set ts_ms = case when serial <= 3 then ${today - 5 * DAY_MS}
    when serial <= 40 then ${today - 3 * DAY_MS} + serial when serial <= 90 then ${today - DAY_MS} else ${today} + serial end`)
  const times = [
    0,
    today - 5 * DAY_MS,
    today - 5 * DAY_MS - 1,
    today - 3 * DAY_MS + 17,
    today - DAY_MS,
    today + 95,
    today * 2,
  ]
  const counted = await Promise.all(
    times.map((at) => query(log.url, 'select count(*)::int n from receipts where ts_ms <= $1', [at])),
  )
  t.same(
    await countUpTo(log.db, times),
    counted.map(([row]) => row?.n),
  )
  t.same(await countUpTo(log.db, []), [])
  const { days } = await measureGrowth(log.db, 4, today + 1000)
  const table = await query(
    log.url,
    `select d.at::float8 "at", (select count(*)::int from receipts where ts_ms >= d.at and ts_ms < d.at + ${DAY_MS}) receipts,
       (select count(*)::int from receipts where ts_ms < d.at + ${DAY_MS}) total
     from generate_series(${today - 3 * DAY_MS}::bigint, ${today}::bigint, ${DAY_MS}) d (at) order by 1`,
  )
  t.same(days, table)
  t.same(
    days.map(({ receipts }) => receipts),
    [37, 0, 50, 7],
  )
})

t.test('a receipt is found by its hash and by the digest that it is for', async (t) => {
  await using log = await openTestLog()
  const [first, second] = await log.append(3)
  t.same(await findByHash(log.db, second?.receipt_hash ?? ''), [2])
  t.same(await findByHash(log.db, first?.subject_sha256 ?? ''), [1])
  t.same(await findByHash(log.db, 'f'.repeat(64)), [])
})

t.test('what is found is found anywhere in a long chain, oldest first and at most twenty', async (t) => {
  await using log = await openTestLog()
  const edge = 2 ** 18
  const serials = [1, 2, edge - 1, edge, edge + 1, 3 * edge, 7 * edge + 5]
  const many = Array.from({ length: 30 }, (_, n) => 5 * edge - 15 + n)
  const plant = (some: number[], subject: string) => `
    insert into receipts (serial, ts_ms, subject_sha256, requested_by, key_id, prev_hash, receipt_hash, sig_ed25519)
    select n, 1, sha256('${subject}'), 'tester', 1, sha256(('before ' || n)::bytea), sha256(('receipt ' || n)::bytea),
           decode(repeat('00', 64), 'hex') from unnest(array[${some.join()}]) n`
  await log.damage(
    plant(serials, 'a page'),
    plant(many, 'another'),
    `update chain_head set serial = ${7 * edge + 5},
    frontier = decode(repeat('00', 32 * ${(7 * edge + 5).toString(2).replaceAll('0', '').length}), 'hex')`,
  )
  t.same(await findByHash(log.db, sha256('a page')), serials)
  for (const serial of [...serials, many[7]!]) t.same(await findByHash(log.db, sha256(`receipt ${serial}`)), [serial])
  t.same(await findByHash(log.db, sha256('another')), many.slice(0, 20))
  t.same(await findByHash(log.db, sha256('a third')), [])
})
