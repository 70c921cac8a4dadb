// The bounds of all journals together.
import t from 'tap'
import { transact } from '../../server/db/pool.ts'
import { pruneJournals, requireRoom, UNUSED_JOURNAL_DAYS } from '../../server/journal/bounds.ts'
import { openAccountHarness } from '../accounts/harness.ts'

t.test('free accounts find no room when their space is full', async (t) => {
  await using office = await openAccountHarness()
  const { db } = office.api
  await t.resolves(transact(db, (tx) => requireRoom(tx)))
  await t.rejects(
    transact(db, (tx) => requireRoom(tx, 1)),
    { code: 'capacity_exceeded' },
  )
})

t.test('a journal that no one uses expires, that of an account in use or that pays does not', async (t) => {
  await using office = await openAccountHarness()
  const accounts = {
    unused: await office.register(),
    used: await office.register(),
    writes: await office.register(),
    pays: await office.register({ tier: 'pro' }),
  }
  for (const account of Object.values(accounts))
    t.equal((await account.call('PUT', '/v1/journal/notes', { body: Buffer.from('bytes') })).status, 201)
  const old = `now() - interval '${UNUSED_JOURNAL_DAYS + 1} days'`
  await office.tables.query(
    `update journal_slots set updated_at = ${old} where account_id <> (
    select id from accounts where handle = $1)`,
    [accounts.writes.handle],
  )
  await office.tables.query(
    `update api_keys set last_used_at = ${old} where account_id <> (
    select id from accounts where handle = $1)`,
    [accounts.used.handle],
  )
  t.equal(await pruneJournals(office.api.db), 1)
  const { rows } = await office.tables.query(
    'select handle from journal_slots s join accounts a on a.id = s.account_id order by handle',
  )
  t.same(
    rows.map(({ handle }) => handle),
    [accounts.used, accounts.writes, accounts.pays].map(({ handle }) => handle).sort(),
  )
})
