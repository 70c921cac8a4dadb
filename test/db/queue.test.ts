// The pool of the queue while the database is away. It repeats the look-up of the tasks as long as it fails, more often than
// graphile-worker would, and returns interrupted jobs. A worker that has to stop ends. The tests do not wait for real time.
import { EventEmitter, once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { inspect } from 'node:util'
import { Logger, run, type WorkerEvents } from 'graphile-worker'
import pg from 'pg'
import t, { type Test } from 'tap'
import { endQueuePool, InterruptedError, type LookUp, openQueuePool } from '../../server/db/queue.ts'
import { openTestDatabase } from '../database.ts'
import { openTcpProxy } from '../tcp-proxy.ts'
import { until } from '../until.ts'

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

async function openQueue(t: Test, more: Partial<LookUp> = {}) {
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
  const waited = await Promise.allSettled([pool.connect(), pool.connect()])
  t.match(waited, Array(2).fill({ status: 'rejected', reason: { code: '40001' } }), 'graphile-worker repeats it')
  t.equal(pauses, 5, 'both waited for the same attempts')
  const again = await pool.connect()
  again.release()
  await pool.end()
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
  const client = await pool.connect()
  const look = client.query({ name: 'get_job17/graphile_worker', text: 'select 1', values: [] })
  await t.rejects(look, { message: /worker stops/, code: undefined, cause: { code: 'ECONNREFUSED' } })
  for (const name of ['complete_job/graphile_worker', 'fail_job/graphile_worker']) {
    const end = client.query({ name, text: 'select 1', values: ['1', '[]'] })
    await setImmediate()
    t.match(inspect(end), /pending/, 'an error would be a rejection that no one handles')
  }
  client.release()
  await pool.end()
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

t.test(
  'a job that was interrupted because the database was away runs again at once and keeps its attempts',
  async (t) => {
    const { tables, pool } = await openQueue(t)
    await tables.query(`select graphile_worker.add_job('greet', max_attempts => 1), graphile_worker.add_job('old')`)
    await tables.query(`update graphile_worker._private_jobs set created_at = now() - interval '11 minutes'
    where task_id = (select id from graphile_worker._private_tasks where identifier = 'old')`)
    const attempts: number[] = []
    const done = Promise.withResolvers<void>()
    const runner = await run({
      pgPool: pool,
      taskList: {
        async greet(_payload, { job }) {
          attempts.push(job.attempts)
          if (attempts.length < 4) throw new InterruptedError(new Error('gone'))
          done.resolve()
        },
        async old() {
          throw new InterruptedError(new Error('gone'))
        },
      },
      crontab: '',
      pollInterval: 20,
      noHandleSignals: true,
      logger: new Logger(() => () => {}),
    })
    await done.promise
    t.same(attempts, [1, 1, 1, 1])
    const old = await until(async () => {
      const { rows } = await tables.query(
        `select attempts, run_at > now() later from graphile_worker.jobs where task_identifier = 'old' and last_error is not null`,
      )
      return rows[0]
    })
    t.same(old, { attempts: 1, later: true }, 'after ten minutes it comes to an end like any other')
    await runner.stop()
  },
)
