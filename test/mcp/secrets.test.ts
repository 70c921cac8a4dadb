// An API key that is passed as an argument appears in no log line, however the call ends, and only in the answer that
// issues it.
import t from 'tap'
import { startSystem } from '../system.ts'
import { ERAS, openRawClient } from './raw-client.ts'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())
const { ask, call, post } = openRawClient(system.url('/mcp'))

for (const era of ERAS)
  t.test(era, async (t) => {
    const registered = await call('service_register', { handle: `secrets-${era}` }, { era })
    const key: string = registered.structuredContent.api_key
    t.match(key, /^ctk_/)
    const wrong = `${key.slice(0, -1)}_`
    const bearer = { headers: { authorization: `Bearer ${key}` } }
    const answers = [
      await ask('tools/call', { name: 'service_usage_get', arguments: { service_key: key } }, { era }),
      await ask('tools/call', { name: 'service_usage_get', arguments: { service_key: wrong } }, { era }),
      await ask('tools/call', { name: 'service_usage_get', arguments: { service_key: [key] } }, { era }),
      await ask('tools/call', { name: 'service_usage_get', arguments: { service_key: wrong } }, { era, ...bearer }),
      await ask('tools/call', { name: 'service_usage_get', arguments: {} }, { era, ...bearer }),
      await ask('tools/call', { name: 'service_usage_get', arguments: { service_key: key, surprise: 1 } }, { era }),
      await ask('tools/call', { name: 'service_lease_renew', arguments: { service_key: key, lease_id: 'x' } }, { era }),
      await ask('tools/call', { name: 'service_nope', arguments: { service_key: key } }, { era }),
      await ask('nope', { service_key: key }, { era }),
      await ask('resources/read', { uri: `service://${key}` }, { era, headers: { 'mcp-name': key } }),
      await ask('tools/list', {}, { era, meta: { 'service/key': key } }),
      await post({ jsonrpc: '2.0', id: { key }, method: 'ping' }),
      await post(`{"service_key":"${key}"`),
      await post(`{"service_key": ${key}}`),
      await post(`${key}`),
      await post(`["${key.slice(0, 30)}\u0001${key.slice(30)}"]`),
      await post({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: key, progress: 1 } }),
    ]
    t.ok(answers.some(({ body }) => body?.result?.structuredContent?.handle === `secrets-${era}`))
    const repeated = answers.filter(({ text }) => text.includes(key) && !text.includes(`service://${key}`))
    t.same(
      repeated.map(({ text }) => text.slice(0, 300)),
      [],
    )
    const lines = system.logged.map((line) => JSON.stringify(line))
    t.ok(lines.length > 0, 'something is logged')
    // V8 shows some twenty characters of what it cannot parse.
    for (let at = 4; at + 8 <= key.length; at++)
      if (lines.some((line) => line.includes(key.slice(at, at + 8)))) t.fail(`a part of the key is logged, from ${at}`)
    const loud = system.logged.filter(
      ({ level, operation }) => level !== 'trace' && level !== 'debug' && operation === 'mcp',
    )
    t.same(loud, [], "a caller's error is no error of the service")
    t.same(
      lines.filter((line) => line.includes(key.slice(4, 40))),
      [],
    )
  })
