// The endpoint in HTTP: which methods, types and host names it accepts, and that every answer is JSON-RPC.
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { checkOrigin } from '../../server/mcp/origin-check.ts'
import { openAccountHarness } from '../accounts/harness.ts'
import { ERAS, envelope, openRawClient } from './raw-client.ts'

const office = await openAccountHarness()
t.teardown(() => office[Symbol.asyncDispose]())
const url = new URL('/mcp', office.api.baseUrl)
const { post, ask } = openRawClient(url.href)

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }

function refused(t: import('tap').Test, answer: Awaited<ReturnType<typeof post>>, status: number, code: number) {
  t.equal(answer.status, status)
  t.match(answer.headers.get('content-type'), /^application\/json/)
  t.match(answer.body, { jsonrpc: '2.0', error: { code, message: /./ } })
  t.ok('id' in answer.body)
  return answer
}

t.test('methods other than POST get 405', async (t) => {
  for (const method of ['GET', 'DELETE', 'PUT', 'PATCH', 'HEAD', 'OPTIONS']) {
    const answer = await fetch(url, { method, headers: { accept: 'text/event-stream' } })
    t.equal(answer.status, 405, method)
    t.equal(answer.headers.get('allow'), 'POST', method)
    if (method !== 'HEAD') t.match(JSON.parse(await answer.text()), { error: { code: -32_000 }, id: null })
  }
  for (const [type, body] of [
    ['application/json', '{'],
    ['text/plain', 'x'],
    ['application/json', 'x'.repeat(140_000)],
  ] as const)
    for (const method of ['DELETE', 'PUT']) {
      const answer = await fetch(url, { method, headers: { 'content-type': type }, body })
      t.equal(answer.status, 405, `${method} with a body of ${type}`)
      t.equal(answer.headers.get('allow'), 'POST')
    }
})

for (const era of ERAS)
  t.test(`${era}: an answer is JSON with the id of its request`, async (t) => {
    for (const id of [1, 0, -7, 'a', 'ünïcode "quoted"', '']) {
      const { status, headers, body } = await ask('tools/list', {}, { era, id })
      t.equal(status, 200)
      t.match(headers.get('content-type'), /^application\/json/)
      t.equal(body.id, id)
      t.ok(body.result.tools.length > 0)
    }
  })

t.test('no initialize is needed, and there is no session', async (t) => {
  const answer = await post(LIST)
  t.equal(answer.status, 200)
  t.equal(answer.headers.get('mcp-session-id'), null)
  const invented = await post(LIST, { 'mcp-session-id': 'invented' })
  t.same(invented.body, answer.body)
})

t.test('initialize: the requested version, or the newest legacy one', async (t) => {
  const initialize = async (version: unknown) => {
    const params = { protocolVersion: version, capabilities: {}, clientInfo: { name: 'x', version: '1' } }
    return (await ask('initialize', params, { era: 'legacy' })).body.result
  }
  for (const version of ['2025-11-25', '2025-06-18', '2025-03-26'])
    t.equal((await initialize(version)).protocolVersion, version)
  for (const version of ['2024-11-05', '2026-07-28', 'x'])
    t.equal((await initialize(version)).protocolVersion, '2025-11-25')
  const { serverInfo, capabilities, instructions } = await initialize('2025-11-25')
  t.match(serverInfo, { name: 'countersign', version: /^\d/ })
  t.match(capabilities, { tools: {}, resources: {}, prompts: {} })
  t.match(instructions, 'service_verify_source')
})

t.test('server/discover answers clients of 2026-07-28 only', async (t) => {
  const { result } = (await ask('server/discover')).body
  t.same(result.supportedVersions, ['2026-07-28'])
  t.match(result, { resultType: 'complete', ttlMs: Number, cacheScope: 'public', capabilities: { tools: {} } })
  t.equal((await ask('server/discover', {}, { era: 'legacy' })).body.error.code, -32_601, 'unknown to legacy clients')
})

t.test('unsupported versions are refused', async (t) => {
  for (const version of ['2024-11-05', '', '2025-06-19'])
    refused(t, await post(LIST, { 'mcp-protocol-version': version }), 400, -32_000)
  // A version that sorts after 2025-11-25 is treated as modern, and a modern message names its version itself.
  for (const version of ['2026-07-28', '2099-01-01', 'x'])
    refused(t, await post(LIST, { 'mcp-protocol-version': version }), 400, -32_602)
  const { body, headers } = envelope('tools/list', {})
  const later = {
    ...body,
    params: { _meta: { ...(body.params as { _meta: object })._meta } as Record<string, unknown> },
  }
  later.params._meta['io.modelcontextprotocol/protocolVersion'] = '2099-01-01'
  const answer = refused(t, await post(later, { ...headers, 'mcp-protocol-version': '2099-01-01' }), 400, -32_022)
  t.same(answer.body.error.data, { supported: ['2026-07-28'], requested: '2099-01-01' })
  refused(t, await post(later, headers), 400, -32_020)
})

t.test('headers of 2026-07-28 must agree with the message', async (t) => {
  const { body, headers } = envelope('tools/call', { name: 'service_chain_head' })
  for (const [name, value] of [
    ['mcp-method', 'tools/list'],
    ['mcp-name', 'service_usage_get'],
    ['mcp-name', '=?base64?!!?='],
    ['mcp-protocol-version', '2025-11-25'],
  ] as const)
    refused(t, await post(body, { ...headers, [name]: value }), 400, -32_020)
  for (const missing of ['mcp-method', 'mcp-name', 'mcp-protocol-version']) {
    const fewer = Object.fromEntries(Object.entries(headers).filter(([name]) => name !== missing))
    refused(t, await post(body, fewer), 400, -32_020)
  }
  const encoded = `=?base64?${Buffer.from('service_chain_head').toString('base64')}?=`
  t.equal((await post(body, { ...headers, 'mcp-name': encoded })).body.result.isError, undefined)
})

t.test('notifications and responses are accepted and have no effect', async (t) => {
  for (const message of [
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
    { jsonrpc: '2.0', id: 5, result: {} },
    { jsonrpc: '2.0', id: 5, error: { code: 1, message: 'x' } },
  ]) {
    const answer = await post(message)
    t.equal(answer.status, 202)
    t.equal(answer.text, '')
  }
})

t.test('subscriptions are refused, because nothing changes during one', async (t) => {
  refused(t, await ask('subscriptions/listen', { filter: {} }), 404, -32_601)
})

t.test('unknown methods are refused', async (t) => {
  refused(t, await ask('nope'), 404, -32_601)
  refused(t, await ask('nope', {}, { era: 'legacy' }), 200, -32_601)
})

t.test('batches are refused', async (t) => {
  refused(t, await post([LIST, LIST]), 400, -32_600)
  refused(t, await post([]), 400, -32_600)
})

t.test('bodies that are not a message are refused', async (t) => {
  for (const body of ['{', '', 'nul', '\u{feff}{}', Buffer.from([0x22, 0xff, 0x22])])
    refused(t, await post(body), 400, -32_700)
  for (const body of [
    null,
    1,
    'text',
    {},
    { jsonrpc: '1.0', id: 1, method: 'ping' },
    { jsonrpc: '2.0', id: {}, method: 'ping' },
  ])
    refused(t, await post(JSON.stringify(body)), 400, -32_600)
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp'])
    refused(t, await post(JSON.stringify(LIST), { 'content-type': type }), 415, -32_000)
  refused(t, await post(JSON.stringify({ ...LIST, params: { x: 'x'.repeat(140_000) } })), 413, -32_000)
  t.equal((await post(JSON.stringify(LIST), { 'content-type': 'application/json; charset=utf-8' })).status, 200)
})

t.test('Accept must allow JSON', async (t) => {
  for (const accept of ['application/json', '*/*', 'application/*', 'text/event-stream, application/json'])
    t.equal((await post(LIST, { accept })).status, 200, accept)
  for (const accept of ['text/event-stream', 'text/html']) refused(t, await post(LIST, { accept }), 406, -32_000)
})

/** As a browser would send it, which `fetch` does not allow. */
async function postFrom(headers: { host: string; origin?: string }) {
  const type = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const sent = request(url, { method: 'POST', headers: { ...type, ...headers } })
  sent.end(JSON.stringify(LIST))
  const { promise, resolve, reject } = Promise.withResolvers<import('node:http').IncomingMessage>()
  sent.once('response', resolve).once('error', reject)
  const answer = await promise
  return { status: answer.statusCode, body: JSON.parse(await text(answer)), headers: answer.headers }
}

t.test('Host and Origin must name this service or a local address', async (t) => {
  const { port } = url
  for (const headers of [
    { host: `localhost:${port}` },
    { host: '127.0.0.1' },
    { host: '[::1]:80' },
    { host: '10.1.2.3:8402' },
    { host: url.host, origin: `http://localhost:6274` },
    { host: url.host, origin: url.origin },
    { host: '10.1.2.3:8402', origin: 'http://10.1.2.3:8402' },
  ])
    t.equal((await postFrom(headers)).status, 200, JSON.stringify(headers))
  for (const headers of [
    { host: 'evil.example' },
    { host: `evil.example:${port}`, origin: `http://evil.example:${port}` },
    { host: 'localhost.evil.example' },
    { host: '127.0.0.1.evil.example' },
    { host: 'a b' },
    { host: url.host, origin: 'https://evil.example' },
    { host: url.host, origin: 'null' },
    { host: url.host, origin: 'http://10.1.2.3' },
    { host: url.host, origin: 'file://' },
  ]) {
    const answer = await postFrom(headers)
    t.equal(answer.status, 403, JSON.stringify(headers))
    t.match(answer.body, { jsonrpc: '2.0', error: { code: -32_000 }, id: null })
    t.notMatch(JSON.stringify(answer.body), /evil/)
  }
})

t.test('the host name of BASE_URL is accepted', async (t) => {
  const base = 'https://verify.example/'
  checkOrigin({ host: 'verify.example' }, base)
  checkOrigin({ host: 'verify.example:443', origin: 'https://verify.example' }, base)
  for (const headers of [
    { host: 'evil.example' },
    { host: 'verify.example', origin: 'https://evil.example' },
    { host: 'verify.example.evil.example' },
    {},
  ])
    t.throws(() => checkOrigin(headers, base), { name: 'RpcError' })
})

t.test('answers have the CORS headers of HTTP answers', async (t) => {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: '*/*', origin: 'http://localhost:6274' },
    body: JSON.stringify(LIST),
  })
  t.equal(answer.headers.get('access-control-allow-origin'), '*')
  const preflight = await fetch(url, {
    method: 'OPTIONS',
    headers: { origin: 'http://localhost:6274', 'access-control-request-method': 'POST' },
  })
  t.equal(preflight.status, 204)
})

t.test('requests count against the same limit as those over HTTP', async (t) => {
  const strict = await office.openApiProcess({ RATE_LIMIT_PER_MINUTE: '2' })
  t.teardown(() => strict[Symbol.asyncDispose]())
  const { post } = openRawClient(new URL('/mcp', strict.api.baseUrl).href)
  t.equal((await post(LIST)).status, 200)
  t.equal((await post(LIST)).status, 200)
  const answer = refused(t, await post(LIST), 429, -32_000)
  t.match(answer.headers.get('retry-after'), /^[1-9]\d?$/)
  t.match(answer.body.error.data, { error: { code: 'rate_limited', retryable: true } })
  t.equal((await strict.call('GET', '/v1/keys')).status, 429, 'one count for both')
})
