// What is answered from memory is what the SDK would have answered, byte for byte.
import t from 'tap'
import { openEras } from '../../server/mcp/eras.ts'
import { offeredFeatures } from '../../server/mcp/features.ts'
import { openKeptAnswers, questionOf } from '../../server/mcp/response-cache.ts'
import type { Feature } from '../../server/mcp/server.ts'
import { openAccountHarness } from '../accounts/harness.ts'
import { ERAS, envelope, openCaller } from './caller.ts'
import { openStage } from './stage.ts'

const office = await openAccountHarness()
t.teardown(() => office[Symbol.asyncDispose]())

/** The SDK itself, nothing before it. */
const answer = openEras(offeredFeatures(office.api), (error) => t.comment(error.message))
const exchange = {
  api: office.api,
  credentials: { address: '127.0.0.1', waitSeconds: 0, signal: new AbortController().signal },
  streams: true,
}
const HELLO = { protocolVersion: '2025-06-18', capabilities: { roots: {} }, clientInfo: { name: 'x', version: '1' } }
const CLIENT = { 'io.modelcontextprotocol/clientInfo': { name: 'a client', version: '2.1' } }
const METHODS = {
  legacy: ['ping', 'tools/list', 'resources/list', 'resources/templates/list', 'prompts/list', 'initialize'],
  modern: ['server/discover', 'tools/list', 'resources/list', 'resources/templates/list', 'prompts/list'],
} as const

for (const era of ERAS)
  t.test(era, async (t) => {
    const { post } = openCaller(new URL('/mcp', office.api.baseUrl).href)
    for (const method of METHODS[era])
      for (const meta of [undefined, { 'example/any': 1 }, ...(era === 'modern' ? [CLIENT] : [])])
        for (const id of [1, 'two', 3]) {
          const params = method === 'initialize' ? HELLO : {}
          const { body, headers } = envelope(method, params, { era, id, meta })
          const { 'mcp-protocol-version': version, 'mcp-method': named } = headers as Record<string, string>
          const own = await answer(body, { version, method: named }, exchange)
          const given = await post(body, headers)
          t.equal(given.status, own.status)
          t.equal(given.text, await own.text(), `${method} ${JSON.stringify(meta)} ${id}`)
          t.ok(given.body.result, method)
        }
  })

/** Counts how often the SDK is asked. */
function counting() {
  const asked = { lists: 0 }
  const feature: Feature = {
    capabilities: { tools: {} },
    install(server) {
      server.setRequestHandler('tools/list', ({ params }) => {
        asked.lists++
        if (params?.cursor) throw new Error('no such page')
        return { tools: [] }
      })
    },
  }
  return { asked, feature }
}

for (const era of ERAS)
  t.test(`${era}: the SDK is asked once for the same thing`, async (t) => {
    const { asked, feature } = counting()
    await using stage = await openStage(office.api, [feature])
    const { ask } = openCaller(stage.url)
    for (const id of [1, 2, 'x']) t.equal((await ask('tools/list', {}, { era, id })).body.id, id)
    t.equal(asked.lists, 1)
    await ask('tools/list', {}, { era, meta: { 'example/any': 1 } })
    t.equal(asked.lists, 2, 'something else was asked')
    for (const _ of [1, 2]) t.ok((await ask('tools/list', { cursor: 'x' }, { era })).body.error)
    t.equal(asked.lists, 4, 'errors are not kept')
    for (const _ of [1, 2]) await ask('tools/list', { long: 'x'.repeat(5000) }, { era })
    t.equal(asked.lists, 6, 'nor what is long')
  })

t.test('what is kept of one caller is never given to a wrong one', async (t) => {
  const { feature } = counting()
  await using stage = await openStage(office.api, [feature])
  const { ask, post } = openCaller(stage.url)
  t.equal((await ask('tools/list')).status, 200)
  const { body, headers } = envelope('tools/list', {})
  t.equal((await post(body, { ...headers, 'mcp-method': 'ping' })).body.error.code, -32_020)
  t.equal((await post(body, { ...headers, 'mcp-protocol-version': '2025-11-25' })).body.error.code, -32_020)
  t.equal((await post({ ...body, jsonrpc: '1.0' }, headers)).body.error.code, -32_600)
  t.equal((await post({ ...body, id: null }, headers)).status >= 400, true)
  t.equal((await post(body, { ...headers, accept: 'text/html' })).status, 406)
})

t.test('a question is what the answer depends on', async (t) => {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { a: 1 } }
  const key = (more: object, headers = {}) => questionOf({ ...message, ...more }, headers, 100)?.key
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
  t.equal(questionOf(message, {}, Number.NaN), null)
  t.equal(questionOf([message], {}, 100), null)
})

t.test('only answers of the expected form are kept', async (t) => {
  const kept = openKeptAnswers()
  const question = { key: 'k', id: 1 }
  for (const [status, text] of [
    [404, '{"result":{},"jsonrpc":"2.0","id":1}'],
    [200, '{"jsonrpc":"2.0","id":1,"error":{}}'],
    [200, '{"result":{},"jsonrpc":"2.0","id":2}'],
  ] as const) {
    kept.keep(question, status, text)
    t.equal(kept.find(question), undefined)
  }
  kept.keep(question, 200, '{"result":{},"jsonrpc":"2.0","id":1}')
  t.equal(kept.find({ key: 'k', id: 'other' }), '{"result":{},"jsonrpc":"2.0","id":"other"}')
})
