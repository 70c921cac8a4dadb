// verify-claims: several claims on one page, by the states, statuses, keys and charges of verify-source.
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { Countersign } from '../../client/client.ts'
import { verifyResult } from '../../client/verification.ts'
import { claimsResult } from '../../server/interface/claims.ts'
import { checkNonCompleted } from '../interface.schema.ts'
import { holdPage } from '../site.ts'
import { PAGE, payingFetch, signPayment, startSystem, termsOf, VERIFY } from '../system.ts'

const CLAIMS = '/api/agent/v1/verify-claims'
const BUY = '/api/agent/v1/buy'
const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())

function post(path: string, body: unknown, headers: Record<string, string> = {}, send: typeof fetch = fetch) {
  return send(system.url(path), {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

/** The body of a purchase of a page of its own. */
function newOrder(
  claims: unknown[] = ['The harbour was opened in 1874.', 'Fishing ended in 1962.'],
  page: Parameters<typeof system.site.pages.set>[1] = { body: PAGE },
) {
  const path = `/${randomUUID()}`
  system.site.pages.set(path, page)
  return { path, key: randomUUID(), body: { source_url: system.site.url(path), claims } }
}

const many = (count: number) => Array.from({ length: count }, (_, n) => `The harbour of Kelby has ${n} piers.`)

async function ledgerOf(path: string) {
  return system.sql(
    `select l.outcome, l.amount_atomic::text amount from payment_ledger l
     join verification_requests r on r.id = l.request_id where r.body ->> 'source_url' = $1`,
    [system.site.url(path)],
  )
}

async function bought(t: Test, { key, body }: Pick<ReturnType<typeof newOrder>, 'key' | 'body'>, path = CLAIMS) {
  const answer = await post(path, body, { 'idempotency-key': key, prefer: 'wait=25' }, payingFetch())
  const text = await answer.text()
  t.equal(answer.status, 200, text)
  return { answer, bytes: text, result: claimsResult.parse(JSON.parse(text)) }
}

t.test('one page, one payment, one receipt, one result for all claims', async (t) => {
  const { path, key, body } = newOrder([...many(9), 'Fishing ended in 1962.'])
  const challenge = await post(CLAIMS, body, { 'idempotency-key': key })
  t.equal(challenge.status, 402)
  const terms = termsOf(challenge)
  t.match(terms, { resource: { url: system.url(CLAIMS) }, accepts: [{ amount: '120000' }] })
  t.match(await challenge.json(), { quote: { amount_atomic: '120000', price_usd: '0.12' } })
  const [before] = await system.sql('select count(*)::int n from receipts')

  const { answer, bytes, result } = await bought(t, { key, body })
  t.match(result, {
    verification_type: 'source_claims',
    confidence: null,
    payment: { amount_atomic: '120000', price_usd: '0.12' },
    receipt: { envelope: { type: 'service.source-verification.purchase' } },
  })
  t.same(
    result.claims.map(({ claim }) => claim),
    body.claims,
    'in the order of the body',
  )
  const { keys } = (await (await fetch(system.url('/v1/keys'))).json()) as { keys: never[] }
  const proved = verifyResult(JSON.parse(bytes), { keys })
  t.ok(proved.ok, `${proved.checks.filter(({ ok }) => !ok).map(({ name, detail }) => `${name} ${detail}`)}`)
  const forged = structuredClone(JSON.parse(bytes))
  forged.claims[9].evidence[0].evidence_id = 'e1'
  forged.claims[0].claim_support = 'supports'
  t.match(
    verifyResult(forged, { keys }).checks.filter(({ ok }) => !ok),
    [{ name: 'result_sha256' }, { name: 'evidence_quotes', detail: /e1/ }, { name: /scope/, detail: /claim 1/ }, {}],
    'each rule holds for each claim',
  )
  for (const member of ['claim', 'claim_support', 'assessment_scope', 'explanation', 'evidence', 'risk_flags'])
    t.notOk(member in result, member)
  t.match(result.claims[9]?.evidence[0]?.quote, /Fishing ended in 1962/)
  const ids = result.claims.flatMap(({ evidence }) => evidence.map(({ evidence_id }) => evidence_id))
  t.same(
    ids,
    ids.map((_, n) => `e${n + 1}`),
    'numbered through',
  )
  t.same(
    system.site.requests.filter((asked) => asked === path),
    [path],
    'one fetch',
  )
  t.same(await ledgerOf(path), [{ outcome: 'settled', amount: '120000' }], 'one settlement')
  const [after] = await system.sql('select count(*)::int n from receipts')
  t.equal(Number(after?.n) - Number(before?.n), 1, 'one receipt')

  const token = answer.headers.get('x-service-recovery-token') ?? ''
  t.ok(answer.headers.get('payment-response'))
  const replay = await post(CLAIMS, body, { 'idempotency-key': key })
  t.equal(replay.headers.get('x-service-idempotent-replay'), 'true')
  t.equal(await replay.text(), bytes, 'the original bytes')
  const recovered = await system.recover(result.request_id, token)
  t.equal(await recovered.text(), bytes)
})

t.test('the price follows the number of claims', async (t) => {
  for (const [count, amount] of [
    [1, '30000'],
    [2, '40000'],
    [10, '120000'],
  ] as const) {
    const { key, body } = newOrder(many(count))
    for (const path of [CLAIMS, BUY])
      t.equal(
        termsOf(await post(path, body, { 'idempotency-key': key })).accepts[0]?.amount,
        amount,
        `${count} ${path}`,
      )
  }
  const { key, body } = newOrder(many(3))
  const refused = await post(CLAIMS, { ...body, options: { max_price_usd: '0.049' } }, { 'idempotency-key': key })
  t.equal(refused.status, 422)
  t.match(await refused.json(), { error: { code: 'budget_exceeded', message: /0\.05 USD/ } })
})

t.test('a payment of another price is refused before it is bound, and stays free', async (t) => {
  const two = newOrder()
  const { headers } = await signPayment(termsOf(await post(CLAIMS, two.body, { 'idempotency-key': two.key })))
  const three = newOrder(many(3))
  for (const path of [CLAIMS, BUY]) {
    const refused = await post(path, three.body, { 'idempotency-key': three.key, ...headers })
    t.equal(refused.status, 402, path)
    t.match(await refused.json(), { error: { code: 'payment_invalid' } })
    t.equal(termsOf(refused).accepts[0]?.amount, '50000')
  }
  const single = await post(
    VERIFY,
    { source_url: two.body.source_url, claim: 'Fishing ended in 1962.' },
    { 'idempotency-key': randomUUID(), ...headers },
  )
  t.equal(single.status, 402, 'verify-source wants its own price')
  const [claimed] = await system.sql(`select count(*)::int n from payment_claims`)
  const paid = await post(CLAIMS, two.body, { 'idempotency-key': two.key, prefer: 'wait=25', ...headers })
  t.equal(paid.status, 200, 'the payment is good for what it was made for')
  const [after] = await system.sql(`select count(*)::int n from payment_claims`)
  t.equal(Number(after?.n), Number(claimed?.n) + 1, 'bound once')
  t.equal((await ledgerOf(three.path)).length, 0)
})

t.test('a wrong body', async (t) => {
  const { body } = newOrder()
  const claims = body.claims
  for (const [about, wrong] of [
    ['no claim', { ...body, claims: [] }],
    ['eleven claims', { ...body, claims: many(11) }],
    ['two alike', { ...body, claims: [claims[0], claims[1], claims[0]] }],
    ['an empty claim', { ...body, claims: ['x', ' '] }],
    ['a claim that is too long', { ...body, claims: ['x'.repeat(2001)] }],
    ['not a list', { ...body, claims: 'x' }],
    ['one claim as in verify-source', { source_url: body.source_url, claim: 'x' }],
    ['both', { ...body, claim: 'x' }],
    ['an empty context', { ...body, context: ' ' }],
    ['a context that is too long', { ...body, context: 'x'.repeat(1001) }],
    ['not well-formed', { ...body, claims: ['\ud800'] }],
    ['an unknown member', { ...body, more: 1 }],
  ] as const) {
    const refused = await post(CLAIMS, wrong, { 'idempotency-key': randomUUID() })
    t.equal(refused.status, 400, about)
    t.same(checkNonCompleted(await refused.json()), [], about)
  }
  const claim = (n: number) => `${n}${'🜛'.repeat(1999)}`
  const large = { ...body, claims: Array.from({ length: 10 }, (_, n) => claim(n)), context: '🜛'.repeat(1000) }
  t.equal((await post(CLAIMS, large, { 'idempotency-key': randomUUID() })).status, 402, 'the largest body')
  t.equal((await post(CLAIMS, ' '.repeat(262_145), { 'idempotency-key': randomUUID() })).status, 400, 'over 256 KiB')
  t.equal((await fetch(system.url(CLAIMS))).status, 404, 'another method')
  const type = await post(CLAIMS, body, { 'idempotency-key': randomUUID(), 'content-type': 'text/plain' })
  t.equal(type.status, 415)
})

t.test('one key is one purchase, whichever operation it is used for', async (t) => {
  const order = newOrder(['Fishing ended in 1962.'])
  const source = { source_url: order.body.source_url, claim: 'Fishing ended in 1962.' }
  const { bytes } = await bought(t, order)
  const other = await post(VERIFY, source, { 'idempotency-key': order.key })
  t.equal(other.status, 409)
  t.match(await other.json(), { error: { code: 'idempotency_conflict' } })
  const first = randomUUID()
  t.equal((await post(VERIFY, source, { 'idempotency-key': first })).status, 402)
  t.equal((await post(CLAIMS, order.body, { 'idempotency-key': first })).status, 409, 'and the other way round')
  const buy = await post(BUY, order.body, { 'idempotency-key': order.key })
  t.equal(await buy.text(), bytes, 'the door for stock clients replays it')
  const { headers } = await signPayment(termsOf(await post(CLAIMS, order.body, { 'idempotency-key': randomUUID() })))
  const again = await post(CLAIMS, order.body, { 'idempotency-key': order.key, ...headers })
  t.equal(again.status, 409, 'another payment')
  t.match(await again.json(), { error: { code: 'payment_conflict' } })
})

t.test('/buy takes claims without a key, named by the payment', async (t) => {
  const order = newOrder()
  const challenge = await post(BUY, order.body)
  t.equal(challenge.status, 402)
  t.match(await challenge.json(), { how_to_call: { body: { claims: Array } } })
  const { headers } = await signPayment(termsOf(challenge))
  const first = await post(BUY, order.body, headers)
  t.equal(first.status, 200)
  const bytes = await first.text()
  t.equal(claimsResult.parse(JSON.parse(bytes)).claims.length, 2)
  t.equal(await (await post(BUY, order.body, headers)).text(), bytes)
  t.same(await ledgerOf(order.path), [{ outcome: 'settled', amount: '40000' }])
})

t.test('202 while the work goes on, 422 without a charge', async (t) => {
  const held = holdPage({ body: PAGE })
  const order = newOrder(undefined, held.page)
  const pending = await post(CLAIMS, order.body, { 'idempotency-key': order.key }, payingFetch())
  t.equal(pending.status, 202)
  const location = pending.headers.get('location') ?? ''
  const bearer = { authorization: `Bearer ${pending.headers.get('x-service-recovery-token')}` }
  t.equal((await fetch(location, { headers: bearer })).status, 202)
  held.release()
  const done = await fetch(location, { headers: { ...bearer, prefer: 'wait=25' } })
  t.equal(done.status, 200)
  t.equal(claimsResult.parse(await done.json()).claims.length, 2)

  const lost = newOrder(undefined, { status: 404, body: 'no' })
  const failed = await post(CLAIMS, lost.body, { 'idempotency-key': lost.key, prefer: 'wait=25' }, payingFetch())
  t.equal(failed.status, 422)
  t.match(await failed.json(), { error: { code: 'source_http_status', message: /Nothing was charged/ } })
  t.match(await ledgerOf(lost.path), [{ outcome: 'failed' }])
})

t.test('one cached observation serves both operations', async (t) => {
  const order = newOrder()
  const options = { max_age_seconds: 300 }
  await bought(t, { key: order.key, body: { ...order.body, options } as never })
  const source = { source_url: order.body.source_url, claim: 'Fishing ended in 1962.', options }
  const single = await post(VERIFY, source, { 'idempotency-key': randomUUID(), prefer: 'wait=25' }, payingFetch())
  t.match(await single.json(), { verification_type: 'source', cache: { hit: true } })
  t.same(
    system.site.requests.filter((asked) => asked === order.path),
    [order.path],
  )
})

t.test('a claim is read with its context, and the answer says how', async (t) => {
  const context = 'The harbour of Kelby was built by the county.'
  const order = newOrder(['It was opened in 1874.', 'The ferry to Orsay sails on Mondays.'])
  const { result } = await bought(t, { key: order.key, body: { ...order.body, context } as never })
  t.equal(result.context, context)
  t.equal(result.claims[0]?.claim, 'It was opened in 1874.', 'the claim is kept')
  t.equal(result.claims[0]?.claim_as_read, 'The harbour of Kelby was opened in 1874.')
  t.notOk('claim_as_read' in (result.claims[1] ?? {}), 'only where it differs')
})

t.test('the client buys claims, once for each key, and recovers them', async (t) => {
  const { key, body, path } = newOrder()
  const input = { source_url: body.source_url, claims: ['Fishing ended in 1962.', 'There is a lighthouse.'] }
  const client = new Countersign({ baseUrl: system.url('/'), fetch: payingFetch() })
  const first = await client.verifyClaims(input, { idempotencyKey: key })
  t.same(
    first.result.claims.map(({ claim }) => claim),
    input.claims,
  )
  const second = await client.verifyClaims(input, { idempotencyKey: key })
  t.equal(second.replay, true)
  t.same(second.bytes, first.bytes)
  const recovered = await client.recover(first.requestId, first.recoveryToken ?? '')
  t.same(recovered.bytes, first.bytes)
  t.same(await ledgerOf(path), [{ outcome: 'settled', amount: '40000' }])
})

// The last test, because the operators of json in others refuse a body with U+0000.
t.test('claims of any characters can be bought and come back unchanged', async (t) => {
  const claims = ['opened\u0000in 1874', 'a\uffff\u0001\u001b', '\u2028"\\/<script>']
  const { result } = await bought(t, newOrder(claims))
  t.same(
    result.claims.map(({ claim }) => claim),
    claims,
  )
})
