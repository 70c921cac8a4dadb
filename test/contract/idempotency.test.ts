// The idempotency table of the contract, row by row. No row leads to a second charge.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { pruneRequests } from '../../server/verification/pruning.ts'
import { expectCompleted, expectNonCompleted } from '../interface.schema.ts'
import { pruneRequest } from '../prune.ts'
import { holdPage, type Page } from '../site.ts'
import {
  harbourClaim,
  openScriptedFacilitator,
  PAGE,
  payingFetch,
  signPayment,
  startSystem,
  termsOf,
} from '../system.ts'

const RETENTION_SECONDS = 86_400
const WAIT = { prefer: 'wait=20' }

const till = openScriptedFacilitator()
const system = await startSystem({ overrides: { facilitator: till } })
t.teardown(() => system[Symbol.asyncDispose]())
const harbour = harbourClaim(system.site)

/** Signs a payment for a key with a quote. */
async function quote(key: string, body: unknown = harbour) {
  const terms = termsOf(await system.ask({ key, body }))
  return { terms, ...(await signPayment(terms)) }
}

/** A purchase whose page is held. */
async function buyHeld(path: string, page: Page = { body: PAGE }) {
  const held = holdPage(page)
  system.site.pages.set(path, held.page)
  const body = { ...harbour, source_url: system.site.url(path) }
  const key = randomUUID()
  const payment = await quote(key, body)
  const accepted = await system.ask({ key, body, headers: payment.headers })
  await held.reached
  const id = ((await accepted.json()) as { request_id: string }).request_id
  return { ...payment, body, key, id, token: accepted.headers.get('x-service-recovery-token') ?? '', held }
}

async function buy(key: string, body: unknown = harbour) {
  const payment = await quote(key, body)
  const response = await system.ask({ key, body, headers: { ...payment.headers, ...WAIT } })
  return { ...payment, response, token: response.headers.get('x-service-recovery-token') ?? '' }
}

t.test('another body under the same key: 409, in every state', async (t) => {
  const other = { ...harbour, claim: 'The harbour was opened in 1875.' }
  const conflict = async (key: string, body: unknown, headers?: Record<string, string>) => {
    const { error } = await expectNonCompleted(t, await system.ask({ key, body, headers }), 409)
    t.equal(error.code, 'idempotency_conflict')
    t.equal(error.retryable, false)
  }
  const quoted = randomUUID()
  const { headers } = await quote(quoted)
  await conflict(quoted, other)
  await conflict(quoted, other, headers)
  await conflict(quoted, { ...harbour, options: { max_age_seconds: 0 } })
  await conflict(quoted, { ...harbour, source_url: `${harbour.source_url}#part` })
  await conflict(quoted, { ...harbour, claim: `${harbour.claim} ` })

  const pending = await buyHeld('/conflict')
  await conflict(pending.key, harbour)
  await conflict(pending.key, harbour, pending.headers)
  pending.held.release()
  await expectCompleted(t, await system.recover(pending.id, pending.token, WAIT))
  await conflict(pending.key, harbour)
  await conflict(pending.key, harbour, pending.headers)

  const failing = { ...harbour, source_url: system.site.url('/missing') }
  const failed = randomUUID()
  t.equal((await buy(failed, failing)).response.status, 422)
  await conflict(failed, harbour)
})

t.test('the same JSON in another notation is the same body', async (t) => {
  const key = randomUUID()
  const body = { ...harbour, options: { max_age_seconds: 60, max_price_usd: '0.03' } }
  const first = await expectNonCompleted(t, await system.ask({ key, body }), 402)
  const { max_age_seconds, max_price_usd } = body.options
  const spellings = [
    JSON.stringify({ claim: body.claim, options: { max_price_usd, max_age_seconds }, source_url: body.source_url }),
    JSON.stringify(body, null, '\t'),
    ` \r\n${JSON.stringify(body)}\n`,
    JSON.stringify(body).replace('"max_age_seconds":60', '"max_age_seconds":6.0e1'),
    JSON.stringify(body).replace('harbour was', '\\u0068arbour was').replaceAll('/', '\\/'),
  ]
  for (const spelling of spellings) {
    const again = await expectNonCompleted(t, await system.ask({ key, body: spelling }), 402, spelling)
    t.equal(again.request_id, first.request_id)
  }
})

t.test('empty options are no options', async (t) => {
  const key = randomUUID()
  const { response } = await buy(key)
  const { bytes } = await expectCompleted(t, response)
  for (const body of [
    { ...harbour, options: {} },
    { options: {}, ...harbour },
  ])
    t.equal((await expectCompleted(t, await system.ask({ key, body }))).bytes, bytes)
  const first = randomUUID()
  const quoted = await expectNonCompleted(t, await system.ask({ key: first, body: { ...harbour, options: {} } }), 402)
  t.equal((await expectNonCompleted(t, await system.ask({ key: first }), 402)).request_id, quoted.request_id)
  const { error } = await expectNonCompleted(
    t,
    await system.ask({ key: first, body: { ...harbour, options: { max_age_seconds: 60 } } }),
    409,
    'a written default is another body',
  )
  t.equal(error.code, 'idempotency_conflict')
})

t.test('completed: the original bytes, with the payment or without; another payment 409', async (t) => {
  const key = randomUUID()
  const { headers, terms, response } = await buy(key)
  const { bytes } = await expectCompleted(t, response)
  const before = till.settled.length
  for (const repeated of [undefined, headers, undefined]) {
    const replay = await system.ask({ key, headers: repeated })
    t.equal(replay.headers.get('x-service-idempotent-replay'), 'true')
    t.ok(replay.headers.get('payment-response'), 'every 200 of a POST carries the settlement')
    t.equal((await expectCompleted(t, replay)).bytes, bytes)
  }
  const stock = await system.ask({ key, fetch: payingFetch() })
  t.equal((await expectCompleted(t, stock)).bytes, bytes, 'a stock client gets it without paying')

  const other = await signPayment(terms)
  const { error } = await expectNonCompleted(t, await system.ask({ key, headers: other.headers }), 409)
  t.equal(error.code, 'payment_conflict')
  const sameWallet = await signPayment(terms, { wallet: other.wallet })
  t.equal((await system.ask({ key, headers: sameWallet.headers })).status, 409)
  t.not((await system.ask({ key, headers: { 'payment-signature': '%' } })).status, 402, 'a paid request gets no 402')
  t.equal(till.settled.length, before, 'nothing was settled again')

  // The refused payment is still free and pays for another request.
  const free = randomUUID()
  await quote(free)
  await expectCompleted(t, await system.ask({ key: free, headers: { ...other.headers, ...WAIT } }))
})

t.test('pending: 202 and never 402; another payment is not used, and the message says so', async (t) => {
  const pending = await buyHeld('/pending')
  const { key, body, headers, terms, id, token, held } = pending
  const before = till.settled.length
  for (const repeated of [undefined, headers, { 'payment-signature': 'garbage' }])
    await expectNonCompleted(t, await system.ask({ key, body, headers: repeated }), 202)
  const plain = await expectNonCompleted(t, await system.ask({ key, body, headers }), 202)

  const other = await signPayment(terms)
  const refused = await system.ask({ key, body, headers: other.headers })
  t.equal(refused.headers.get('x-service-recovery-token'), token)
  const { error } = await expectNonCompleted(t, refused, 202)
  t.not(error.message, plain.error.message)
  t.match(error.message, /payment/i)
  t.match(error.message, /\bnot\b.*\bused?\b|\bun?used\b|\bignored?\b/i, 'says that it is not used')

  const stock = await system.ask({ key, body, fetch: payingFetch() })
  await expectNonCompleted(t, stock, 202)

  held.release()
  const { result } = await expectCompleted(t, await system.recover(id, token, WAIT))
  t.equal(result.request_id, id)
  t.same(
    till.settled.slice(before).map((offer) => offer.bound.identity.payer),
    [pending.wallet.address.toLowerCase()],
    'the first payment is the one that is charged',
  )
  const free = randomUUID()
  await quote(free)
  await expectCompleted(t, await system.ask({ key: free, headers: { ...other.headers, ...WAIT } }))
})

t.test('a final failure: the same 422 again, on recovery too; its authorization is free', async (t) => {
  const before = till.settled.length
  const { key, body: failing, headers, terms, token, id, held } = await buyHeld('/gone', { status: 404, body: 'no' })
  held.release()
  const response = await system.recover(id, token, WAIT)
  const body = await response.clone().text()
  const failed = await expectNonCompleted(t, response, 422)
  t.match(failed.error.code, /^source_/)
  t.equal(failed.request_id, id)
  t.equal(till.settled.length, before, 'nothing is settled')

  system.site.pages.set('/gone', { body: PAGE })
  const other = await signPayment(terms)
  for (const repeated of [undefined, headers, other.headers, { 'payment-signature': 'garbage' }]) {
    const again = await system.ask({ key, body: failing, headers: repeated })
    t.equal(again.status, 422, 'the page exists now, but the answer is the same')
    t.equal(await again.text(), body)
  }
  t.equal(await (await system.recover(id, token)).text(), body)
  t.equal((await system.recover(id, `${token}x`)).status, 404)

  const anew = randomUUID()
  await quote(anew, failing)
  const reused = await system.ask({ key: anew, body: failing, headers: { ...headers, ...WAIT } })
  await expectCompleted(t, reused)
  t.equal(till.settled.length, before + 1)
})

t.test('one authorization under two keys while the first is live: 409', async (t) => {
  const pending = await buyHeld('/live')
  const second = randomUUID()
  await quote(second)
  const steal = () => system.ask({ key: second, headers: { ...pending.headers, ...WAIT } })
  const conflict = await expectNonCompleted(t, await steal(), 409)
  t.equal(conflict.error.code, 'payment_conflict')
  const recased = await signPayment(pending.terms, {
    wallet: pending.wallet,
    authorization: { nonce: `0x${pending.nonce.slice(2).toUpperCase()}` },
  })
  t.equal((await system.ask({ key: second, headers: recased.headers })).status, 409, 'its notation does not matter')

  pending.held.release()
  await expectCompleted(t, await system.recover(pending.id, pending.token, WAIT))
  t.equal((await steal()).status, 409, 'nor once it has paid')
  await expectNonCompleted(t, await system.ask({ key: second }), 402)
  const own = await quote(second)
  await expectCompleted(t, await system.ask({ key: second, headers: { ...own.headers, ...WAIT } }))
})

t.test(
  'a quote not paid in time: 410 for an hour, paid or not, before pruning and after; then its key is free',
  async (t) => {
    const key = randomUUID()
    const { headers } = await quote(key)
    const { request_id: id } = await expectNonCompleted(t, await system.ask({ key }), 402)
    await system.sql(`update verification_requests set quote_expires_at = now() - interval '1 second' where id = $1`, [
      id,
    ])
    const before = till.settled.length
    const expectGone = async (about: string) => {
      for (const given of [undefined, headers, payingHeaders]) {
        const { error } = await expectNonCompleted(t, await system.ask({ key, headers: given }), 410, about)
        t.equal(error.code, 'quote_expired')
        t.equal(error.retryable, false)
      }
      const other = { ...harbour, claim: 'Another claim.' }
      await expectNonCompleted(t, await system.ask({ key, body: other }), 410, `${about}, another body`)
    }
    const payingHeaders = { ...headers, ...WAIT }
    await expectGone('expired')
    await pruneRequest(system, id)
    t.same(await system.sql('select state from verification_requests where id = $1', [id]), [{ state: 'expired' }])
    await expectGone('pruned')
    t.equal(till.settled.length, before)
    await system.sql(
      `update verification_requests set quote_expires_at = now() - interval '3590 seconds' where id = $1`,
      [id],
    )
    await pruneRequests(system.service.api.db, RETENTION_SECONDS)
    await expectGone('almost an hour after its expiry')
    await system.sql(
      `update verification_requests set quote_expires_at = now() - interval '3601 seconds' where id = $1`,
      [id],
    )
    await pruneRequest(system, id, 'deleted')
    const other = { ...harbour, claim: 'It has three piers.' }
    const anew = await expectNonCompleted(t, await system.ask({ key, body: other }), 402, 'the key is free')
    t.not(anew.request_id, id)

    const fresh = randomUUID()
    await quote(fresh)
    await expectCompleted(t, await system.ask({ key: fresh, headers: payingHeaders }))
  },
)

t.test('a result past retention: 410, before pruning and after; the tombstone stays', async (t) => {
  const key = randomUUID()
  const { response, headers, token } = await buy(key)
  const { result } = await expectCompleted(t, response)
  const id = result.request_id
  await system.sql(
    `update verification_requests set changed_at = now() - ${RETENTION_SECONDS + 1} * interval '1 second' where id = $1`,
    [id],
  )
  // Another process, which has not cached the result.
  await using twin = await system.openTwin()
  const { headers: otherPayment } = await quote(randomUUID())
  const otherBody = { ...harbour, claim: 'It has three piers.' }
  const calls = [{}, { headers }, { headers: otherPayment }, { body: otherBody }, { body: otherBody, headers }]
  const expectGone = async (about: string) => {
    for (const call of calls) {
      const { error } = await expectNonCompleted(t, await system.ask({ key, ...call, at: twin }), 410, about)
      t.equal(error.code, 'result_expired', JSON.stringify(Object.keys(call)))
    }
    const recovered = await system.recover(id, token, {}, twin)
    const { error } = await expectNonCompleted(t, recovered, 410, `${about}, recovery`)
    t.equal(error.code, 'result_expired')
    t.equal((await system.recover(id, `${token}x`, {}, twin)).status, 404)
  }
  await expectGone('expired')
  await pruneRequest(system, id)
  t.same(
    await system.sql('select state, body, result, observation, assessment from verification_requests where id = $1', [
      id,
    ]),
    [{ state: 'expired', body: null, result: null, observation: null, assessment: null }],
    'the data of the purchase is deleted',
  )
  await expectGone('pruned')
})

t.test('retention counts from completion, and a result within it is not pruned', async (t) => {
  const key = randomUUID()
  const { response } = await buy(key)
  const { result, bytes } = await expectCompleted(t, response)
  await system.sql(
    `update verification_requests
     set created_at = now() - interval '3 days', quote_expires_at = now() - interval '2 days',
         changed_at = now() - ${RETENTION_SECONDS - 60} * interval '1 second' where id = $1`,
    [result.request_id],
  )
  await pruneRequests(system.service.api.db, RETENTION_SECONDS)
  t.equal((await expectCompleted(t, await system.ask({ key }))).bytes, bytes)
})
