// Pruning: unpaid requests leave no rows behind, however many there were, and the lag of pruning can be measured.
import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import t from 'tap'
import { measurePruneLag, pruneRequests } from '../../server/verification/pruning.ts'
import { held, insertRow, openTables } from './rows.ts'

const DAY = 86_400
const HOUR = 3600

async function statesOf(tables: pg.Pool) {
  const { rows } = await tables.query('select state, count(*)::int n from verification_requests group by 1 order by 1')
  return Object.fromEntries(rows.map(({ state, n }) => [state, n]))
}

/** Inserts quotes that expired so many seconds ago. */
async function insertQuotes(tables: pg.Pool, count: number, seconds: number) {
  await tables.query(
    `insert into verification_requests (id, key_hash, body_hash, state, body, quote_expires_at)
     select gen_random_uuid(), sha256(decode($1 || lpad(to_hex(n), 8, '0'), 'hex')), sha256('x'), 'quoted', '{}',
            now() - $2 * interval '1 second'
     from generate_series(1, $3) n`,
    [randomBytes(8).toString('hex'), seconds, count],
  )
}

t.test('an unpaid quote answers for an hour after its expiry, then its row is deleted', async (t) => {
  await using opened = await openTables()
  const { tables, db } = opened
  await insertRow(tables, 'quoted', { quote: 60 })
  await insertRow(tables, 'quoted', { quote: -60 })
  await insertRow(tables, 'quoted', { quote: -HOUR - 60 })
  await insertRow(tables, 'expired', { quote: -HOUR - 60 })
  t.equal(await pruneRequests(db, DAY), 4, 'two expire, and two are deleted')
  t.same(await statesOf(tables), { quoted: 1, expired: 1 })
  t.equal(await pruneRequests(db, DAY), 0)
})

t.test('a row that ever had a payment stays as a tombstone', async (t) => {
  await using opened = await openTables()
  const { tables, db } = opened
  const old = { changed: 40 * DAY, quote: -40 * DAY }
  for (const state of ['completed', 'unpaid', 'failed'] as const) await insertRow(tables, state, old)
  await insertRow(tables, 'expired', { ...old, columns: ['payment'] })
  for (let run = 0; run < 3; run++) await pruneRequests(db, DAY)
  t.same(await statesOf(tables), { expired: 3, failed: 1 })
  const { rows } = await tables.query('select 1 from verification_requests where body is not null')
  t.same(rows, [], 'without its contents')
})

t.test('a flood is worked off by one run', async (t) => {
  await using opened = await openTables()
  const { tables, db } = opened
  await insertQuotes(tables, 5200, 2 * HOUR)
  await insertQuotes(tables, 2300, 60)
  t.equal(await pruneRequests(db, DAY), 5200 + 2300 + 5200)
  t.same(await statesOf(tables), { expired: 2300 })
})

t.test('a run ends when its time is over or its signal aborts, and the next run continues', async (t) => {
  await using opened = await openTables()
  const { tables, db } = opened
  await insertQuotes(tables, 1500, 60)
  t.equal(await pruneRequests(db, DAY, { maxRunMs: 0 }), 0)
  t.equal(await pruneRequests(db, DAY, { signal: AbortSignal.abort() }), 0)
  t.same(await statesOf(tables), { quoted: 1500 })
  await pruneRequests(db, DAY)
  t.same(await statesOf(tables), { expired: 1500 })
})

t.test('the lag is the time for which the oldest row has been due', async (t) => {
  await using opened = await openTables()
  const { tables, db } = opened
  const lag = async () => Math.round((await measurePruneLag(db, DAY)) / 100) * 100
  t.equal(await lag(), 0, 'of nothing')
  await insertRow(tables, 'quoted', { quote: 500 })
  await insertRow(tables, 'completed', { changed: DAY - 500 })
  await insertRow(tables, 'expired', { quote: 500 - HOUR })
  t.equal(await lag(), 0, 'nothing is due')
  await insertRow(tables, 'quoted', { quote: -300 })
  t.equal(await lag(), 300, 'a quote')
  await insertRow(tables, 'failed', { changed: DAY + 700, columns: held.failed })
  t.equal(await lag(), 700, 'a failure')
  await insertRow(tables, 'expired', { quote: -HOUR - 900 })
  t.equal(await lag(), 900, 'what a quote left')
  await tables.query(
    `insert into payers (payer, max_in_flight, changed_at) values ('0x', 2, now() - $1 * interval '1 second')`,
    [DAY + 1100],
  )
  t.equal(await lag(), 1100, 'a payer')
  await pruneRequests(db, DAY)
  t.equal(await lag(), 0)
})

t.test('a payer without a settlement is deleted after a day without changes, any other is kept', async (t) => {
  await using opened = await openTables()
  const { tables, db } = opened
  await tables.query(`
    insert into payers (payer, settled, max_in_flight, changed_at) values
      ('quiet', 0, 2, now() - interval '25 hours'), ('lately', 0, 2, now() - interval '23 hours'),
      ('customer', 1, 9, now() - interval '400 days')`)
  t.equal(await pruneRequests(db, DAY), 1)
  const { rows } = await tables.query('select payer from payers order by payer')
  t.same(rows, [{ payer: 'customer' }, { payer: 'lately' }])
})
