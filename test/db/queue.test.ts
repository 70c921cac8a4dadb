// The pool of a worker while the database is away. It repeats each connect and statement as long as it fails, more often than
// graphile-worker would. A worker that has to stop ends. The tests do not wait for real time.
import { EventEmitter, once } from 'node:events'
import { Logger, run, type WorkerEvents } from 'graphile-worker'
import pg from 'pg'
import t, { type Test } from 'tap'
import { endQueuePool, JOB_ENDS, openQueuePool, type Patience } from '../../server/db/queue.ts'
import { openTestDatabase } from '../database.ts'
import { openTcpProxy } from '../tcp-proxy.ts'

/** graphile-worker itself gives up after this many. */
const MORE_THAN_IT_REPEATS = 150

/** The first attempts to look up the tasks fail, some of them with the connection. */
const FAIL = `
  create sequence attempts;
  create function fail_look() returns trigger language plpgsql as $$ begin
    if nextval('attempts') <= ${MORE_THAN_IT_REPEATS} then
      if currval('attempts') % 50 = 7 then perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(1); end if;
      raise exception 'not now';
    end if;
    return null;
  end $$;
  create trigger fail_look before insert on graphile_worker._private_tasks for each statement execute function fail_look()`

async function openQueue(t: Test, more: Partial<Patience> = {}) {
  const database = await openTestDatabase()
  const tables = new pg.Client({ connectionString: database.url })
  await tables.connect()
  const failures: unknown[] = []
  const halt = new AbortController()
  const pool = openQueuePool(database.url, 4, () => {}, {
    stopping: halt.signal,
    failed: (error) => failures.push(error),
    worked: () => {},
    pause: async () => {},
    ...more,
  })
  t.teardown(async () => {
    halt.abort()
    await pool.end()
    await tables.end()
    await database[Symbol.asyncDispose]()
  })
  return { tables, pool, failures, halt }
}

t.test('a query that fails more often than graphile-worker repeats a job: the job is done', async (t) => {
  const { tables, pool, failures } = await openQueue(t)
  await tables.query(`select graphile_worker.add_job('greet')`)
  await tables.query(FAIL)
  const events: WorkerEvents = new EventEmitter()
  const done = once(events, 'job:success')
  const runner = await run({
    pgPool: pool,
    events,
    taskList: { greet: async () => {} },
    crontab: '',
    noHandleSignals: true,
    logger: new Logger(() => () => {}),
  })
  await done
  t.equal(failures.length, MORE_THAN_IT_REPEATS)
  await runner.stop()
})

t.test('a worker that is stopping repeats no query', async (t) => {
  const { tables, pool, failures, halt } = await openQueue(t, {
    pause: async () => {
      if (failures.length === 3) halt.abort()
    },
  })
  await tables.query(FAIL)
  const client = await pool.connect()
  const look = client.query('insert into graphile_worker._private_tasks as tasks (identifier) values ($1)', ['greet'])
  await t.rejects(look, { message: /worker stops/, code: undefined, cause: { message: 'not now' } })
  t.equal(failures.length, 3)
  client.release()
})

t.test('the job waits for a connection until the query has succeeded', async (t) => {
  const { tables, pool, failures } = await openQueue(t, {
    pause: async () => {
      if (failures.length === 3) await allow(true)
    },
  })
  const name = (await tables.query('select current_database() name')).rows[0].name
  const admin = new URL(String(process.env.TEST_DATABASE_URL))
  const allow = async (yes: boolean) => {
    const other = new pg.Client({ connectionString: admin.href })
    await other.connect()
    await other.query(`alter database ${name} allow_connections ${yes}`)
    await other.end()
  }
  await allow(false)
  const client = await pool.connect()
  t.equal(failures.length, 3)
  t.match(failures[0], { code: '55000' })
  client.release()
})

t.test('after a loss, a worker waits for a connection until the database answers', async (t) => {
  await using database = await openTestDatabase()
  const own = new URL(database.url)
  const target = Number(own.port)
  await using proxy = await openTcpProxy(() => target)
  own.port = String(proxy.port)
  let pauses = 0
  const pool = openQueuePool(own.href, 2, () => {}, {
    stopping: new AbortController().signal,
    failed: () => {},
    worked: () => {},
    async pause() {
      if (++pauses === 5) await proxy.open()
    },
  })
  const client = await pool.connect()
  await client.query('select id from graphile_worker._private_tasks as tasks')
  client.release()
  const removed = once(pool, 'remove')
  await proxy.close()
  await removed
  const waited = await Promise.all([pool.connect(), pool.connect()])
  t.ok(pauses >= 5, 'both waited')
  for (const { rows } of await Promise.all(waited.map((again) => again.query('select 1 n')))) t.same(rows, [{ n: 1 }])
  for (const again of waited) again.release()
  await pool.end()
})

t.test('a statement whose connection is lost runs again on another one, of as many as the pool has', async (t) => {
  const { tables, pool, failures } = await openQueue(t)
  const held = await Promise.all(Array.from({ length: 4 }, () => pool.connect()))
  await tables.query(`select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'countersign worker' and datname = current_database()`)
  const answers = await Promise.all(held.map((client) => client.query('select 1 n')))
  t.same(
    answers.map(({ rows }) => rows),
    Array(4).fill([{ n: 1 }]),
  )
  t.ok(failures.length >= 4)
  for (const client of held) client.release()
  t.equal(pool.totalCount, 4, 'none of the lost ones keeps its place')
})

t.test('no statement of a transaction runs again', async (t) => {
  const { pool, failures } = await openQueue(t)
  const client = await pool.connect()
  await client.query('begin')
  await t.rejects(client.query(`do $$ begin raise exception 'not now'; end $$`), { message: 'not now' })
  await t.rejects(client.query('select 1'), { code: '25P02' })
  await client.query('rollback')
  t.same(failures, [])
  client.release()
})

t.test('a statement whose table is missing is repeated until it is back', async (t) => {
  const { pool, tables, failures } = await openQueue(t, {
    async pause() {
      if (failures.length === 3) await tables.query('alter schema mislaid rename to graphile_worker')
    },
  })
  const client = await pool.connect()
  await client.query('select from graphile_worker._private_tasks')
  await tables.query('alter schema graphile_worker rename to mislaid')
  await t.resolves(client.query('select from graphile_worker._private_tasks'))
  t.match(failures, [{ code: '42P01' }, { code: '42P01' }, { code: '42P01' }])
  t.equal(failures.length, 3)
  client.release()
})

t.test('an error that comes again each time is not repeated', async (t) => {
  const { pool, failures } = await openQueue(t)
  const client = await pool.connect()
  for (const [statement, code] of [
    ['select from nowhere.migrations', '42P01'],
    [`select 'x'::int`, '22P02'],
  ] as const)
    await t.rejects(client.query(statement), { code })
  t.same(failures, [])
  client.release()
})

t.test('once a worker is to stop and the database is away, nothing is repeated', async (t) => {
  const halt = new AbortController()
  halt.abort()
  const never = async () => t.fail('a pause')
  const pool = openQueuePool('postgres://127.0.0.1:1/none', 1, () => {}, {
    stopping: halt.signal,
    failed: () => {},
    worked: () => {},
    pause: never,
  })
  await t.rejects(pool.connect(), { message: /worker stops/, code: undefined, cause: { code: 'ECONNREFUSED' } })
  await pool.end()
})

t.test('a worker whose job ends while the database is away stops, and leaves the job to others', async (t) => {
  await using database = await openTestDatabase()
  const own = new URL(database.url)
  const target = Number(own.port)
  await using proxy = await openTcpProxy(() => target)
  own.port = String(proxy.port)
  const halt = new AbortController()
  const pool = openQueuePool(own.href, 4, () => {}, { stopping: halt.signal, failed() {}, worked() {} })
  const begun = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const runner = await run({
    pgPool: pool,
    taskList: {
      async greet() {
        begun.resolve()
        await gate.promise
      },
    },
    crontab: '',
    noHandleSignals: true,
    logger: new Logger(() => () => {}),
    preset: { worker: JOB_ENDS },
  })
  runner.promise.catch(() => {})
  await runner.addJob('greet', {})
  await begun.promise
  await proxy.close()
  halt.abort()
  const stopped = runner.stop()
  gate.resolve()
  await stopped
  await endQueuePool(pool)
  const tables = new pg.Client({ connectionString: database.url })
  await tables.connect()
  t.match((await tables.query('select locked_by from graphile_worker.jobs')).rows, [{ locked_by: /^pool-/ }])
  await tables.end()
})

t.test('the pool ends although a connection is never given back', async (t) => {
  await using database = await openTestDatabase()
  const pool = openQueuePool(database.url, 2, () => {})
  const kept = await pool.connect()
  const asked = t.rejects(kept.query('select pg_sleep(60)'), /Connection terminated/)
  await endQueuePool(pool)
  await asked
  t.equal(pool.totalCount, 1, 'it is left')
})
