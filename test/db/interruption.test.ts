// A job whose database was away runs again at once, and the attempt does not count. The tests do not wait for real time.
import { EventEmitter, once } from 'node:events'
import { Logger, run, type Task, type WorkerEvents } from 'graphile-worker'
import pg from 'pg'
import t, { type Test } from 'tap'
import { throughOutages } from '../../server/db/interruption.ts'
import { openDatabase } from '../../server/db/pool.ts'
import { JOB_ENDS, openQueuePool } from '../../server/db/queue.ts'
import { singleFlight } from '../../server/db/single-flight.ts'
import { UnavailableError } from '../../server/errors.ts'
import { openTestDatabase } from '../database.ts'
import { until } from '../until.ts'

const gone = () => new UnavailableError('provider_unavailable', 'gone')

/** A queue that runs `work` for each job that `add` stores, through outages. */
async function openQueue(t: Test, work: Task, options: { pause?: () => Promise<void>; signal?: AbortSignal } = {}) {
  const { pause = async () => {}, signal = new AbortController().signal } = options
  const database = await openTestDatabase()
  const tables = new pg.Client({ connectionString: database.url })
  await tables.connect()
  const db = await openDatabase(database.url, { maxConnections: 2 })
  const pool = openQueuePool(database.url, 4, () => {})
  const events: WorkerEvents = new EventEmitter()
  let stop = async () => {}
  t.teardown(async () => {
    await stop()
    await pool.end()
    await db.end()
    await tables.end()
    await database[Symbol.asyncDispose]()
  })
  return {
    tables,
    events,
    /** Waits until the ends of the jobs are stored. */
    stop: () => stop(),
    async start() {
      const runner = await run({
        pgPool: pool,
        events,
        taskList: {
          greet: (payload, helpers) =>
            throughOutages(async () => void (await work(payload, helpers)), { db, job: helpers.job, signal, pause }),
        },
        crontab: '',
        noHandleSignals: true,
        logger: new Logger(() => () => {}),
        preset: { worker: { pollInterval: 20, ...JOB_ENDS } },
      })
      // A second stop is an error of graphile-worker.
      stop = singleFlight(() => runner.stop(), Number.POSITIVE_INFINITY)
    },
    /** Once the job has failed. */
    failed: () =>
      until(async () => {
        const { rows } = await tables.query(
          `select attempts, run_at > now() later from graphile_worker.jobs where last_error is not null`,
        )
        return rows[0]
      }),
  }
}

t.test('a job that is interrupted runs again and keeps its attempts', async (t) => {
  const attempts: number[] = []
  const done = Promise.withResolvers<void>()
  const { tables, start } = await openQueue(t, async (_payload, { job }) => {
    attempts.push(job.attempts)
    if (attempts.length < 4) throw gone()
    done.resolve()
  })
  await tables.query(`select graphile_worker.add_job('greet', max_attempts => 1)`)
  await start()
  await done.promise
  t.same(attempts, [1, 1, 1, 1])
})

t.test('after ten minutes a job comes to an end like any other', async (t) => {
  let runs = 0
  const { tables, start, failed } = await openQueue(t, async () => {
    runs++
    throw gone()
  })
  await tables.query(`select graphile_worker.add_job('greet')`)
  await tables.query(`update graphile_worker._private_jobs set created_at = now() - interval '11 minutes'`)
  await start()
  t.same(await failed(), { attempts: 1, later: true })
  t.equal(runs, 1)
})

t.test('a job that another worker took over does not run again', async (t) => {
  let runs = 0
  const { tables, start, stop, events } = await openQueue(t, async (_payload, { job }) => {
    runs++
    await tables.query(
      `update graphile_worker._private_jobs set locked_by = 'another', attempts = attempts + 1 where id = $1`,
      [job.id],
    )
    throw gone()
  })
  await tables.query(`select graphile_worker.add_job('greet')`)
  await start()
  await once(events, 'job:error')
  await stop()
  t.equal(runs, 1)
  const { rows } = await tables.query('select locked_by, attempts, last_error from graphile_worker.jobs')
  t.same(rows, [{ locked_by: 'another', attempts: 2, last_error: null }], 'the job of the other is as it was')
})

t.test('a worker that has to stop does not wait for the database', async (t) => {
  const halt = new AbortController()
  let runs = 0
  const { tables, start, failed } = await openQueue(
    t,
    async () => {
      runs++
      throw gone()
    },
    { signal: halt.signal, pause: async () => halt.abort() },
  )
  await tables.query(`select graphile_worker.add_job('greet')`)
  await start()
  t.same(await failed(), { attempts: 1, later: true })
  t.equal(runs, 1)
})
