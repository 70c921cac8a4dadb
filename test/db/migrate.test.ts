// Migrations: order, concurrency, edited files and failures.
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import pg from 'pg'
import t from 'tap'
import { listMigrations, migrate, pendingMigrations } from '../../server/db/migrate.ts'
import { openTestDatabase } from '../database.ts'
import { until } from '../until.ts'

async function openEmpty() {
  await using opened = new AsyncDisposableStack()
  const database = opened.use(await openTestDatabase({ template: false }))
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  opened.defer(() => client.end())
  opened.defer(() => waitForOthers(client))
  const closing = opened.move()
  return { url: database.url, client, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

/** Waits for the connections of the queue's migrations to close; dropping the database would break them. */
async function waitForOthers(client: pg.Client) {
  const others = 'select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()'
  await until(async () => (await client.query(others)).rowCount === 0)
}

const names = listMigrations().map(({ name }) => name)

t.test('every migration has its own number', async (t) => {
  const numbers = names.map((name) => name.slice(0, 4))
  t.same(numbers, [...new Set(numbers)].sort())
})

t.test('the first run applies all migrations, the second none', async (t) => {
  await using empty = await openEmpty()
  t.same(await migrate(empty.url), names)
  t.same(await migrate(empty.url), [])
  t.same(await pendingMigrations(async (text) => (await empty.client.query(text)).rows), [])
  const { rows } = await empty.client.query(`
    select proconfig from pg_proc where oid = 'graphile_worker.add_jobs'::regproc`)
  t.match(rows, [{ proconfig: ['plan_cache_mode=force_custom_plan'] }], 'the queue is tuned')
})

t.test('releases that migrate at the same time take turns', async (t) => {
  await using empty = await openEmpty()
  const applied = await Promise.all([migrate(empty.url), migrate(empty.url), migrate(empty.url)])
  t.same(
    applied.toSorted((a, b) => b.length - a.length),
    [names, [], []],
  )
})

t.test('pending migrations are listed', async (t) => {
  await using empty = await openEmpty()
  await migrate(empty.url)
  await empty.client.query('delete from schema_migrations where name = $1', [names.at(-1)])
  t.same(await pendingMigrations(async (text) => (await empty.client.query(text)).rows), names.slice(-1))
})

t.test('a migration that was edited after it was applied is refused, and nothing is changed', async (t) => {
  await using empty = await openEmpty()
  await migrate(empty.url)
  await empty.client.query(`update schema_migrations set sha256 = 'of another text' where name = $1`, [names[0]])
  await t.rejects(migrate(empty.url), { message: new RegExp(`${names[0]} was applied .* in another form`) })
  const { rows } = await empty.client.query('select count(*)::int from schema_migrations')
  t.equal(rows[0].count, names.length)
})

t.test('a migration that fails leaves nothing behind', async (t) => {
  await using empty = await openEmpty()
  // A table that the end of the first migration creates too.
  await empty.client.query('create table worker_beats (pool_id text)')
  await t.rejects(migrate(empty.url), { message: new RegExp(`${names[0]} failed: .*worker_beats`) })
  const { rows } = await empty.client.query(`
    select table_name from information_schema.tables where table_schema = 'public' order by table_name`)
  t.same(
    rows.map(({ table_name }) => table_name),
    ['schema_migrations', 'worker_beats'],
  )
  await empty.client.query('drop table worker_beats')
  t.same(await migrate(empty.url), names, 'and is applied once the way is free')
})

t.test(
  'a server that accepts the connection and says nothing does not hold a release',
  { timeout: 20_000 },
  async (t) => {
    const silent = createServer((socket) => socket.on('error', () => {}).resume())
    silent.listen(0, '127.0.0.1')
    await once(silent, 'listening')
    t.teardown(() => silent.close())
    const url = `postgres://nobody@127.0.0.1:${(silent.address() as AddressInfo).port}/none`
    await t.rejects(migrate(url, { connectMs: 50 }), { message: /timeout expired/ })
  },
)
