// The whole flow: an agent buys one verification with a stock x402 client.
import { randomUUID } from 'node:crypto'
import { decodePaymentRequiredHeader, decodePaymentResponseHeader } from '@x402/core/http'
import t from 'tap'
import { verifyResult } from '../client/verification.ts'
import { completedResult } from '../server/interface/result.ts'
import { payingFetch, startSystem } from './system.ts'

t.test('402, payment, 202, recovery, 200, replay: the same bytes each time', async (t) => {
  await using system = await startSystem()
  const key = randomUUID()

  const challenge = await system.ask({ key })
  t.equal(challenge.status, 402)
  const terms = decodePaymentRequiredHeader(challenge.headers.get('payment-required') ?? '')
  t.match(terms.accepts, [{ scheme: 'exact', network: 'eip155:84532', amount: '30000' }])
  const unpaid = (await challenge.json()) as { status: string; request_id: string; payment_required: unknown }
  t.equal(unpaid.status, 'payment_required')
  t.same(unpaid.payment_required, JSON.parse(JSON.stringify(terms)))

  const paying = payingFetch()
  const accepted = await system.ask({ key, fetch: paying })
  t.equal(accepted.status, 202, await accepted.clone().text())
  t.equal(accepted.headers.get('payment-response'), null)
  t.match(accepted.headers.get('retry-after'), /^\d+$/)
  const token = accepted.headers.get('x-service-recovery-token') ?? ''
  const location = accepted.headers.get('location') ?? ''
  t.equal(((await accepted.json()) as { request_id: string }).request_id, unpaid.request_id)
  t.equal(location, system.url(`/api/agent/v1/requests/${unpaid.request_id}`))

  const recovered = await fetch(location, { headers: { authorization: `Bearer ${token}`, prefer: 'wait=20' } })
  t.equal(recovered.status, 200)
  t.equal(recovered.headers.get('preference-applied'), 'wait=20')
  const bytes = await recovered.text()

  const replay = await system.ask({ key })
  t.equal(replay.status, 200)
  t.equal(replay.headers.get('x-service-idempotent-replay'), 'true')
  t.equal(replay.headers.get('x-service-recovery-token'), token)
  const settled = decodePaymentResponseHeader(replay.headers.get('payment-response') ?? '')
  t.match(settled, { success: true, network: 'eip155:84532' })
  t.equal(await replay.text(), bytes)

  const result = completedResult.parse(JSON.parse(bytes))
  t.equal(result.claim_support, 'not_assessed')
  t.match(result.evidence[0]?.quote, /opened in 1874/)
  t.match(result.payment, { mode: 'offline', simulated: true, network: 'none', provider: 'offline' })
  const { keys } = (await (await fetch(system.url('/v1/keys'))).json()) as {
    keys: { key_id: number; pubkey_hex: string }[]
  }
  const verified = verifyResult(JSON.parse(bytes), { keys })
  t.same(
    verified.checks.filter((check) => !check.ok),
    [],
  )
  t.equal(verified.ok, true)
  t.same(system.site.requests, ['/harbour'], 'fetched once')
})
