// The extensions of a 402, for catalogues and for clients that name their payments, and its CORS headers for browsers.
import { randomUUID } from 'node:crypto'
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from '@x402/core/http'
import type { PaymentPayload, PaymentRequired } from '@x402/core/types'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { extractDiscoveryInfo, validateDiscoveryExtension } from '@x402/extensions/bazaar'
import { appendPaymentIdentifierToExtensions } from '@x402/extensions/payment-identifier'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import t from 'tap'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { readConfig } from '../../server/config.ts'
import { paymentRequired } from '../../server/payments/x402.ts'
import { describeOffer } from '../../server/verification/offer/offer.ts'
import { harbourClaim, startSystem, VERIFY } from '../system.ts'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())

const MODEL = { ANTHROPIC_API_KEY: 'k' }

function offered(url: string, env: Record<string, string>) {
  const { summary, assessment } = describeOffer(readConfig(env))
  return { url, description: summary, assessment }
}

async function askForTerms(key: string = randomUUID()) {
  const response = await system.ask({ key })
  const header = response.headers.get('payment-required') ?? ''
  return { header, terms: decodePaymentRequiredHeader(header), body: await response.json() }
}

/** A payment signed by a stock client, with these extensions. */
async function pay(
  terms: PaymentRequired,
  changes: { wallet?: `0x${string}`; extensions?: Record<string, unknown> } = {},
) {
  const wallet = privateKeyToAccount(changes.wallet ?? generatePrivateKey())
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(wallet))
  const payload = await client.createPaymentPayload(terms)
  const sent = { ...payload, ...(changes.extensions && { extensions: changes.extensions }) }
  return { payload, headers: { 'payment-signature': encodePaymentSignatureHeader(sent), prefer: 'wait=20' } }
}

t.test('the header is small for all terms', async (t) => {
  const { header, terms } = await askForTerms()
  t.ok(header.length < 4000, `${header.length} bytes`)
  const [first] = terms.accepts
  if (!first) throw new Error('no terms')
  const solana = {
    ...first,
    network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' as const,
    asset: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
    payTo: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
    extra: { feePayer: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v', memo: randomUUID() },
  }
  const longest = `https://${'a'.repeat(60)}.example.com${VERIFY}`
  for (const through of ['http', 'mcp'] as const) {
    for (const env of [{}, MODEL]) {
      const both = paymentRequired([first, solana], offered(longest, env), 'x'.repeat(200), through)
      const size = Buffer.from(JSON.stringify(both)).toString('base64').length
      t.ok(size < 4000, `${through}: ${size} bytes`)
    }
  }
})

t.test('a catalogue can list the service', async (t) => {
  const { terms } = await askForTerms()
  const bazaar = terms.extensions?.bazaar as Parameters<typeof validateDiscoveryExtension>[0]
  t.same(validateDiscoveryExtension(bazaar), { valid: true })
  for (const env of [{}, MODEL])
    for (const through of ['http', 'mcp'] as const) {
      const own = paymentRequired([], offered(system.url(VERIFY), env), '', through).extensions?.bazaar
      t.same(validateDiscoveryExtension(own as typeof bazaar), { valid: true })
    }
  const { payload } = await pay(terms)
  const listed = extractDiscoveryInfo(payload as PaymentPayload, terms.accepts[0] as never)
  t.match(listed, {
    resourceUrl: system.url(VERIFY),
    method: 'POST',
    description: /No model is asked and no verdict is given/,
    mimeType: 'application/json',
  })
  t.match(terms.resource, { serviceName: /^[\x20-\x7e]{1,32}$/, tags: Array })
  t.ok((terms.resource.tags?.length ?? 0) <= 5)
})

t.test('a client must echo what was offered', async (t) => {
  const key = randomUUID()
  const { terms } = await askForTerms(key)
  const bazaar = structuredClone(terms.extensions?.bazaar) as { info: { input: Record<string, unknown> } }
  bazaar.info.input.body = { source_url: 'https://elsewhere.example/' }
  const forged = await pay(terms, { extensions: { bazaar } })
  t.equal((await system.ask({ key, headers: forged.headers })).status, 402)
  const malformed = await pay(terms, {
    extensions: { 'payment-identifier': { info: { required: false, id: 'short' } } },
  })
  t.equal((await system.ask({ key, headers: malformed.headers })).status, 402)
  const unknown = await pay(terms, { extensions: { 'somebody-elses': { info: 1 } } })
  t.equal((await system.ask({ key, headers: unknown.headers })).status, 200, 'unknown extensions are ignored')
})

t.test('a payment identifier: the same one of the same payer is the same purchase, under any key', async (t) => {
  const wallet = generatePrivateKey()
  const id = `pay_${randomUUID()}`
  const buy = async (options: { wallet?: `0x${string}`; body?: object } = {}) => {
    const key = randomUUID()
    const body = options.body ?? harbourClaim(system.site)
    const terms = decodePaymentRequiredHeader((await system.ask({ key, body })).headers.get('payment-required') ?? '')
    const extensions = structuredClone(terms.extensions ?? {})
    appendPaymentIdentifierToExtensions(extensions, id)
    const { headers } = await pay(terms, { wallet: options.wallet ?? wallet, extensions })
    return system.ask({ key, body, headers })
  }
  const first = await buy()
  const bytes = await first.text()
  t.equal(first.status, 200, bytes)
  const again = await buy()
  t.equal(again.status, 200)
  t.equal(again.headers.get('x-service-idempotent-replay'), 'true')
  t.equal(await again.text(), bytes)
  const changed = await buy({ body: { ...harbourClaim(system.site), claim: 'It has three piers.' } })
  t.equal(changed.status, 409)
  const stranger = await buy({ wallet: generatePrivateKey() })
  t.equal(stranger.status, 200)
  t.not(await stranger.text(), bytes, 'another payer means another purchase')
  const [{ n } = { n: 0 }] = await system.sql(
    `select count(*)::int n from payment_ledger l join verification_requests r on r.id = l.request_id
     where r.payment ->> 'identifier' = $1`,
    [id],
  )
  t.equal(n, 2, 'two purchases, two payments')
})

t.test('a page in a browser can send and read all that a client can', async (t) => {
  const preflight = await fetch(system.url(VERIFY), {
    method: 'OPTIONS',
    headers: {
      origin: 'https://shop.example',
      'access-control-request-method': 'POST',
      'access-control-request-headers':
        'content-type, idempotency-key, payment-signature, access-control-expose-headers',
    },
  })
  t.equal(preflight.status, 204)
  t.equal(preflight.headers.get('access-control-allow-origin'), '*')
  t.equal(preflight.headers.get('access-control-allow-credentials'), null)
  t.match(preflight.headers.get('access-control-allow-methods'), /POST/)
  const allowed = preflight.headers.get('access-control-allow-headers')?.split(/, */) ?? []
  for (const name of ['content-type', 'idempotency-key', 'payment-signature', 'access-control-expose-headers'])
    t.ok(allowed.includes(name), name)

  const key = randomUUID()
  const read: string[][] = []
  // Like a browser, this reads exposed headers only.
  const browser = async (input: RequestInfo | URL, init?: RequestInit) => {
    const request = new Request(input, init)
    request.headers.set('origin', 'https://shop.example')
    const response = await fetch(request)
    const exposed = (response.headers.get('access-control-expose-headers') ?? '').toLowerCase().split(/, */)
    read.push(exposed)
    const headers = new Headers(
      [...response.headers].filter(([name]) => exposed.includes(name) || name === 'content-type'),
    )
    return new Response(await response.arrayBuffer(), { status: response.status, headers })
  }
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(privateKeyToAccount(generatePrivateKey())))
  const paying = wrapFetchWithPayment(browser as typeof fetch, client) as typeof fetch
  const bought = await system.ask({ key, fetch: paying, headers: { prefer: 'wait=20' } })
  t.equal(bought.status, 200)
  t.ok(bought.headers.get('payment-response'))
  t.ok(bought.headers.get('x-service-recovery-token'))
  for (const exposed of read) t.ok(exposed.includes('retry-after'))

  const refused = await fetch(system.url('/api/agent/v1/nothing'), { headers: { origin: 'https://shop.example' } })
  t.equal(refused.headers.get('access-control-allow-origin'), '*', 'errors too')
  const options = await fetch(system.url(VERIFY), { method: 'OPTIONS' })
  t.equal(options.status, 404, 'no preflight: the method does not exist')
})
