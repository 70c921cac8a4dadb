// Every text that a buyer reads before paying is true of the configuration in force.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { openAccountHarness } from '../accounts/harness.ts'
import { ERAS, openRawClient } from '../mcp/raw-client.ts'
import { termsOf } from '../system.ts'

const office = await openAccountHarness()
t.teardown(() => office[Symbol.asyncDispose]())

const CAPABILITIES = '/api/agent/v1/capabilities'
const MODEL = { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: 'http://127.0.0.1:9' }

/** The texts of a web process with this environment, by their place. */
async function read(env: Record<string, string>) {
  await using desk = await office.openApiProcess(env)
  const { ask } = openRawClient(new URL('/mcp', desk.api.baseUrl).href)
  const page = async (path: string) => (await desk.call('GET', path)).bytes.toString()
  const capabilities = (await desk.call('GET', CAPABILITIES)).body
  const openapi = (await desk.call('GET', '/openapi.json')).body
  const unpaid = await fetch(new URL('/api/agent/v1/verify-source', desk.api.baseUrl), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID() },
    body: JSON.stringify({ source_url: 'https://example.com/', claim: 'x' }),
  })
  const terms = unpaid.status === 402 ? termsOf(unpaid) : null
  const { tools } = (await ask('tools/list')).body.result as { tools: { name: string; description: string }[] }
  const { prompts } = (await ask('prompts/list')).body.result as { prompts: { name: string }[] }
  const given = { source_url: 'https://example.com/', claim: 'x' }
  const prompt = await ask('prompts/get', { name: 'verify_before_citing', arguments: given })
  const resource = async (uri: string): Promise<string> =>
    (await ask('resources/read', { uri })).body.result.contents[0].text
  const instructions: Record<string, string> = {}
  for (const era of ERAS) {
    const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } }
    const { body } =
      era === 'legacy' ? await ask('initialize', hello, { era }) : await ask('server/discover', {}, { era })
    instructions[`MCP instructions, ${era}`] = body.result.instructions
  }
  const sold: Record<string, string> = {
    'capabilities.description': capabilities.description,
    'llms.txt': await page('/llms.txt'),
    'the home page': await page('/'),
    '.well-known/x402': (await desk.call('GET', '/.well-known/x402')).body.instructions,
    'openapi.info': openapi.info.description,
    'openapi, the operation': openapi.paths['/api/agent/v1/verify-source'].post.description,
    'the quickstart': await resource('service://docs/quickstart'),
    'the prices': await resource('service://pricing'),
  }
  const overMcp: Record<string, string> = {
    ...instructions,
    'the tool': tools.find(({ name }) => name === 'service_verify_source')?.description ?? '',
    'the prompt': prompt.body.result?.messages[0].content.text ?? '',
  }
  return {
    capabilities,
    status: unpaid.status,
    sold: terms ? { ...sold, 'the terms': terms.resource.description ?? '' } : sold,
    overMcp,
    example: (terms?.extensions as { bazaar: { info: { output: { example: object } } } } | undefined)?.bazaar.info
      .output.example,
    prompts: prompts.map(({ name }) => name),
    everything: JSON.stringify([sold, overMcp, capabilities, tools, prompts]),
  }
}

const JUDGED = /whether its text supports one claim: the verdict of a language model/
const QUOTED = /No model is asked and no verdict is given/

for (const [about, env] of [
  ['without a model', {}],
  ['with a model that is not to be asked', { ...MODEL, ASSESSMENT: 'literal' }],
] as const)
  t.test(`${about}, every text says that there is no model and no verdict`, async (t) => {
    const { sold, overMcp, capabilities, example } = await read(env)
    for (const [where, text] of Object.entries({ ...sold, ...overMcp })) {
      if (where === 'the prompt') t.match(text, /This service gives no verdict and asks no model/, where)
      else t.match(text, QUOTED, where)
      t.notMatch(text, JUDGED, where)
      t.notMatch(text, /claim_support is "?(supports|mixed|contradicts)/, where)
    }
    for (const where of ['capabilities.description', 'llms.txt', 'openapi.info', 'the quickstart'])
      t.match(sold[where], /claim_support is not_assessed .* insufficient_evidence .*literal_quotation_only/s, where)
    t.match(overMcp['the tool'], /claim_support is not_assessed .* insufficient_evidence/)
    t.match(example, { claim_support: 'not_assessed', evidence: [{ stance: 'mentions' }] })
    t.notMatch(capabilities.scope, /A verdict states/)
  })

t.test('with a model, every text names its verdict', async (t) => {
  const { sold, overMcp, capabilities, example } = await read(MODEL)
  for (const [where, text] of Object.entries({ ...sold, ...overMcp })) {
    if (where === 'the prompt') t.match(text, /Cite only if claim_support is "supports"/)
    else t.match(text, JUDGED, where)
    t.notMatch(text, QUOTED, where)
    t.notMatch(text, /literal_fallback/, where)
  }
  t.match(capabilities.description, /supports, contradicts, mixed or insufficient_evidence/)
  t.match(capabilities.scope, /A verdict states only what the retrieved text says/)
  t.match(capabilities.methodology_version, /^retrieval-\S+ semantic-\d+\+claude-/)
  t.match(example, { claim_support: 'supports' })
})

t.test('without a model, every text names the local verifier and its accuracy', async (t) => {
  const { sold, overMcp, capabilities, example } = await read({ ASSESSMENT: 'local' })
  for (const [where, text] of Object.entries({ ...sold, ...overMcp })) {
    if (where === 'the prompt') t.match(text, /Cite only if claim_support is "supports"/)
    else
      t.match(
        text,
        /the verdict of the local verifier local-1.* 90 of 100 verdicts for a claim and 88 of 100 against one were right \(on fresh public sets 70 and 61\)/s,
        where,
      )
    t.notMatch(text, QUOTED, where)
    t.notMatch(text, JUDGED, where)
  }
  t.match(capabilities.methodology_version, /^retrieval-\S+ local-1\+[0-9a-f]{16}\+/)
  t.match(example, { claim_support: 'supports' })
})

t.test('with a local fallback, every text describes it', async (t) => {
  const { sold, overMcp } = await read({ ...MODEL, ASSESSMENT_FALLBACK: 'local' })
  const described: Record<string, string> = { ...sold, 'the tool': overMcp['the tool'] ?? '' }
  for (const where of ['capabilities.description', 'llms.txt', 'openapi.info', 'the tool', 'the prices'])
    t.match(described[where], /the local verifier gives the verdict, at the same price.*local_fallback/s, where)
})

t.test('with the literal fallback, every text describes it', async (t) => {
  const { sold, overMcp } = await read({ ...MODEL, ASSESSMENT_FALLBACK: 'literal' })
  const described: Record<string, string> = { ...sold, 'the tool': overMcp['the tool'] ?? '' }
  for (const where of ['capabilities.description', 'llms.txt', 'openapi.info', 'the tool', 'the prices'])
    t.match(described[where], /no verdict is given, at the same price.*literal_fallback/s, where)
})

t.test('with the paid tool switched off, no text names it', async (t) => {
  const { capabilities, everything, prompts, status } = await read({ MCP_VERIFICATION_ENABLED: 'false' })
  t.notOk('mcp_tool' in capabilities)
  t.same(prompts, ['run_under_lease'])
  t.notMatch(everything, /service_verify_source/)
  t.equal(status, 402, 'HTTP still sells')
  t.equal((await read({})).capabilities.mcp_tool, 'service_verify_source')
})

t.test('with verification switched off, every text says so', async (t) => {
  const { sold, overMcp, status } = await read({ VERIFICATION_ENABLED: 'false' })
  t.equal(status, 503)
  for (const [where, text] of Object.entries({ ...sold, ...overMcp }))
    t.match(text, /New verifications are switched off here at present/, where)
  const open = await read({})
  t.notMatch(open.everything, /switched off here/)
})
