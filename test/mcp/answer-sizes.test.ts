// Answers for models: how long the list of tools and the text of an answer may be, and what the text says.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { CompletedResult } from '../../server/interface/result.ts'
import { summarizeBody, summarizeResult } from '../../server/mcp/summary.ts'
import { openAccountHarness } from '../accounts/harness.ts'
import { PAGE, startSystem } from '../system.ts'
import { callTool, expectCompleted, KEY, newArgs, PAYMENT, sign } from './paid-tool.ts'
import { ERAS, openRawClient } from './raw-client.ts'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())
const address = system.url('/')
const mcp = system.url('/mcp')

const MODEL = { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: 'http://127.0.0.1:9' }

t.test('the list of tools fits into 16 kB, whatever is offered', async (t) => {
  await using office = await openAccountHarness()
  const offers: Record<string, string>[] = [
    {},
    MODEL,
    { ...MODEL, ASSESSMENT_FALLBACK: 'literal' },
    { VERIFICATION_ENABLED: 'false' },
    { ...MODEL, ASSESSMENT_FALLBACK: 'literal', MCP_VERIFY_CLAIMS_ENABLED: 'true' },
    { VERIFICATION_ENABLED: 'false', MCP_VERIFY_CLAIMS_ENABLED: 'true' },
  ]
  for (const env of offers) {
    await using desk = await office.openApiProcess(env)
    for (const era of ERAS) {
      const { result } = (await openRawClient(new URL('/mcp', desk.api.baseUrl).href).ask('tools/list', {}, { era }))
        .body
      t.equal(result.tools.length, env.MCP_VERIFY_CLAIMS_ENABLED ? 27 : 26)
      const bytes = Buffer.byteLength(JSON.stringify(result))
      // The tool that an operator switches on has its own input.
      t.ok(bytes <= (env.MCP_VERIFY_CLAIMS_ENABLED ? 18_000 : 16_384), `${era} ${JSON.stringify(env)}: ${bytes} bytes`)
    }
  }
})

/** Buys a verification of this page, and returns the answer of the paid call. */
async function buy(page: string, manner: { modern?: boolean } = {}) {
  const key = randomUUID()
  const args = newArgs(system.site, { body: page })
  const { payment } = await sign(address, { args, meta: { [KEY]: key } })
  return callTool(address, { args, meta: { [KEY]: key, [PAYMENT]: payment }, ...manner })
}

t.test('a result of a long page is told in few words, and a link gives the whole', async (t) => {
  const long = `${PAGE}${'<p>The council met again, and nothing of note was said about the ferry.</p>'.repeat(1300)}`
  const answer = await buy(long, { modern: true })
  const { result } = expectCompleted(t, answer) as unknown as { result: CompletedResult }
  t.ok(JSON.stringify(result).length > 80_000)
  const [summary, link] = answer.content as unknown as [{ text: string }, { uri: string }]
  for (const [index, { stance, quote }] of result.evidence.entries())
    t.match(summary.text, `${index + 1}. ${stance}: “${quote.slice(0, 40)}`)
  t.match(summary.text, /#:~:text=/, 'links mark the quotes')
  t.match(summary.text, result.explanation.slice(0, 100))
  t.match(summary.text, '/verify')
  t.match(link, { type: 'resource_link', mimeType: 'application/json', uri: /^service:\/\/results\// })
  t.notMatch(JSON.stringify(answer.content), answer._meta?.['service/recovery-token'], 'the token stays out of it')
  for (const era of ERAS) {
    const { ask } = openRawClient(mcp)
    const { contents } = (await ask('resources/read', { uri: link.uri }, { era })).body.result
    t.same(JSON.parse(contents[0].text), result, 'the whole')
    const forged = `${link.uri.slice(0, -2)}AA`
    t.match((await ask('resources/read', { uri: forged }, { era })).body.error.code, /^-3200?2|-32602$/)
  }
})

t.test('a client of the first revision gets no link, which it does not know', async (t) => {
  const { ask } = openRawClient(mcp)
  const args = newArgs(system.site, { body: PAGE })
  const key = randomUUID()
  const { payment } = await sign(address, { args, meta: { [KEY]: key } })
  const call = async (headers: Record<string, string>) => {
    const params = { name: 'service_verify_source', arguments: args }
    const meta = { [KEY]: key, [PAYMENT]: payment }
    return (await ask('tools/call', params, { era: 'legacy', meta, headers })).body.result.content.map(
      ({ type }: { type: string }) => type,
    )
  }
  t.same(await call({}), ['text'])
  t.same(await call({ 'mcp-protocol-version': '2025-03-26' }), ['text'])
  for (const version of ['2025-06-18', '2025-11-25'])
    t.same(await call({ 'mcp-protocol-version': version }), ['text', 'resource_link'], version)
})

t.test('the words fit, whatever the result holds', async (t) => {
  const { result } = expectCompleted(t, await buy(PAGE)) as unknown as { result: CompletedResult }
  const quote = 'Ωmega 𝟙 long words — '.repeat(48).slice(0, 1000)
  const text = `${quote}\n`.repeat(6)
  const one = [...quote].length + 1
  const longest = {
    ...result,
    source: { ...result.source, final_url: `https://harbour.test/${'a'.repeat(2000)}`, normalized_text: text },
    explanation: '𝟙'.repeat(800),
    risk_flags: Array.from({ length: 32 }, (_, index) => `a_flag_of_some_length_${index}`),
    evidence: Array.from({ length: 6 }, (_, index) => ({
      ...result.evidence[0],
      evidence_id: `e${index + 1}`,
      quote,
      start: index * one,
      end: index * one + one - 1,
    })),
  } as CompletedResult
  for (const changed of [
    longest,
    { ...longest, source: { ...longest.source, final_url: 'https://harbour.test/page' } },
    { ...longest, evidence: [] },
    { ...longest, risk_flags: [] },
  ]) {
    const words = summarizeResult(changed, 'https://verify.example')
    t.ok([...words].length <= 2000, `${[...words].length} characters`)
    for (const { stance } of changed.evidence) t.match(words, `. ${stance}: “`)
  }
  t.match(summarizeResult({ ...longest, risk_flags: ['text_truncated'] }, 'https://x.example'), /text_truncated \(/)
})

const WIDE = '\u{1d7d9}'
const DIGEST = 'ab'.repeat(32)
const HOOK = `https://example.com/${'h'.repeat(1000)}`

interface Bought {
  receipt: { attestation: Record<string, unknown>; canonical_envelope_base64: string }
}
type Args = Record<string, unknown>
interface Schema {
  properties?: Record<string, { type?: string }>
}

/** Calls that succeed with an answer as long as it can be: of each tool one. `bought` is the result of a purchase. */
const LONG: Record<string, (bought: Bought) => Args> = {
  service_register: () => ({ handle: `${Date.now()}-`.padEnd(64, 'h') }),
  service_usage_get: () => ({}),
  service_checkout_create: () => ({ tier: 'pro' }),
  service_lease_grant: () => ({
    agent: WIDE.repeat(200),
    action: WIDE.repeat(200),
    ttl_s: 600,
    lim: WIDE.repeat(1000),
  }),
  service_lease_renew: () => ({ lease_id: LEASE }),
  service_lease_verify: () => ({ lease_id: LEASE, agent: WIDE.repeat(200) }),
  service_lease_list: () => ({ limit: 100 }),
  service_lease_revoke: () => ({ lease_id: LEASE }),
  service_receipt_issue: () => ({ subject_sha256: DIGEST, label: WIDE.repeat(200) }),
  service_receipt_get: () => ({ serial: 1 }),
  service_receipt_verify: ({ receipt }) => ({ attestation: receipt.attestation }),
  service_receipt_list: () => ({ limit: 100 }),
  service_chain_head: () => ({}),
  service_chain_export: () => ({ from: 1 }),
  service_chain_verify: () => ({ from: 1 }),
  service_watchdog_put: () => ({ name: 'w'.repeat(64), interval_s: 600, webhook_url: HOOK }),
  service_watchdog_get: () => ({ name: 'w'.repeat(64) }),
  service_watchdog_list: () => ({}),
  service_watchdog_pause: () => ({ name: 'w'.repeat(64), paused: true }),
  service_watchdog_heartbeat: () => ({ name: 'w'.repeat(64), note: WIDE.repeat(200) }),
  service_watchdog_delete: () => ({ name: 'w'.repeat(64) }),
  service_journal_put: () => ({ slot: 's'.repeat(128), data_base64: Buffer.alloc(65_536, 1).toString('base64') }),
  service_journal_get: () => ({ slot: 's'.repeat(128) }),
  service_journal_list: () => ({}),
  service_journal_delete: () => ({ slot: 's'.repeat(128) }),
  service_verify_source: () => ({ source_url: `https://example.com/${'p'.repeat(2000)}`, claim: WIDE.repeat(2000) }),
  check_quotes: () => ({
    source_url: pageOf(`<p>${'many words '.repeat(2000)}</p>`),
    quotes: Array.from({ length: 20 }, (_, n) => `${n} ${'many words '.repeat(80)}`),
  }),
  check_report: () => {
    const page = pageOf(PAGE)
    const cited = Array.from(
      { length: 60 },
      (_, n) => `It says “number ${n} of ${'many words '.repeat(20)}” ([it](${page})).`,
    )
    return { markdown: cited.join('\n\n') }
  },
  verify_receipt: ({ receipt }) => ({ ...receipt, envelope: undefined, verification: undefined }),
  verify_result: (bought) => ({ result_json: JSON.stringify(bought) }),
}
let LEASE = ''

function pageOf(body: string): string {
  const path = `/${randomUUID()}`
  system.site.pages.set(path, { body })
  return system.site.url(path)
}

/** Values that an argument of this schema cannot have, long ones among them. */
function* wrongFor({ type }: { type?: string }): Generator<unknown> {
  yield WIDE.repeat(5000)
  yield type === 'string' ? 5 : 'x'.repeat(3000)
  yield [Array(2000).fill('item')]
  yield { [WIDE.repeat(2500)]: 1 }
}

t.test('no text of any tool of either endpoint is longer than 2,000 characters', async (t) => {
  const { result: bought } = expectCompleted(t, await buy(`${PAGE}${'<p>And more.</p>'.repeat(500)}`))
  const { api_key, handle } = (await openRawClient(mcp).call('service_register', { handle: `s${Date.now()}` }))
    .structuredContent
  await system.sql(`update accounts set tier = 'pro' where handle = $1`, [handle])
  let covered = 0
  for (const url of [mcp, system.url('/mcp/check')]) {
    const { ask } = openRawClient(url)
    const { tools } = (await ask('tools/list')).body.result
    /** Its answer, if it succeeds. */
    const measure = async (name: string, args: Args) => {
      const { result, error } = (await ask('tools/call', { name, arguments: args })).body
      if (error) return t.ok([...error.message].length <= 2000, `${name}: the error of the protocol`)
      for (const { type, text } of result.content)
        if (type === 'text')
          t.ok([...text].length <= 2000, `${name}: ${[...text].length} characters, ${text.slice(0, 80)}`)
      return result
    }
    const schemas = new Map<string, Schema>(
      tools.map(({ name, inputSchema }: { name: string; inputSchema: Schema }) => [name, inputSchema]),
    )
    for (const name of schemas.keys()) t.ok(Object.hasOwn(LONG, name), `${name} has a long call in LONG`)
    covered += schemas.size
    // In the order of LONG: what one tool makes, later ones read and delete.
    for (const [name, long] of Object.entries(LONG)) {
      const inputSchema = schemas.get(name)
      if (!inputSchema) continue
      const keyed = inputSchema.properties?.service_key ? { service_key: api_key } : {}
      const found = await measure(name, { ...long(bought as never), ...keyed })
      // The first answer of the paid tool is its terms, which are an error.
      t.equal(found.isError ?? false, name === 'service_verify_source', `${name}: ${found.content?.[0].text}`)
      if (name === 'service_lease_grant') LEASE = found.structuredContent.lease.lease_id
      await measure(name, {})
      await measure(name, { ...long(bought as never), service_key: 'k'.repeat(5000), [WIDE.repeat(2500)]: 1 })
      for (const [member, schema] of Object.entries(inputSchema.properties ?? {}))
        for (const value of wrongFor(schema))
          await measure(name, { ...long(bought as never), ...keyed, [member]: value })
    }
  }
  t.equal(covered, Object.keys(LONG).length, 'and LONG has no other ones')
})

t.test('a long answer of a free tool is named in words, and linked where HTTP can read it', async (t) => {
  const { call, ask } = openRawClient(mcp)
  const { api_key } = (await call('service_register', { handle: `h${Date.now()}` })).structuredContent
  for (let i = 0; i < 4; i++)
    await call('service_receipt_issue', { service_key: api_key, subject_sha256: `${i}`.repeat(64) })
  const exported = (
    await ask('tools/call', { name: 'service_chain_export', arguments: { from: 1 } }, { era: 'modern' })
  ).body.result
  const [words, link] = exported.content
  t.ok([...words.text].length <= 2000)
  t.match(words.text, /attestations: \d+ items/)
  t.match(link, { type: 'resource_link', uri: system.url('/v1/chain?from=1') })
  t.same(await (await fetch(link.uri)).json(), exported.structuredContent)
  t.match((await call('service_chain_head', {})).content[0].text, /^{/, 'a short one is JSON')
  t.ok(
    [
      ...summarizeBody({
        a: 'x'.repeat(9000),
        ...Object.fromEntries([...'bcdefghijklmnopqrstuvwxyz'].map((n) => [n, 'y'.repeat(190)])),
      }),
    ].length <= 2000,
  )
})
