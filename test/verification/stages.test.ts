// A job of a verification that cannot continue: the request is handed back, failed, or left to the queue.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { AppError, UnavailableError } from '../../server/errors.ts'
import type { JobAttempt } from '../../server/verification/stages/stage-tools.ts'
import { verifyRequest } from '../../server/verification/stages/stages.ts'
import type { Assessor } from '../../workers/assessment/assessor.ts'
import { openWork, type Work } from '../../workers/context.ts'
import { type ApiHarness, openApiHarness, openSlowPage, readResult } from '../api-harness.ts'
import { openQueue } from '../queue.ts'
import { PAGE, payingFetch } from '../system.ts'

async function openAccountHarness(assess?: Assessor['assess']) {
  await using opened = new AsyncDisposableStack()
  const front = opened.use(await openApiHarness())
  const work = opened.use(await openWork(front.core, assess && { assessor: { procedure: 'of a test', assess } }))
  const queue = opened.use(openQueue(work))
  const closing = opened.move()
  return { front, work, queue, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

/** Runs the job once, as the queue would. */
async function turn(front: ApiHarness, work: Work, options: Partial<JobAttempt> = {}) {
  const { rows } = await front.tables.query('select id from verification_requests')
  const signal = new AbortController().signal
  await verifyRequest({ request_id: rows[0].id }, work, { signal, attemptsLeft: 4, ...options })
}

async function storedState({ tables }: ApiHarness) {
  const { rows } = await tables.query(`
    select state, error ->> 'code' code, j.attempts, j.run_at <= now() due
    from verification_requests r left join graphile_worker.jobs j on j.key = 'verify:' || r.id`)
  return rows[0]
}

/** Marks the job as held by a worker. */
function lockJob({ tables }: ApiHarness) {
  return tables.query(`update graphile_worker._private_jobs set attempts = 1, locked_at = now(), locked_by = 'us'`)
}

t.test('a worker that is stopped while it reads hands the request back: no attempt is spent', async (t) => {
  await using office = await openAccountHarness()
  const { front, work, queue } = office
  const slow = openSlowPage(PAGE)
  front.site.pages.set('/harbour', slow.page)
  const key = randomUUID()
  await front.ask({ key, fetch: payingFetch() })
  await lockJob(front)
  const stop = new AbortController()
  const turned = turn(front, work, { signal: stop.signal })
  await slow.asked
  stop.abort()
  await turned
  t.same(await storedState(front), { state: 'accepted', code: null, attempts: 0, due: true })
  slow.serve()
  await queue.drain()
  await readResult(await front.ask({ key }))
})

t.test('a worker that is stopped while it assesses keeps the observation', async (t) => {
  const stop = new AbortController()
  await using office = await openAccountHarness(async ({ signal }) => {
    stop.abort()
    signal?.throwIfAborted()
    throw new Error('not reached')
  })
  const { front, work } = office
  await front.ask({ key: randomUUID(), fetch: payingFetch() })
  await lockJob(front)
  await turn(front, work, { signal: stop.signal })
  t.same(await storedState(front), { state: 'observed', code: null, attempts: 0, due: true })
})

t.test('a worker that is stopped while the facilitator does not answer hands the settlement back', async (t) => {
  await using office = await openAccountHarness()
  const { front, work, queue } = office
  const { settle } = work.facilitator
  const asked = Promise.withResolvers<void>()
  work.facilitator.settle = () => {
    asked.resolve()
    return new Promise(() => {})
  }
  const key = randomUUID()
  await front.ask({ key, fetch: payingFetch() })
  await lockJob(front)
  const stop = new AbortController()
  const turned = turn(front, work, { signal: stop.signal })
  await asked.promise
  stop.abort()
  await turned
  t.same(await storedState(front), { state: 'settling', code: null, attempts: 0, due: true })
  work.facilitator.settle = settle
  await queue.drain()
  await readResult(await front.ask({ key }))
})

t.test('an AppError fails the request at once', async (t) => {
  await using office = await openAccountHarness(async () => {
    throw new AppError('assessment_failed', 'No verdict.')
  })
  const { front, work } = office
  await front.ask({ key: randomUUID(), fetch: payingFetch() })
  await turn(front, work)
  t.match(await storedState(front), { state: 'failed', code: 'assessment_failed' })
})

t.test('any other error is left to the queue, and fails the request uncharged at the last attempt', async (t) => {
  await using office = await openAccountHarness(async () => {
    throw new Error('a fault')
  })
  const { front, work } = office
  const key = randomUUID()
  await front.ask({ key, fetch: payingFetch() })
  await t.rejects(turn(front, work), { message: 'a fault' })
  t.match(await storedState(front), { state: 'observed', code: null })
  await turn(front, work, { attemptsLeft: 0 })
  t.match(await storedState(front), { state: 'failed', code: 'execution_failed' })
  const answer = await front.ask({ key })
  t.equal(answer.status, 402, 'the same call may be paid again')
  t.notMatch(await answer.text(), /a fault/, 'the error is not shown to callers')
})

t.test('a database that is away fails no request, not even at the last attempt', async (t) => {
  const away = [
    new UnavailableError('provider_unavailable', 'The database does not answer.'),
    new UnavailableError('provider_unavailable', 'The database does not answer.'),
  ]
  await using office = await openAccountHarness(async () => {
    throw away.shift() ?? new AppError('assessment_failed', 'No verdict.')
  })
  const { front, work, queue } = office
  await front.ask({ key: randomUUID(), fetch: payingFetch() })
  await t.rejects(turn(front, work, { attemptsLeft: 0 }), UnavailableError)
  t.match(await storedState(front), { state: 'observed', code: null })
  await queue.pass()
  t.same(away, [], 'the job of the queue was interrupted')
  t.match(await storedState(front), { state: 'failed', code: 'assessment_failed' }, 'and ran again in the same pass')
})

t.test('a request that is deleted, not paid or completed is not worked on', async (t) => {
  await using office = await openAccountHarness()
  const { front, work, queue } = office
  const signal = new AbortController().signal
  await verifyRequest({ request_id: randomUUID() }, work, { signal, attemptsLeft: 4 })
  await front.ask({ key: randomUUID() })
  await turn(front, work)
  t.match(await storedState(front), { state: 'quoted' })
  await front.tables.query('delete from verification_requests')
  await front.ask({ key: randomUUID(), fetch: payingFetch() })
  await queue.drain()
  await turn(front, work)
  t.match(await storedState(front), { state: 'completed' })
  const { rows } = await front.tables.query('select count(*)::int from receipts')
  t.equal(rows[0].count, 1)
})
