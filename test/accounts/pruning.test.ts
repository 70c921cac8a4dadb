// Expired rows of accounts are deleted in any number; the gauge shows how late.
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { measurePruneLag, pruneAccounts } from '../../server/accounts/pruning.ts'
import { UNUSED_ACCOUNT_DAYS } from '../../server/accounts/tiers.ts'
import { type Account, openAccountHarness } from './harness.ts'

const harness = await openAccountHarness()
t.teardown(() => harness[Symbol.asyncDispose]())
const { tables, api } = harness
const { db } = api

const count = async (table: string) => Number((await tables.query(`select count(*) n from ${table}`)).rows[0].n)
const lagOf = async (table: string) =>
  (await measurePruneLag(db)).find((row) => row.table === table)?.seconds ?? Number.NaN
const prune = () => pruneAccounts(db, undefined, 10)

/** Begins without what the tests before have left to be deleted. */
const test = (name: string, run: (t: Test) => Promise<void>) =>
  t.test(name, async (t) => {
    await prune()
    await run(t)
  })

test('without expired rows nothing is deleted, and the lag is 0', async (t) => {
  await harness.register()
  t.equal(await prune(), 0)
  const lags = await measurePruneLag(db)
  t.same(lags.map(({ table }) => table).sort(), [
    'accounts',
    'api_keys',
    'billing_events',
    'looks',
    'operator_refusals',
    'quote_check_days',
    'quote_checks',
    'receipt_days',
    'registration_days',
    'report_checks',
    'simulated_checkouts',
  ])
  for (const { table, seconds } of lags) t.equal(seconds, 0, table)
})

test('counts of today and yesterday stay', async (t) => {
  const account = await harness.register()
  await tables.query(
    `insert into receipt_days (account_id, day, receipts, lease_acts)
     select id, (now() at time zone 'utc')::date - n, 1, 1 from accounts, generate_series(0, 24) n where handle = $1`,
    [account.handle],
  )
  await tables.query(
    `insert into registration_days (day, address_hash, registrations)
     select (now() at time zone 'utc')::date - n, sha256(n::text::bytea), 1 from generate_series(0, 24) n`,
  )
  for (const table of ['receipt_days', 'registration_days']) {
    // The oldest day is 24 days ago; it expired 22 days ago.
    const days = (await lagOf(table)) / 86_400
    t.ok(days > 21.9 && days < 23.1, `${table}: ${days}`)
  }
  await prune()
  for (const table of ['receipt_days', 'registration_days']) {
    t.equal(await count(table), 2, table)
    t.equal(await lagOf(table), 0, table)
  }
})

test('ended keys are deleted, in several batches', async (t) => {
  const account = await harness.register()
  await tables.query(
    `insert into api_keys (id, account_id, key_hash, kind, expires_at)
     select gen_random_uuid(), id, sha256(n::text::bytea), 'heartbeat', now() - interval '1 hour'
     from accounts, generate_series(1, 35) n where handle = $1`,
    [account.handle],
  )
  const lag = await lagOf('api_keys')
  t.ok(lag >= 3600 && lag < 3700, `${lag} s`)
  t.equal(await prune(), 35)
  t.equal(await lagOf('api_keys'), 0)
  t.equal((await account.call('GET', '/v1/usage')).status, 200)
})

test('expired pages of checkout are deleted, and the next checkout works without them', async (t) => {
  const account = await harness.register()
  const ask = async (tier: string) => (await account.call('POST', '/v1/checkout', { body: { tier } })).body.checkout_url
  const first = await ask('dev')
  await tables.query(`update simulated_checkouts set expires_at = now() - interval '25 hours'`)
  t.ok((await lagOf('simulated_checkouts')) >= 3600)
  t.equal(await prune(), 1)
  t.equal(await count('simulated_checkouts'), 0)
  const second = await ask('pro')
  t.match(second, /^http/)
  t.not(second, first)
  t.equal(await count('simulated_checkouts'), 1)
})

test('billing events stay for ninety days', async (t) => {
  const account = await harness.register()
  await account.call('POST', '/v1/checkout', { body: { tier: 'dev' } })
  await tables.query(
    `insert into billing_events (event_id, type, customer_id, created_at, received_at)
     select 'evt_' || n, 'x', (select customer_id from billing_customers limit 1), now(), now() - n * interval '1 day'
     from unnest(array[89, 91, 92]) n`,
  )
  t.equal(await prune(), 2)
  t.equal(await count('billing_events'), 1)
})

test('only accounts that were never used are deleted', async (t) => {
  const age = (account: Account, days: number) =>
    tables.query(
      `with aged as (update accounts set created_at = created_at - $2 * interval '1 day' where handle = $1 returning id)
       update api_keys set created_at = created_at - $2 * interval '1 day' where account_id in (select id from aged)`,
      [account.handle, days],
    )
  const isThere = async ({ handle }: Account) =>
    (await tables.query('select from accounts where handle = $1', [handle])).rowCount === 1
  const old = UNUSED_ACCOUNT_DAYS + 1
  const unused = await Promise.all(Array.from({ length: 25 }, () => harness.register()))
  const [young, used, passedOn, granted] = await Promise.all(Array.from({ length: 4 }, () => harness.register()))
  await used!.call('POST', '/v1/receipt', { body: { subject_sha256: '00'.repeat(32) } })
  // The first key made a second one, which was not used yet, and then ended itself.
  const { body } = await passedOn!.call('POST', '/v1/api-keys', { body: { kind: 'full' } })
  const [{ id }] = (await passedOn!.call('GET', '/v1/api-keys')).body.api_keys
  await passedOn!.call('PUT', '/v1/journal/kept', { body: Buffer.from('x') })
  await passedOn!.call('POST', `/v1/api-keys/${id}/revoke`)
  await tables.query(`update accounts set tier = 'dev', granted_tier = 'dev' where handle = $1`, [granted!.handle])
  await age(young!, UNUSED_ACCOUNT_DAYS - 1)
  for (const account of [...unused, used!, passedOn!, granted!]) await age(account, old)
  const lag = (await lagOf('accounts')) / 86_400
  t.ok(lag >= 1 && lag < 1.1, `${lag} days`)
  t.equal(await prune(), 25)
  for (const account of unused) t.notOk(await isThere(account))
  for (const account of [young!, used!, passedOn!, granted!]) t.ok(await isThere(account))
  t.equal((await harness.call('GET', '/v1/journal/kept', { key: body.api_key })).status, 200)
  t.equal((await harness.call('POST', '/v1/register', { body: { handle: unused[0]!.handle } })).status, 201)
})

test('an aborted signal stops between two batches', async (t) => {
  const account = await harness.register()
  await tables.query(
    `insert into api_keys (id, account_id, key_hash, kind, expires_at)
     select gen_random_uuid(), id, sha256(($2 || n)::bytea), 'heartbeat', now() - interval '1 hour'
     from accounts, generate_series(1, 5) n where handle = $1`,
    [account.handle, randomUUID()],
  )
  await t.rejects(pruneAccounts(db, AbortSignal.abort(), 2))
  t.equal(await prune(), 5)
})

test('/metrics shows the lag of each table', async (t) => {
  const { bytes } = await harness.call('GET', '/metrics')
  for (const table of ['receipt_days', 'verification_requests', 'payment_ledger'])
    t.match(bytes.toString(), `countersign_prune_lag_seconds{table="${table}"} 0\n`)
})
