// Resources and prompts in both eras: their lists, their contents, and errors.
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import t from 'tap'
import { openAccountHarness } from '../accounts/harness.ts'
import { ERAS, openRawClient } from './raw-client.ts'

const office = await openAccountHarness()
t.teardown(() => office[Symbol.asyncDispose]())
const { ask } = openRawClient(new URL('/mcp', office.api.baseUrl).href)

const URIS = [
  'service://pricing',
  'service://keys',
  'service://docs/quickstart',
  'service://schemas/receipt',
  'ui://countersign/report',
]

for (const era of ERAS) {
  t.test(`${era}: resources`, async (t) => {
    const list = (await ask('resources/list', {}, { era })).body.result
    t.same(
      list.resources.map(({ uri }: { uri: string }) => uri),
      URIS,
    )
    for (const { uri, name, description, mimeType } of list.resources) {
      t.ok(name && description)
      const read = (await ask('resources/read', { uri }, { era })).body.result
      t.match(read.contents, [{ uri, mimeType, text: /.{100}/s }])
      t.equal(read.contents.length, 1)
      if (era === 'modern') t.match(read, { ttlMs: Number, cacheScope: 'public', resultType: 'complete' })
      else t.notOk('ttlMs' in read)
    }
    t.same((await ask('resources/templates/list', {}, { era })).body.result.resourceTemplates, [])
    const missing = (await ask('resources/read', { uri: 'service://nope' }, { era })).body
    t.match(missing.error, { code: -32_602 })
  })

  t.test(`${era}: prompts`, async (t) => {
    const { prompts } = (await ask('prompts/list', {}, { era })).body.result
    t.match(prompts, [
      { name: 'verify_before_citing', description: /./, arguments: [{ name: 'source_url' }, { name: 'claim' }] },
      {
        name: 'run_under_lease',
        description: /./,
        arguments: [{ name: 'agent' }, { name: 'action' }, { name: 'lim' }],
      },
    ])
    const given = { source_url: 'https://example.com/a', claim: 'It rains.' }
    const written = (await ask('prompts/get', { name: 'verify_before_citing', arguments: given }, { era })).body.result
    t.match(written.messages, [
      { role: 'user', content: { type: 'text', text: /https:\/\/example\.com\/a\nClaim: It rains\./ } },
    ])
    const leased = { name: 'run_under_lease', arguments: { agent: 'a', action: 'deploy' } }
    t.match((await ask('prompts/get', leased, { era })).body.result.messages[0].content.text, /Action: deploy\n/)
    for (const params of [
      { name: 'run_under_lease', arguments: { agent: 'a' } },
      { name: 'run_under_lease' },
      { name: 'nope' },
      { name: 'run_under_lease', arguments: { agent: 5, action: 'x' } },
    ])
      t.equal((await ask('prompts/get', params, { era })).body.error.code, -32_602, JSON.stringify(params))
  })

  t.test(`${era}: lists have one page`, async (t) => {
    for (const method of ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list'])
      t.equal((await ask(method, { cursor: 'x' }, { era })).body.error.code, -32_602, method)
  })
}

async function read(uri: string): Promise<string> {
  return (await ask('resources/read', { uri })).body.result.contents[0].text
}

t.test('resources agree with what HTTP answers', async (t) => {
  const keys = await office.call('GET', '/v1/keys')
  t.same(JSON.parse(await read('service://keys')), keys.body)
  const { price, networks, payment_mode } = (await office.call('GET', '/api/agent/v1/capabilities')).body
  const pricing = JSON.parse(await read('service://pricing'))
  t.match(pricing.verification, { price, networks, payment_mode })
  const owner = await office.register()
  const { limits } = (await owner.call('GET', '/v1/usage')).body
  t.same(pricing.control_toolkit.free, { usd_per_month: 0, limits })
  t.match(pricing.control_toolkit, { dev: { usd_per_month: 29 }, pro: { usd_per_month: 99 } })
  t.equal(await read('service://docs/quickstart'), (await office.call('GET', '/llms.txt')).bytes.toString())
})

t.test('receipts are valid by the schema of receipts', async (t) => {
  const ajv = new Ajv2020()
  addFormats.default(ajv)
  const validate = ajv.compile(JSON.parse(await read('service://schemas/receipt')))
  const owner = await office.register()
  const { attestation } = (await owner.call('POST', '/v1/receipt', { body: { subject_sha256: '00'.repeat(32) } })).body
  t.ok(validate(attestation), JSON.stringify(validate.errors))
  t.notOk(validate({ ...attestation, serial: 0 }))
  t.notOk(validate({ attestation }))
})
