// A page for which no thread becomes free is no page that cannot be read: the request waits, and is never charged for a failure.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { ThreadError, type ThreadErrorCode, type Threads } from '../../server/threads/pool.ts'
import { openWork } from '../../workers/context.ts'
import { openApiHarness, outcomeOf, readResult } from '../api-harness.ts'
import { openQueue } from '../queue.ts'
import { register } from '../quotes/harness.ts'
import { sharedThreads } from '../shared-threads.ts'
import { harbourClaim, payingFetch } from '../system.ts'

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
