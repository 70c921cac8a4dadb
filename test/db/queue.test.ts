// The look-up of the tasks, on which every job of a worker depends: it is repeated for as long as it fails, more often than
// graphile-worker would, and ends when the worker is to stop. No time is waited for.
import { EventEmitter, once } from 'node:events'
import { Logger, run, type WorkerEvents } from 'graphile-worker'
import pg from 'pg'
import t, { type Test } from 'tap'
import { type LookUp, openQueuePool } from '../../server/db/queue.ts'
import { openTestDatabase } from '../database.ts'

/** graphile-worker itself gives up after this many. */
const MORE_THAN_IT_REPEATS = 150

/** The first attempts to look up the tasks fail, some of them with the connection. */
const FAIL = `
  create sequence looks;
  create function fail_look() returns trigger language plpgsql as $$ begin
    if nextval('looks') <= ${MORE_THAN_IT_REPEATS} then
      if currval('looks') % 50 = 7 then perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(1); end if;
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

t.test('a look-up that fails more often than graphile-worker repeats it: the job is done', async (t) => {
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

t.test('a worker that is to stop repeats no more', async (t) => {
  const { tables, pool, failures, halt } = await openQueue(t, {
    pause: async () => {
      if (failures.length === 3) halt.abort()
    },
  })
  await tables.query(FAIL)
  const client = await pool.connect()
  const look = client.query('insert into graphile_worker._private_tasks as tasks (identifier) values ($1)', ['greet'])
  await t.rejects(look, { message: 'not now', code: '40001' })
  t.equal(failures.length, 3)
  client.release()
})

t.test('until the look-up has succeeded, a connection is waited for', async (t) => {
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
