// A result is composed twice: before money moves, with stand-ins for payment and receipt, and after the settlement. A result
// that breaks the interface ends uncharged; if the settlement breaks it, that is a logged fault, and nothing is served.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { assessment } from '../../server/interface/assessment.ts'
import { observation } from '../../server/interface/observation.ts'
import { unsignedResult } from '../../server/interface/result.ts'
import { codePoints } from '../../server/interface/scalars.ts'
import { verifyRequest } from '../../server/verification/stages/stages.ts'
import { openWork, type Work } from '../../workers/context.ts'
import { type ApiHarness, openApiHarness, readResult } from '../api-harness.ts'
import { openLedger, openLedgerFacilitator } from '../ledger.ts'
import { payingFetch } from '../system.ts'

const VERDICT = {
  assessment_scope: 'literal_quotation_only' as const,
  claim_support: 'not_assessed' as const,
  evidence: [],
  explanation: 'Nothing was looked for.',
  risk_flags: [],
  procedure: 'of a test',
}

async function openShop(explanation = VERDICT.explanation) {
  await using opened = new AsyncDisposableStack()
  const front = opened.use(await openApiHarness())
  const ledger = opened.use(await openLedger(front.databaseUrl))
  const facilitator = opened.use(openLedgerFacilitator(ledger, () => undefined))
  const assessor = { procedure: VERDICT.procedure, assess: async () => ({ ...VERDICT, explanation }) }
  const work = opened.use(await openWork(front.core, { assessor }))
  const closing = opened.move()
  return { front, ledger, work: { ...work, facilitator }, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

/** Runs the job once, as the queue would. */
async function turn(front: ApiHarness, work: Work, attemptsLeft = 4) {
  const { rows } = await front.tables.query('select id from verification_requests')
  await verifyRequest({ request_id: rows[0].id }, work, { signal: new AbortController().signal, attemptsLeft })
}

async function storedState({ tables }: ApiHarness) {
  const { rows } = await tables.query(`select state, error ->> 'code' code, result from verification_requests`)
  return rows[0]
}

/** Works up to the step that prepares the settlement. */
async function assessOnly(front: ApiHarness, work: Work) {
  const stop = new Error('not yet')
  const prepare = async () => {
    throw stop
  }
  await turn(front, { ...work, facilitator: { ...work.facilitator, prepare } }).catch((error) => {
    if (error !== stop) throw error
  })
}

t.test('a result that breaks the interface is failed before money moves, and is not charged', async (t) => {
  await using shop = await openShop()
  const { front, ledger, work } = shop
  const key = randomUUID()
  t.equal((await front.ask({ key, fetch: payingFetch() })).status, 202)
  await assessOnly(front, work)
  t.match(await storedState(front), { state: 'assessed' })
  await front.tables.query(`
    update verification_requests
    set assessment = jsonb_set(assessment::jsonb, '{claim_support}', '"supports"')::json`)
  await turn(front, work)
  t.match(await storedState(front), { state: 'failed', code: 'execution_failed' })
  t.same(await ledger.charges(), [])
  const { rows } = await front.tables.query('select error from verification_requests')
  t.match(rows[0].error, { code: 'execution_failed', message: /Nothing was charged/, retryable: true })
  t.equal((await front.ask({ key })).status, 402, 'the same call may be paid again')
  t.match(
    front.logged.find(({ event }) => event === 'unservable_result'),
    { level: 'error', err: { message: /literal_quotation_only allows not_assessed and insufficient_evidence only/ } },
  )
})

t.test('an explanation of 800 characters of any kind is sold; one of 801 is not', async (t) => {
  for (const length of [800, 801]) {
    await using shop = await openShop('𝕏'.repeat(length))
    const { front, ledger, work } = shop
    const key = randomUUID()
    t.equal((await front.ask({ key, fetch: payingFetch() })).status, 202)
    await turn(front, work, 0).catch(() => {})
    if (length === 800) t.equal(codePoints((await readResult(await front.ask({ key }))).explanation), 800)
    else t.match(await storedState(front), { state: 'failed', code: 'execution_failed' })
    t.equal((await ledger.charges()).length, length === 800 ? 1 : 0)
  }
})

t.test('a settlement that breaks the interface is logged and never served', async (t) => {
  await using shop = await openShop()
  const { front, work } = shop
  const key = randomUUID()
  t.equal((await front.ask({ key, fetch: payingFetch() })).status, 202)
  const { facilitator } = work
  const settle: typeof facilitator.settle = async (...asked) => {
    const outcome = await facilitator.settle(...asked)
    return outcome.kind === 'paid'
      ? { ...outcome, payment: { ...outcome.payment, network_fee_usd: 'little' } }
      : outcome
  }
  await t.rejects(turn(front, { ...work, facilitator: { ...facilitator, settle } }), /payment.network_fee_usd/)
  t.match(await storedState(front), { state: 'settled', result: null })
  t.equal((await front.ask({ key })).status, 202)
  t.ok(front.logged.some(({ event }) => event === 'verification_error'))
})

t.test('the row of a completed request holds its settlement and every state, and no sealed payment', async (t) => {
  await using shop = await openShop()
  const { front, ledger, work } = shop
  t.equal((await front.ask({ key: randomUUID(), fetch: payingFetch() })).status, 202)
  await turn(front, work)
  const { rows } = await front.tables.query(`
    select state, settlement -> 'payment' ->> 'status' paid, payment_sealed, observation, assessment, attempt,
           jsonb_path_query_array(history, '$[*].state') states, result is not null "hasResult"
    from verification_requests`)
  const gone = { payment_sealed: null, observation: null, assessment: null, attempt: null }
  const states = ['accepted', 'observed', 'assessed', 'settling', 'settled', 'completed']
  t.match(rows[0], { state: 'completed', paid: 'settled', states, hasResult: true, ...gone })
  t.equal((await ledger.charges()).length, 1)
})

t.test('a worker does not start with an assessor whose procedure is too long for results', async (t) => {
  await using front = await openApiHarness()
  const named = (length: number) => ({ assessor: { procedure: 'x'.repeat(length), assess: async () => VERDICT } })
  await t.rejects(openWork(front.core, named(130)), /procedure/)
  await using work = await openWork(front.core, named(100))
  t.ok(unsignedResult.shape.methodology_version.safeParse(work.methodology).success)
})

t.test('the longest procedures of observation and assessment fit into one methodology', (t) => {
  const accepts = (shape: { safeParse(value: unknown): { success: boolean } }, length: number) =>
    shape.safeParse('x'.repeat(length)).success
  const longest = (shape: Parameters<typeof accepts>[0]) => {
    let length = 1
    while (accepts(shape, length + 1)) length++
    return length
  }
  const together = longest(observation.shape.procedure) + ' '.length + longest(assessment.shape.procedure)
  t.ok(accepts(unsignedResult.shape.methodology_version, together), `${together} characters`)
  t.end()
})
