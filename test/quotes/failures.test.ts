// Quote checks whose page cannot be read, whose host has no turn, or whose worker is killed.
import t from 'tap'
import { sweep } from '../../server/free-work/jobs.ts'
import { QUOTE_CHECKS } from '../../server/quotes/check.ts'
import { beat } from '../../workers/beat.ts'
import { openWork } from '../../workers/context.ts'
import { openRunner } from '../../workers/runner.ts'
import { listen, openSlowPage } from '../api-harness.ts'
import { startChild } from '../children.ts'
import { declareDead } from '../crash-harness.ts'
import { FALSE_NAME } from '../site.ts'
import { PAGE } from '../system.ts'
import { openQuoteHarness, type QuoteHarness } from './harness.ts'

t.test('a page that cannot be read fails as it fails a verification', async (t) => {
  await using harness = await openQuoteHarness()
  const reader = await harness.register('pro')
  const pages = {
    '/gone': { status: 404, body: '' },
    '/busy': { status: 503, body: '' },
    '/image': { type: 'image/png', body: 'x' },
    '/empty': { body: '<p></p>' },
    '/wall': { body: '<title>Log in</title><p>Please log in to continue.</p><p>Log in</p>' },
    '/robots': { body: '<p>Checking your browser before accessing the site.</p><p>Verify you are human</p>' },
  }
  const expected = {
    '/gone': ['source_http_status', false],
    '/busy': ['source_http_status', true],
    '/image': ['source_unsupported_type', false],
    '/empty': ['source_empty', false],
    '/wall': ['source_login_required', false],
    '/robots': ['source_challenge', true],
  } as const
  for (const [path, page] of Object.entries(pages)) harness.front.site.pages.set(path, page)
  for (const path of Object.keys(pages)) await reader.check(path, ['three piers'])
  const source_url = `https://${FALSE_NAME}/harbour`
  const tls = await reader.call('POST', '/v1/quote-check', { source_url, quotes: ['a'] })
  await harness.queue.drain()
  for (const [path, [code, retryable]] of Object.entries(expected)) {
    const { status, headers, body } = await reader.check(path, ['three piers'])
    t.match({ status, body }, { status: 422, body: { error: { code, retryable } } }, path)
    if (retryable) t.match(headers.get('retry-after'), /^([1-9]|[1-5]\d|60)$/)
    else t.equal(headers.get('retry-after'), null)
  }
  t.match((await reader.call('GET', `/v1/quote-check/${tls.body.check_id}`)).body.error, { code: 'source_tls_invalid' })
  t.equal((await reader.used()).pages, 7, 'what was begun counts')
  await reader.check('/wall', ['log in to continue'])
  await harness.queue.drain()
  t.match(
    (await reader.check('/wall', ['log in to continue'])).body,
    { quotes: [{ match: 'exact' }] },
    'it was asked for',
  )
})

t.test('after a retryable failure and a pause the same body is checked anew', async (t) => {
  await using harness = await openQuoteHarness()
  const reader = await harness.register()
  harness.front.site.pages.set('/page', { status: 503, body: '' })
  const { body } = await reader.check('/page', ['three piers'])
  await harness.queue.drain()
  harness.front.site.pages.set('/page', { body: PAGE })
  t.equal((await reader.check('/page', ['three piers'])).status, 422, 'a caller who polls sees the failure')
  await harness.front.tables.query(`update quote_checks set changed_at = changed_at - interval '61 seconds'`)
  t.equal((await reader.call('GET', `/v1/quote-check/${body.check_id}`)).status, 422)
  const again = await reader.check('/page', ['three piers'])
  t.match(again, { status: 202, body: { check_id: body.check_id } })
  await harness.queue.drain()
  t.match((await reader.call('GET', `/v1/quote-check/${body.check_id}`)).body, { quotes: [{ match: 'exact' }] })
  t.equal((await reader.used()).pages, 2)

  harness.front.site.pages.set('/page', { status: 404, body: '' })
  await harness.front.tables.query('delete from observations')
  await reader.check('/page', ['one pier'])
  await harness.queue.drain()
  await harness.front.tables.query(`update quote_checks set changed_at = changed_at - interval '1 hour'`)
  t.equal((await reader.check('/page', ['one pier'])).status, 422, 'a final failure stays')
})

t.test('a check waits for a host that asked for a pause, and says so', async (t) => {
  await using harness = await openQuoteHarness()
  const reader = await harness.register()
  harness.front.site.pages.set('/page', { status: 429, headers: { 'retry-after': '30' }, body: '' })
  await beat(harness.work, 'any')
  await reader.check('/page', ['three piers'])
  await harness.queue.work()
  const waits = await reader.check('/page', ['three piers'])
  t.equal(waits.status, 202)
  t.match(waits.headers.get('retry-after'), /^(1\d|2\d|30)$/)
  const { rows } = await harness.front.tables.query('select waiting from quote_checks')
  t.match(rows, [{ waiting: { for: 'origin', host: 'site.test', asked_seconds: 30 } }])
  harness.front.site.pages.set('/page', { body: PAGE })
  await harness.front.tables.query('update origins set blocked_until = now()')
  await harness.queue.drain()
  t.match(await reader.check('/page', ['three piers']), { status: 200 })
})

t.test('a page whose host was never asked does not count', async (t) => {
  await using harness = await openQuoteHarness()
  const reader = await harness.register()
  harness.front.site.pages.set('/page', { status: 429, headers: { 'retry-after': '999999' }, body: '' })
  await reader.check('/page', ['three piers'])
  await harness.queue.work()
  const tried = await reader.check('/page', ['three piers'])
  t.match(tried, { status: 422, body: { error: { code: 'source_rate_limited', message: /999999 seconds/ } } })
  t.equal((await reader.used()).pages, 1)
  await reader.check('/harbour', ['three piers'])
  t.equal((await reader.used()).pages, 2)
  // However slow the machine is, the host asked for longer than the check has left.
  await harness.front.tables.query(`
    update quote_checks set created_at = created_at - interval '1 minute' where state = 'pending'`)
  await harness.queue.work()
  const { status, body } = await reader.check('/harbour', ['three piers'])
  t.match({ status, code: body.error?.code }, { status: 422, code: 'source_rate_limited' })
  t.equal((await reader.used()).pages, 1, 'it is given back')
  t.same(harness.front.site.requests, ['/page'])
})

/** Notifies when a job has ended and no other is under way. */
const TELL_IDLE = `
  create function tell_idle() returns trigger language plpgsql as $$ begin
    if not exists (select from graphile_worker._private_jobs where locked_at is not null) then
      perform pg_notify('idle', '');
    end if;
    return null;
  end $$;
  create trigger tell_idle after delete on graphile_worker._private_jobs execute function tell_idle()`

/** The check is answered by the next worker, once. */
async function finish(
  t: Tap,
  harness: QuoteHarness,
  id: string,
  reader: { call: Awaited<ReturnType<QuoteHarness['register']>>['call'] },
) {
  await declareDead(harness.front)
  await using work = await openWork(harness.front.core)
  await using runner = await openRunner(work)
  runner.died.catch(() => {})
  const answer = await reader.call('GET', `/v1/quote-check/${id}`, undefined, { prefer: 'wait=25' })
  t.match(answer, { status: 200, body: { quotes: [{ match: 'exact' }] } })
}
type Tap = import('tap').Test

for (const [fetches, what] of [
  ['0', 'with its job'],
  ['4', 'with a slow fetch that left its job'],
] as const)
  t.test(`a worker that is killed ${what} loses nothing`, async (t) => {
    await using harness = await openQuoteHarness({ WORKER_FETCHES: fetches })
    const reader = await harness.register()
    const page = openSlowPage(PAGE)
    harness.front.site.pages.set('/slow', page.page)
    const { check_id: id } = (await reader.check('/slow', ['three piers'])).body
    await harness.front.tables.query(TELL_IDLE)
    await using idle = await listen(harness.front.databaseUrl, 'idle')
    await using child = startChild('workers/main.ts', harness.front.env)
    await page.asked
    if (fetches !== '0') await idle.heard
    child.kill('SIGKILL')
    await child.ended
    page.serve()
    await harness.front.tables.query(`update origin_visits set until = now() - interval '1 second'`)
    if (fetches !== '0') {
      const { rows } = await harness.front.tables.query(
        `select extract(epoch from run_at - now())::float8 seconds from graphile_worker.jobs where key = 'quotes:' || $1`,
        [id],
      )
      t.ok(rows[0].seconds < 16, `its job is due in ${rows[0].seconds} s`)
      await harness.front.tables.query('update graphile_worker._private_jobs set run_at = now()')
    }
    await finish(t, harness, id, reader)
    t.same(await reader.used(), { pages: 1, inFlight: 0 })
  })

t.test('a worker that stops hands the check back', async (t) => {
  await using harness = await openQuoteHarness({ WORKER_FETCHES: '4' })
  const reader = await harness.register()
  const page = openSlowPage(PAGE)
  harness.front.site.pages.set('/slow', page.page)
  const { check_id: id } = (await reader.check('/slow', ['three piers'])).body
  await harness.front.tables.query(TELL_IDLE)
  {
    await using idle = await listen(harness.front.databaseUrl, 'idle')
    await using work = await openWork(harness.front.core, { slowMs: 1 })
    await using runner = await openRunner(work)
    runner.died.catch(() => {})
    await page.asked
    // A loop without a pause would itself be the load under which a fetch keeps its job.
    await idle.heard
    t.equal(work.slowWork.size, 1)
  }
  const { rows } = await harness.front.tables.query(
    `select c.state, j.run_at <= now() due, j.attempts from quote_checks c
     join graphile_worker.jobs j on j.key = 'quotes:' || c.id`,
  )
  t.same(rows, [{ state: 'pending', due: true, attempts: 0 }])
  page.serve()
  await finish(t, harness, id, reader)
})

t.test('slow pages of checks leave most of the room to verifications', async (t) => {
  await using harness = await openQuoteHarness({ WORKER_FETCHES: '4' }, { slowMs: 1 })
  const reader = await harness.register()
  const [first, second] = [openSlowPage(PAGE), openSlowPage(PAGE)]
  harness.front.site.pages.set('/first', first.page)
  harness.front.site.pages.set('/second', second.page)
  await reader.check('/first', ['three piers'])
  await harness.queue.work()
  await first.asked
  t.equal(harness.work.slowWork.size, 1, 'a quarter of four')
  await reader.check('/second', ['three piers'])
  await harness.queue.work()
  t.same(harness.front.site.requests, ['/first'], 'the second check is put off')
  first.serve()
  while (harness.work.slowWork.size > 0) await new Promise((resolve) => setImmediate(resolve))
  t.equal((await reader.check('/first', ['three piers'])).status, 200)
  second.serve()
  await harness.queue.drain()
  while (harness.work.slowWork.size > 0) await new Promise((resolve) => setImmediate(resolve))
  t.equal((await reader.check('/second', ['three piers'])).status, 200)
})

t.test('the sweep gives a stranded check a new job, and fails one whose attempts are used up', async (t) => {
  await using harness = await openQuoteHarness()
  const { tables } = harness.front
  const reader = await harness.register()
  const lost = await reader.check('/harbour', ['three piers'])
  await tables.query(`select graphile_worker.complete_jobs(array(select id from graphile_worker.jobs))`)
  t.same(await sweep(QUOTE_CHECKS, harness.work), { requeued: 0, failed: 0 }, 'it may be about to get one')
  t.same(await sweep(QUOTE_CHECKS, harness.work, 0), { requeued: 1, failed: 0 })
  t.same(await sweep(QUOTE_CHECKS, harness.work, 0), { requeued: 0, failed: 0 })
  await harness.queue.drain()
  t.equal((await reader.call('GET', `/v1/quote-check/${lost.body.check_id}`)).status, 200)

  const hopeless = await reader.check('/harbour', ['four piers'])
  await tables.query('update graphile_worker._private_jobs set attempts = max_attempts')
  await tables.query(`select graphile_worker.add_job('sweep_requests', '{}'::json)`)
  await harness.queue.work()
  const failed = await reader.call('GET', `/v1/quote-check/${hopeless.body.check_id}`)
  t.match(failed, { status: 422, body: { error: { code: 'execution_failed', retryable: true } } })
  const { rows } = await tables.query(`select from graphile_worker.jobs where key like 'quotes:%'`)
  t.same(rows, [], 'the job is gone')
})
