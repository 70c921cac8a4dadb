// The door for clients that know only x402: terms for every call without a payment, and purchases that are named by their payment.
import { randomUUID } from 'node:crypto'
import { request as send } from 'node:http'
import { decodePaymentRequiredHeader } from '@x402/core/http'
import { parsePaymentRequired } from '@x402/core/schemas'
import t, { type Test } from 'tap'
import { z } from 'zod'
import { checkNonCompleted, checkResult, type Result } from '../interface.schema.ts'
import { holdPage } from '../site.ts'
import { harbourClaim, PAGE, signPayment, startSystem, termsOf, VERIFY } from '../system.ts'

const BUY = '/api/agent/v1/buy'
const system = await startSystem({ env: { RATE_LIMIT_PER_MINUTE: '0' } })
t.teardown(() => system[Symbol.asyncDispose]())

const JSON_TYPE = { 'content-type': 'application/json' }

function post(body?: unknown, headers: Record<string, string> = {}, path = BUY) {
  return fetch(system.url(path), {
    method: 'POST',
    headers: { ...(body !== undefined && JSON_TYPE), ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
}

/** The body of a purchase of a page of its own. */
function newOrder(page: Parameters<typeof system.site.pages.set>[1] = { body: PAGE }) {
  const path = `/${randomUUID()}`
  system.site.pages.set(path, page)
  return { path, body: { ...harbourClaim(system.site), source_url: system.site.url(path) } }
}

const signTerms = async () => signPayment(termsOf(await fetch(system.url(BUY))))

/** What was charged for purchases of this page. */
async function charges(path: string) {
  const rows = await system.sql(
    `select l.request_id from payment_ledger l join verification_requests r on r.id = l.request_id
     where l.outcome = 'settled' and r.body ->> 'source_url' = $1`,
    [system.site.url(path)],
  )
  return rows.length
}

async function expectTerms(t: Test, response: Response, about: string) {
  t.equal(response.status, 402, about)
  const header = response.headers.get('payment-required') ?? ''
  t.ok(header.length > 0 && header.length < 8192, `${about}: ${header.length} bytes`)
  const terms = decodePaymentRequiredHeader(header)
  t.ok(parsePaymentRequired(terms).success, about)
  t.equal(terms.resource.url, system.url(BUY), about)
  const body = await response.json()
  const { how_to_call, ...own } = body
  t.same(checkNonCompleted(own), [], about)
  t.equal(own.error.code, 'payment_required', about)
  t.same(own.payment_required, terms, about)
  t.match(how_to_call, { method: 'POST', url: system.url(BUY), body: { source_url: /^https/, claim: /./ } }, about)
  t.match(how_to_call.summary, /x402/)
  return { terms, body }
}

t.test('every call without a payment is answered 402 with the terms, and stores nothing', async (t) => {
  const [before] = await system.sql('select count(*)::int n from verification_requests')
  const { terms } = await expectTerms(t, await fetch(system.url(BUY)), 'GET')
  const own = termsOf(await system.ask({ key: randomUUID() }))
  t.same(terms.accepts, own.accepts, 'the terms of verify-source')
  const valid = harbourClaim(system.site)
  for (const [about, body, headers] of [
    ['nothing', undefined, {}],
    ['no body, JSON', undefined, JSON_TYPE],
    ['an empty object', {}, {}],
    ['a list', [], {}],
    ['null', 'null', {}],
    ['not JSON', '{', {}],
    ['not UTF-8 text', '\u0000', { 'content-type': 'text/plain' }],
    ['a form', 'a=b', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['no type that exists', 'x', { 'content-type': ';;;' }],
    ['a claim alone', { claim: 'x' }, {}],
    ['an unknown member', { ...valid, more: 1 }, {}],
    ['a page that is not public', { ...valid, source_url: 'https://127.0.0.1/' }, {}],
    ['a budget below the price', { ...valid, options: { max_price_usd: '0.01' } }, {}],
    ['a valid body', valid, {}],
    ['a key that is too short', valid, { 'idempotency-key': 'short' }],
  ] as const)
    await expectTerms(t, await post(body, headers), about)
  const head = await fetch(system.url(BUY), { method: 'HEAD' })
  t.equal(head.status, 402)
  t.ok(head.headers.get('payment-required'))
  const [after] = await system.sql('select count(*)::int n from verification_requests')
  t.equal(Number(after?.n) - Number(before?.n), 1, 'one row, of verify-source')
  const message = (await (await post({ claim: 'x' })).json()).error.message
  t.match(message, /source_url/, 'what is wrong with the body is said')
})

t.test('the extension for catalogues has input, output and an example of both', async (t) => {
  const { terms } = await expectTerms(t, await fetch(system.url(BUY)), 'GET')
  const { bazaar } = terms.extensions as Record<'bazaar', Record<'info' | 'schema', Record<string, never>>>
  const { info, schema } = bazaar
  t.match(info, {
    input: { type: 'http', method: 'POST', body: { claim: /./ } },
    output: { example: { claim_support: /./ } },
  })
  t.ok(z.fromJSONSchema(schema).safeParse(info).success, 'the examples are of the schemas')
  t.match(schema, { properties: { input: { properties: { body: { required: ['source_url', 'claim'] } } } } })
  t.match(schema, {
    properties: { output: { properties: { example: { properties: { claim_support: { enum: Array } } } } } },
  })
  t.ok((terms.resource.description?.length ?? 0) <= 500)
})

t.test('other methods, and bodies that are too large', async (t) => {
  for (const method of ['PUT', 'DELETE', 'PATCH'])
    t.equal((await fetch(system.url(BUY), { method })).status, 404, method)
  const large = { ...harbourClaim(system.site), claim: 'x'.repeat(70_000) }
  for (const headers of [{}, (await signTerms()).headers]) {
    const refused = await post(large, headers)
    t.equal(refused.status, 400)
    t.same(checkNonCompleted(await refused.json()), [])
  }
})

t.test('one signed payment is one purchase, however often it comes', async (t) => {
  const { body, path } = newOrder()
  const { headers } = await signTerms()
  const first = await post(body, headers)
  const bytes = await first.text()
  t.equal(first.status, 200, bytes)
  t.same(checkResult(JSON.parse(bytes) as Result), [])
  t.ok(first.headers.get('payment-response'))
  t.match(first.headers.get('x-service-recovery-token'), /^crt_/)
  const [again, reordered] = [
    await post(body, headers),
    await post(JSON.stringify({ options: {}, claim: body.claim, source_url: body.source_url }), headers),
  ]
  for (const answer of [again, reordered]) {
    t.equal(answer.status, 200)
    t.equal(answer.headers.get('x-service-idempotent-replay'), 'true')
    t.equal(await answer.text(), bytes)
  }
  const other = await post({ ...body, claim: 'It has three piers.' }, headers)
  t.equal(other.status, 409)
  t.match(await other.json(), { error: { code: 'payment_conflict' } })
  const keyed = await post(body, { ...headers, 'idempotency-key': randomUUID() })
  t.equal(keyed.status, 409, 'under a key it is another purchase')
  t.equal((await system.ask({ key: randomUUID(), body, headers })).status, 409, 'at the other door too')
  t.equal(await charges(path), 1)
})

t.test('the same payment many times at once', async (t) => {
  const held = holdPage({ body: PAGE })
  const { body, path } = newOrder(held.page)
  const { headers } = await signTerms()
  const answers = Array.from({ length: 8 }, () => post(body, headers))
  await held.reached
  const early = await post(body, { ...headers, prefer: 'wait=0' })
  t.equal(early.status, 202, 'pending, while the page is read')
  t.ok(early.headers.get('retry-after'))
  t.match(early.headers.get('location'), '/api/agent/v1/requests/')
  t.equal((await post({ ...body, claim: 'Another.' }, headers)).status, 409, 'bound: not for another body')
  held.release()
  const bodies = new Set<string>()
  for (const answer of await Promise.all(answers)) {
    t.equal(answer.status, 200)
    bodies.add(await answer.text())
  }
  t.equal(bodies.size, 1)
  t.equal(await charges(path), 1)
  t.equal(system.site.requests.filter((asked) => asked === path).length, 1)
})

t.test('a body that cannot succeed is refused before the payment is bound', async (t) => {
  const { headers } = await signTerms()
  const { body } = newOrder()
  for (const [status, wrong, more] of [
    [400, { claim: 'x' }, {}],
    [400, '{', {}],
    [400, [], {}],
    [415, 'a=b', { 'content-type': 'application/x-www-form-urlencoded' }],
    [422, { ...body, source_url: 'https://127.0.0.1/' }, {}],
    [422, { ...body, options: { max_price_usd: '0.01' } }, {}],
  ] as const) {
    const answer = await post(wrong, { ...headers, ...more })
    t.equal(answer.status, status)
    t.same(checkNonCompleted(await answer.json()), [])
  }
  t.equal((await post(undefined, headers)).status, 415)
  t.equal((await post(body, headers)).status, 200, 'the payment was still free')
})

t.test('a failed purchase: the same 422 for the same body, and the payment is free for another', async (t) => {
  const { body, path } = newOrder({ status: 404, body: 'gone' })
  const { headers } = await signTerms()
  const failed = await post(body, headers)
  t.equal(failed.status, 422)
  const said = await failed.text()
  t.match(JSON.parse(said), { error: { code: 'source_http_status', retryable: false, message: /Nothing was charged/ } })
  const again = await post(body, headers)
  t.equal(again.status, 422)
  t.equal(await again.text(), said)
  const other = newOrder()
  t.equal((await post(other.body, headers)).status, 200)
  t.equal(await charges(path), 0)
  t.equal(await charges(other.path), 1)
})

t.test('a payment that does not meet the terms is answered with them', async (t) => {
  const { body } = newOrder()
  const terms = termsOf(await fetch(system.url(BUY)))
  const low = await signPayment(terms, { authorization: { value: '1' } })
  for (const headers of [low.headers, { 'payment-signature': 'nonsense' }]) {
    const answer = await post(body, headers)
    t.equal(answer.status, 402)
    const refused = await answer.json()
    t.equal(refused.error.code, 'payment_invalid')
    t.ok(refused.how_to_call)
    t.equal(termsOf(answer).resource.url, system.url(BUY))
  }
})

t.test('with a key it is verify-source: one namespace, and the terms of either are good at the other', async (t) => {
  const key = randomUUID()
  const { body, path } = newOrder()
  const asked = await post(body, { 'idempotency-key': key })
  t.equal(asked.status, 402)
  const keyed = { 'idempotency-key': key }
  for (const door of [BUY, VERIFY])
    t.equal((await post({ ...body, claim: 'Another.' }, keyed, door)).status, 409, `${door}: known with another body`)
  const { headers } = await signPayment(termsOf(asked))
  const bought = await post(body, { ...keyed, ...headers, prefer: 'wait=25' }, VERIFY)
  t.equal(bought.status, 200)
  const bytes = await bought.text()
  for (const door of [BUY, VERIFY]) {
    const replay = await post(body, keyed, door)
    t.equal(replay.status, 200, `${door}: unpaid, and known`)
    t.equal(replay.headers.get('x-service-idempotent-replay'), 'true')
    t.equal(await replay.text(), bytes)
  }
  t.equal(await charges(path), 1)

  const other = newOrder()
  const theirs = await signPayment(termsOf(await system.ask({ key: randomUUID(), body: other.body })))
  t.equal((await post(other.body, theirs.headers)).status, 200, 'terms of verify-source, without a key')
})

t.test('the wait can be shortened, and a caller who leaves loses nothing', async (t) => {
  const held = holdPage({ body: PAGE })
  const { body, path } = newOrder(held.page)
  const { headers } = await signTerms()
  const leaving = send(system.url(BUY), { method: 'POST', headers: { ...JSON_TYPE, ...headers } })
  leaving.on('error', () => {})
  leaving.end(JSON.stringify(body))
  await held.reached
  leaving.destroy()
  const answer = post(body, headers)
  held.release()
  t.equal((await answer).status, 200)
  t.equal(await charges(path), 1)
})

t.test('switched off: no terms, and nothing is sold; results are still served', async (t) => {
  const { body } = newOrder()
  const { headers } = await signTerms()
  const bytes = await (await post(body, headers)).text()
  const twin = await system.openTwin({}, { VERIFICATION_ENABLED: 'false' })
  try {
    const at = new URL(BUY, twin.address)
    t.equal((await fetch(at)).status, 503)
    const replay = await fetch(at, {
      method: 'POST',
      headers: { ...JSON_TYPE, ...headers },
      body: JSON.stringify(body),
    })
    t.equal(replay.status, 200)
    t.equal(await replay.text(), bytes)
  } finally {
    await twin[Symbol.asyncDispose]()
  }
})
