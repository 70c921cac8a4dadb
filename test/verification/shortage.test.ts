// A page for which no thread becomes free is no page that cannot be read: the request waits, and is never charged for a failure.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { ThreadError, type ThreadErrorCode, type Threads } from '../../server/threads/pool.ts'
import { openWork } from '../../workers/context.ts'
import { openApiHarness, outcomeOf, readResult } from '../api-harness.ts'
import { look } from '../looks/looking.ts'
import { openQueue } from '../queue.ts'
import { register } from '../quotes/harness.ts'
import { sharedThreads } from '../shared-threads.ts'
import { harbourClaim, payingFetch } from '../system.ts'
import { until } from '../until.ts'

/** A worker whose pool answers the first tasks with these codes. */
async function openBusyOffice(codes: ThreadErrorCode[]) {
  await using opened = new AsyncDisposableStack()
  const front = opened.use(await openApiHarness())
  const threads: Threads = {
    run: (...task) => {
      const code = codes.shift()
      return code ? Promise.reject(new ThreadError(code)) : sharedThreads().run(...task)
    },
    queueSize: 0,
    threadCount: 1,
    [Symbol.asyncDispose]: async () => {},
  }
  const work = opened.use(await openWork({ ...front.core, threads }))
  const queue = opened.use(openQueue(work))
  const closing = opened.move()
  return {
    front,
    queue,
    sql: async (text: string, values: unknown[] = []) => (await front.tables.query(text, values)).rows,
    buy: () => front.ask({ key: randomUUID(), body: harbourClaim(front.site), fetch: payingFetch() }),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

t.test('a purchase waits for a thread without spending its attempts', async (t) => {
  // More often than a job has attempts.
  await using office = await openBusyOffice(Array.from({ length: 9 }, (_, n) => (n % 2 ? 'waited' : 'busy')))
  const answer = await office.buy()
  await office.queue.drain()
  t.equal((await readResult(await outcomeOf(answer))).status, 'completed')
})

t.test('a purchase whose payment runs out meanwhile fails as capacity, retryable and uncharged', async (t) => {
  await using office = await openBusyOffice(['waited'])
  const answer = await office.buy()
  await office.sql(`update verification_requests set payment = jsonb_set(payment::jsonb, '{valid_before}', to_jsonb(
    extract(epoch from now())::bigint + 62))::json where state = 'accepted'`)
  await office.queue.drain()
  const failed = await outcomeOf(answer)
  t.equal(failed.status, 503)
  t.match(await failed.json(), {
    error: { code: 'capacity_exceeded', retryable: true, message: /Nothing was charged/ },
  })
  t.same(await office.sql('select * from payers where max_in_flight < 8'), [], 'the limit of its payer stays')
})

t.test('a quote check that finds no thread does not count', async (t) => {
  await using office = await openBusyOffice(['waited', 'waited'])
  const { url, site } = office.front
  const reader = await register({ url, site, sql: office.sql })
  const { body } = await reader.check('/harbour', ['no such words'])
  await office.queue.pass()
  t.match(await reader.call('GET', `/v1/quote-check/${body.check_id}`), { status: 202 })
  await office.sql(`update quote_checks set created_at = now() - interval '10 minutes'`)
  await office.queue.drain()
  const { status, body: failed } = await reader.call('GET', `/v1/quote-check/${body.check_id}`)
  t.match({ status, error: failed.error }, { status: 503, error: { code: 'capacity_exceeded', retryable: true } })
  t.equal((await reader.used()).pages, 0)
})

t.test(
  'a free look waits for a thread without spending its attempts, and in the end says that there was none',
  async (t) => {
    const codes: ThreadErrorCode[] = Array.from({ length: 9 }, (_, n) => (n % 2 ? 'waited' : 'busy'))
    await using office = await openBusyOffice(codes)
    /** A call that waits for its look, once that is stored. */
    const begin = async (claim: string) => {
      const asked = look(office.front, { ...harbourClaim(office.front.site), claim })
      await until(async () => (await office.sql(`select from looks where body ->> 'claim' = $1`, [claim])).length === 1)
      return { asked }
    }
    const first = await begin('The harbour was opened in 1874.')
    await office.queue.drain()
    t.equal((await first.asked).status, 200)
    t.equal(codes.length, 0)

    codes.push('waited')
    await office.sql('delete from observations')
    const second = await begin('It has three piers.')
    await office.sql(`update looks set changed_at = changed_at - interval '10 minutes'`)
    await office.queue.drain()
    t.match(await second.asked, { status: 503, body: { error: { code: 'capacity_exceeded', retryable: true } } })
  },
)

for (const [shortage, page] of [
  ['to read the page', 'delete from observations'],
  ['to search it', `update observations set checked_at = now()`],
] as const)
  t.test(`a citation watch that finds no thread ${shortage} is put off, and nothing is said of its page`, async (t) => {
    const codes: ThreadErrorCode[] = []
    await using office = await openBusyOffice(codes)
    const { url, site } = office.front
    const answer = await office.buy()
    const recovery_token = answer.headers.get('x-service-recovery-token') ?? ''
    await office.queue.drain()
    const { request_id } = await readResult(await outcomeOf(answer))
    const { call } = await register({ url, site, sql: office.sql })
    const watch = '/v1/citation-watch/harbour'
    const named = { request_id, recovery_token, evidence_id: 'e1', webhook_url: site.url('/hook') }
    t.equal((await call('PUT', watch, named)).status, 201)
    await office.sql(page)

    codes.push('waited')
    await office.sql('update citation_watches set check_at = now()')
    await call('POST', `${watch}/check`)
    await office.queue.pass()
    t.equal(codes.length, 0, 'it asked for a thread')
    t.match((await call('GET', watch)).body, { state: 'present', last_check: null })
    t.same(await office.sql(`select check_at > now() + interval '1 minute' later, failures from citation_watches`), [
      { later: true, failures: 0 },
    ])
    t.same(await office.sql(`select attempts from graphile_worker._private_jobs where key like 'citation:%'`), [])

    await office.sql('update citation_watches set check_at = now()')
    await call('POST', `${watch}/check`)
    await office.queue.drain()
    t.match((await call('GET', watch)).body, { state: 'present', last_check: { outcome: 'present' } })
  })
