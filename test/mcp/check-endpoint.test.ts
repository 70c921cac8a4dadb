// /mcp/check: free tools without an account, for hosts and directories that forbid paid ones.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { ADDRESS_LIMITS } from '../../server/accounts/tiers.ts'
import { holdPage } from '../site.ts'
import { PAGE, payingFetch, startSystem } from '../system.ts'
import { until } from '../until.ts'
import { runSuite } from './conformance-suites.ts'
import { ERAS, openRawClient } from './raw-client.ts'

const system = await startSystem()
t.teardown(() => system[Symbol.asyncDispose]())
const url = system.url('/mcp/check')
const { ask, call } = openRawClient(url)

const TOOLS = ['check_quotes', 'check_report', 'verify_receipt', 'verify_result']
const TASKS = { 'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } } }

function newPage(page: Parameters<typeof system.site.pages.set>[1] = { body: PAGE }) {
  const path = `/${randomUUID()}`
  system.site.pages.set(path, page)
  return system.site.url(path)
}

t.test('exactly the free tools, without account, payment or prices', async (t) => {
  for (const era of ERAS) {
    const { result } = (await ask('tools/list', {}, { era })).body
    t.same(
      result.tools.map(({ name }: { name: string }) => name),
      TOOLS,
    )
    t.notMatch(JSON.stringify(result), /USDC|x402|price|payment|service_key/i)
    for (const { annotations } of result.tools) t.match(annotations, { readOnlyHint: true, destructiveHint: false })
    const paid = await ask('tools/call', { name: 'service_verify_source', arguments: {} }, { era })
    t.equal(paid.body.error.code, -32_602)
  }
  const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } }
  const { result } = (await ask('initialize', hello, { era: 'legacy' })).body
  t.equal(result.serverInfo.name, 'countersign-check')
  t.notMatch(JSON.stringify(result), /USDC|x402/)
  t.equal((await fetch(url)).status, 405)
})

t.test('quotes of a page', async (t) => {
  const quotes = ['The harbour was opened in 1874', 'It has four piers']
  const source_url = newPage()
  const answer = await call('check_quotes', { source_url, quotes })
  t.notOk(answer.isError, answer.content[0].text)
  t.match(answer.structuredContent, {
    quotes: [{ match: 'exact', fragment_url: /#:~:text=/ }, { match: /near|absent/ }],
  })
  const many = Array.from({ length: 20 }, (_, n) => `${n} ${'a passage that is not on the page at all '.repeat(20)}`)
  const long = await call('check_quotes', { source_url, quotes: many })
  t.ok([...long.content[0].text].length <= 2000)
  t.equal(long.structuredContent.quotes.length, 20)
  for (const wrong of [{}, { source_url, quotes: [] }, { source_url, quotes, more: 1 }])
    t.match((await call('check_quotes', wrong)).structuredContent, {
      error: { code: 'invalid_request', retryable: false },
    })
  t.match((await call('check_quotes', { source_url: 'https://127.0.0.1/', quotes })).structuredContent, {
    error: { code: 'source_blocked' },
  })
  const [{ n } = { n: 1 }] = await system.sql('select count(*)::int n from accounts')
  t.equal(n, 0, 'no account was made')
})

const reportOn = (good: string, bad: string) => `# Kelby

The council says that “The harbour was opened in 1874 by the county engineer” ([history](${good})).

It also says that “The harbour was closed in 1990 by the navy of Denmark” ([other](${bad})).
`

t.test('a report: what holds and what does not, with progress', async (t) => {
  const markdown = reportOn(newPage(), newPage())
  const answer = await call('check_report', { markdown })
  t.notOk(answer.isError, answer.content[0].text)
  const { ok, pages, citations } = answer.structuredContent
  t.equal(ok, false)
  t.equal(pages, 2)
  t.same(
    citations.map(({ status, line }: { status: string; line: number }) => [status, line]),
    [
      ['ok', 3],
      ['wrong', 5],
    ],
  )
  t.notMatch(JSON.stringify(answer), /verdict|bought/)
  const { text } = await ask(
    'tools/call',
    { name: 'check_report', arguments: { markdown } },
    { meta: { progressToken: 1 } },
  )
  t.match(text, /"progress":1,"total":2/)
  t.match((await call('check_report', { markdown: 'No links.' })).structuredContent, { ok: true, citations: [] })
  t.match((await call('check_report', { markdown: 'x'.repeat(100_001) })).structuredContent.error, {
    code: 'invalid_request',
  })
})

t.test('a report as a task', async (t) => {
  const held = holdPage({ body: PAGE })
  const markdown = reportOn(newPage(held.page), newPage())
  const modern = { era: 'modern' as const, meta: TASKS }
  const made = (await ask('tools/call', { name: 'check_report', arguments: { markdown } }, modern)).body.result
  t.match(made, { resultType: 'task', status: 'working', taskId: /^[0-9a-f-]{36}$/, pollIntervalMs: Number })
  const look = async () => (await ask('tasks/get', { taskId: made.taskId }, modern)).body.result
  const early = await look()
  t.match(early, { status: 'working', statusMessage: /of 2 pages/ })
  held.release()
  const done = await until(async () => {
    const task = await look()
    return task.status === 'completed' ? task : null
  })
  t.match(done.result.structuredContent, { ok: false, pages: 2 })
  t.match((await ask('tasks/cancel', { taskId: made.taskId }, modern)).body.result, {})
  t.equal((await ask('tasks/get', { taskId: made.taskId }, modern)).body.error.code, -32_602, 'and it is gone')
  t.equal((await ask('tasks/get', { taskId: randomUUID() }, modern)).body.error.code, -32_602)
})

t.test('any text in any argument of any tool, tasks included: no fault of the service', async (t) => {
  const { tools } = (await ask('tools/list')).body.result
  const texts = [
    '\u0000',
    'a\u0000b',
    '\ud800',
    '\u202e',
    '"\u0000"',
    '{"a":"\\u0000"}',
    '__proto__',
    ']('.repeat(9000),
  ]
  for (const { name, inputSchema } of tools)
    for (const member of Object.keys(inputSchema.properties))
      for (const text of texts)
        for (const value of [text, [text], { [text]: text }])
          for (const era of ERAS) {
            const args = { source_url: newPage(), quotes: ['x'], attestation: {}, [member]: value }
            const fitting = Object.keys(inputSchema.properties).flatMap((key) =>
              key in args ? [[key, args[key]]] : [],
            )
            const asked = { name, arguments: Object.fromEntries(fitting) }
            const { body } = await ask('tools/call', asked, era === 'modern' ? { era, meta: TASKS } : { era })
            t.notMatch(JSON.stringify(body), /internal_error|-32603/, `${name} ${JSON.stringify(asked).slice(0, 200)}`)
          }
  const markdown = `${reportOn(newPage(), newPage())}\u0000`
  const made = (
    await ask('tools/call', { name: 'check_report', arguments: { markdown } }, { era: 'modern', meta: TASKS })
  ).body.result
  t.match(made, { resultType: 'task', status: 'working' })
})

t.test('receipts and results', async (t) => {
  const bought = await system.ask({ key: randomUUID(), fetch: payingFetch(), headers: { prefer: 'wait=25' } })
  const bytes = await bought.text()
  const { receipt } = JSON.parse(bytes)
  const { attestation, canonical_envelope_base64 } = receipt
  t.match((await call('verify_receipt', { attestation })).structuredContent, { valid: true })
  t.match((await call('verify_receipt', { attestation, canonical_envelope_base64 })).structuredContent, { valid: true })
  const { inclusion, checkpoint } = (await (
    await fetch(system.url(`/v1/receipt/${attestation.serial}`))
  ).json()) as never
  t.match((await call('verify_receipt', { attestation, proof: { inclusion, checkpoint } })).structuredContent, {
    valid: true,
  })
  t.match((await call('verify_receipt', { attestation, canonical_envelope_base64: 'e30=' })).structuredContent, {
    valid: false,
  })
  t.match((await call('verify_receipt', { attestation: { ...attestation, label: 'x' } })).structuredContent, {
    valid: false,
  })
  t.match((await call('verify_result', { result_json: bytes })).structuredContent, { valid: true })
  const altered = bytes.replace('"claim_support":"not_assessed"', '"claim_support":"supports"')
  t.not(altered, bytes)
  t.match((await call('verify_result', { result_json: altered })).structuredContent, { valid: false })
  t.match((await call('verify_result', { result_json: '{' })).structuredContent.error, { code: 'invalid_request' })
})

t.test('limits are results that a model can read', async (t) => {
  await system.sql('update quote_check_days set pages = 25')
  const answer = await call('check_quotes', { source_url: newPage(), quotes: ['The ferry'] })
  t.equal(answer.isError, true)
  t.match(answer.structuredContent.error, { code: 'daily_limit', retryable: true, retry_after_seconds: Number })
  const report = await call('check_report', { markdown: reportOn(newPage(), newPage()) })
  t.match(report, { isError: true, structuredContent: { error: { retryable: true, retry_after_seconds: Number } } })
  await system.sql('delete from quote_check_days')

  const narrow = await system.openTwin({}, { RATE_LIMIT_PER_MINUTE: '2' })
  try {
    const other = openRawClient(new URL('/mcp/check', narrow.address).href)
    const answers = []
    for (let n = 0; n < 3; n++) answers.push(await other.call('verify_result', { result_json: '{}' }))
    t.match(answers[2], {
      isError: true,
      structuredContent: { error: { code: 'rate_limited', retryable: true, retry_after_seconds: Number } },
    })
  } finally {
    await narrow[Symbol.asyncDispose]()
  }
})

t.test('an address is limited, and does not share with accounts or other addresses', async (t) => {
  const twin = await system.openTwin({}, { TRUST_PROXY: '1' })
  try {
    const at = new URL('/mcp/check', twin.address).href
    const from = (ip: string) =>
      openRawClient(at).ask(
        'tools/call',
        { name: 'check_quotes', arguments: { source_url: newPage(), quotes: ['x'] } },
        { headers: { 'x-forwarded-for': ip } },
      )
    await from('203.0.113.1')
    await system.sql('update quote_check_days set pages = 25')
    t.equal((await from('203.0.113.1')).body.result.isError, true)
    t.notOk((await from('203.0.113.2')).body.result.isError)
  } finally {
    await twin[Symbol.asyncDispose]()
    await system.sql('delete from quote_check_days')
  }
})

t.test('a /48 has five times as much as an address, and leaves the last quarter to other networks', async (t) => {
  await using twin = await system.openTwin({}, { TRUST_PROXY: '1' })
  const ask = (ip: string, name: string, args: object) =>
    openRawClient(new URL('/mcp/check', twin.address).href).ask(
      'tools/call',
      { name, arguments: args },
      { era: 'modern', meta: TASKS, headers: { 'x-forwarded-for': ip } },
    )
  const uses: [
    what: string,
    use: (ip: string) => ReturnType<typeof ask>,
    most: { network: number; all: number },
    fill: (all: number) => Promise<unknown>,
  ][] = [
    [
      'pages',
      (ip) => ask(ip, 'check_quotes', { source_url: newPage(), quotes: ['x'] }),
      {
        network: ADDRESS_LIMITS.quote_check_pages_per_network_per_day,
        all: ADDRESS_LIMITS.all_quote_check_pages_per_day,
      },
      (all) => system.sql(`update quote_check_days set pages = ${all} where account_id::text like '00000000-%'`),
    ],
    [
      'reports',
      (ip) => ask(ip, 'check_report', { markdown: reportOn(newPage(), newPage()) }),
      { network: ADDRESS_LIMITS.reports_per_network, all: ADDRESS_LIMITS.all_reports },
      (all) =>
        system.sql(`insert into report_checks (id, owner_id, markdown)
          select gen_random_uuid(), gen_random_uuid(), 'x' from generate_series(1, ${all} - (select count(*) from report_checks))`),
    ],
  ]
  for (const [what, use, most, fill] of uses) {
    const isRefused = async (ip: string) => (await use(ip)).body.result.isError === true
    t.notOk(await isRefused('2001:db8:1:1::1'), what)
    await fill(Math.ceil(most.all * 0.75))
    for (const ip of ['2001:db8:2:1::1', '2001:db8:2:2::1']) t.notOk(await isRefused(ip), `${what}: ${ip} is new`)
    t.ok(await isRefused('2001:db8:2:3::1'), `${what}: the third of this /48 is not, from whatever /64`)
    t.notOk(await isRefused('2001:db8:3:1::1'), `${what}: of another /48 it is`)
    await fill(0)
    await system.sql('delete from report_checks')
    await system.sql(`update quote_check_days set pages = ${most.network} where account_id::text not like '00000000-%'`)
    t.ok(await isRefused('2001:db8:1:2::1'), `${what}: the /48 has had its share`)
    t.notOk(await isRefused('2001:db8:4:1::1'), `${what}: another /48 has not`)
    await system.sql('delete from quote_check_days')
    await system.sql('delete from report_checks')
  }
})

t.test('the proof for the registry', async (t) => {
  const path = '/.well-known/mcp-registry-auth'
  t.equal((await fetch(system.url(path))).status, 404)
  const twin = await system.openTwin({}, { MCP_REGISTRY_AUTH: 'v=MCPv1; k=ed25519; p=abc' })
  try {
    const answer = await fetch(new URL(path, twin.address))
    t.equal(answer.status, 200)
    t.match(answer.headers.get('content-type'), /^text\/plain/)
    t.equal(await answer.text(), 'v=MCPv1; k=ed25519; p=abc')
  } finally {
    await twin[Symbol.asyncDispose]()
  }
})

t.test('both conformance suites', async (t) => {
  const suites = [
    ['until2025', { baseline: 'baseline-check.yml' }],
    ['since2026', { baseline: 'baseline-check-2026.yml', args: ['--requirements', '2026-07-28', '--timeout', '8000'] }],
  ] as const
  for (const [suite, options] of suites) {
    const run = await runSuite(suite, url, { ...options, args: 'args' in options ? [...options.args] : [] })
    t.equal(run.code, 0, suite)
    if (run.code !== 0) t.comment(run.output.slice(-3000))
  }
})
