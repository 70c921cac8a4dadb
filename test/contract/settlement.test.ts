// Settlements without a charge: after `unpaid` a new payment is asked for and the work is kept; after `unknown` none is.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { SettlementOutcome } from '../../server/payments/x402.ts'
import { expectCompleted, expectNonCompleted } from '../interface.schema.ts'
import { pruneRequest } from '../prune.ts'
import { holdPage } from '../site.ts'
import {
  harbourClaim,
  openScriptedFacilitator,
  PAGE,
  payingFetch,
  signPayment,
  startSystem,
  termsOf,
} from '../system.ts'

const WAIT = { prefer: 'wait=20' }
const unpaid = (): SettlementOutcome => ({ kind: 'unpaid', reason: 'insufficient_funds' })
const unknown = (): SettlementOutcome => ({ kind: 'unknown', reason: 'no answer', retryAfterSeconds: 1 })

const till = openScriptedFacilitator()
const system = await startSystem({ overrides: { facilitator: till } })
t.teardown(() => system[Symbol.asyncDispose]())

/** A quoted and signed purchase of a page of its own. */
async function prepare(path: string, outcomes: typeof till.outcomes) {
  till.settled.length = 0
  till.outcomes.push(...outcomes)
  const held = holdPage({ body: PAGE })
  system.site.pages.set(path, held.page)
  const key = randomUUID()
  // No cached observation, so that every fetch is counted.
  const options = { max_age_seconds: 0 }
  const body = { ...harbourClaim(system.site), source_url: system.site.url(path), options }
  const terms = termsOf(await system.ask({ key, body }))
  return { key, body, terms, held, payment: await signPayment(terms), fetched: () => fetched(path) }
}

const fetched = (path: string) => system.site.requests.filter((asked) => asked === path).length
const nonces = () => [...new Set(till.settled.map((offer) => offer.bound.identity.nonce))]
const receipts = async () => (await system.sql('select count(*)::int n from receipts'))[0]?.n

t.test(
  'provably unpaid: 402 with fresh terms on both routes, and a second payment completes the kept work',
  async (t) => {
    const { key, body, held, payment, fetched } = await prepare('/unpaid', [unpaid])
    const accepted = await system.ask({ key, body, headers: payment.headers })
    const token = accepted.headers.get('x-service-recovery-token') ?? ''
    const { request_id: id = '' } = await expectNonCompleted(t, accepted, 202)
    held.release()

    const answers = [
      await system.recover(id, token, WAIT),
      await system.recover(id, token),
      await system.ask({ key, body }),
    ]
    for (const response of answers) {
      const terms = termsOf(response)
      t.equal(terms.accepts[0]?.amount, '30000')
      const { error, request_id, payment_required } = await expectNonCompleted(t, response, 402)
      t.equal(error.code, 'settlement_failed')
      t.equal(error.retryable, true)
      t.equal(request_id, id)
      t.same(payment_required, terms)
    }
    t.equal(await receipts(), 0)

    const paid = await system.ask({ key, body, fetch: payingFetch(), headers: WAIT })
    const { result, bytes } = await expectCompleted(t, paid)
    t.equal(result.request_id, id)
    t.equal(nonces().length, 2)
    t.equal(till.settled.length, 2)
    t.equal(fetched(), 1, 'the page was not fetched again')
    t.equal((await expectCompleted(t, await system.recover(id, token))).bytes, bytes)
    t.equal(await receipts(), 1)
  },
)

t.test('provably unpaid and then not paid in time: 410', async (t) => {
  const { key, body, held, payment, terms } = await prepare('/late', [unpaid])
  held.release()
  const refused = await system.ask({ key, body, headers: { ...payment.headers, ...WAIT } })
  const { request_id: id } = await expectNonCompleted(t, refused, 402)
  await system.sql(`update verification_requests set quote_expires_at = now() - interval '1 second' where id = $1`, [
    id,
  ])
  const late = await signPayment(terms)
  const expectGone = async (about: string) => {
    for (const headers of [undefined, late.headers]) {
      const { error } = await expectNonCompleted(t, await system.ask({ key, body, headers }), 410, about)
      t.equal(error.code, 'quote_expired', about)
    }
  }
  await expectGone('expired')
  await pruneRequest(system, id)
  await expectGone('pruned')
  t.equal(till.settled.length, 1)
})

t.test('an authorization that provably did not pay is free', async (t) => {
  const { key, body, held, payment } = await prepare('/let-go', [unpaid])
  held.release()
  const headers = { ...payment.headers, ...WAIT }
  await expectNonCompleted(t, await system.ask({ key, body, headers }), 402)
  const other = randomUUID()
  await system.ask({ key: other, body })
  await expectCompleted(t, await system.ask({ key: other, body, headers }))
})

t.test('unknown: 202 settlement_unknown and never 402, then completed by the same payment', async (t) => {
  const asked = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<SettlementOutcome>()
  const gate = () => {
    asked.resolve()
    return answer.promise
  }
  const { key, body, held, payment, terms, fetched } = await prepare('/unknown', [unknown, gate])
  const accepted = await system.ask({ key, body, headers: payment.headers })
  const token = accepted.headers.get('x-service-recovery-token') ?? ''
  const { request_id: id = '', error: working } = await expectNonCompleted(t, accepted, 202)
  t.notMatch(working.code, /settlement/, 'no settlement before the page was read')
  held.release()
  const early = await Promise.race([asked.promise, system.recover(id, token, { prefer: 'wait=25' })])
  t.equal(early?.status, undefined, 'the only continuation is to settle the same payment again')

  const other = await signPayment(terms)
  const answers = [
    await system.ask({ key, body }),
    await system.ask({ key, body, headers: payment.headers }),
    await system.ask({ key, body, headers: other.headers }),
    await system.ask({ key, body, headers: { 'payment-signature': 'garbage' } }),
    await system.ask({ key, body, fetch: payingFetch() }),
    await system.recover(id, token),
  ]
  for (const response of answers) {
    t.match(response.headers.get('retry-after'), /^[1-9][0-9]*$/)
    const { error } = await expectNonCompleted(t, response, 202)
    t.match(error.code, /settlement/)
    t.equal(error.retryable, true)
  }

  answer.resolve(unknown())
  const { result } = await expectCompleted(t, await system.recover(id, token, { prefer: 'wait=25' }))
  t.equal(result.request_id, id)
  t.equal(till.settled.length, 3)
  t.same(nonces(), [payment.nonce], 'one payment, settled again')
  t.equal(fetched(), 1)
})

t.test('a settlement that throws may have been charged: the same payment is tried again', async (t) => {
  const asked = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<undefined>()
  const broken = () => Promise.reject(new Error('socket hang up'))
  const gate = () => {
    asked.resolve()
    return answer.promise
  }
  const { key, body, held, payment } = await prepare('/throws', [broken, gate])
  held.release()
  const accepted = await system.ask({ key, body, headers: payment.headers })
  const token = accepted.headers.get('x-service-recovery-token') ?? ''
  const { request_id: id = '' } = await expectNonCompleted(t, accepted, 202)
  const early = await Promise.race([asked.promise, system.recover(id, token, { prefer: 'wait=25' })])
  t.equal(early?.status, undefined, 'the only continuation is to settle the same payment again')
  await expectNonCompleted(t, await system.ask({ key, body }), 202)
  answer.resolve(undefined)
  await expectCompleted(t, await system.recover(id, token, { prefer: 'wait=25' }))
  t.same(nonces(), [payment.nonce])
})
