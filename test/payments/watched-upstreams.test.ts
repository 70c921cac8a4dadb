// A facilitator or a node that does not answer is logged at its first failure, then at growing intervals, and at its
// return; without URLs, keys and payments.
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { readConfig } from '../../server/config.ts'
import { openEvmReader } from '../../server/payments/evm-reader.ts'
import { openLiveFacilitator } from '../../server/payments/live-setup.ts'
import type { PaymentNetwork } from '../../server/payments/payment-network.ts'
import { watchNode } from '../../server/payments/watched-upstreams.ts'
import { openLog } from '../../server/telemetry.ts'
import { signPayment } from '../system.ts'

const KEY = 'key-of-the-node-4711'
const PAY_TO = '0x00000000000000000000000000000000000084a1'
const NETWORK = 'eip155:84532'

type Answer = (method: string, response: ServerResponse) => void

/** An upstream over HTTP: a facilitator, whose calls are paths, and a node, whose calls are methods of JSON-RPC. */
async function openUpstream() {
  const upstream = { answer: (() => {}) as Answer }
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { method } = request.method === 'POST' ? JSON.parse(Buffer.concat(chunks).toString()) : {}
    upstream.answer(method ?? new URL(request.url ?? '', 'http://x').pathname, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return Object.assign(upstream, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  })
}

const json = (response: ServerResponse, body: unknown, status = 200) =>
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
const broken: Answer = (_method, response) => response.destroy()

function openRecord() {
  const lines: Record<string, unknown>[] = []
  const log = openLog('info', { write: (line) => lines.push(JSON.parse(line)) })
  const logged = () =>
    lines.splice(0).map(({ event, dependency, reason }) => [event, dependency, reason].filter(Boolean))
  return { lines, log, logged }
}

t.test('a facilitator', async (t) => {
  await using upstream = await openUpstream()
  const { log, logged } = openRecord()
  const kinds = [{ x402Version: 2, scheme: 'exact', network: NETWORK }]
  upstream.answer = (method, response) => json(response, { kinds, isValid: false, invalidReason: method })
  const config = readConfig({
    PAYMENT_MODE: 'testnet',
    BASE_URL: 'https://shop.example',
    SIGNING_SEED: '11'.repeat(32),
    PAY_TO_EVM: PAY_TO,
    FACILITATOR_URL: upstream.url,
  })
  await using facilitator = await openLiveFacilitator(config, log, {
    publicRpcUrl: `http://127.0.0.1:9/${KEY}`,
    upstream: { failedPerMinute: 100, perSecond: 100 },
  })
  logged()
  const resource = { url: 'https://shop.example/', description: 'A test', assessment: 'literal' } as const
  const terms = { x402Version: 2, resource, accepts: [...facilitator.accepts] } as const
  const { header } = await signPayment(terms as unknown as Parameters<typeof signPayment>[0])
  const offer = facilitator.read(header, '9f0ac28f-9d0f-4d0e-8a8b-111111111111', () => resource)
  const verify = () => facilitator.verify(offer, '192.0.2.1')
  const provider = `facilitator 127.0.0.1:${new URL(upstream.url).port}`

  await t.rejects(verify(), { code: 'payment_invalid' })
  t.same(logged(), [], 'a refusal is an answer')
  upstream.answer = broken
  for (let call = 0; call < 5; call++) await t.rejects(verify(), { code: 'provider_unavailable' })
  t.same(logged(), [['dependency_away', provider, 'connection_failed']], 'once for five calls')
  upstream.answer = (_method, response) => json(response, { error: 'down' }, 503)
  await t.rejects(verify(), { code: 'provider_unavailable' })
  t.same(logged(), [], 'still away')
  upstream.answer = (_method, response) => json(response, { isValid: false, invalidReason: 'insufficient_funds' })
  await t.rejects(verify(), { code: 'payment_invalid' })
  t.same(logged(), [['dependency_back', provider]])
})

t.test('a node', async (t) => {
  await using upstream = await openUpstream()
  const { lines, log, logged } = openRecord()
  const { height } = openEvmReader(`${upstream.url}/${KEY}`)
  // Sound: of a network only what the watch calls is used.
  const node = watchNode({ id: NETWORK, height } as unknown as PaymentNetwork, log)
  upstream.answer = broken
  for (let call = 0; call < 3; call++) await t.rejects(node.height())
  upstream.answer = (_method, response) => response.writeHead(429).end(KEY)
  await t.rejects(node.height())
  const written = JSON.stringify(lines)
  t.notMatch(written, KEY)
  const [away, ...more] = logged()
  t.match(away, ['dependency_away', `node of ${NETWORK}`, /^(UND_ERR_SOCKET|ECONNRESET)$/])
  t.same(more, [])
  upstream.answer = (_method, response) =>
    json(response, { jsonrpc: '2.0', id: 1, error: { code: -32000, message: 'no' } })
  await t.rejects(node.height())
  t.same(logged(), [['dependency_back', `node of ${NETWORK}`]], 'an error of JSON-RPC is an answer')
  upstream.answer = (_method, response) => response.writeHead(429).end(KEY)
  await t.rejects(node.height())
  t.same(logged(), [['dependency_away', `node of ${NETWORK}`, 'http_429']])
})
