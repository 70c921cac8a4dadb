// A facilitator or a node that does not answer a question of ours is logged at its first failure, then at growing intervals, and
// at its return; without URLs, keys and payments. What fails for one payment only is logged as that.
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { readConfig } from '../../server/config.ts'
import { openDatabase } from '../../server/db/pool.ts'
import { SOLANA_DEVNET } from '../../server/interface/networks.ts'
import { openPresence } from '../../server/operate/presence.ts'
import { readStatus } from '../../server/operate/status.ts'
import { openEvmReader } from '../../server/payments/chains/evm-reader.ts'
import type { PaymentNetwork } from '../../server/payments/chains/payment-network.ts'
import { openSolanaNetwork } from '../../server/payments/chains/solana.ts'
import { openLiveFacilitator } from '../../server/payments/facilitators/live-setup.ts'
import { watchFacilitator, watchNode } from '../../server/payments/facilitators/watched-upstreams.ts'
import { type Logger, type Metrics, openLog, openMetrics } from '../../server/telemetry.ts'
import { openTestDatabase } from '../database.ts'
import { signPayment } from '../system.ts'
import { until } from '../until.ts'

const KEY = 'key-of-the-node-4711'
const PAY_TO = '0x00000000000000000000000000000000000084a1'
const NETWORK = 'eip155:84532'
/** Any account. */
const SOLANA_PAY_TO = 'SysvarC1ock11111111111111111111111111111111'
const SYSTEM_PROGRAM = '11111111111111111111111111111111'

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

const SUPPORTED = { kinds: [{ x402Version: 2, scheme: 'exact', network: NETWORK }] }

/** A facilitator of the service in front of this one, and one payment to verify. */
async function openVerify(upstream: { url: string; answer: Answer }, log: Logger, metrics?: Metrics) {
  const { answer } = upstream
  upstream.answer = (_method, response) => json(response, SUPPORTED)
  const config = readConfig({
    PAYMENT_MODE: 'testnet',
    BASE_URL: 'https://shop.example',
    SIGNING_SEED: '11'.repeat(32),
    PAY_TO_EVM: PAY_TO,
    FACILITATOR_URL: upstream.url,
  })
  const facilitator = await openLiveFacilitator(config, log, {
    publicRpcUrl: `http://127.0.0.1:9/${KEY}`,
    upstream: { failedPerMinute: 100, perSecond: 100 },
    ...(metrics && { metrics }),
  })
  upstream.answer = answer
  const resource = { url: 'https://shop.example/', description: 'A test', assessment: 'literal' } as const
  const terms = { x402Version: 2, resource, accepts: [...facilitator.accepts] } as const
  const { header } = await signPayment(terms as unknown as Parameters<typeof signPayment>[0])
  const offer = facilitator.read(header, '9f0ac28f-9d0f-4d0e-8a8b-111111111111', () => resource)
  return {
    facilitator,
    provider: `facilitator 127.0.0.1:${new URL(upstream.url).port}`,
    verify: () => facilitator.verify(offer, '192.0.2.1'),
  }
}

t.test('a facilitator', async (t) => {
  await using upstream = await openUpstream()
  const { lines, log, logged } = openRecord()
  upstream.answer = (method, response) => json(response, { ...SUPPORTED, isValid: false, invalidReason: method })
  const { verify, provider, facilitator } = await openVerify(upstream, log)
  await using _closing = facilitator
  logged()

  await t.rejects(verify(), { code: 'payment_invalid' })
  t.same(logged(), [], 'a refusal is an answer')
  upstream.answer = broken
  for (let call = 0; call < 5; call++) await t.rejects(verify(), { code: 'provider_unavailable' })
  await until(() => lines.length > 0)
  t.same(logged(), [['dependency_away', provider, 'connection_failed']], 'once for five calls')
  upstream.answer = (_method, response) => json(response, { error: 'down' }, 503)
  await t.rejects(verify(), { code: 'provider_unavailable' })
  t.same(logged(), [], 'still away')
  upstream.answer = (_method, response) => json(response, { isValid: false, invalidReason: 'insufficient_funds' })
  await t.rejects(verify(), { code: 'payment_invalid' })
  t.same(logged(), [['dependency_back', provider]])
})

t.test('a payment at which a facilitator fails does not make it away', async (t) => {
  await using upstream = await openUpstream()
  const { lines, log, logged } = openRecord()
  const calls = {
    verify: () => Promise.reject(new Error('Facilitator verify failed (500): {}')),
    settle: () => Promise.reject(new Error('Facilitator settle failed (500): {}')),
    getSupported: () => fetch(upstream.url).then((response) => response.json()),
  }
  upstream.answer = (_method, response) => json(response, {})
  const metrics = openMetrics()
  const { verify, getSupported } = watchFacilitator(calls, 'kelby', log, metrics)
  for (let call = 0; call < 5; call++) await t.rejects(verify())
  await until(() => lines.length > 0)
  t.same(logged(), [['payment_call_failed', 'facilitator kelby', 'http_500']], 'our question was answered')
  const { values } = await metrics.paymentCallFailures.get()
  t.match(values, [{ labels: { dependency: 'facilitator kelby' }, value: 1 }], 'and counted for the alarm')
  upstream.answer = broken
  await t.rejects(getSupported())
  t.match(logged(), [['dependency_away', 'facilitator kelby']], 'our own question decides')
})

t.test('a facilitator that fails at payments is counted, and after more than ten an operator is warned', async (t) => {
  await using database = await openTestDatabase()
  const db = await openDatabase(database.url, { maxConnections: 2 })
  t.teardown(() => db.end())
  const { lines, log } = openRecord()
  const metrics = openMetrics()
  await using presence = await openPresence({ db, metrics, log }, 'all', {})
  await using upstream = await openUpstream()
  const { verify, provider, facilitator } = await openVerify(upstream, log, metrics)
  await using _closing = facilitator
  const warned = async () => {
    await presence.publish()
    const { warnings } = await readStatus(db, readConfig({}))
    return warnings.filter(({ name }) => name === 'payment_calls_fail').map(({ what }) => what)
  }

  // It answers what it supports, and not what is asked about a payment. Between our own questions at least a second must pass.
  const { now } = performance
  let skipped = 0
  performance.now = () => now.call(performance) + skipped
  t.teardown(() => {
    performance.now = now
  })
  upstream.answer = (method, response) => json(response, SUPPORTED, method === '/supported' ? 200 : 500)
  const failed = () => lines.filter(({ event }) => event === 'payment_call_failed').length
  for (let call = 1; call <= 11; call++) {
    if (call === 11) t.same(await warned(), [], 'ten are not too many')
    await t.rejects(verify(), { code: 'provider_unavailable' })
    await until(() => failed() === call)
    skipped += 1000
  }
  t.match(await metrics.registry.metrics(), `countersign_payment_call_failures_total{dependency="${provider}"} 11`)
  t.match(await warned(), [new RegExp(`^11 calls of ${provider} about payments failed .*, though it answers$`)])
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

t.test('a transaction at which a node fails does not make it away', async (t) => {
  await using upstream = await openUpstream()
  const { lines, log, logged } = openRecord()
  const { height, findIn } = openEvmReader(upstream.url)
  upstream.answer = (method, response) =>
    method === 'eth_blockNumber'
      ? json(response, { jsonrpc: '2.0', id: 1, result: '0x10' })
      : response.writeHead(500).end('out of gas')
  const odd = `0x${'ab'.repeat(32)}` as const
  const usage = { token: odd, from: odd, nonce: odd, to: odd, value: 1n, validBefore: 1n }
  const findSettlement = () => findIn(odd, usage)
  // Sound: of a network only what the watch calls is used.
  const node = watchNode({ id: NETWORK, height, findSettlement } as unknown as PaymentNetwork, log)
  const look = node.findSettlement as unknown as typeof findSettlement
  for (let call = 0; call < 3; call++) await t.rejects(look())
  await until(() => lines.length > 0)
  t.same(logged(), [['payment_call_failed', `node of ${NETWORK}`, 'http_500']])
  t.equal(await node.height(), 16)
  t.same(logged(), [])
})

t.test('an account at which a node of Solana fails does not make it away', async (t) => {
  await using upstream = await openUpstream()
  const { lines, log, logged } = openRecord()
  const metrics = openMetrics()
  const id = SOLANA_DEVNET
  const open = () => openSolanaNetwork({ id, payTo: SOLANA_PAY_TO, rpcUrl: upstream.url, proves: true })
  const answers = (ofAccount: (response: ServerResponse) => unknown): Answer => {
    return (method, response) =>
      method === 'getSlot' ? json(response, { jsonrpc: '2.0', id: '1', result: 16 }) : ofAccount(response)
  }
  const hostile: [why: string, answer: Answer][] = [
    ['an error of HTTP', answers((response) => response.writeHead(500).end('out of memory'))],
    ['an answer that is no JSON', answers((response) => response.end('<html>'))],
    ['a closed connection', answers((response) => response.destroy())],
  ]
  for (const [why, answer] of hostile) {
    const node = watchNode(await open(), log, metrics)
    upstream.answer = answer
    await t.rejects(node.balanceOf(SOLANA_PAY_TO), why)
    await until(() => lines.length > 0)
    const [failed, ...more] = logged()
    t.match(failed, ['payment_call_failed', `node of ${id}`, /./], why)
    t.same(more, [], why)
    t.equal(await node.height(), 16, why)
    t.same(logged(), [], `${why}: it was never away`)
  }
  t.match((await metrics.paymentCallFailures.get()).values, [{ labels: { dependency: `node of ${id}` }, value: 3 }])

  const node = watchNode(await open(), log, metrics)
  upstream.answer = answers((response) =>
    json(response, { jsonrpc: '2.0', id: '1', error: { code: -32602, message: 'Invalid param' } }),
  )
  await t.rejects(node.balanceOf(SOLANA_PAY_TO))
  t.same(logged(), [], 'an error of JSON-RPC is an answer')
  // A payer may name any account as that of its tokens: a wallet has no data.
  for (const data of ['AAAA', '']) {
    const result = { value: { owner: SYSTEM_PROGRAM, data: [data, 'base64'] } }
    upstream.answer = answers((response) => json(response, { jsonrpc: '2.0', id: '1', result }))
    t.equal(
      await node.balanceOf(`${SOLANA_PAY_TO} ${SOLANA_PAY_TO}`),
      0n,
      `an account of another form holds nothing: "${data}"`,
    )
  }
  t.same(logged(), [])
  upstream.answer = broken
  await t.rejects(node.height())
  t.match(logged(), [['dependency_away', `node of ${id}`]], 'our own question decides')
})
