// A cached response equals the SDK's, byte for byte.
import t from 'tap'
import { catalog } from '../../server/catalog.ts'
import { offeredFeatures } from '../../server/mcp/features.ts'
import { buildDispatcher } from '../../server/mcp/protocol-revisions.ts'
import { buildResponseCache, cacheableRequest } from '../../server/mcp/response-cache.ts'
import type { Feature } from '../../server/mcp/server.ts'
import { openAccountHarness } from '../accounts/harness.ts'
import { openEndpoint } from './endpoint-harness.ts'
import { ERAS, envelope, openRawClient } from './raw-client.ts'

const office = await openAccountHarness()
t.teardown(() => office[Symbol.asyncDispose]())

/** The SDK without the cache. */
const answer = buildDispatcher(offeredFeatures(office.api, catalog), (error) => t.comment(error.message))
const request = {
  api: office.api,
  credentials: { address: '127.0.0.1' },
  options: { waitSeconds: 0, signal: new AbortController().signal },
  streams: true,
  links: true,
}
const HELLO = { protocolVersion: '2025-06-18', capabilities: { roots: {} }, clientInfo: { name: 'x', version: '1' } }
const CLIENT = { 'io.modelcontextprotocol/clientInfo': { name: 'a client', version: '2.1' } }
const METHODS = {
  legacy: ['ping', 'tools/list', 'resources/list', 'resources/templates/list', 'prompts/list', 'initialize'],
  modern: ['server/discover', 'tools/list', 'resources/list', 'resources/templates/list', 'prompts/list'],
} as const

for (const era of ERAS)
  t.test(era, async (t) => {
    const { post } = openRawClient(new URL('/mcp', office.api.baseUrl).href)
    for (const method of METHODS[era])
      for (const meta of [undefined, { 'example/any': 1 }, ...(era === 'modern' ? [CLIENT] : [])])
        for (const id of [1, 'two', 3]) {
          const params = method === 'initialize' ? HELLO : {}
          const { body, headers } = envelope(method, params, { era, id, meta })
          const { 'mcp-protocol-version': version, 'mcp-method': named } = headers as Record<string, string>
          const own = await answer(body, { version, method: named }, request)
          const given = await post(body, headers)
          t.equal(given.status, own.status)
          t.equal(given.text, await own.text(), `${method} ${JSON.stringify(meta)} ${id}`)
          t.ok(given.body.result, method)
        }
  })

/** Counts the calls that reach the SDK. */
function countingFeature() {
  const calls = { lists: 0 }
  const feature: Feature = {
    capabilities: { tools: {} },
    install(server) {
      server.setRequestHandler('tools/list', ({ params }) => {
        calls.lists++
        if (params?.cursor) throw new Error('no such page')
        return { tools: [] }
      })
    },
  }
  return { calls, feature }
}

for (const era of ERAS)
  t.test(`${era}: the same request reaches the SDK once`, async (t) => {
    const { calls, feature } = countingFeature()
    await using endpoint = await openEndpoint(office.api, [feature])
    const { ask } = openRawClient(endpoint.url)
    for (const id of [1, 2, 'x']) t.equal((await ask('tools/list', {}, { era, id })).body.id, id)
    t.equal(calls.lists, 1)
    await ask('tools/list', {}, { era, meta: { 'example/any': 1 } })
    t.equal(calls.lists, 2, 'another request')
    for (const _ of [1, 2]) t.ok((await ask('tools/list', { cursor: 'x' }, { era })).body.error)
    t.equal(calls.lists, 4, 'errors are not cached')
    for (const _ of [1, 2]) await ask('tools/list', { long: 'x'.repeat(5000) }, { era })
    t.equal(calls.lists, 6, 'nor long requests')
  })

t.test('a request that differs in its headers or form gets no cached response', async (t) => {
  const { feature } = countingFeature()
  await using endpoint = await openEndpoint(office.api, [feature])
  const { ask, post } = openRawClient(endpoint.url)
  t.equal((await ask('tools/list')).status, 200)
  const { body, headers } = envelope('tools/list', {})
  t.equal((await post(body, { ...headers, 'mcp-method': 'ping' })).body.error.code, -32_020)
  t.equal((await post(body, { ...headers, 'mcp-protocol-version': '2025-11-25' })).body.error.code, -32_020)
  t.equal((await post({ ...body, jsonrpc: '1.0' }, headers)).body.error.code, -32_600)
  t.equal((await post({ ...body, id: null }, headers)).status >= 400, true)
  t.equal((await post(body, { ...headers, accept: 'text/html' })).status, 406)
})

t.test('the key holds everything that the response depends on', async (t) => {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { a: 1 } }
  const key = (more: object, headers = {}) => cacheableRequest({ ...message, ...more }, headers, 100)?.key
  t.equal(key({ id: 2 }), key({}))
  t.not(key({ params: { a: 2 } }), key({}))
  t.not(key({ method: 'ping' }), key({}))
  t.not(key({}, { version: '2025-11-25' }), key({}))
  for (const more of [
    { method: 'tools/call' },
    { id: null },
    { id: 1.5 },
    { id: undefined },
    { jsonrpc: '1.0' },
    { other: 1 },
  ])
    t.equal(key(more), undefined, JSON.stringify(more))
  t.equal(cacheableRequest(message, {}, Number.NaN), null)
  t.equal(cacheableRequest([message], {}, 100), null)
})

t.test('only responses of the expected form are stored', async (t) => {
  const cache = buildResponseCache()
  const request = { key: 'k', id: 1 }
  for (const [status, text] of [
    [404, '{"result":{},"jsonrpc":"2.0","id":1}'],
    [200, '{"jsonrpc":"2.0","id":1,"error":{}}'],
    [200, '{"result":{},"jsonrpc":"2.0","id":2}'],
  ] as const) {
    cache.store(request, status, text)
    t.equal(cache.find(request), undefined)
  }
  cache.store(request, 200, '{"result":{},"jsonrpc":"2.0","id":1}')
  t.equal(cache.find({ key: 'k', id: 'other' }), '{"result":{},"jsonrpc":"2.0","id":"other"}')
})
