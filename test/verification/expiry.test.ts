// Expiry and pruning: a caller gets the same answer before and after its data is deleted.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { AppError } from '../../server/errors.ts'
import { pruneRequests } from '../../server/verification/pruning.ts'
import { openWork } from '../../workers/context.ts'
import { openFront } from '../front.ts'
import { type Deed, openLedger, openLedgerFacilitator } from '../ledger.ts'
import { openQueue } from '../queue.ts'
import { payingFetch } from '../system.ts'

interface Options {
  script?: Deed[]
  /** Whether the assessment fails. */
  fails?: boolean
}

async function openOffice({ script = [], fails = false }: Options) {
  await using opened = new AsyncDisposableStack()
  const front = opened.use(await openFront())
  const ledger = opened.use(await openLedger(front.databaseUrl))
  const facilitator = opened.use(openLedgerFacilitator(ledger, () => script.shift()))
  const assess = async () => {
    throw new AppError('assessment_failed', 'No verdict.', { retryable: false })
  }
  const work = opened.use(await openWork(front.core, fails ? { assessor: { procedure: 'fails', assess } } : {}))
  const queue = opened.use(openQueue({ ...work, facilitator }))
  const closing = opened.move()
  return { front, queue, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

const DAY = 86_400

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
    await using office = await openOffice({ ...(script && { script: [...script] }), ...(fails && { fails }) })
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
