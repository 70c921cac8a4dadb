// The paid tool on the wire in offline mode: terms, payment, result, and how a purchase is recognised again.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { checkRequest } from '../interface.schema.ts'
import { harbourClaim, openScriptedFacilitator, PAGE, startSystem } from '../system.ts'
import {
  callTool,
  expectCompleted,
  expectNonCompleted,
  KEY,
  openWallet,
  PAYMENT,
  post,
  REPLAYED,
  readAnswer,
  sign,
  TOKEN,
  TOOL,
  type ToolResult,
  termsOf,
} from './paid-tool.ts'

const till = openScriptedFacilitator()
const system = await startSystem({ overrides: { facilitator: till } })
t.teardown(() => system[Symbol.asyncDispose]())
const url = system.url('/')
const args = harbourClaim(system.site)

/** Arguments of a new purchase. */
function newArgs() {
  const path = `/${randomUUID()}`
  system.site.pages.set(path, { body: PAGE })
  return { ...args, source_url: system.site.url(path) }
}

async function countPurchases() {
  const [row] = await system.sql('select count(*)::int n from payment_ledger')
  return Number(row?.n)
}

async function findTool(at = url) {
  const { result } = await readAnswer(await post(at, 'tools/list', {}))
  return (result?.tools as Record<string, unknown>[] | undefined)?.find(({ name }) => name === TOOL)
}

for (const modern of [false, true]) {
  t.test(`a purchase, ${modern ? '2026-07-28' : 'before 2026-07-28'}`, async (t) => {
    const key = randomUUID()
    const asked = await callTool(url, { modern, args, meta: { [KEY]: key } })
    t.equal(asked.isError, true)
    t.equal(asked.content[0]?.text, JSON.stringify(asked.structuredContent), 'the text says the same')
    t.equal(asked._meta?.[KEY], key)
    t.equal(asked._meta?.[TOKEN], undefined)
    const terms = termsOf(asked)
    t.match(terms, { x402Version: 2, resource: { url: `mcp://tool/${TOOL}` }, error: /0\.03/ })
    t.match(terms.accepts, [{ scheme: 'exact', network: 'eip155:84532', amount: '30000' }])
    t.match(terms.extensions, { bazaar: { info: { input: { type: 'mcp', toolName: TOOL } } } })

    const payment = await openWallet().createPaymentPayload(terms)
    const before = till.settled.length
    const answer = await callTool(url, { modern, args, meta: { [KEY]: key, [PAYMENT]: payment } })
    const { result, bytes, token } = expectCompleted(t, answer)
    t.equal(result.claim, args.claim)
    t.equal(answer._meta?.[KEY], key)
    t.equal(answer._meta?.[REPLAYED], undefined)
    t.equal(till.settled.length, before + 1)

    const overHttp = await system.ask({ key })
    t.equal(overHttp.headers.get('x-service-idempotent-replay'), 'true')
    t.equal(await overHttp.text(), bytes, 'HTTP serves the same bytes')
    t.equal(await (await system.recover(result.request_id, token)).text(), bytes, 'for the same token')
    t.equal(till.settled.length, before + 1)
  })
}

t.test('the result is what is stored, as structured content', async (t) => {
  const own = newArgs()
  const { payment, key } = await sign(url, { args: own })
  const paid = { args: own, meta: { [KEY]: key, [PAYMENT]: payment } }
  const { bytes } = expectCompleted(t, await callTool(url, paid))
  const stored = await system.sql('select 1 from verification_requests where result = $1', [Buffer.from(bytes)])
  t.equal(stored.length, 1, 'the same bytes')
  const wire = await (await post(url, 'tools/call', { name: TOOL, arguments: own, _meta: paid.meta })).text()
  t.ok(wire.includes(`"structuredContent":${bytes}`), 'on the wire too')
})

t.test('the payment may be an object, JSON text, or the value of PAYMENT-SIGNATURE', async (t) => {
  const spellings: Record<string, (payment: object) => unknown> = {
    object: (payment) => payment,
    'JSON text': (payment) => ` ${JSON.stringify(payment)}\n`,
    base64: (payment) => Buffer.from(JSON.stringify(payment)).toString('base64'),
  }
  for (const [about, spell] of Object.entries(spellings)) {
    const own = newArgs()
    const { payment, key } = await sign(url, { args: own })
    const meta = { [KEY]: key, [PAYMENT]: spell(payment) }
    expectCompleted(t, await callTool(url, { args: own, meta }))
    t.match(await callTool(url, { args: own, meta }), { _meta: { [REPLAYED]: true } }, about)
  }
})

t.test('an unreadable or invalid payment gets the terms again', async (t) => {
  const own = newArgs()
  const { payment, key } = await sign(url, { args: own })
  const { authorization, signature } = payment.payload as { authorization: Record<string, string>; signature: string }
  const cheap = { ...payment, payload: { signature, authorization: { ...authorization, value: '1' } } }
  const before = till.settled.length
  for (const bad of ['', 'x', '{', '{}', {}, [], 5, null, true, cheap, JSON.stringify(cheap)])
    for (const meta of [{ [KEY]: key }, {}]) {
      const answer = await callTool(url, { args: own, meta: { ...meta, [PAYMENT]: bad } })
      t.ok(termsOf(answer), JSON.stringify(bad))
    }
  t.equal(till.settled.length, before)
  expectCompleted(t, await callTool(url, { args: own, meta: { [KEY]: key, [PAYMENT]: payment } }))
})

t.test('the key may come in _meta or in the arguments, or is made by the service', async (t) => {
  const own = newArgs()
  const inArguments = { ...own, idempotency_key: `argument-${randomUUID()}` }
  const first = await sign(url, { args: inArguments })
  t.equal(first.key, inArguments.idempotency_key)
  const { bytes } = expectCompleted(t, await callTool(url, { args: inArguments, meta: { [PAYMENT]: first.payment } }))
  const inMeta = { args: own, meta: { [KEY]: inArguments.idempotency_key } }
  t.equal(expectCompleted(t, await callTool(url, inMeta)).bytes, bytes, 'the same key, the same purchase')

  const both = { args: inArguments, meta: { [KEY]: `meta-${randomUUID()}` } }
  const asked = await callTool(url, both)
  t.equal(asked._meta?.[KEY], both.meta[KEY], '_meta wins')
  t.ok(termsOf(asked))

  const made = await Promise.all([callTool(url, { args: own }), callTool(url, { args: own })])
  const keys = made.map((answer) => answer._meta?.[KEY])
  t.match(keys, [/^[A-Za-z0-9_.:-]{16,128}$/, /^[A-Za-z0-9_.:-]{16,128}$/])
  t.not(keys[0], keys[1], 'without a key, every unpaid call is a new purchase')
})

t.test('a paid call without a key is recognised by its payment: never two purchases', async (t) => {
  const own = newArgs()
  const before = await countPurchases()
  const { payment } = await sign(url, { args: own })
  const paid = { args: own, meta: { [PAYMENT]: payment } }
  const answers = await Promise.all([callTool(url, paid), callTool(url, paid), callTool(url, paid)])
  const bytes = answers.map((answer) => expectCompleted(t, answer).bytes)
  t.equal(new Set(bytes).size, 1)
  const again = await callTool(url, { ...paid, meta: { [PAYMENT]: JSON.stringify(payment) } })
  t.equal(expectCompleted(t, again).bytes, bytes[0])
  t.equal(again._meta?.[REPLAYED], true)
  const byKey = await callTool(url, { args: own, meta: { [KEY]: again._meta?.[KEY] } })
  t.equal(expectCompleted(t, byKey).bytes, bytes[0], 'the key of the answer finds it without the payment')
  t.equal(await countPurchases(), before + 1)

  const other = await callTool(url, { args: newArgs(), meta: { [PAYMENT]: payment } })
  expectNonCompleted(t, other, 'failed', 'idempotency_conflict')
  const { authorization, signature } = payment.payload as { authorization: object; signature: string }
  const unsigned = { ...payment, payload: { authorization, signature: `0x${'1'.repeat(signature.length - 2)}` } }
  // A caller that knows the authorization, for example from a chain, but has not signed it.
  t.ok(termsOf(await callTool(url, { args: own, meta: { [PAYMENT]: unsigned } })), 'does not learn that it is known')
  t.equal(await countPurchases(), before + 1)
})

t.test('the recovery token returns the result', async (t) => {
  const own = newArgs()
  const { payment, key } = await sign(url, { args: own })
  const { bytes, token } = expectCompleted(
    t,
    await callTool(url, { args: own, meta: { [KEY]: key, [PAYMENT]: payment } }),
  )
  for (const [about, recovered] of [own, {}].entries()) {
    const answer = await callTool(url, { args: recovered, meta: { [TOKEN]: token } })
    t.equal(expectCompleted(t, answer).bytes, bytes, `arguments ${about}`)
  }
  const wrong = [
    `${token}x`,
    token.slice(0, -1),
    token.replace(/.$/, (c) => (c === 'A' ? 'B' : 'A')),
    '',
    'x',
    7,
    null,
    {},
  ]
  for (const bad of wrong)
    expectNonCompleted(t, await callTool(url, { args: own, meta: { [TOKEN]: bad } }), 'failed', 'not_found')
})

t.test('a call that cannot succeed gets no terms, but the error of HTTP', async (t) => {
  const { claim } = args
  const key = randomUUID()
  const bad: [input: Record<string, unknown>, code: string][] = [
    [{}, 'invalid_request'],
    [{ ...args, claim: ' ' }, 'invalid_request'],
    [{ ...args, claim: 'x'.repeat(2001) }, 'invalid_request'],
    [{ ...args, source_url: 'http://site.test/' }, 'invalid_request'],
    [{ ...args, source_url: ['https://site.test/'] }, 'invalid_request'],
    [{ ...args, more: 1 }, 'invalid_request'],
    [{ ...args, options: { max_age_seconds: 301 } }, 'invalid_request'],
    [{ ...args, options: { max_price_usd: '0.029999' } }, 'budget_exceeded'],
    [{ source_url: 'https://127.0.0.1/', claim }, 'source_blocked'],
    [{ source_url: 'https://site.test:8443/', claim }, 'source_blocked'],
    [{ source_url: 'https://localhost/', claim }, 'source_blocked'],
  ]
  for (const [input, code] of bad) {
    const answer = await callTool(url, { args: input, meta: { [KEY]: key } })
    const body = expectNonCompleted(t, answer, 'failed', code)
    t.same(body, await (await system.ask({ key, body: input })).json(), `${code} as over HTTP`)
  }
  for (const illegal of ['short', 'x'.repeat(129), `${'x'.repeat(16)}/`, 16, {}, '']) {
    const answer = await callTool(url, { args, meta: { [KEY]: illegal } })
    expectNonCompleted(t, answer, 'failed', 'invalid_idempotency_key')
  }
  t.ok(termsOf(await callTool(url, { args, meta: { [KEY]: key } })), 'the key is still free')
  const none = await post(url, 'tools/call', { name: TOOL })
  expectNonCompleted(t, (await readAnswer(none)).result as ToolResult, 'failed', 'invalid_request')
})

t.test('the description of the tool', async (t) => {
  const tool = (await findTool()) as Record<string, unknown>
  t.same(tool.annotations, {
    readOnlyHint: false,
    destructiveHint: false,
    idempotentHint: false,
    openWorldHint: true,
  })
  t.equal(tool.outputSchema, undefined, 'clients would check the terms against it')
  t.match(tool._meta, {
    'service/price': { amount_atomic: '30000', currency: 'USDC', decimals: 6, usd: '0.03' },
    'service/networks': ['eip155:84532'],
    'service/payment-protocol': 'x402-v2',
  })
  t.match(tool.description, /Use the SAME value again when you retry the same request/)
  t.notMatch(tool.description, /unique (for|per) (every|each)/)
  const schema = tool.inputSchema as { type: string; properties: Record<string, unknown>; required: string[] }
  t.equal(schema.type, 'object')
  t.same(Object.keys(schema.properties).sort(), ['claim', 'idempotency_key', 'options', 'service_key', 'source_url'])
  t.same(schema.required, ['source_url', 'claim'])
  t.same(checkRequest(args), [])
})

t.test('switched off over MCP: neither listed nor callable', async (t) => {
  await using twin = await system.openTwin({}, { MCP_VERIFICATION_ENABLED: 'false' })
  t.equal(await findTool(twin.address), undefined)
  await t.rejects(callTool(twin.address, { args }), { code: -32602 })
  await t.rejects(callTool(twin.address, { args, modern: true }), { code: -32602 })
  const { result } = await readAnswer(await post(twin.address, 'server/discover', {}, { modern: true }))
  t.match(result?.capabilities, { tools: {}, extensions: undefined })
  t.equal((await system.ask({ key: randomUUID(), at: twin })).status, 402, 'HTTP still sells')
})

t.test('verification switched off: 503 as over HTTP, and bought results are still served', async (t) => {
  const own = newArgs()
  const { payment, key } = await sign(url, { args: own })
  const paid = { args: own, meta: { [KEY]: key, [PAYMENT]: payment } }
  const { bytes, token } = expectCompleted(t, await callTool(url, paid))
  await using twin = await system.openTwin({}, { VERIFICATION_ENABLED: 'false' })
  t.ok(await findTool(twin.address))
  const body = expectNonCompleted(t, await callTool(twin.address, { args }), 'failed', 'verification_disabled')
  t.same(body, await (await system.ask({ key: randomUUID(), at: twin })).json())
  t.equal(expectCompleted(t, await callTool(twin.address, paid)).bytes, bytes)
  t.equal(expectCompleted(t, await callTool(twin.address, { args: {}, meta: { [TOKEN]: token } })).bytes, bytes)
})
