// How tools are described, and how their results, progress reports and errors are answered.
import { randomUUID } from 'node:crypto'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import t from 'tap'
import { AppError } from '../../server/errors.ts'
import { resultOf, type Tool, type ToolDescriptor } from '../../server/mcp/tool.ts'
import { toolsFeature } from '../../server/mcp/tools.ts'
import { openAccountHarness } from '../accounts/harness.ts'
import { makeTool, openEndpoint } from './endpoint-harness.ts'
import { ERAS, envelope, openRawClient } from './raw-client.ts'

const office = await openAccountHarness()
t.teardown(() => office[Symbol.asyncDispose]())
const url = new URL('/mcp', office.api.baseUrl).href

async function stageOf(t: import('tap').Test, tools: Tool[]) {
  const stage = await openEndpoint(office.api, [toolsFeature(tools)])
  t.teardown(() => stage[Symbol.asyncDispose]())
  return { url: stage.url, ...openRawClient(stage.url) }
}

/** Arguments whose names say enough. */
const PLAIN = new Set([
  ...['service_key', 'name', 'slot', 'limit', 'from', 'to'],
  ...['inclusion', 'checkpoint', 'canonical_envelope_base64', 'verification'],
])

t.test('the list of tools is valid and the same in both eras', async (t) => {
  const { ask } = openRawClient(url)
  const { tools } = (await ask('tools/list')).body.result as { tools: ToolDescriptor[] }
  t.same((await ask('tools/list', {}, { era: 'legacy' })).body.result.tools, tools, 'the same in both eras')
  t.equal(tools.length, 26)
  t.equal(new Set(tools.map(({ name }) => name)).size, 26)
  const ajv = new Ajv2020({ strict: true, strictTypes: false })
  addFormats.default(ajv)
  for (const { name, title, description, inputSchema, outputSchema, annotations } of tools) {
    t.match(name, /^service_[a-z_]{1,24}$/)
    t.ok(title)
    t.match(description, /^[\x20-\x7e\n]{40,1200}$/, `${name} is described`)
    t.equal(inputSchema.type, 'object')
    for (const keyword of ['anyOf', 'oneOf', 'allOf', '$ref']) t.notOk(keyword in inputSchema, `${name}: ${keyword}`)
    t.equal(outputSchema, undefined, `${name}: an error would not meet it`)
    t.doesNotThrow(() => ajv.compile(inputSchema), name)
    t.notMatch(JSON.stringify(inputSchema), /"type":\[/, `${name}: no lists of types`)
    const hints = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'] as const
    for (const hint of hints) t.equal(typeof annotations?.[hint], 'boolean', `${name}: ${hint}`)
    t.notOk(annotations?.readOnlyHint && annotations.destructiveHint, name)
    for (const [argument, schema] of Object.entries(inputSchema.properties ?? {}))
      if (!PLAIN.has(argument))
        t.ok(JSON.stringify(schema).includes('"description"'), `${name}.${argument} is described`)
    t.notOk(inputSchema.required?.includes('service_key'), `${name}: the key may come in Authorization`)
  }
  for (const { name, inputSchema } of tools)
    t.match(inputSchema.properties?.service_key, { type: 'string' }, `${name} takes the key of an account`)
})

t.test('a tool that needs no key ignores any service_key', async (t) => {
  const { call } = openRawClient(url)
  const { key, handle } = await office.register()
  const attestation = (await office.call('POST', '/v1/receipt', { key, body: { subject_sha256: '00'.repeat(32) } }))
    .body
  for (const service_key of [key, `${key}x`, '', 7, null]) {
    const about = JSON.stringify(service_key)?.slice(0, 5)
    const ask = async (name: string, args: object) => call(name, { ...args, service_key })
    const verified = await ask('service_receipt_verify', { attestation: attestation.attestation })
    t.match(verified.structuredContent, { valid: true }, about)
    t.match((await ask('service_register', { handle })).structuredContent.error, { code: 'handle_taken' }, about)
    t.match((await ask('service_chain_head', {})).structuredContent, { serial: Number }, about)
    const args = { source_url: 'https://example.com/', claim: 'It is an example.', idempotency_key: randomUUID() }
    const asked = await ask('service_verify_source', args)
    t.notMatch(asked.structuredContent, { error: { code: 'invalid_request' } }, about)
  }
})

t.test('a tool refuses arguments that its schema refuses', async (t) => {
  const { ask, call } = openRawClient(url)
  const { tools } = (await ask('tools/list')).body.result as { tools: ToolDescriptor[] }
  for (const { name, inputSchema } of tools.filter(({ name }) => name !== 'service_verify_source')) {
    const key = { service_key: (await office.register()).key }
    for (const required of inputSchema.required ?? []) {
      const { type } = (inputSchema.properties?.[required] ?? {}) as { type?: string }
      const { structuredContent, isError } = await call(name, { ...key, [required]: type === 'object' ? 'x' : {} })
      t.equal(isError, true, `${name}.${required}`)
      t.match(structuredContent, { error: { code: /^(invalid_request|not_found)$/, retryable: false } }, name)
    }
    const unknown = await call(name, { ...key, surprise: 1 })
    t.equal(unknown.structuredContent.error.code, 'invalid_request', name)
  }
})

t.test('a call without a valid key is answered with both ways to send one', async (t) => {
  const { call } = openRawClient(url)
  for (const args of [{}, { service_key: 'ctk_wrong' }]) {
    const { isError, structuredContent, content } = await call('service_usage_get', args)
    t.equal(isError, true)
    t.match(structuredContent, { error: { code: 'unauthenticated', message: /Authorization: Bearer .*service_key/ } })
    t.equal(content[0].text, JSON.stringify(structuredContent))
  }
})

t.test('with the paid tool switched off, it is not listed', async (t) => {
  const desk = await office.openApiProcess({ MCP_VERIFICATION_ENABLED: 'false' })
  t.teardown(() => desk[Symbol.asyncDispose]())
  const { ask } = openRawClient(new URL('/mcp', desk.api.baseUrl).href)
  for (const era of ERAS) {
    const { tools } = (await ask('tools/list', {}, { era })).body.result
    t.equal(tools.length, 25)
    t.notOk(tools.some(({ name }: ToolDescriptor) => name === 'service_verify_source'))
    const called = await ask('tools/call', { name: 'service_verify_source', arguments: {} }, { era })
    t.equal(called.body.error.code, -32_602)
  }
})

for (const era of ERAS) {
  t.test(`${era}: an unknown tool, or arguments that are not an object, are invalid params`, async (t) => {
    const { ask } = openRawClient(url)
    for (const params of [
      { name: 'nope' },
      { name: '' },
      {},
      { name: 5 },
      { name: 'service_usage_get', arguments: 'x' },
    ]) {
      const answer = await ask('tools/call', params, { era, headers: { 'mcp-name': String(params.name ?? '') } })
      t.ok([-32_602, -32_020].includes(answer.body.error.code), JSON.stringify(params))
    }
    t.equal((await ask('tools/call', { name: 'nope' }, { era })).body.error.code, -32_602)
  })

  t.test(`${era}: an error that a tool throws becomes a result`, async (t) => {
    const tools = [
      makeTool('fault', async () => {
        throw new Error('the password is hunter2')
      }),
      makeTool('refusal', async () => {
        throw new AppError('daily_limit', 'No more today.', { headers: { 'retry-after': '60' } })
      }),
      makeTool('nothing', async () => Promise.reject(undefined)),
    ]
    const { call } = await stageOf(t, tools)
    for (const name of ['fault', 'nothing']) {
      const fault = await call(name, {}, { era })
      t.equal(fault.isError, true)
      t.match(fault.structuredContent, { error: { code: 'internal_error', retryable: true } })
      t.notMatch(JSON.stringify(fault), /hunter2|at .*\.ts/)
    }
    const refusal = await call('refusal', {}, { era })
    const body = { error: { code: 'daily_limit', message: 'No more today.', retryable: true } }
    t.same(refusal.structuredContent, body)
    t.same(refusal.content, [{ type: 'text', text: JSON.stringify(body) }])
    t.equal(refusal._meta['service/retry-after-seconds'], 60)
  })

  t.test(`${era}: an error that another method throws is answered without its text`, async (t) => {
    const stage = await openEndpoint(office.api, [
      {
        capabilities: { prompts: {} },
        install(server) {
          server.setRequestHandler('prompts/get', () => {
            throw Object.assign(new Error('the password is hunter2'), { code: 7, data: { password: 'hunter2' } })
          })
        },
      },
    ])
    t.teardown(() => stage[Symbol.asyncDispose]())
    const { status, text, body } = await openRawClient(stage.url).ask('prompts/get', { name: 'x' }, { era })
    t.equal(status, 200)
    t.equal(body.error.code, -32_603)
    t.notMatch(text, /hunter2/)
  })

  t.test(`${era}: progress is streamed to a caller that asked for it and accepts a stream`, async (t) => {
    const reporting = makeTool('work', async (_args, { progress }) => {
      progress?.(1, 3, 'one')
      progress?.(1, 3, 'not further')
      progress?.(3, 3, 'three')
      return resultOf({ done: true })
    })
    const { url, post } = await stageOf(t, [reporting])
    const { body, headers } = envelope('tools/call', { name: 'work' }, { era, meta: { progressToken: 'token' } })
    const streamed = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body: JSON.stringify(body),
    })
    t.equal(streamed.headers.get('content-type'), 'text/event-stream')
    const messages = [...(await streamed.text()).matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
    const report = (progress: number, message: string) => ({
      method: 'notifications/progress',
      params: { progressToken: 'token', progress, total: 3, message },
    })
    t.match(messages, [report(1, 'one'), report(3, 'three'), { id: 1, result: { structuredContent: { done: true } } }])
    t.equal(messages.length, 3)
    const quiet = [
      envelope('tools/call', { name: 'work' }, { era }),
      envelope(
        'tools/call',
        { name: 'work' },
        { era, meta: { progressToken: 1 }, headers: { accept: 'application/json' } },
      ),
    ]
    for (const { body, headers } of quiet) {
      const answer = await post(body, headers)
      t.match(answer.headers.get('content-type'), /^application\/json/)
      t.match(answer.body.result.structuredContent, { done: true })
    }
  })

  t.test(`${era}: a tool gets a signal when its caller disconnects`, async (t) => {
    const started = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<void>()
    const waiting = makeTool('wait', async (_args, { options: { signal } }) => {
      signal.addEventListener('abort', () => ended.resolve(), { once: true })
      started.resolve()
      await ended.promise
      return resultOf({})
    })
    const { url } = await stageOf(t, [waiting])
    const { body, headers } = envelope('tools/call', { name: 'wait' }, { era })
    const leaving = new AbortController()
    const asked = fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: '*/*', ...headers },
      body: JSON.stringify(body),
      signal: leaving.signal,
    })
    await started.promise
    leaving.abort()
    await t.rejects(asked)
    await ended.promise
    t.pass('the signal aborted')
  })
}
