// Pruning: unpaid requests leave no rows behind, however many there were, and the lag of pruning can be measured.
import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import t from 'tap'
import { measureLedgerLag, recordVerdict, UNCHARGED_DAYS } from '../../server/payments/ledger.ts'
import { measurePruneLag, pruneRequests } from '../../server/verification/pruning.ts'
import { type EntryOptions, held, insertEntry, insertRow, openTables } from './rows.ts'

const DAY = 86_400
const HOUR = 3600
/** How long the tombstone of a payment is kept when nothing was charged. */
const KEPT = UNCHARGED_DAYS * DAY

async function statesOf(tables: pg.Pool) {
  const { rows } = await tables.query('select state, count(*)::int n from verification_requests group by 1 order by 1')
  return Object.fromEntries(rows.map(({ state, n }) => [state, n]))
}

async function outcomesOf(tables: pg.Pool) {
  const { rows } = await tables.query('select outcome, count(*)::int n from payment_ledger group by 1 order by 1')
  return Object.fromEntries(rows.map(({ outcome, n }) => [outcome, n]))
}

/** Quotes that expired the given number of seconds ago. */
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

t.test('a payment leaves a tombstone: for good where it was charged, for a time where it was not', async (t) => {
  await using opened = await openTables()
  const { tables, db } = opened
  for (const age of [KEPT - HOUR, KEPT + HOUR]) {
    const old = { changed: age, quote: -age }
    const completed = await insertRow(tables, 'completed', old)
    await insertEntry(tables, completed, { outcome: 'failed', entered: age })
    await insertEntry(tables, completed, { outcome: 'settled', entered: age })
    const unpaid = await insertRow(tables, 'unpaid', old)
    await insertEntry(tables, unpaid, { outcome: 'unpaid', entered: age })
    const failed = await insertRow(tables, 'failed', old)
    await insertEntry(tables, failed, { outcome: 'failed', entered: age })
    // A row of a release that had no ledger.
    await insertRow(tables, 'expired', { ...old, columns: ['payment'] })
  }
  for (let run = 0; run < 3; run++) await pruneRequests(db, DAY)
  t.same(await statesOf(tables), { expired: 5, failed: 1 }, 'the older ones that charged nothing are gone')
  t.same(await outcomesOf(tables), { failed: 2, settled: 2, unpaid: 1 })
  const { rows } = await tables.query('select 1 from verification_requests where body is not null')
  t.same(rows, [], 'without its contents')
})

const entries: { name: string; entry: EntryOptions; goes: boolean }[] = [
  { name: 'failed before it was settled', entry: {}, goes: true },
  { name: 'proved unpaid', entry: { outcome: 'unpaid' }, goes: true },
  { name: 'the chain agrees that nothing was charged', entry: { chainSays: 'agrees' }, goes: true },
  { name: 'settled', entry: { outcome: 'settled' }, goes: false },
  { name: 'the chain contradicts it', entry: { chainSays: 'differs' }, goes: false },
  { name: 'entered lately', entry: { entered: KEPT - HOUR }, goes: false },
  { name: 'its authorization ran out less than a day ago', entry: { expired: DAY - HOUR }, goes: false },
  { name: 'its authorization can still be used', entry: { expired: -HOUR }, goes: false },
]

for (const { name, entry, goes } of entries)
  t.test(`an entry of the ledger, ${name}: ${goes ? 'goes' : 'stays, also when SQL deletes it'}`, async (t) => {
    await using opened = await openTables()
    const { tables, db } = opened
    const id = await insertRow(tables, 'failed', { changed: 2 * KEPT, columns: ['error', 'payment'] })
    await insertEntry(tables, id, { entered: KEPT + HOUR, expired: KEPT + HOUR, ...entry })
    t.equal((await measureLedgerLag(db)) > 0, goes, 'and is late only if it is to go')
    if (!goes)
      await t.rejects(
        tables.query('delete from payment_ledger'),
        { code: '23001' },
        'the database refuses the deletion',
      )
    t.equal(await pruneRequests(db, DAY), goes ? 2 : 0)
    t.equal(await measureLedgerLag(db), 0)
    t.same(await statesOf(tables), goes ? {} : { failed: 1 }, 'and the request that it names with it')
    if (goes)
      t.equal(await recordVerdict(db, 1, 'agrees', 0), 'differs', 'a verdict that comes too late is not waited for')
  })

t.test('what is paid for anew, or in doubt, keeps its request', async (t) => {
  await using opened = await openTables()
  const { tables, db } = opened
  for (const state of ['accepted', 'observed', 'assessed', 'settling', 'settled'] as const) {
    const id = await insertRow(tables, state, { changed: 2 * KEPT, quote: -2 * KEPT })
    await insertEntry(tables, id, { entered: 3 * KEPT })
  }
  const claimed = await insertRow(tables, 'failed', { changed: 2 * KEPT, columns: ['error', 'payment'] })
  await tables.query(`insert into payment_claims values ('n', 'a', 'p', 'n', $1)`, [claimed])
  await pruneRequests(db, DAY)
  t.same(await statesOf(tables), { accepted: 1, assessed: 1, failed: 1, observed: 1, settled: 1, settling: 1 })
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
  await insertRow(tables, 'failed', { changed: KEPT + 1300, columns: ['error', 'payment'] })
  t.equal(await lag(), 1300, 'a tombstone of what charged nothing')
  await pruneRequests(db, DAY)
  t.equal(await lag(), 0)
})

t.test('the lag of the ledger is that of the entry that is longest due', async (t) => {
  await using opened = await openTables()
  const { tables, db } = opened
  const lag = async () => Math.round((await measureLedgerLag(db)) / 100) * 100
  const id = await insertRow(tables, 'failed')
  await insertEntry(tables, id, { outcome: 'settled', entered: KEPT + 900 })
  await insertEntry(tables, id, { entered: KEPT - 900 })
  t.equal(await lag(), 0, 'nothing is due')
  await insertEntry(tables, id, { entered: KEPT + 300 })
  await insertEntry(tables, id, { entered: KEPT + 700 })
  t.equal(await lag(), 700)
})

t.test('a payer who settled nothing is forgotten after a quiet day, any other is not', async (t) => {
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
