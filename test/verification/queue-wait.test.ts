// The answer to new buyers while the queue is too long: refused before they are asked to pay, and told when to come again. What was
// accepted or offered before is served.
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { buildAssessors } from '../../server/verification/assessors.ts'
import { buildQueueWait } from '../../server/verification/queue-wait.ts'
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
  const { maxQueueSeconds: maxSeconds } = api.config
  api.queueWait = buildQueueWait({ ...fresh, maxSeconds, hasWorker: () => api.assessors.hasWorker() })
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
      message: /would wait for 2\d s or longer.*Nothing was charged/,
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
