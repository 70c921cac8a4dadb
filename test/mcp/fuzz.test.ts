// To any input the answer is JSON-RPC without a 5xx, and shows neither internals nor the key that was sent.
import t from 'tap'
import type { ToolDescriptor } from '../../server/mcp/tool.ts'
import { openAccountHarness } from '../accounts/harness.ts'
import { LONG, rounds } from '../long.ts'
import { ERAS, type Era, envelope, openRawClient, type RpcAnswer } from './raw-client.ts'

const office = await openAccountHarness()
t.teardown(() => office[Symbol.asyncDispose]())
const { post, ask } = openRawClient(new URL('/mcp', office.api.baseUrl).href)
const owner = await office.register({ tier: 'pro' })

/** Pseudo-random numbers, the same in every run. */
function seeded(seed: number) {
  let state = seed
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state % below
  }
}
const random = seeded(7)
const pick = <T>(from: readonly T[]) => from[random(from.length)] as T

const nested = (depth: number, open: string, close: string) => `${open.repeat(depth)}1${close.repeat(depth)}`
/** JSON texts: some cannot be made by JSON.stringify. */
const VALUES = [
  'null',
  'true',
  '-1',
  '1e308',
  '1e999',
  '0.1',
  '9007199254740993',
  '""',
  '"\\u0000"',
  '"\\ud800"',
  '"x\\u0000y"',
  '"../../etc/passwd"',
  '"%s%n$1"',
  `"'; drop table accounts; --"`,
  `"${'a'.repeat(30_000)}"`,
  '"\\u202e\\ufeff"',
  '[]',
  '{}',
  '[[]]',
  nested(2000, '[', ']'),
  nested(2000, '{"a":', '}'),
  '{"__proto__":{"isAdmin":true}}',
  '{"constructor":{"prototype":{"isAdmin":true}}}',
  '{"toString":1,"valueOf":2,"toJSON":3}',
  '{"then":1}',
  '{"length":-1,"0":"x"}',
]

/** Of every kind one, where all would take too long but in the long run. */
const FEW = VALUES.filter((_, index) => LONG || index % 3 === 0 || VALUES[index]?.includes('u0000'))

const INTERNALS =
  /node_modules|\.ts:\d|\bat \w+ \(|SyntaxError|TypeError|RangeError|ZodError|postgres|slonik|select |relation "/i

function sane(t: import('tap').Test, answer: RpcAnswer, what: string) {
  const about = `${what.slice(0, 200)} → ${answer.status} ${answer.text.slice(0, 300)}`
  const { status, body, text } = answer
  if (status >= 500) t.fail(`internal error: ${about}`)
  if (status === 202 ? text !== '' : body?.jsonrpc !== '2.0' || 'result' in body === 'error' in body)
    t.fail(`not JSON-RPC: ${about}`)
  if (body?.error?.code === -32_603 || body?.result?.structuredContent?.error?.code === 'internal_error')
    t.fail(`internal error: ${about}`)
  if (INTERNALS.test(text)) t.fail(`internals: ${about}`)
  if (text.includes(owner.key)) t.fail(`the key: ${about}`)
}

/** `params` as text, in the envelope of its era. */
function send(method: string, params: string, era: Era, name?: string) {
  const { body, headers } = envelope(method, { ...(name !== undefined && { name }) }, { era })
  const meta = (body.params as { _meta?: object })._meta
  const all = meta ? params.replace(/}$/, `${params === '{}' ? '' : ','}"_meta":${JSON.stringify(meta)}}`) : params
  return post(`{"jsonrpc":"2.0","id":1,"method":${JSON.stringify(method)},"params":${all}}`, headers)
}

const { tools } = (await ask('tools/list')).body.result as { tools: ToolDescriptor[] }

t.test('values of any type as arguments of every tool', async (t) => {
  for (const { name, inputSchema } of tools) {
    const members = Object.keys(inputSchema.properties ?? {})
    const required = (inputSchema.required ?? []).map((member) => `${JSON.stringify(member)}:"x"`)
    for (const member of [...members, 'surprise', '__proto__'])
      for (const value of FEW) {
        const key = members.includes('service_key') ? [`"service_key":"${owner.key}"`] : []
        // Of two members of one name the last is used.
        const args = `{${[...key, ...required, `${JSON.stringify(member)}:${value}`]}}`
        const asked = `{"name":"${name}","arguments":${args}}`
        sane(t, await send('tools/call', asked, pick(ERAS), name), `${name} ${member} ${value}`)
      }
    for (const args of FEW)
      sane(t, await send('tools/call', `{"name":"${name}","arguments":${args}}`, pick(ERAS), name), `${name} ${args}`)
  }
  t.equal(({} as { isAdmin?: boolean }).isAdmin, undefined, 'no prototype was touched')
  t.equal((await owner.call('GET', '/v1/usage')).status, 200)
})

t.test('arguments that fit the schema, at its limits', async (t) => {
  const strings = [
    '',
    'a',
    'a'.repeat(200),
    'ünï→\u{1f600}',
    'ls_00000000000000000000000000000000',
    'AAAA',
    '00'.repeat(32),
  ]
  const numbers = [0, 1, -1, 86_400, 2_592_000, Number.MAX_SAFE_INTEGER]
  for (let round = 0; round < rounds(400); round++) {
    const { name, inputSchema } = pick(tools)
    const args: Record<string, unknown> = {}
    for (const [member, schema] of Object.entries(inputSchema.properties ?? {})) {
      const { type, enum: choices } = schema as { type?: string; enum?: string[] }
      if (random(4) === 0 && !inputSchema.required?.includes(member)) continue
      args[member] = choices
        ? pick(choices)
        : type === 'integer'
          ? pick(numbers)
          : type === 'boolean'
            ? true
            : pick(strings)
    }
    if ('service_key' in args) args.service_key = owner.key
    const text = JSON.stringify({ name, arguments: args })
    sane(t, await send('tools/call', text, pick(ERAS), name), text)
  }
  t.pass('every answer was sane')
})

for (const era of ERAS)
  t.test(`${era}: any params for every method`, async (t) => {
    const methods = [
      ...[
        'initialize',
        'ping',
        'tools/list',
        'tools/call',
        'resources/list',
        'resources/read',
        'resources/templates/list',
      ],
      ...[
        'prompts/list',
        'prompts/get',
        'server/discover',
        'tasks/get',
        'tasks/cancel',
        'tasks/update',
        'tasks/result',
      ],
      ...[
        'completion/complete',
        'logging/setLevel',
        'subscriptions/listen',
        'resources/subscribe',
        'sampling/createMessage',
      ],
      ...['', '__proto__', 'constructor', 'toString', 'x'.repeat(5000), '\u0000'],
    ]
    for (const method of methods)
      for (const value of FEW) {
        const member = pick(['name', 'uri', 'cursor', 'arguments', '_meta', 'taskId', 'protocolVersion', '__proto__'])
        for (const params of [value, `{${JSON.stringify(member)}:${value}}`]) {
          const plain = /^[\x21-\x7e]+$/.test(method) ? method : 'x'
          const named = envelope(plain, {}, { era }).headers
          sane(
            t,
            await post(`{"jsonrpc":"2.0","id":1,"method":${JSON.stringify(method)},"params":${params}}`, named),
            `${method} ${params}`,
          )
        }
      }
    t.pass('every answer was sane')
  })

t.test('any members of messages and of _meta', async (t) => {
  const members = ['jsonrpc', 'id', 'method', 'params', 'result', 'error', '__proto__', 'extra']
  for (const member of members)
    for (const value of VALUES) {
      const message = { jsonrpc: '"2.0"', id: '1', method: '"tools/list"', params: '{}', [member]: value }
      const text = `{${Object.entries(message).map(([name, json]) => `"${name}":${json}`)}}`
      sane(t, await post(text), text)
    }
  for (const value of VALUES)
    for (const key of ['protocolVersion', 'clientCapabilities', 'clientInfo', 'logLevel', 'progressToken']) {
      const own = key === 'progressToken' ? key : `io.modelcontextprotocol/${key}`
      const { body, headers } = envelope('tools/call', { name: 'service_chain_head' })
      const meta = (body.params as unknown as { _meta: Record<string, unknown> })._meta
      const rest = Object.entries(meta).filter(([name]) => name !== own)
      const json = [
        ...rest.map(([name, member]) => `${JSON.stringify(name)}:${JSON.stringify(member)}`),
        `"${own}":${value}`,
      ]
      const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"service_chain_head","_meta":{${json}}}}`
      sane(t, await post(text, headers), text)
      sane(t, await post(text), text)
    }
  for (const text of VALUES) sane(t, await post(text), text)
  sane(t, await post(nested(60_000, '[', ']')), 'deep')
  sane(t, await post(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":${nested(20_000, '{"a":', '}')}}`), 'deep')
  t.pass('every answer was sane')
})

t.test('bytes that are not text', async (t) => {
  for (let round = 0; round < rounds(100); round++) {
    const bytes = Buffer.from(JSON.stringify(envelope('tools/list', {}).body))
    for (let flips = 0; flips <= random(4); flips++) bytes[random(bytes.length)] = random(256)
    sane(t, await post(bytes), bytes.toString('latin1'))
  }
  t.pass('every answer was sane')
})

t.test('any values of headers', async (t) => {
  const values = [
    '',
    ' ',
    'x',
    '2026-07-28 ',
    ' 2026-07-28',
    '9999-99-99',
    '=?base64?%%%?=',
    'x'.repeat(8000),
    'a, b',
    '\u00ff',
  ]
  for (const header of [
    'mcp-protocol-version',
    'mcp-method',
    'mcp-name',
    'mcp-session-id',
    'last-event-id',
    'authorization',
    'accept',
  ])
    for (const value of values)
      for (const era of ERAS) {
        const { body, headers } = envelope('tools/call', { name: 'service_usage_get', arguments: {} }, { era })
        sane(t, await post(body, { ...headers, [header]: value }), `${header}: ${value}`)
      }
  t.pass('every answer was sane')
})
