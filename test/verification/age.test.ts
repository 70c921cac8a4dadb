// A cached observation is at most as old as the caller accepts when the result is served.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { Assessor } from '../../workers/assessment/assessor.ts'
import { openWork } from '../../workers/context.ts'
import { openApiHarness, outcomeOf, readResult } from '../api-harness.ts'
import { openQueue } from '../queue.ts'
import { harbourClaim, PAGE, payingFetch } from '../system.ts'

/** A worker whose clock the test moves while the claim is assessed. */
async function openAccountHarness(whileAssessing: (assessments: number, office: { pass(ms: number): void }) => void) {
  await using opened = new AsyncDisposableStack()
  const front = opened.use(await openApiHarness())
  let offset = 0
  let assessments = 0
  const clock = {
    pass: (ms: number) => {
      offset += ms
    },
  }
  const assess: Assessor['assess'] = async () => {
    whileAssessing(++assessments, clock)
    return {
      claim_support: 'insufficient_evidence',
      assessment_scope: 'literal_quotation_only',
      explanation: 'Nothing was found.',
      evidence: [],
      risk_flags: [],
      procedure: 'of a test',
    }
  }
  const core = { ...front.core, now: () => Date.now() + offset }
  const work = opened.use(await openWork(core, { assessor: { procedure: 'of a test', assess } }))
  const queue = opened.use(openQueue(work))
  const closing = opened.move()
  return {
    front,
    clock,
    assessments: () => assessments,
    async buy(max_age_seconds: number) {
      const body = { ...harbourClaim(front.site), options: { max_age_seconds } }
      const answer = await front.ask({ key: randomUUID(), body, fetch: payingFetch() })
      await queue.drain()
      return readResult(await outcomeOf(answer))
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

t.test('an observation that becomes too old during the assessment is replaced before the settlement', async (t) => {
  await using office = await openAccountHarness((n, clock) => n === 2 && clock.pass(8000))
  await office.buy(60)
  const { cache, checked_at, served_at } = await office.buy(4)
  t.equal(cache.hit, false)
  t.equal(cache.age_seconds, 0)
  t.ok(Date.parse(served_at) - Date.parse(checked_at) < 60_000)
  t.equal(office.front.site.requests.length, 2)
  t.equal(office.assessments(), 2, 'the page reads the same, so its assessment is kept')
})

t.test('if the page has changed by then, it is assessed again', async (t) => {
  await using office = await openAccountHarness((n, clock) => {
    if (n !== 2) return
    clock.pass(8000)
    office.front.site.pages.set('/harbour', { body: PAGE.replace('1874', '1875') })
  })
  await office.buy(60)
  const { source, cache } = await office.buy(4)
  t.equal(cache.hit, false)
  t.match(source.normalized_text, /1875/)
  t.equal(office.assessments(), 3)
})

t.test('an observation that is young enough at the end is used, with its age at the end', async (t) => {
  await using office = await openAccountHarness((n, clock) => n === 2 && clock.pass(8000))
  await office.buy(60)
  const { cache } = await office.buy(60)
  t.equal(cache.hit, true)
  t.ok(cache.age_seconds >= 8 && cache.age_seconds < 60, `${cache.age_seconds} s`)
  t.equal(office.front.site.requests.length, 1)
})
