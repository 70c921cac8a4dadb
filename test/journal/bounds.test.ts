// The bounds of all journals together.
import t from 'tap'
import { transact } from '../../server/db/pool.ts'
import { pruneJournals, requireRoom, UNUSED_JOURNAL_DAYS } from '../../server/journal/bounds.ts'
import { type Account, openAccountHarness } from '../accounts/harness.ts'

t.test(
  'free accounts find no room when their space is full, and its last quarter is for those with few slots',
  async (t) => {
    await using office = await openAccountHarness()
    const [first, other] = [await office.register(), await office.register()]
    const idOf = async ({ handle }: Account): Promise<string> =>
      (await office.tables.query('select id from accounts where handle = $1', [handle])).rows[0].id
    const ask = async (account: Account, most?: number) => {
      const id = await idOf(account)
      await transact(office.api.db, (tx) => requireRoom(tx, id, most))
    }
    const full = { code: 'capacity_exceeded' }
    await t.resolves(ask(first))
    await t.rejects(ask(first, 1), full)
    for (const slot of ['one', 'two'])
      t.equal((await first.call('PUT', `/v1/journal/${slot}`, { body: Buffer.from('bytes') })).status, 201)
    const { rows } = await office.tables.query(`select pg_total_relation_size('journal_slots')::float8 bytes`)
    const { bytes } = rows[0]
    await t.rejects(ask(first, 1.1 * bytes), full, 'nine tenths are used up')
    await t.resolves(ask(other, 1.1 * bytes))
    await t.rejects(ask(other, bytes), full)
    await t.resolves(ask(first, 2 * bytes), 'half is used up')
  },
)

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
