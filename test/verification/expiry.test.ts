// Expiry and pruning: a caller gets the same answer before and after its data is deleted.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { AppError } from '../../server/errors.ts'
import { UNCHARGED_DAYS } from '../../server/payments/ledger.ts'
import { pruneRequests } from '../../server/verification/pruning.ts'
import { openWork } from '../../workers/context.ts'
import { type ApiHarness, openApiHarness } from '../api-harness.ts'
import { type Deed, openLedger, openLedgerFacilitator } from '../ledger.ts'
import { openQueue } from '../queue.ts'
import { payingFetch } from '../system.ts'

interface Options {
  script?: Deed[]
  /** Whether the assessment fails. */
  fails?: boolean
  /** Whether only the first assessment does. */
  heals?: boolean
  /** Whether a failed request may be paid for again. */
  retryable?: boolean
}

const VERDICT = {
  assessment_scope: 'literal_quotation_only' as const,
  claim_support: 'not_assessed' as const,
  evidence: [],
  explanation: 'Nothing was looked for.',
  risk_flags: [],
  procedure: 'fails',
}

async function openAccountHarness({ script = [], fails = false, heals = false, retryable = false }: Options) {
  await using opened = new AsyncDisposableStack()
  const front = opened.use(await openApiHarness())
  const ledger = opened.use(await openLedger(front.databaseUrl))
  const facilitator = opened.use(openLedgerFacilitator(ledger, () => script.shift()))
  let failing = fails
  const assess = async () => {
    if (!failing) return VERDICT
    failing = !heals
    throw new AppError('assessment_failed', 'No verdict.', { retryable })
  }
  const work = opened.use(await openWork(front.core, fails ? { assessor: { procedure: 'fails', assess } } : {}))
  const queue = opened.use(openQueue({ ...work, facilitator }))
  const closing = opened.move()
  return { front, queue, ledger, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

const DAY = 86_400

async function agePayments({ front }: { front: ApiHarness }, seconds: number) {
  await front.tables.query(
    `update verification_requests set changed_at = changed_at - $1 * interval '1 second',
            quote_expires_at = quote_expires_at - $1 * interval '1 second'`,
    [seconds],
  )
  await front.tables.query(
    `update payment_ledger set entered_at = entered_at - $1 * interval '1 second', valid_before = valid_before - $1`,
    [seconds],
  )
}

const cases = [
  {
    name: 'a quote for a second payment that was not made',
    script: ['is unpaid' as const],
    status: 410,
    code: 'quote_expired',
  },
  { name: 'a result past retention', status: 410, code: 'result_expired' },
  { name: 'a final failure past retention', fails: true, status: 422, code: 'assessment_failed' },
]

for (const { name, script, fails, status, code } of cases)
  t.test(`${name}: ${status} ${code}`, async (t) => {
    await using office = await openAccountHarness({ ...(script && { script: [...script] }), ...(fails && { fails }) })
    const { front, queue } = office
    const key = randomUUID()
    const first = await front.ask({ key, fetch: payingFetch() })
    t.equal(first.status, 202)
    await queue.drain()
    await front.tables.query(`
      update verification_requests
      set changed_at = changed_at - interval '25 hours', quote_expires_at = quote_expires_at - interval '25 hours'`)
    const answer = async () => {
      const response = await front.ask({ key, fetch: payingFetch() })
      const { error } = (await response.json()) as { error?: { code: string } }
      return { status: response.status, code: error?.code }
    }
    const recover = async () => {
      const authorization = `Bearer ${first.headers.get('x-service-recovery-token')}`
      return (await fetch(first.headers.get('location') ?? '', { headers: { authorization } })).status
    }
    t.same(await answer(), { status, code }, 'before')
    t.equal(await recover(), status)
    t.equal(await pruneRequests(front.core.db, DAY), 1)
    t.same(await answer(), { status, code }, 'after')
    t.equal(await recover(), status)
    const { rows } = await front.tables.query('select body, observation, result from verification_requests')
    t.same(rows, [{ body: null, observation: null, result: null }], 'page and result are deleted')
  })

for (const [name, options] of Object.entries({ unpaid: { script: ['is unpaid' as const] }, failed: { fails: true } }))
  t.test(`a payment that was ${name} leaves nothing after its time, and its key buys once`, async (t) => {
    await using office = await openAccountHarness({ ...options, heals: true })
    const { front, queue, ledger } = office
    const key = randomUUID()
    const first = await front.ask({ key, fetch: payingFetch() })
    await queue.drain()
    await agePayments(office, UNCHARGED_DAYS * DAY + 60)
    for (let run = 0; run < 2; run++) await pruneRequests(front.core.db, DAY)
    for (const table of ['verification_requests', 'payment_ledger'])
      t.same((await front.tables.query(`select 1 from ${table}`)).rows, [], table)
    const authorization = `Bearer ${first.headers.get('x-service-recovery-token')}`
    t.equal((await fetch(first.headers.get('location') ?? '', { headers: { authorization } })).status, 404)
    t.equal((await front.ask({ key })).status, 402, 'the key is free')
    t.equal((await front.ask({ key, fetch: payingFetch() })).status, 202)
    await queue.drain()
    t.equal((await front.ask({ key, fetch: payingFetch() })).status, 200)
    t.equal((await ledger.charges()).length, 1)
    await agePayments(office, 1000 * DAY)
    for (let run = 0; run < 2; run++) await pruneRequests(front.core.db, DAY)
    t.equal((await front.ask({ key, fetch: payingFetch() })).status, 410, 'what was charged answers for good')
    t.equal((await ledger.charges()).length, 1)
  })

t.test('a failure that is pruned while it is paid for anew is a new request', async (t) => {
  await using office = await openAccountHarness({ fails: true, retryable: true })
  const { front, queue } = office
  const key = randomUUID()
  await front.ask({ key, fetch: payingFetch() })
  await queue.drain()
  const { admissions } = front.api
  const { add } = admissions
  let pruned = 0
  admissions.add = async (item) => {
    if (item.payment && item.known) {
      await agePayments(office, UNCHARGED_DAYS * DAY + 60)
      pruned += await pruneRequests(front.core.db, DAY)
    }
    return add(item)
  }
  const again = await front.ask({ key, fetch: payingFetch() })
  t.equal(again.status, 202)
  t.equal(pruned, 3, 'its contents, its entry, itself')
  const { rows } = await front.tables.query('select state from verification_requests')
  t.same(rows, [{ state: 'accepted' }])
})
