// Jobs that end at the same time end in one statement, which a worker's pool repeats until it succeeds.
import { Logger, run } from 'graphile-worker'
import pg from 'pg'
import t, { type Test } from 'tap'
import { JOB_ENDS, openQueuePool } from '../../server/db/queue.ts'
import { openTestDatabase } from '../database.ts'
import { until } from '../until.ts'

const JOBS = 4

/** Runs jobs that end together. Answers how often their end was tried, once the queue is empty. */
async function endTogether(t: Test, trigger: string): Promise<number> {
  const database = await openTestDatabase()
  const tables = new pg.Client({ connectionString: database.url })
  await tables.connect()
  const halt = new AbortController()
  const patience = { stopping: halt.signal, failed() {}, worked() {}, pause: async () => {} }
  const pool = openQueuePool(database.url, JOBS, () => {}, patience)
  await tables.query(`create sequence ends; create function count_end() returns trigger language plpgsql as $$
    begin perform nextval('ends'); ${trigger} return null; end $$;
    create trigger counted after delete on graphile_worker._private_jobs for each statement execute function count_end()`)
  await tables.query(`select graphile_worker.add_job('greet') from generate_series(1, ${JOBS})`)
  const all = Promise.withResolvers<void>()
  let running = 0
  const runner = await run({
    pgPool: pool,
    taskList: {
      async greet() {
        if (++running === JOBS) all.resolve()
        await all.promise
      },
    },
    crontab: '',
    noHandleSignals: true,
    logger: new Logger(() => () => {}),
    preset: { worker: { concurrentJobs: JOBS, ...JOB_ENDS } },
  })
  t.teardown(async () => {
    halt.abort()
    await runner.stop()
    await pool.end()
    await tables.end()
    await database[Symbol.asyncDispose]()
  })
  await until(async () => (await tables.query('select from graphile_worker.jobs')).rowCount === 0)
  return Number((await tables.query('select last_value from ends')).rows[0].last_value)
}

t.test('jobs that end together end in one statement', async (t) => {
  t.equal(await endTogether(t, ''), 1)
})

t.test('an end that fails, also with the connection, is repeated until it is stored', async (t) => {
  const fail = `if currval('ends') = 7 then perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(1); end if;
    if currval('ends') <= 30 then raise exception 'not now'; end if;`
  t.equal(await endTogether(t, fail), 31)
})
