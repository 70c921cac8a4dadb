// Limits on fetches per origin, on the real database and through the whole service.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { z } from 'zod'
import { openDatabase, sql } from '../../server/db/pool.ts'
import { openLog } from '../../server/telemetry.ts'
import type { Lane } from '../../server/threads/lanes.ts'
import { openWork } from '../../workers/context.ts'
import { OriginBusyError } from '../../workers/retrieval/origin-wait.ts'
import { buildOrigins, forgetOrigins, type OriginLimits } from '../../workers/retrieval/origins.ts'
import { RetryLaterError } from '../../workers/retrieval/response.ts'
import { openApiHarness, openSlowPage, outcomeOf } from '../api-harness.ts'
import { openTestDatabase } from '../database.ts'
import { openQueue } from '../queue.ts'
import { OTHER_NAME, type Page } from '../site.ts'
import { PAGE, payingFetch, type System, startSystem } from '../system.ts'
import { until } from '../until.ts'

const URL_ONE = new URL('https://kelby.test/one')
const URL_TWO = new URL('https://kelby.test/two')
const ORIGIN = URL_ONE.origin
const never = new AbortController().signal
const log = openLog('silent')

/** @param others the limits of `other`, if it has its own */
async function openOrigins(limits: OriginLimits, others = limits) {
  await using opened = new AsyncDisposableStack()
  const database = opened.use(await openTestDatabase())
  const db = await openDatabase(database.url, { maxConnections: 4 })
  opened.defer(() => db.end())
  const build = (own: OriginLimits) => opened.use(buildOrigins(db, { limits: own, log }))
  const origins = build(limits)
  const other = build(others)
  const closing = opened.move()
  return {
    db,
    origins,
    other,
    /** Takes a turn; the caller disposes it. */
    async take(key: string, url = URL_ONE, at = origins, lane?: Lane) {
      const hops = at.openHops(key, never, lane)
      await hops.enter(url)
      return hops
    },
    /** Puts a job into the line, as a worker does when its job gets no turn. */
    async join(key: string, busy: OriginBusyError) {
      const job = { name: 'verify_request' as const, payload: { request_id: randomUUID() }, key }
      await origins.waitInLine(busy, { job, since: new Date(), seconds: 600 })
    },
    /** Keys of the jobs that may run now, in the order in which they would. */
    due: () =>
      db.anyFirst(sql.type(z.object({ key: z.string() }))`
        select key from graphile_worker.jobs where run_at <= now() order by run_at, id`),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

async function busyOf(taking: Promise<unknown>): Promise<OriginBusyError> {
  const error = await taking.then(
    () => new Error('it was given a turn'),
    (thrown: unknown) => thrown,
  )
  if (error instanceof OriginBusyError) return error
  throw error
}

const isGiven = (taking: Promise<unknown>) =>
  taking.then(
    () => true,
    (thrown: unknown) => {
      if (thrown instanceof OriginBusyError) return false
      throw thrown
    },
  )

t.test('no more visits at once than allowed, for all workers together', async (t) => {
  await using set = await openOrigins({ concurrency: 2, spacingMs: 0 })
  const first = await set.take('a')
  const second = await set.take('b', URL_TWO, set.other)
  await t.rejects(set.take('c'), { name: 'OriginBusyError', asked: null })
  await t.resolves(set.take('d', new URL('https://orsay.test/')), 'another origin')
  await first.enter(URL_TWO)
  t.pass('a hop to the same origin keeps the turn')
  await first[Symbol.asyncDispose]()
  await (await set.take('c'))[Symbol.asyncDispose]()
  await second[Symbol.asyncDispose]()
})

t.test('a visit of a killed worker stops counting', async (t) => {
  await using set = await openOrigins({ concurrency: 1, spacingMs: 0 })
  await set.db.query(sql.type(z.object({}).strict())`
    insert into origin_visits (id, origin, until) values (${randomUUID()}, ${ORIGIN}, now() - interval '1 second')`)
  await t.resolves(set.take('a'))
})

t.test('visits are spaced, and one that would wait long is handed back', async (t) => {
  await using set = await openOrigins({ concurrency: 9, spacingMs: 60_000 })
  await (await set.take('a'))[Symbol.asyncDispose]()
  const { retryAfterSeconds } = await busyOf(set.take('b'))
  t.ok(retryAfterSeconds > 50 && retryAfterSeconds <= 60)
})

t.test('a pause that an origin asks for is kept for up to 300 s, and its own seconds are reported', async (t) => {
  await using set = await openOrigins({ concurrency: 9, spacingMs: 0 })
  const hops = await set.take('a')
  const busy = await hops.postpone(URL_ONE, new RetryLaterError(429, 999_999_999, 'host'))
  t.match(busy, { name: 'OriginBusyError', retryAfterSeconds: 300, tried: true })
  const refused = await busyOf(set.take('b', URL_TWO, set.other))
  t.ok(refused.retryAfterSeconds > 290 && refused.retryAfterSeconds <= 300, 'for every worker')
  t.same(refused.asked, { host: 'kelby.test', status: 429, seconds: 999_999_999 })
  await set.db.query(sql.type(z.object({}).strict())`
    update origins set next_at = now() - interval '2 hours', blocked_until = now() - interval '2 hours'`)
  await hops[Symbol.asyncDispose]()
  await forgetOrigins(set.db)
  t.notOk(await set.db.exists(sql.type(z.object({ one: z.number() }))`select 1 one from origins`), 'then forgotten')
})

t.test('an answer about one URL blocks that URL and not its host', async (t) => {
  await using set = await openOrigins({ concurrency: 9, spacingMs: 0 })
  const hops = await set.take('a')
  await hops.postpone(URL_ONE, new RetryLaterError(404, 120, 'url'))
  await t.resolves(set.take('b', URL_TWO), 'its neighbour')
  t.match((await busyOf(set.take('c', URL_ONE))).asked, { status: 404, seconds: 120 })
})

t.test('one URL does not renew the block for its neighbours', async (t) => {
  await using set = await openOrigins({ concurrency: 9, spacingMs: 0 })
  const answer = new RetryLaterError(503, 20, 'host')
  const hops = await set.take('a')
  await hops.postpone(URL_ONE, answer)
  await busyOf(set.take('b', URL_TWO))
  await set.db.query(sql.type(z.object({}).strict())`update origins set blocked_until = now()`)
  await hops.postpone(URL_ONE, answer)
  await t.resolves(set.take('c', URL_TWO), 'the neighbour is read')
  await busyOf(set.take('d', URL_ONE))
  await hops.postpone(URL_TWO, answer)
  await busyOf(set.take('e', new URL('https://kelby.test/three')))
  t.pass('a second URL that asks blocks the host')
})

t.test('a few URLs in turn do not keep their host blocked', async (t) => {
  await using set = await openOrigins({ concurrency: 9, spacingMs: 0 })
  const hops = await set.take('a')
  const urls = [URL_ONE, URL_TWO]
  const end = () => set.db.query(sql.type(z.object({}).strict())`update origins set blocked_until = now()`)
  const others = new URL('https://kelby.test/three')
  for (const url of urls) {
    await hops.postpone(url, new RetryLaterError(429, 999_999_999, 'host'))
    t.ok((await busyOf(set.take('b', others))).retryAfterSeconds <= 300, 'once for each, and for 300 s at most')
    await end()
  }
  for (const url of [...urls, ...urls]) {
    await hops.postpone(url, new RetryLaterError(429, 999_999_999, 'host'))
    await using _read = await set.take('c', others)
    await busyOf(set.take('d', url))
    await end()
  }
})

t.test('those who wait are woken in order when a turn is free; one sent away goes last', async (t) => {
  await using set = await openOrigins({ concurrency: 1, spacingMs: 0 })
  const held = await set.take('held')
  const asked = { host: 'kelby.test', status: 503, seconds: 1 }
  await set.join('sent-away', new OriginBusyError(ORIGIN, 1, asked, { tried: true }))
  await set.join('first', await busyOf(set.take('first')))
  await set.join('second', await busyOf(set.take('second')))
  t.same(await set.due(), [], 'nothing is polled')
  await held[Symbol.asyncDispose]()
  t.same(await set.due(), ['first'], 'one turn, one job')
  await busyOf(set.take('newcomer'))
  t.pass('the turn is kept for the job that was woken')
  const first = await set.take('first')
  await first[Symbol.asyncDispose]()
  t.same(await set.due(), ['first', 'second'])
  const second = await set.take('second')
  await second[Symbol.asyncDispose]()
  t.same(await set.due(), ['first', 'second', 'sent-away'])
})

t.test('a newcomer does not go ahead of those who wait, also where a turn is free', async (t) => {
  await using set = await openOrigins({ concurrency: 1, spacingMs: 0 })
  const held = await set.take('held')
  const busy = await busyOf(set.take('waits'))
  await set.join('waits', busy)
  // The worker that held the turn was killed: no process wakes the line.
  await set.db.query(sql.type(z.object({}).strict())`update origin_visits set until = now() - interval '1 second'`)
  await busyOf(set.take('newcomer'))
  await t.resolves(set.take('waits'), 'it looks for itself')
  await held[Symbol.asyncDispose]()
})

t.test('a visit whose end cannot be stored does not fail the fetch, and ends by itself', async (t) => {
  await using set = await openOrigins({ concurrency: 1, spacingMs: 0 })
  await set.db.query(sql.type(z.object({}).strict())`
    create function keep_visit() returns trigger language plpgsql as $$ begin
      raise exception 'No space left on device' using errcode = 'disk_full';
    end $$`)
  await set.db.query(sql.type(z.object({}).strict())`
    create trigger keep_visit before delete on origin_visits for each row execute function keep_visit()`)
  const held = await set.take('held')
  await t.resolves(async () => held[Symbol.asyncDispose]())
  await busyOf(set.take('waits'))
  await set.db.query(sql.type(z.object({}).strict())`update origin_visits set until = now() - interval '1 second'`)
  await t.resolves(set.take('waits'))
})

t.test('a turn that became free before the job joined the line is not lost', async (t) => {
  await using set = await openOrigins({ concurrency: 1, spacingMs: 0 })
  const held = await set.take('held')
  const busy = await busyOf(set.take('late'))
  await held[Symbol.asyncDispose]()
  await set.join('late', busy)
  t.same(await set.due(), ['late'])
})

t.test('a line that is blocked is woken when the block ends, by one job', async (t) => {
  await using set = await openOrigins({ concurrency: 4, spacingMs: 0 })
  const hops = await set.take('a')
  await hops.postpone(URL_ONE, new RetryLaterError(429, 60, 'host'))
  for (const key of ['b', 'c']) await set.join(key, await busyOf(set.take(key, URL_TWO)))
  const wakes = await set.db.any(sql.type(z.object({ name: z.string(), seconds: z.number() }))`
    select task_identifier name, extract(epoch from run_at - now())::float8 seconds
    from graphile_worker.jobs where task_identifier = 'wake_origin'`)
  t.equal(wakes.length, 1)
  t.ok(Number(wakes[0]?.seconds) > 50 && Number(wakes[0]?.seconds) <= 60)
  await set.db.query(sql.type(z.object({}).strict())`update origins set blocked_until = now()`)
  await set.origins.wake(ORIGIN)
  t.same(await set.due(), ['b', 'c'])
  await hops[Symbol.asyncDispose]()
})

const laneOf = (payer: string, isFree = false): Lane => ({ payer, domain: 'kelby.test', isFree })

t.test('free work may have half of the turns, and waits behind paid work', async (t) => {
  await using set = await openOrigins({ concurrency: 4, spacingMs: 0 })
  const take = (key: string, lane: Lane) => set.take(key, URL_ONE, set.origins, lane)
  const free = [await take('free 1', laneOf('a', true)), await take('free 2', laneOf('b', true))]
  await set.join('free 3', await busyOf(take('free 3', laneOf('c', true))))
  const paid = [await take('paid 1', laneOf('x')), await take('paid 2', laneOf('y'))]
  await set.join('paid 3', await busyOf(take('paid 3', laneOf('z'))))
  await free[0]?.[Symbol.asyncDispose]()
  t.same(await set.due(), ['paid 3'], 'it arrived later')
  await paid[0]?.[Symbol.asyncDispose]()
  t.same(await set.due(), ['paid 3', 'free 3'], 'free work is not forgotten')
})

t.test('one payer has no more visits than there are turns, and its line does not delay another payer', async (t) => {
  await using set = await openOrigins({ concurrency: 2, spacingMs: 0 })
  const take = (key: string, payer: string) => set.take(key, URL_ONE, set.origins, laneOf(payer))
  const held = [await take('1', 'rich'), await take('2', 'rich')]
  for (const key of ['3', '4', '5']) await set.join(key, await busyOf(take(key, 'rich')))
  await set.join('other', await busyOf(take('other', 'poor')))
  await held[0]?.[Symbol.asyncDispose]()
  t.same(await set.due(), ['other'], 'although it arrived last')
  await held[1]?.[Symbol.asyncDispose]()
  t.same(await set.due(), ['other', '3'])
})

t.test('a visit that lasts long gives its turn up, and only so many do', async (t) => {
  const limits = { concurrency: 2, spacingMs: 0, longMs: 50 }
  // To the other worker no visit is long, however slow this machine is.
  await using set = await openOrigins(limits, { ...limits, longMs: 3_600_000 })
  const take = (key: string, at = set.origins) => set.take(key, URL_ONE, at, laneOf(key))
  await take('drips 1')
  await take('drips 2')
  await set.join('honest', await busyOf(take('honest', set.other)))
  await until(async () => (await set.due()).includes('honest'))
  await take('honest')
  // The second visit began after the first one, so it is long a little later.
  await until(() => isGiven(take('drips 3')))
  await busyOf(take('newcomer'))
  t.pass('four visits at most, while two turns are shared')
})

t.test('where as many visits are long as may be, payers who have none there get turns', async (t) => {
  const limits = { concurrency: 2, spacingMs: 0, longMs: 50 }
  await using set = await openOrigins(limits, limits)
  const take = (key: string, lane: Lane) => set.take(key, URL_ONE, set.origins, lane)
  const countLong = () =>
    set.db.oneFirst(sql.type(z.object({ long: z.int() }))`select long from count_origin_visits(${ORIGIN}, 0.05)`)
  await take('drips 1', laneOf('slow'))
  await take('drips 2', laneOf('slow'))
  for (const key of ['drips 3', 'drips 4']) await until(() => isGiven(take(key, laneOf('slower'))))
  await until(async () => (await countLong()) === 4)
  await set.join('more', await busyOf(take('more', laneOf('slow'))))
  await set.join('look', await busyOf(take('look', laneOf('curious', true))))
  await set.join('honest', await busyOf(take('honest', laneOf('honest'))))
  t.same(
    (await set.due()).filter((key) => !key.startsWith('drips')),
    ['honest'],
  )
})

function buy(system: System, source_url: string, headers: Record<string, string> = { prefer: 'wait=25' }) {
  const body = { source_url, claim: 'The harbour was opened in 1874.' }
  return system.ask({ key: randomUUID(), body, headers, fetch: payingFetch() })
}

t.test('what a host asks for after a redirect is not charged to the host that redirected', async (t) => {
  await using system = await startSystem({
    pages: {
      '/go': { status: 302, headers: { location: `https://${OTHER_NAME}/busy` }, body: '' },
      '/busy': { status: 503, headers: { 'retry-after': '999999999' }, body: '' },
    },
  })
  const busy = await buy(system, system.site.url('/go'))
  t.equal(busy.status, 422)
  t.match(await busy.json(), {
    error: {
      code: 'source_rate_limited',
      retryable: true,
      message: new RegExp(
        `"${OTHER_NAME}" answered with status 503 .* 999999999 seconds, of which the service waits for 300`,
      ),
    },
  })
  t.equal((await buy(system, system.site.url('/harbour'))).status, 200, 'the redirecting host is read')
  t.equal((await buy(system, `https://${OTHER_NAME}/harbour`)).status, 422, 'the one that asked is not')
})

t.test('Retry-After within the payment is waited out, and the 202 says so', async (t) => {
  let answers = 0
  await using system = await startSystem({
    pages: {
      '/soon': () => (answers++ === 0 ? { status: 503, headers: { 'retry-after': '3' }, body: '' } : { body: PAGE }),
    },
  })
  const key = randomUUID()
  const body = { source_url: system.site.url('/soon'), claim: 'The harbour was opened in 1874.' }
  const ask = () => system.ask({ key, body, headers: { prefer: 'wait=1' }, fetch: payingFetch() })
  let first = await ask()
  let text = await first.text()
  // A machine under load fetches the page after the first wait.
  for (; first.status === 202 && /under way/.test(text); text = await first.text()) first = await ask()
  t.equal(first.status, 202)
  t.match(JSON.parse(text), { error: { message: /"site\.test" asked for a pause of 3 s/ } })
  t.match(first.headers.get('retry-after'), /^[1-3]$/)
  t.equal((await system.ask({ key, body, headers: { prefer: 'wait=25' } })).status, 200)
  t.equal(answers, 2)
})

t.test('forty requests on one slow origin cause no work while they wait, and go in order', async (t) => {
  await using front = await openApiHarness()
  await using work = await openWork(front.core, { slowMs: 60_000, originLimits: { concurrency: 1, spacingMs: 0 } })
  await using queue = openQueue(work)
  const slow = openSlowPage(PAGE)
  front.site.pages.set('/slow', slow.page)
  const claim = 'The harbour was opened in 1874.'
  const ask = (path: string) =>
    front.ask({ key: randomUUID(), body: { source_url: front.site.url(path), claim }, fetch: payingFetch() })
  await ask('/slow')
  const paths = Array.from({ length: 40 }, (_, n) => `/page-${n}`)
  for (const path of paths) front.site.pages.set(path, { body: PAGE })
  for (const path of paths) t.equal((await ask(path)).status, 202)
  // The slow page is fetched alone, after all requests have arrived: a fetch of a page that sends nothing for 15 seconds
  // fails.
  await front.tables.query(`
    update graphile_worker._private_jobs set run_at = now() + interval '1 hour'
    where id > (select min(id) from graphile_worker._private_jobs)`)
  const reading = queue.work()
  await slow.asked
  const waiting = async () => Number((await front.tables.query('select count(*) from origin_waits')).rows[0].count)
  // Each is tried once, in the order of arrival.
  await using second = openQueue(work)
  await second.pass()
  t.equal(await waiting(), 40)
  const { rows } = await front.tables.query(`
    select count(*)::int due from graphile_worker.jobs where run_at <= now() + interval '30 seconds' and locked_at is null`)
  t.equal(rows[0].due, 0, 'no job is due while the origin is busy')
  slow.serve()
  await reading
  await second.work()
  t.same(front.site.requests.slice(1), paths, 'in the order of arrival')
  t.equal(front.logged.filter(({ event }) => event === 'put_off').length, 40, 'each was put off once')
})

t.test('a page that fails in any other way fails alone: its neighbours are read at once', async (t) => {
  const failing: Record<string, Page> = {
    '/broken-off': { headers: { 'content-length': '900', connection: 'close' }, body: '<p>The harbour' },
    '/not-gzip': { headers: { 'content-encoding': 'gzip' }, body: '<p>plain' },
    '/not-utf-8': { body: Uint8Array.of(0xff, 0xfe, 0xff) },
    '/error': { status: 500, body: '' },
    '/gone': { status: 410, headers: { 'retry-after': '300' }, body: '' },
    '/not-found': { status: 404, headers: { 'retry-after': '300' }, body: '' },
    '/elsewhere': { status: 302, headers: { location: 'https://127.0.0.1/' }, body: '' },
  }
  await using front = await openApiHarness()
  await using work = await openWork(front.core)
  await using queue = openQueue(work)
  const buy = async (path: string) => {
    const body = { source_url: front.site.url(path), claim: 'The harbour was opened in 1874.' }
    const answer = await front.ask({ key: randomUUID(), body, fetch: payingFetch() })
    await queue.pass()
    return answer
  }
  for (const [path, page] of Object.entries(failing)) {
    front.site.pages.set(path, page)
    front.site.pages.set(`/beside${path}`, { body: PAGE })
    await buy(path)
    const beside = await outcomeOf(await buy(`/beside${path}`))
    t.equal(beside.status, 200, `beside ${path}`)
    const { rows } = await front.tables.query(
      `select origin from origins where blocked_until > now() and origin like 'https:%'`,
    )
    t.same(rows, [], `${path} closes no host`)
  }
  t.equal(front.site.requests.filter((path) => path in failing).length >= Object.keys(failing).length, true)
})
