// Slow fetches hold a socket and some memory, but no slot of the queue.
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { openQueuePool } from '../../server/db/queue.ts'
import { openSlowWork } from '../../server/verification/stages/slow-work.ts'
import { openWork } from '../../workers/context.ts'
import { openRunner } from '../../workers/runner.ts'
import { type ApiHarness, openApiHarness, openSlowPage, outcomeOf, readResult } from '../api-harness.ts'
import { startChild } from '../children.ts'
import { LONG } from '../long.ts'
import { openSlowSite } from '../slow-site.ts'
import { PAGE, payingFetch } from '../system.ts'
import { until } from '../until.ts'

const claim = 'The harbour was opened in 1874.'

function order(front: ApiHarness, path: string) {
  return front.ask({ key: randomUUID(), body: { source_url: front.site.url(path), claim }, fetch: payingFetch() })
}

/** No limit on turns at one origin, which these tests do not cover. */
const originLimits = { concurrency: 10_000, spacingMs: 0 }

/** Buying them is what takes the time. */
const SLOW = LONG ? 256 : 96

t.test(`a worker holds ${SLOW} slow fetches in 512 MB and serves others meanwhile`, async (t) => {
  const names = Array.from({ length: SLOW - 1 }, (_, n) => `s${n}.d${n % 16}.test`)
  await using site = await openSlowSite({ names: ['first.test', ...names], quick: ['quick.test'], page: PAGE })
  await using front = await openApiHarness({ ...site.env, WORKER_FETCHES: String(SLOW), TRUST_PROXY: '1' })
  const ask = (name: string, address = '192.0.2.1') =>
    front.ask({
      key: randomUUID(),
      body: { source_url: `https://${name}/`, claim },
      headers: { 'x-forwarded-for': address },
      fetch: payingFetch(),
    })
  const crowd = []
  for (const name of ['first.test', ...names]) crowd.push(await ask(name))
  await using worker = startChild('workers/main.ts', front.env)
  await site.busyWith(SLOW)
  t.pass('all pages are being read at the same time')
  const kilobytes = Number(execFileSync('ps', ['-o', 'rss=', '-p', String(worker.pid)]).toString())
  t.comment(`the worker holds ${(kilobytes / 1024).toFixed(0)} MB`)
  t.ok(kilobytes < 512 * 1024, `${kilobytes} kB`)
  await readResult(await outcomeOf(await ask('quick.test', '192.0.2.2')))
  t.pass('another page is read, assessed and settled meanwhile')
  site.release()
  for (const answer of crowd.slice(0, 8)) await readResult(await outcomeOf(answer))
})

t.test('a fetch that waits for its own busy process is not slow', async (t) => {
  await using front = await openApiHarness()
  const loads = [0.95, 0.99, 0.5]
  const { db, log } = front.core
  const options = { db, log, room: 4, slowMs: 1, measureLoad: () => () => loads.shift() ?? 0 }
  await using slowWork = openSlowWork(options)
  const never = new Promise(() => {})
  t.equal(await slowWork.isQuick(never, 'fetch'), false)
  t.same(loads, [], 'it is slow once the process has time')
})

t.test('a slow fetch leaves its job, and the request continues when it has ended', async (t) => {
  await using front = await openApiHarness({ WORKER_FETCHES: '1' })
  await using work = await openWork(front.core, { originLimits, slowMs: 1 })
  await using runner = await openRunner(work, { concurrency: 1 })
  runner.died.catch(() => {})
  const page = openSlowPage('')
  front.site.pages.set('/gone', async () => ({ ...(await page.page()), status: 404 }))
  const slow = await order(front, '/gone')
  await page.asked
  await readResult(await outcomeOf(await order(front, '/harbour')))
  page.serve()
  const failed = await outcomeOf(slow)
  t.equal(failed.status, 422, 'a failure of the fetch fails the request as in its job')
  t.match(await failed.json(), { error: { code: 'source_http_status' } })
})

t.test('a worker that stops hands back the requests of its slow fetches', async (t) => {
  await using front = await openApiHarness({ WORKER_FETCHES: '4' })
  const page = openSlowPage(PAGE)
  front.site.pages.set('/slow', page.page)
  const answer = await order(front, '/slow')
  {
    await using work = await openWork(front.core, { originLimits, slowMs: 1 })
    await using runner = await openRunner(work, { concurrency: 1 })
    runner.died.catch(() => {})
    await page.asked
    const left = () => front.tables.query('select from graphile_worker.jobs where locked_at is not null')
    await until(async () => (await left()).rowCount === 0)
    t.equal(work.slowWork.size, 1, 'its job has ended')
  }
  const { rows } = await front.tables.query(`
    select r.state, j.run_at <= now() due, j.attempts from verification_requests r
    join graphile_worker.jobs j on j.key = 'verify:' || r.id`)
  t.same(rows, [{ state: 'accepted', due: true, attempts: 0 }])
  page.serve()
  await using work = await openWork(front.core)
  await using runner = await openRunner(work)
  runner.died.catch(() => {})
  await readResult(await outcomeOf(answer))
})

t.test('a queue that is opened again in the same process takes slow fetches again', async (t) => {
  await using front = await openApiHarness({ WORKER_FETCHES: '4' })
  await using work = await openWork(front.core, { originLimits, slowMs: 1 })
  for (let time = 0; time < 2; time++) {
    await using runner = await openRunner(work, { concurrency: 1 })
    runner.died.catch(() => {})
    await readResult(await outcomeOf(await order(front, '/harbour')))
    t.pass()
  }
})

t.test('a killed worker leaves a job with the remaining attempts', async (t) => {
  await using front = await openApiHarness({ WORKER_FETCHES: '4' })
  await using work = await openWork(front.core, { originLimits, slowMs: 1 })
  const page = openSlowPage(PAGE)
  front.site.pages.set('/slow', page.page)
  await order(front, '/slow')
  const runner = await openRunner(work, { concurrency: 1 })
  runner.died.catch(() => {})
  await page.asked
  const pool = openQueuePool(front.databaseUrl, 1, () => {})
  t.teardown(() => pool.end())
  const job = async () =>
    (
      await pool.query(`select max_attempts, run_at > now() ahead, run_at <= now() + interval '15 seconds' soon
                       from graphile_worker.jobs where key is not null and locked_at is null`)
    ).rows[0]
  t.match(await until(job), { max_attempts: 4, ahead: true, soon: true })
  page.serve()
  await runner[Symbol.asyncDispose]()
})
