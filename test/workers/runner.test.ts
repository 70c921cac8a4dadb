// Failures of the queue in a worker process: each test's name says whether the process recovers or exits. A process that exits
// with an error is restarted by its platform; one that lived on without a queue would not be.
import pg from 'pg'
import t, { type Test } from 'tap'
import { type ApiHarness, openApiHarness } from '../api-harness.ts'
import { type Child, startChild } from '../children.ts'
import { buy } from '../crash-harness.ts'

t.jobs = 3

async function openAccountHarness() {
  await using opened = new AsyncDisposableStack()
  const front = opened.use(await openApiHarness())
  const worker = opened.use(startChild('workers/main.ts', front.env))
  await worker.logs('worker_started')
  await isListening(worker, 1)
  const closing = opened.move()
  return { front, worker, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

t.test('connections that are cut repeatedly: it recovers', { buffered: true }, async (t) => {
  await using office = await openAccountHarness()
  const { front, worker } = office
  for (let times = 2; times <= 5; times++) {
    await cutConnections(front)
    await isListening(worker, times)
  }
  await expectWork(t, front, worker)
})

t.test('a database that refuses connections for a while: it recovers', { buffered: true }, async (t) => {
  await using office = await openAccountHarness()
  const { front, worker } = office
  const allow = (yes: boolean) =>
    asAdmin(async (admin) => {
      await admin.query(`alter database ${nameOf(front)} allow_connections ${yes}`)
    })
  await allow(false)
  await cutConnections(front)
  await worker.hears((heard) => heard.event === 'dependency_away' && heard.dependency === 'beat')
  await allow(true)
  await expectWork(t, front, worker)
})

t.test(
  'missing tables of the queue: it stays, logs the errors, and continues when they are back',
  { buffered: true },
  async (t) => {
    await using office = await openAccountHarness()
    const { front, worker } = office
    await front.tables.query('alter schema graphile_worker rename to mislaid')
    await worker.hears((heard) => heard.event === 'dependency_away' && heard.dependency === 'watch of workers')
    await worker.hears((heard) => heard.event === 'queue' && heard.level === 50)
    await front.tables.query('alter schema mislaid rename to graphile_worker')
    await expectWork(t, front, worker)
  },
)

t.test('a queue that stops by itself, here for a breaking migration: it exits 1', { buffered: true }, async (t) => {
  await using office = await openAccountHarness()
  const { front, worker } = office
  await front.tables.query(`notify "worker:migrate", '{"migrationNumber": 999999, "breaking": true}'`)
  t.same(await worker.ended, { code: 1, signal: null })
  t.match(await worker.logs('died'), { level: 60, err: { message: 'the queue stopped by itself' } })
})

t.test(
  'a connection lost while a finished job is deleted: it exits 1, and a rescue frees the job',
  { buffered: true },
  async (t) => {
    await using office = await openAccountHarness()
    const { front, worker } = office
    await front.tables.query(`
    create function lose_connection() returns trigger language plpgsql as $$
    begin
      -- Each full minute a job of the crontab is finished and deleted, too.
      if 'verify_request' = (select identifier from graphile_worker._private_tasks where id = old.task_id) then
        perform pg_terminate_backend(pg_backend_pid());
        perform pg_sleep(1); -- where the termination takes effect
      end if;
      return old;
    end $$;
    create trigger lose_connection before delete on graphile_worker._private_jobs
      for each row when (old.attempts = 1) execute function lose_connection()`)
    const purchase = buy(front)
    t.equal((await purchase.result).status, 'completed', 'the finished work is kept')
    t.same(await worker.ended, { code: 1, signal: null })
    const { rows } = await front.tables.query(`
      select attempts, locked_by is null free from graphile_worker.jobs where task_identifier = 'verify_request'`)
    t.same(rows, [{ attempts: 1, free: false }], 'the dead pool still holds the job')
  },
)

/** Checks that the worker works and ends normally. */
async function expectWork(t: Test, front: ApiHarness, worker: Child) {
  t.equal((await buy(front).result).status, 'completed')
  worker.kill('SIGTERM')
  t.same(await worker.ended, { code: 0, signal: null })
}

/** Waits for so many of the queue's messages about its listening connection. */
function isListening(worker: Child, times: number) {
  let heard = 0
  return worker.hears(({ event, msg }) => {
    if (event === 'queue' && String(msg).startsWith('Worker connected')) heard++
    return heard === times
  })
}

function nameOf(front: ApiHarness) {
  return new URL(front.databaseUrl).pathname.slice(1)
}

async function asAdmin<T>(work: (admin: pg.Client) => Promise<T>): Promise<T> {
  const admin = new pg.Client({ connectionString: process.env.TEST_DATABASE_URL })
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.end()
  }
}

/** Cuts all connections, those of the API process too. */
function cutConnections(front: ApiHarness) {
  return asAdmin((admin) =>
    admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [nameOf(front)]),
  )
}
