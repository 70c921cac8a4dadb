// The end of the processes of the Procfile: when they are asked to stop, they finish or hand back their work and exit 0.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import { type ApiHarness, listen, openApiHarness, openSlowPage } from './api-harness.ts'
import { BARE_ENV, startChild } from './children.ts'
import { buy, openCrashHarness, openSurvivor, run } from './crash-harness.ts'
import { openTestDatabase } from './database.ts'
import { harbourClaim, PAGE, payingFetch, VERIFY } from './system.ts'
import { until } from './until.ts'

// Most of the time these tests wait.
t.jobs = 3

t.test('web: waiting calls are answered with 202 at once', { buffered: true }, async (t) => {
  await using harness = await openApiHarness()
  await using web = startChild('server/main.ts', harness.env)
  const { address } = await web.logs('listening')
  await using accepted = await listen(harness.databaseUrl, 'jobs:insert')
  const answer = payingFetch()(new URL(VERIFY, String(address)), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID(), prefer: 'wait=25' },
    body: JSON.stringify(harbourClaim(harness.site)),
  })
  await accepted.heard
  const signalled = performance.now()
  web.kill('SIGTERM')
  const { status, headers } = await answer
  const answered = performance.now() - signalled
  t.equal(status, 202)
  t.match(headers.get('location'), /\/api\/agent\/v1\/requests\//)
  t.ok(answered < 3000, `answered after ${Math.round(answered)} ms`)
  t.same(await web.ended, { code: 0, signal: null })
  const ended = performance.now() - signalled
  t.ok(ended < 6000, `ended after ${Math.round(ended)} ms`)
})

t.test('web: without calls it ends at once, whatever connections there are', { buffered: true }, async (t) => {
  await using harness = await openApiHarness()
  await using web = startChild('server/main.ts', harness.env)
  const { address, assessment } = await web.logs('listening')
  t.match(assessment, /^literal: no model is asked/, 'the start logs the assessment')
  const { port, hostname } = new URL(String(address))
  const ahead = connect(Number(port), hostname)
  t.teardown(() => ahead.destroy())
  ahead.on('error', () => {})
  await once(ahead, 'connect')
  // On this connection no request comes. Connections are accepted in order, so the process has it before the next one.
  t.equal((await fetch(new URL('/healthz', String(address)))).status, 200, 'the connection stays open')
  const signalled = performance.now()
  web.kill('SIGTERM')
  t.same(await web.ended, { code: 0, signal: null })
  t.ok(performance.now() - signalled < 6000)
})

t.test('worker: jobs under way are finished, and no other is begun', { buffered: true }, async (t) => {
  await using harness = await openApiHarness()
  await using worker = startChild('workers/main.ts', harness.env)
  t.match(await worker.logs('worker_started'), { assessment: /^literal: no model is asked/ })
  const slow = openSlowPage(PAGE)
  const begun = buy(harness, slow.page)
  await slow.asked
  worker.kill('SIGTERM')
  await worker.logs('stopping')
  await using added = await listen(harness.databaseUrl, 'jobs:insert')
  const late = buy(harness)
  await added.heard
  slow.serve()
  t.equal((await begun.result).status, 'completed')
  t.same(await worker.ended, { code: 0, signal: null })
  t.match(await jobsOf(harness), [{ attempts: 0, locked_by: null }], 'the later job waits for another worker')
  t.same((await harness.tables.query('select pool_id from worker_beats')).rows, [], 'its beat is deleted')
  await using _other = await openSurvivor(harness)
  t.equal((await late.result).status, 'completed')
})

t.test(
  'worker: a job that takes longer than 18 seconds is handed back without losing an attempt',
  { buffered: true },
  async (t) => {
    await using harness = await openApiHarness()
    await using workers = openCrashHarness(harness, 1)
    const worker = await workers.next()
    await run(worker, { at: 'in assessment', how: 'hold' })
    const purchase = buy(harness)
    await worker.reports('held')
    const signalled = performance.now()
    worker.kill('SIGTERM')
    t.same(await worker.ended, { code: 0, signal: null })
    const seconds = (performance.now() - signalled) / 1000
    t.ok(seconds < 25, `ended after ${seconds.toFixed(1)} s`)
    t.match(await jobsOf(harness), [{ attempts: 0, locked_by: null }])
    const { rows } = await harness.tables.query('select state, error from verification_requests')
    t.same(rows, [{ state: 'observed', error: null }])
    await using _other = await openSurvivor(harness)
    t.equal((await purchase.result).status, 'completed')
  },
)

t.test(
  'worker: a job that ignores its signal is cut off within 30 seconds, and another worker does it',
  { buffered: true },
  async (t) => {
    await using harness = await openApiHarness()
    await using workers = openCrashHarness(harness, 1)
    const worker = await workers.next()
    await run(worker, { at: 'before charge', how: 'hold' })
    const purchase = buy(harness)
    await worker.reports('held')
    const signalled = performance.now()
    worker.kill('SIGTERM')
    const { signal } = await worker.ended
    const seconds = (performance.now() - signalled) / 1000
    t.equal(signal, null, 'by itself')
    t.ok(seconds < 30, `ended after ${seconds.toFixed(1)} s`)
    await using _other = await openSurvivor(harness)
    t.equal((await purchase.result).status, 'completed')
  },
)

t.test('worker: it ends also while the end of a job cannot be stored', { buffered: true }, async (t) => {
  await using harness = await openApiHarness()
  await harness.tables.query(`
    create sequence refused_ends;
    create function refuse_end() returns trigger language plpgsql as $$ begin
      perform nextval('refused_ends');
      raise exception 'No space left on device' using errcode = 'disk_full';
    end $$;
    create trigger refuse_end before delete on graphile_worker._private_jobs for each row execute function refuse_end()`)
  await using worker = startChild('workers/main.ts', harness.env)
  await worker.logs('worker_started')
  t.equal((await buy(harness).result).status, 'completed')
  await until(async () => (await harness.tables.query('select is_called from refused_ends')).rows[0].is_called)
  worker.kill('SIGTERM')
  t.same(await worker.ended, { code: 0, signal: null }, 'by itself: what is cut off ends with 1')
})

async function jobsOf({ tables }: ApiHarness) {
  const { rows } = await tables.query(`
    select attempts, locked_by from graphile_worker.jobs where task_identifier = 'verify_request'`)
  return rows
}

t.test(
  'what still waits for an outside answer after the drain does not keep the process',
  { buffered: true },
  async (t) => {
    await using child = startChild('test/lingering-process.ts', {})
    await child.logs('ready')
    const stopped = performance.now()
    child.kill('SIGTERM')
    await child.logs('stopped')
    t.same(await child.ended, { code: 0, signal: null })
    t.ok(performance.now() - stopped < 10_000)
  },
)

t.test('a later signal ends a process that does not get through its start', { buffered: true }, async (t) => {
  await using child = startChild('test/lingering-process.ts', { STARTS: 'never' })
  await child.logs('ready')
  const insisting = setInterval(() => child.kill('SIGTERM'), 100)
  t.teardown(() => clearInterval(insisting))
  t.same(await child.ended, { code: 1, signal: null })
})

t.test('a terminal that is closed stops a process as SIGTERM does', { buffered: true }, async (t) => {
  await using child = startChild('test/lingering-process.ts', {})
  await child.logs('ready')
  child.kill('SIGHUP')
  t.match(await child.logs('stopping'), { reason: 'SIGHUP' })
  t.same(await child.ended, { code: 0, signal: null })
})

t.test(
  'the same signal at once does not: npm forwards what each process of its group gets',
  { buffered: true },
  async (t) => {
    await using child = startChild('test/lingering-process.ts', { STARTS: 'second' })
    await child.logs('ready')
    child.kill('SIGTERM')
    // Both would be one signal if the second came before the first was handled.
    await child.logs('asked')
    child.kill('SIGTERM')
    await child.logs('stopped')
    t.same(await child.ended, { code: 0, signal: null })
    const removed = child.heard.filter(({ event }) => event === 'listener_removed')
    t.same(removed, [], 'there is no moment in which a signal has its usual effect')
  },
)

for (const [whom, group] of [
  ['`npm run web`', false],
  ['each process of its group, as a terminal and Heroku send it,', true],
] as const)
  t.test(`SIGTERM to ${whom} reaches the process, which drains`, { buffered: true }, async (t) => {
    await using harness = await openApiHarness()
    const npm = spawn('npm', ['run', '--silent', 'web'], {
      cwd: join(import.meta.dirname, '..'),
      env: { ...BARE_ENV, ...harness.env },
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: group,
    })
    const events: unknown[] = []
    for await (const line of createInterface({ input: npm.stdout })) {
      const { event } = JSON.parse(line)
      events.push(event)
      if (event === 'listening') process.kill(group ? -Number(npm.pid) : Number(npm.pid), 'SIGTERM')
    }
    // The output ends with the last process that holds it.
    t.same(events.slice(-2), ['stopping', 'stopped'])
  })

t.test('a process that cannot start says why, and the cure', { buffered: true }, async (t) => {
  await using harness = await openApiHarness()
  await using empty = await openTestDatabase({ template: false })
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const address = taken.address()
  const port = typeof address === 'object' ? String(address?.port) : ''
  const start = async (file: string, env: Record<string, string>) => {
    await using child = startChild(file, { ...harness.env, ...env })
    return await child.logs('never').catch(({ message }: Error) => message)
  }
  for (const file of ['server/main.ts', 'workers/main.ts'])
    t.match(await start(file, { DATABASE_URL: empty.url }), /not migrated: run `npm run cli -- migrate`/, file)
  const nowhere = 'postgres://nobody@127.0.0.1:1/none'
  for (const file of ['server/main.ts', 'workers/main.ts'])
    t.match(await start(file, { DATABASE_URL: nowhere }), /DATABASE_URL cannot be reached.*ECONNREFUSED.*doctor/, file)
  t.match(await start('server/main.ts', { PORT: port }), /Another process listens there.*set PORT/)
  taken.close()
})
