// The status, headers and body of each answer of the three verification routes.
import { randomUUID } from 'node:crypto'
import { decodePaymentResponseHeader } from '@x402/core/http'
import t from 'tap'
import { checkCapabilities, expectCompleted, expectNonCompleted } from '../interface.schema.ts'
import { holdPage } from '../site.ts'
import { PAGE, payingFetch, signPayment, startSystem, termsOf, VERIFY } from '../system.ts'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())

t.test('402: the same terms in header and body', async (t) => {
  const response = await system.ask({ key: randomUUID() })
  const terms = termsOf(response)
  t.equal(response.headers.has('x-service-idempotent-replay'), false)
  const body = await expectNonCompleted(t, response, 402)
  t.equal(body.error.code, 'payment_required')
  t.ok(body.request_id)
  t.same(body.payment_required, terms)
  t.equal(terms.x402Version, 2)
  t.equal(terms.resource.url, system.url(VERIFY))
  t.ok(terms.accepts.length >= 1)
  for (const accepts of terms.accepts) {
    t.match(accepts, { scheme: 'exact', network: 'eip155:84532', amount: '30000' })
    t.equal(accepts.asset.toLowerCase(), '0x036cbd53842c5426634e7929541ec2318f3dcf7e', 'USDC on Base Sepolia')
    t.match(accepts.payTo, /^0x[0-9a-fA-F]{40}$/)
    t.ok(Number.isInteger(accepts.maxTimeoutSeconds) && accepts.maxTimeoutSeconds > 0)
    t.same(accepts.extra, { name: 'USDC', version: '2' })
  }
})

t.test('a second 402 for a key names the same request', async (t) => {
  const key = randomUUID()
  const first = await expectNonCompleted(t, await system.ask({ key }), 402)
  const second = await expectNonCompleted(t, await system.ask({ key }), 402)
  const other = await expectNonCompleted(t, await system.ask({ key: randomUUID() }), 402)
  t.equal(second.request_id, first.request_id)
  t.not(other.request_id, first.request_id)
})

t.test('202, then 200 by the same call, and by recovery: one result', async (t) => {
  const held = holdPage({ body: PAGE })
  system.site.pages.set('/held', held.page)
  const body = { source_url: system.site.url('/held'), claim: 'The harbour was opened in 1874.' }
  const key = randomUUID()
  const challenge = await system.ask({ key, body })
  const { headers } = await signPayment(termsOf(challenge))
  const { request_id: id = '' } = await expectNonCompleted(t, challenge, 402)

  const accepted = await system.ask({ key, body, headers })
  const pending = await expectNonCompleted(t, accepted, 202)
  const token = accepted.headers.get('x-service-recovery-token') ?? ''
  t.equal(pending.request_id, id)
  t.equal(pending.error.retryable, true)
  t.match(accepted.headers.get('retry-after'), /^[1-9][0-9]*$/)
  t.equal(accepted.headers.get('location'), system.url(`/api/agent/v1/requests/${id}`))
  t.ok(token.length >= 32, 'a recovery token cannot be guessed')
  t.equal(accepted.headers.has('x-service-idempotent-replay'), false)
  t.equal(accepted.headers.has('preference-applied'), false, 'the call had no preference')

  await held.reached
  const again = await system.ask({ key, body, headers })
  t.equal(again.headers.get('x-service-recovery-token'), token)
  t.match(again.headers.get('retry-after'), /^[1-9][0-9]*$/)
  t.equal((await expectNonCompleted(t, again, 202)).request_id, id)
  const recovering = await system.recover(id, token)
  t.match(recovering.headers.get('retry-after'), /^[1-9][0-9]*$/)
  t.equal((await expectNonCompleted(t, recovering, 202)).request_id, id)

  held.release()
  const recovered = await system.recover(id, token, { prefer: 'wait=20' })
  const { result, bytes } = await expectCompleted(t, recovered)
  t.equal(result.request_id, id)
  t.equal(result.claim, body.claim)
  t.equal(result.source.requested_url, body.source_url)

  const replayed = await system.ask({ key, body, headers })
  t.equal((await expectCompleted(t, replayed)).bytes, bytes)
  t.equal(replayed.headers.get('x-service-idempotent-replay'), 'true')
  t.equal(replayed.headers.get('x-service-recovery-token'), token)
  t.match(decodePaymentResponseHeader(replayed.headers.get('payment-response') ?? ''), {
    success: true,
    network: 'eip155:84532',
  })
})

t.test('200 of the buying POST: settlement and token, not a replay', async (t) => {
  const key = randomUUID()
  const response = await system.ask({ key, fetch: payingFetch(), headers: { prefer: 'wait=20' } })
  const { bytes, result } = await expectCompleted(t, response)
  t.equal(response.headers.get('preference-applied'), 'wait=20')
  t.equal(response.headers.has('x-service-idempotent-replay'), false)
  t.equal(decodePaymentResponseHeader(response.headers.get('payment-response') ?? '').success, true)
  const token = response.headers.get('x-service-recovery-token') ?? ''
  t.ok(token)
  t.equal((await expectCompleted(t, await system.recover(result.request_id, token))).bytes, bytes)
})

t.test('the result contains the observation', async (t) => {
  const body = 'The pier is 80 metres long.\nIt was built by hand.\n'
  system.site.pages.set('/end', { type: 'text/plain', body })
  system.site.pages.set('/hop', { status: 307, headers: { location: '/end' }, body: '' })
  system.site.pages.set('/start', { status: 301, headers: { location: '/hop' }, body: 'moved' })
  const response = await system.ask({
    key: randomUUID(),
    body: { source_url: system.site.url('/start'), claim: 'The pier is 80 metres long.' },
    fetch: payingFetch(),
    headers: { prefer: 'wait=20' },
  })
  const { result } = await expectCompleted(t, response)
  t.match(result.source, {
    requested_url: system.site.url('/start'),
    final_url: system.site.url('/end'),
    redirects: [
      { url: system.site.url('/start'), status: 301 },
      { url: system.site.url('/hop'), status: 307 },
    ],
    content_type: 'text/plain',
    wire_bytes: Buffer.byteLength(body),
    decoded_bytes: Buffer.byteLength(body),
  })
  t.match(result.source_identity, { hostname: 'site.test', tls_verified: true })
  t.equal((result.limits as { fixture?: boolean }).fixture, true)
  t.match(result.payment, {
    mode: 'offline',
    simulated: true,
    network: 'none',
    provider: 'offline',
    amount_atomic: '30000',
    price_usd: '0.03',
  })
})

t.test('a second purchase of a page within max_age_seconds uses the earlier observation', async (t) => {
  system.site.pages.set('/cached', { body: PAGE })
  const buy = async (max_age_seconds: number) => {
    const body = {
      source_url: system.site.url('/cached'),
      claim: 'It has three piers.',
      options: { max_age_seconds },
    }
    const headers = { prefer: 'wait=20' }
    const response = await system.ask({ key: randomUUID(), body, fetch: payingFetch(), headers })
    return (await expectCompleted(t, response)).result
  }
  const fetched = () => system.site.requests.filter((path) => path === '/cached').length
  t.equal((await buy(300)).cache.hit, false)
  const hit = await buy(300)
  t.equal(hit.cache.hit, true)
  t.equal(fetched(), 1)
  t.equal((await buy(0)).cache.hit, false, 'max_age_seconds 0 never uses the cache')
  t.equal(fetched(), 2)
})

t.test('capabilities', async (t) => {
  const response = await fetch(system.url('/api/agent/v1/capabilities'))
  t.equal(response.status, 200)
  t.match(response.headers.get('content-type'), /^application\/json/)
  const capabilities = (await response.json()) as Record<string, unknown>
  t.same(checkCapabilities(capabilities), [])
  t.equal(capabilities.endpoint, system.url(VERIFY))
  t.equal(capabilities.payment_mode, 'offline', 'the actual mode')
  t.same(capabilities.networks, ['eip155:84532'])
})
