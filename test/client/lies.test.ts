// `countersign buy` and `countersign mcp` at a service that lies: each lie ends with a clear error, with one payment at most, and never
// with a verdict that counts as verified. Where a payment was made, the same command goes on with it once the service tells the truth.
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import t from 'tap'
import { BARE_ENV } from '../children.ts'
import { countersign } from './command-line.ts'
import { TERMS } from './counterpart.ts'
import {
  type Asked,
  askFor,
  base64,
  type Lie,
  listen,
  openLiar,
  PAGE,
  PIN,
  type Reply,
  refusal,
  signedByStranger,
  truth,
} from './liar.ts'

const CLI = join(import.meta.dirname, '../../client/cli.ts')
const { liar, path, secret, paidFor, written } = await openLiar(t)
const astray: string[] = []
const elsewhere = await listen(
  t,
  createServer((request, response) => {
    astray.push(`${request.method} ${request.url}`)
    response.end('{}')
  }),
)
t.beforeEach(() => {
  liar.lie = {}
  liar.onRequest = () => {}
})

/** Everything that any command said. */
let heard = ''
const USING = ['--wallet', path('wallet.key'), ...PIN]
writeFileSync(path('account.key'), `ctk_${'k'.repeat(43)}`, { mode: 0o600 })

async function buy(claim: string, ...more: string[]) {
  const args = ['buy', PAGE, claim, '--yes', '--journal', path('buy'), ...USING, ...more]
  const ran = await countersign(args, { env: { COUNTERSIGN_SERVICE: liar.baseUrl } })
  heard += ran.stdout + ran.stderr
  return ran
}

const transport = new StdioClientTransport({
  command: process.execPath,
  args: [
    ...[CLI, 'mcp', '--service', liar.baseUrl, '--budget', '9.00', '--journal', path('mcp'), ...USING],
    ...['--key', path('account.key')],
  ],
  env: { ...BARE_ENV } as Record<string, string>,
  stderr: 'pipe',
})
transport.stderr?.on('data', (chunk) => (heard += chunk))
const host = new Client({ name: 'a-host', version: '1.0.0' })
await host.connect(transport)
t.teardown(() => host.close())

interface Told {
  isError?: boolean
  content: { text: string }[]
  structuredContent: Record<string, unknown>
}

async function call(claim: string, signal?: AbortSignal): Promise<Told> {
  const asked = { name: 'verify_source', arguments: { source_url: PAGE, claim } }
  const told = (await host.callTool(asked, undefined, signal && { signal })) as unknown as Told
  heard += JSON.stringify(told)
  return told
}

const ok = (body: unknown): Reply => ({ status: 200, body })
/** A result without a member, or with another value of it, as no service would sign it. */
const spoilt = (change: Record<string, unknown>): Lie => ({
  paid: (asked) => ok({ ...truth(asked), ...change }),
})
/** A result that its service did sign. */
const signed = (change: Parameters<typeof truth>[1]): Lie => ({ paid: (asked) => ok(truth(asked, change)) })
const paid = (reply: Reply | ((asked: Asked) => Reply)): Lie => ({
  paid: typeof reply === 'function' ? reply : () => reply,
})
const higher = { ...TERMS, accepts: [{ ...TERMS.accepts[0], amount: '60000' }] }
const HUGE = Buffer.alloc(17 << 20, ' ')
const away: Reply = { status: 307, body: '', headers: { location: `${elsewhere}/api/agent/v1/verify-source` } }

/** The lie, the exit status of `buy`, and what both say about it. */
type Case = [name: string, lie: Lie, code: number, words: RegExp]

const BEFORE_PAYMENT: Case[] = [
  ['says nothing of itself', { capabilities: () => ok('null') }, 4, /unexpected_response/],
  ['says too much of itself', { capabilities: () => ok(HUGE) }, 4, /more than 16 MB/],
  [
    'a price above the limit',
    { capabilities: () => ok(pricedAt('99000000')), unpaid: () => askFor(higher) },
    3,
    /over_budget/,
  ],
  ['terms above the published price', { unpaid: () => askFor(higher) }, 4, /publishes a price of 30000/],
  ['terms that are no terms', { unpaid: () => askFor({ x402Version: 2, accepts: [null] }) }, 4, /payment_required/],
  [
    'terms without an amount',
    { unpaid: () => askFor({ x402Version: 2, accepts: [{ scheme: 'exact' }] }) },
    4,
    /payment_required/,
  ],
  [
    'terms that are not JSON',
    { unpaid: () => ({ status: 402, body: '{', headers: { 'payment-required': '%' } }) },
    4,
    /unexpected_response/,
  ],
  [
    'terms for real money',
    { unpaid: () => askFor({ ...TERMS, accepts: [{ ...TERMS.accepts[0], network: 'eip155:8453' }] }) },
    4,
    /other_terms/,
  ],
  [
    'a recipient that is none',
    { unpaid: () => askFor({ ...TERMS, accepts: [{ ...TERMS.accepts[0], payTo: 'me' }] }) },
    4,
    /signing_failed/,
  ],
  [
    'a result for nothing',
    { unpaid: () => ok(truth({ source_url: PAGE, claim: 'x' })) },
    4,
    /where it should have asked for a payment/,
  ],
  ['terms that never end', { unpaid: () => ({ status: 402, body: HUGE }) }, 4, /more than 16 MB/],
  ['a redirect before the payment', { unpaid: () => away }, 4, /status 307/],
]

const AFTER_PAYMENT: Case[] = [
  ['a result for another claim', paid((asked) => ok(truth({ ...asked, claim: 'Another one.' }))), 5, /asked_claim/],
  [
    'a result for another page',
    paid((asked) => ok(truth({ ...asked, source_url: 'https://example.org/' }))),
    5,
    /asked_page/,
  ],
  ['a receipt of another key', paid((asked) => ok(signedByStranger(asked))), 5, /unknown key|trusted_key/],
  ['a verdict that was changed', spoilt({ claim_support: 'contradicts' }), 5, /result_sha256/],
  ['a verdict that there is not', spoilt({ claim_support: '__proto__' }), 5, /claim_support/],
  ['no receipt', spoilt({ receipt: undefined }), 6, /is none/],
  ['a receipt that is null', spoilt({ receipt: null }), 6, /is none/],
  ['a receipt without a signature', spoilt({ receipt: { attestation: { serial: 1 } } }), 5, /shape/],
  ['no flags, and signed', signed((draft) => Reflect.deleteProperty(draft, 'risk_flags')), 5, /risk_flags is missing/],
  ['flags that are none', signed((draft) => Object.assign(draft, { risk_flags: [null, {}] })), 5, /risk_flags\/0/],
  ['no page', spoilt({ source: undefined }), 5, /source is missing/],
  ['no explanation', spoilt({ explanation: { a: 1 } }), 5, /explanation/],
  ['quotes that are none', spoilt({ evidence: [null] }), 5, /evidence\/0/],
  [
    'quotes far beyond the text',
    signed((draft) => Object.assign(draft.evidence[0]!, { start: 2 ** 40, end: 2 ** 50 })),
    5,
    /evidence/,
  ],
  [
    'a page that is no address',
    signed((draft) => Object.assign(draft.source, { final_url: '\u202e:~:' })),
    0,
    /supports/,
  ],
  ['a list', paid(ok('[]')), 6, /answered \(status 200\) as no Countersign service does/],
  [
    'JSON that breaks off',
    paid(ok('{"status":"completed",')),
    6,
    /answered \(status 200\) as no Countersign service does/,
  ],
  [
    'JSON without end',
    paid(ok(`{"status":"completed","evidence":${'['.repeat(90_000)}`)),
    6,
    /answered \(status 200\) as no Countersign service does/,
  ],
  ['a body without end', paid(ok(HUGE)), 6, /more than 16 MB/],
  ['a redirect to another host', paid(away), 6, /status 307/],
  ['a price that rises', paid(askFor(higher)), 6, /other terms/],
  ['asks for the payment again', paid(askFor(TERMS)), 6, /asks for a payment again/],
  ['asks again, without terms', paid(refusal(402, 'payment_invalid')), 6, /asks for a payment again/],
  [
    'work that takes for ever',
    paid(refusal(202, 'pending', { headers: { 'retry-after': '9999999' } })),
    6,
    /asks to wait 9999999 seconds, which is longer than this call may take/,
  ],
]

const pricedAt = (amount_atomic: string) => ({
  ...{ payment_mode: 'testnet', networks: [TERMS.accepts[0]?.network], price: { amount_atomic } },
})

for (const [name, lie, code, words] of BEFORE_PAYMENT)
  t.test(`before the payment: ${name}`, async (t) => {
    liar.lie = lie
    const ran = await buy(name)
    t.equal(ran.code, code, ran.stderr)
    t.match(ran.stderr, words)
    t.equal(ran.stdout, '')
    const told = await call(name)
    t.equal(told.isError, true)
    t.match(told.content[0]?.text, words)
    t.equal(paidFor(name), 0, 'nothing was signed')
  })

for (const [name, lie, code, words] of AFTER_PAYMENT)
  t.test(`after the payment: ${name}`, async (t) => {
    liar.lie = lie
    const isTrue = code === 0
    const ran = await buy(name)
    t.equal(ran.code, code, ran.stderr)
    t.match(ran.stdout + ran.stderr, words)
    if (!isTrue) {
      t.notMatch(ran.stdout, /Proved/)
      const asJson = await buy(name, '--json')
      t.equal(asJson.code, code)
      t.notMatch(asJson.stdout, /"verified": true/)
    }
    t.equal(paidFor(name), 1)
    liar.lie = {}
    const repaired = await buy(name, '--json')
    t.match(repaired, { code: 0, stdout: /"verified": true/ }, 'the same payment, and the truth')
    t.equal(paidFor(name), 1)

    const claim = `${name}, by mcp`
    liar.lie = lie
    const told = await call(claim)
    const said = JSON.stringify(told)
    if (isTrue) t.match(told.structuredContent, { verified: true })
    else {
      t.notMatch(told.structuredContent, { verified: true })
      t.ok(told.isError || told.structuredContent.status === 'pending', said)
    }
    t.match(said, words)
    t.ok(Array.from(told.content[0]?.text ?? '').length <= 2000)
    liar.lie = {}
    t.match((await call(claim)).structuredContent, { verified: true, claim_support: 'supports' })
    t.equal(paidFor(claim), 1)
  })

t.test('a payment that is refused as one of another purchase: lost, and not paid again', async (t) => {
  liar.lie = paid(refusal(409, 'payment_conflict'))
  t.match(await buy('Refused.'), { code: 5, stderr: /may have been charged/ })
  t.match(await buy('Refused.'), { code: 5, stderr: /may have been charged/ })
  t.match(await call('Refused by mcp.'), { isError: true, content: [{ text: /^no_result: .*may have been charged/ }] })
  t.match(await call('Refused by mcp.'), { isError: true, content: [{ text: /^no_result/ }] })
  t.equal(paidFor('Refused.') + paidFor('Refused by mcp.'), 2)
})

t.test('work that never ends is left by the host, and goes on with the same payment', async (t) => {
  const claim = 'Pending for ever.'
  const leaving = new AbortController()
  let times = 0
  liar.lie = paid(() => {
    if (++times === 2) leaving.abort()
    return refusal(202, 'pending', { headers: { 'retry-after': '0' } })
  })
  await t.rejects(call(claim, leaving.signal))
  liar.lie = {}
  t.match((await call(claim)).structuredContent, { verified: true })
  t.equal(paidFor(claim), 1)
})

const WIDE = '\u{1d7d9}'
const QUOTES = Array.from({ length: 20 }, (_, n) => `${n} ${'long words '.repeat(80)}`)

/** Calls of which the answers are as long as they can be: of each tool one. */
const LONGEST: Record<string, () => Record<string, unknown>> = {
  verify_source: () => ({ source_url: PAGE, claim: 'The longest.' }),
  check_quotes: () => ({ source_url: PAGE, quotes: QUOTES }),
  check_report: () => ({ markdown: QUOTES.map((quote) => `It says “${quote}” ([it](${PAGE})).`).join('\n\n') }),
  verify_receipt: () => ({
    ...truth({ source_url: PAGE, claim: 'x' }).receipt,
    proof: { inclusion: {}, checkpoint: WIDE.repeat(5000) },
  }),
}

t.test('no text of any tool is longer than 2,000 characters', async (t) => {
  const { tools } = await host.listTools()
  t.same(
    tools.map(({ name }) => name),
    Object.keys(LONGEST),
    'each tool has a long call in LONGEST',
  )
  liar.lie = signed((draft) => {
    const quote = draft.source.normalized_text.slice(0, 40)
    const one = { ...draft.evidence[0]!, quote, start: 0, end: [...quote].length }
    Object.assign(draft, {
      explanation: WIDE.repeat(800),
      risk_flags: Array.from({ length: 32 }, (_, n) => `a_flag_of_some_length_${n}`),
      evidence: Array.from({ length: 6 }, (_, n) => ({ ...one, evidence_id: `e${n + 1}` })),
    })
    Object.assign(draft.source, { final_url: `https://example.org/${'p'.repeat(2000)}` })
  })
  const measure = async (name: string, args: Record<string, unknown>) => {
    const told = (await host.callTool({ name, arguments: args })) as unknown as Told
    heard += JSON.stringify(told)
    const length = Array.from(told.content[0]?.text ?? '').length
    t.ok(length > 0 && length <= 2000, `${name}: ${length} characters`)
    return told
  }
  for (const { name, inputSchema } of tools) {
    const long = LONGEST[name]!()
    const told = await measure(name, long)
    t.notOk(told.isError, `${name}: ${told.content[0]?.text}`)
    if (name === 'verify_source')
      t.equal(told.content[0]?.text.match(/^supports: “/gm)?.length, 6, 'every quote is shown')
    await measure(name, {})
    for (const member of Object.keys(inputSchema.properties ?? {}))
      for (const wrong of [5, WIDE.repeat(5000), Array(2000).fill('item'), { [WIDE.repeat(2500)]: 1 }])
        await measure(name, { ...long, [member]: wrong })
  }
})

t.test('no secret is said or written, and no host but the service is called', (t) => {
  t.ok(heard.length > 5000)
  t.same(astray, [])
  const forms = [secret, Buffer.from(secret, 'hex').toString('base64'), base64(secret)]
  for (const text of [heard, written('buy'), written('mcp')]) for (const form of forms) t.notOk(text.includes(form))
  t.end()
})
