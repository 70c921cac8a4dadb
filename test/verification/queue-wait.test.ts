// The answer to new buyers while the queue is too long: they are refused before they are asked to pay, with Retry-After.
// Requests that were accepted or quoted before are served.
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { buildQueueWait } from '../../server/verification/admission/queue-wait.ts'
import { buildAssessors } from '../../server/verification/offer/assessors.ts'
import { openWork } from '../../workers/context.ts'
import { openRunner } from '../../workers/runner.ts'
import { type ApiHarness, openApiHarness, outcomeOf, readResult } from '../api-harness.ts'
import { payingFetch } from '../system.ts'

const claim = 'The harbour was opened in 1874.'

async function openFront(t: Test, env: Record<string, string> = {}) {
  const front = await openApiHarness({ MAX_QUEUE_SECONDS: '20', ...env })
  t.teardown(() => front[Symbol.asyncDispose]())
  const { api } = front
  const fresh = { db: () => api.db, keepMs: 0 }
  // Readings are not reused, so that each call sees what the test has done.
  api.assessors = buildAssessors({ ...fresh, log: api.log, offered: 'literal' })
  const { maxQueueSeconds: maxSeconds, quoteTtlSeconds } = api.config
  const hasWorker = () => api.assessors.hasWorker()
  api.queueWait = buildQueueWait({ ...fresh, maxSeconds, quoteTtlSeconds, hasWorker })
  const order = (key: string = randomUUID(), fetch = payingFetch()) =>
    front.ask({ key, body: { source_url: front.site.url('/harbour'), claim }, fetch })
  return { front, order }
}

/** A worker that is alive and takes no jobs. */
const beat = ({ tables }: ApiHarness) =>
  tables.query(`insert into worker_beats (pool_id, methodology) values ('busy', 'text-1 literal-1')`)

const age = ({ tables }: ApiHarness, seconds: number, set = '') =>
  tables.query(
    `update graphile_worker._private_jobs set run_at = now() - $1 * interval '1 second' ${set} where key like 'verify:%'`,
    [seconds],
  )

t.test('a newcomer is refused while another has waited for too long', async (t) => {
  const { front, order } = await openFront(t)
  const key = randomUUID()
  const wallet = payingFetch()
  t.equal((await order(key, wallet)).status, 202)
  await age(front, 25)
  const quoted = randomUUID()
  t.equal((await order(quoted, fetch)).status, 402, 'without a worker alive nothing is refused')

  await beat(front)
  const refused = await order()
  t.equal(refused.status, 503)
  t.match(refused.headers.get('retry-after'), /^2[5-9]$|^3\d$/)
  t.match(await refused.json(), {
    error: {
      code: 'capacity_exceeded',
      message: /would wait for about 2\d s.*Nothing was charged/,
      retryable: true,
    },
  })
  t.equal((await order(key, wallet)).status, 202, 'what was accepted is answered')
  t.equal((await order(quoted)).status, 202, 'what was offered can be paid')

  await using work = await openWork(front.core)
  await using runner = await openRunner(work)
  runner.died.catch(() => {})
  await readResult(await outcomeOf(await order(key, wallet)))
  t.equal((await order()).status, 202, 'once it is done, others may come')
})

/** One of the requests that are quoted has ended, a moment ago. */
const end = ({ tables }: ApiHarness) =>
  tables.query(
    `update verification_requests set state = 'failed', changed_at = now(),
            error = '{"code":"http_error","message":"-","retryable":true}'
     where id = (select id from verification_requests where state = 'quoted' limit 1)`,
  )

t.test('a newcomer waits for all before it, and not only as long as the oldest has waited', async (t) => {
  const { front, order } = await openFront(t)
  for (let n = 0; n < 6; n++) t.equal((await order()).status, 202)
  for (let n = 0; n < 2; n++) t.equal((await order(randomUUID(), fetch)).status, 402)
  await end(front)
  await age(front, 5)
  await beat(front)
  const refused = await order()
  t.equal(refused.status, 503, 'one ended while the oldest of six waited for five seconds: six need 30')
  t.match(refused.headers.get('retry-after'), /^3\d$/)
  t.match(await refused.json(), { error: { message: /would wait for about 3\d s/ } })

  await end(front)
  t.equal((await order(randomUUID(), fetch)).status, 402, 'two ended: six need 15')
  t.equal((await order(randomUUID(), fetch)).status, 402, 'with one who is about to pay, 17.5')
  t.equal((await order(randomUUID(), fetch)).status, 503, 'with another, 20')
  await front.tables.query(
    `update verification_requests set quote_expires_at = quote_expires_at - interval '6 seconds'`,
  )
  for (let n = 0; n < 2; n++)
    t.equal((await order(randomUUID(), fetch)).status, 402, 'those who did not pay in time are not counted')
})

t.test('quotes weigh at most as much as what was paid', async (t) => {
  const { front, order } = await openFront(t)
  await order()
  for (let n = 0; n < 9; n++) await order(randomUUID(), fetch)
  await end(front)
  await age(front, 9)
  await beat(front)
  t.equal((await order(randomUUID(), fetch)).status, 402, 'one paid, eight quoted: 18 seconds, and not 81')
})

t.test('a pause of the workers does not make their work longer, and one that lasts does', async (t) => {
  const { front, order } = await openFront(t)
  let now = 0
  const wait = buildQueueWait({
    db: () => front.api.db,
    keepMs: 0,
    maxSeconds: 20,
    quoteTtlSeconds: front.api.config.quoteTtlSeconds,
    hasWorker: async () => true,
    now: () => now,
  })
  const forecast = async () => Math.floor(await wait.forecast())
  for (let n = 0; n < 6; n++) await order()
  for (let n = 0; n < 5; n++) await order(randomUUID(), fetch)
  for (let n = 0; n < 4; n++) await end(front)
  await age(front, 2)
  t.equal(await forecast(), 3, 'four in two seconds: six in three')
  await front.tables.query(
    `update verification_requests set changed_at = now() - interval '1 minute' where state = 'failed'`,
  )
  await end(front)
  await age(front, 9)
  now = 5000
  t.equal(await forecast(), 9, 'they are believed to go on as before')
  now = 20_000
  t.equal(await forecast(), 54, 'one in nine seconds')
})

t.test('a request that waits for a worker is asked about less often', async (t) => {
  const { front, order } = await openFront(t)
  await beat(front)
  const key = randomUUID()
  const wallet = payingFetch()
  t.equal((await order(key, wallet)).headers.get('retry-after'), '1')
  await age(front, 15)
  t.equal((await order(key, wallet)).headers.get('retry-after'), '5')
})

t.test('requests behind those of their own payer, later ones and those under way do not count', async (t) => {
  const { front, order } = await openFront(t)
  await beat(front)
  t.equal((await order()).status, 202)
  for (const [seconds, set] of [
    [25, ', priority = 1'],
    [-25, ', priority = 0'],
    [19, ''],
    [25, `, locked_at = now(), locked_by = 'busy'`],
  ] as const) {
    await age(front, seconds, set)
    t.equal((await order(randomUUID(), fetch)).status, 402, `${seconds}${set}`)
  }
})

t.test('0 is no limit', async (t) => {
  const { front, order } = await openFront(t, { MAX_QUEUE_SECONDS: '0' })
  await beat(front)
  t.equal((await order()).status, 202)
  await age(front, 1000)
  t.equal((await order()).status, 202)
})
