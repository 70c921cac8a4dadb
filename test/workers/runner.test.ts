// Failures of the queue in a worker process: each test's name says whether the process recovers or exits. A process that exits
// with an error is restarted by its platform; one that lived on without a queue would not be.
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import t, { type Test } from 'tap'
import { type ApiHarness, openApiHarness } from '../api-harness.ts'
import { type Child, startChild } from '../children.ts'
import { buy } from '../crash-harness.ts'
import { until } from '../until.ts'

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
  'missing tables of the queue: it stays, says so, and continues when they are back',
  { buffered: true },
  async (t) => {
    await using office = await openAccountHarness()
    const { front, worker } = office
    await front.tables.query('alter schema graphile_worker rename to mislaid')
    await worker.hears((heard) => heard.event === 'dependency_away' && heard.dependency === 'watch of workers')
    await worker.hears((heard) => heard.event === 'dependency_away' && heard.dependency === 'tasks of the queue')
    await front.tables.query('alter schema mislaid rename to graphile_worker')
    await expectWork(t, front, worker)
  },
)

t.test(
  'a first look at the tasks that fails: it is repeated, and the worker takes jobs',
  { buffered: true },
  async (t) => {
    await using front = await openApiHarness()
    await front.tables.query(`
    create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$;
    create trigger refuse before insert on graphile_worker._private_tasks for each statement execute function refuse()`)
    await using worker = startChild('workers/main.ts', front.env)
    await worker.hears((heard) => heard.event === 'dependency_away' && heard.dependency === 'tasks of the queue')
    await front.tables.query('drop trigger refuse on graphile_worker._private_tasks')
    await expectWork(t, front, worker)
  },
)

t.test('a queue that stops by itself, here for a breaking migration: it exits 1', { buffered: true }, async (t) => {
  await using office = await openAccountHarness()
  const { front, worker } = office
  await front.tables.query(`notify "worker:migrate", '{"migrationNumber": 999999, "breaking": true}'`)
  t.same(await worker.ended, { code: 1, signal: null })
  t.match(await worker.logs('died'), { level: 'fatal', err: { message: 'the queue stopped by itself' } })
})

/** What happens to the statement; a termination takes effect while it sleeps. */
const LOSS = 'perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(1);'
const FULL = `raise exception 'could not extend file "base/1/2": No space left on device' using errcode = 'disk_full';`

for (const [end, event, fault] of [
  ['a connection lost while a finished job is deleted', 'before delete', LOSS],
  ['a connection lost while a failed job is put back', 'before update of last_error', LOSS],
  ['a disk that is full when a failed job is put back', 'before update of last_error', FULL],
] as const)
  t.test(`${end}: it stays, and does it once more`, { buffered: true }, async (t) => {
    await using office = await openAccountHarness()
    const { front, worker } = office
    // A sequence keeps what it gave out when the transaction is lost.
    await front.tables.query(`
    create sequence losses;
    create function lose_connection() returns trigger language plpgsql as $$
    begin
      -- Each full minute a job of the crontab is finished and deleted, too.
      if 'verify_request' = (select identifier from graphile_worker._private_tasks where id = old.task_id) then
        if nextval('losses') = 1 then
          ${fault}
        end if;
      end if;
      return case when tg_op = 'DELETE' then old else new end;
    end $$;
    create trigger lose_connection ${event} on graphile_worker._private_jobs
      for each row execute function lose_connection()`)
    if (event !== 'before delete') await failOnce(front)
    const purchase = buy(front)
    t.equal((await purchase.result).status, 'completed', 'the finished work is kept')
    const jobs = `select key from graphile_worker.jobs where task_identifier = 'verify_request'`
    await until(async () => (await front.tables.query(jobs)).rowCount === 0)
    const { rows } = await front.tables.query('select last_value::int losses from losses')
    t.ok(rows[0].losses >= 2, 'it was done once more')
    worker.kill('SIGTERM')
    t.same(await worker.ended, { code: 0, signal: null })
  })

/** Lets the first attempt of the next verification fail. */
async function failOnce(front: ApiHarness) {
  await front.tables.query(`
    create sequence attempts;
    create function fail_once() returns trigger language plpgsql as $$
    begin
      if new.attempt is not null and nextval('attempts') = 1 then raise exception 'the first attempt fails'; end if;
      return new;
    end $$;
    create trigger fail_once before update on verification_requests for each row execute function fail_once()`)
}

/** Checks that the worker works and ends normally. What the outage refuses is asked again, as callers do. */
async function expectWork(t: Test, front: ApiHarness, worker: Child) {
  await until(async () => (await front.ask({ key: randomUUID() })).status !== 503)
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
