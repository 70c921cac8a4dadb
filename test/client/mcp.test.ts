// `countersign mcp` over standard input and output, with the stock clients of both SDKs, against the whole service: what is bought and
// what it answers, questions to a person, the budget under parallel calls and kills, and the free tools.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { BARE_ENV } from '../children.ts'
import { register } from '../quotes/harness.ts'
import { type Hook, openMarket } from './buy-harness.ts'
import { countersign } from './command-line.ts'
import { type Host, heard, KINDS, type Kind, openHere, openProgram, type Person } from './mcp-hosts.ts'

const CLI = join(import.meta.dirname, '../../client/cli.ts')
const market = await openMarket(t)
const { gateway, page, path, secret, settled, system } = market
const plain: Hook = (_, forward) => forward()
t.beforeEach(() => {
  gateway.hook = plain
})
const account = await register(system, 'pro')
writeFileSync(path('key.txt'), account.key, { mode: 0o600 })

const PAYING = ['--wallet', path('wallet.key'), '--budget', '9.00', '--journal', path('mcp')]
const asking = (args: string[]) => ['--service', gateway.baseUrl, ...args]

/** With a server in this process. */
async function open(t: Test, args: string[], person: Person = null, kind: Kind = 'SDK 1'): Promise<Host> {
  const host = await openHere(asking(args), person, kind)
  t.teardown(() => host.close())
  return host
}

/** With a program as its server. */
async function openApart(t: Test, args: string[], person: Person = null, kind: Kind = 'SDK 1'): Promise<Host> {
  const host = await openProgram(asking(args), person, kind)
  t.teardown(() => host.close())
  return host
}

for (const kind of KINDS)
  t.test(kind, async (t) => {
    const before = await settled()
    const host = await openApart(t, PAYING, null, kind)
    const tools = await host.list()
    t.same(
      tools.map(({ name }) => name),
      ['verify_source', 'check_quotes', 'check_report', 'verify_receipt'],
    )
    t.ok(JSON.stringify({ tools }).length < 16_384)
    for (const { name, annotations } of tools) t.equal(Object.keys(annotations ?? {}).length, 4, name)

    const question = { source_url: page, claim: `The harbour has three piers, says ${kind}.` }
    const bought = await host.call('verify_source', question)
    t.notOk(bought.isError, String(bought.content[0]?.text))
    const text = bought.content[0]?.text ?? ''
    t.ok(Array.from(text).length <= 2000)
    t.match(text, /^supports: .*\n[\s\S]*Receipt: serial \d+, offline mode, no money moved\nProved: signed by key \d+/)
    t.match(text, /\nsupports: “.*three piers.*” https:\S+#:~:text=/)
    t.match(bought.structuredContent, {
      claim_support: 'supports',
      verified: true,
      cost_usd: '0.03',
      bought_before: false,
    })
    const again = await host.call('verify_source', question)
    t.match(again.structuredContent, { bought_before: true, receipt_serial: bought.structuredContent.receipt_serial })
    t.equal(await settled(), before + 1)

    const asked: string[] = []
    const person: Person = (message) => {
      asked.push(message)
      return 'accept'
    }
    // A person is asked over the streams of a program by one of them.
    const yes = await (kind === 'SDK 1' ? openApart : open)(t, PAYING, person, kind)
    const no = await open(t, PAYING, () => 'decline', kind)
    const other = { ...question, claim: `Three piers, asks ${kind}.` }
    t.match(await no.call('verify_source', other), {
      isError: true,
      content: [{ text: /^declined: .*Nothing was bought/ }],
    })
    t.equal(await settled(), before + 1)
    t.match(await yes.call('verify_source', other), { structuredContent: { verified: true } })
    t.equal(asked.length, 1, 'each purchase asks once')
    t.match(
      asked[0],
      /^Pay 0\.03 USDC \(offline mode: not real money\) to verify this claim against https:.*\nThree piers/,
    )
    await yes.call('verify_source', other)
    t.equal(asked.length, 1, 'and what was bought is not asked about')
    const silent = await open(t, [...PAYING, '--yes'], person, kind)
    t.match(await silent.call('verify_source', { ...other, again: true }), {
      structuredContent: { bought_before: false },
    })
    t.equal(await settled(), before + 3)
  })

t.test('the budget holds under parallel calls', async (t) => {
  const before = await settled()
  const args = ['--wallet', path('wallet.key'), '--budget', '0.07', '--journal', path('parallel')]
  const claims = [1, 2, 3, 4, 5].map((n) => ({ source_url: page, claim: `Three piers, in parallel ${n}.` }))
  const one = await open(t, args)
  const results = await Promise.all(claims.map((question) => one.call('verify_source', question)))
  t.equal(results.filter(({ isError }) => !isError).length, 2)
  t.equal(results.filter(({ content }) => /^over_budget/.test(content[0]?.text ?? '')).length, 3)
  t.equal(await settled(), before + 2)

  const file = [...args.with(3, '0.10').with(5, path('shared')), '--budget-file', path('shared.jsonl')]
  const hosts = [await openApart(t, file), await openApart(t, file, null, 'SDK 2, auto')]
  const both = await Promise.all(
    claims.map(({ source_url, claim }, n) =>
      hosts[n % 2]!.call('verify_source', { source_url, claim: `${claim} In two processes.` }),
    ),
  )
  t.equal(both.filter(({ isError }) => !isError).length, 3, 'of two processes with one file')
  t.equal(await settled(), before + 5)
  const same = await Promise.all(hosts.map((host) => host.call('verify_source', claims[0]!)))
  t.ok(
    same.every(({ isError }) => isError),
    'for ever',
  )
})

t.test('kill -9 at the payment, and a new process: paid once, and counted once', async (t) => {
  const before = await settled()
  const args = ['--wallet', path('wallet.key'), '--budget', '0.03', '--journal', path('killed')]
  const file = [...args, '--budget-file', path('killed.jsonl')]
  const question = { source_url: page, claim: 'Three piers, after a kill.' }
  for (const point of ['before', 'after'] as const) {
    const host = await openProgram(asking(file), null, 'SDK 1')
    gateway.hook = async (request, forward) => {
      if (request.isPaid && point === 'before') host.kill()
      const answer = point === 'after' || !request.isPaid ? await forward() : null
      if (request.isPaid) host.kill()
      if (!answer) throw new Error('it is dead')
      return answer
    }
    await t.rejects(host.call('verify_source', question))
    await host.close()
  }
  gateway.hook = plain
  const host = await openApart(t, file)
  t.match(await host.call('verify_source', question), { structuredContent: { verified: true } })
  const other = await host.call('verify_source', { ...question, claim: 'Three piers, once more.' })
  t.match(other, { isError: true, content: [{ text: /^over_budget/ }] })
  t.equal(await settled(), before + 1)
})

t.test('a result that was changed on its way is told as such', async (t) => {
  const host = await open(t, PAYING)
  gateway.hook = async (_, forward) => {
    const answer = await forward()
    const changed = answer.bytes.toString().replace('"claim_support":"supports"', '"claim_support":"contradicts"')
    return { ...answer, bytes: Buffer.from(changed) }
  }
  const lied = await host.call('verify_source', { source_url: page, claim: 'Three piers, as a lie.' })
  t.match(lied, { isError: true, content: [{ text: /^NOT VERIFIED, do not rely on it: result_sha256/ }] })
  t.match(lied.structuredContent, { verified: false })
})

t.test('the free tools', async (t) => {
  const host = await open(t, [...PAYING, '--key', path('key.txt')])
  const quotes = await host.call('check_quotes', { source_url: page, quotes: ['three piers', 'four piers and a mill'] })
  t.match(quotes.content[0]?.text, /^Page: https:.*\nexact: “three piers” https:.*\n(near|absent): “four piers/)
  const markdown = `It has "three piers and a lighthouse" [there](${page}).\n\nIt has "nine ships and a whale" [there](${page}).\n`
  const report = await host.call('check_report', { markdown })
  t.match(report, {
    content: [{ text: /^Some citations do not hold\./ }],
    structuredContent: { ok: false, counts: { ok: 1, wrong: 1 } },
  })
  t.ok(Array.from(report.content[0]?.text ?? '').length <= 2000)

  const result = await countersign(['buy', page, 'Three piers, for a receipt.', '--yes', '--json', ...PAYING], {
    env: { COUNTERSIGN_SERVICE: gateway.baseUrl },
  })
  const { attestation, canonical_envelope_base64 } = JSON.parse(result.stdout).result.receipt
  gateway.hook = async () => {
    throw new Error('offline')
  }
  const receipt = await host.call('verify_receipt', { attestation, canonical_envelope_base64 })
  t.match(receipt, { content: [{ text: /^The receipt is genuine\./ }], structuredContent: { ok: true } })
  const forged = { ...attestation, serial: attestation.serial + 1 }
  t.match(await host.call('verify_receipt', { attestation: forged }), { structuredContent: { ok: false } })
  gateway.hook = plain

  const bare = await open(t, ['--journal', path('bare')])
  t.match(await bare.call('verify_source', { source_url: page, claim: 'x' }), {
    isError: true,
    content: [{ text: /--wallet FILE/ }],
  })
  for (const [name, args] of [
    ['check_quotes', { source_url: page, quotes: ['x'] }],
    ['check_report', { markdown: 'x' }],
  ] as const)
    t.match(await bare.call(name, args), { isError: true, content: [{ text: /countersign account register NAME/ }] })
  t.match(await bare.call('verify_receipt', { attestation }), { isError: true, content: [{ text: /no key/i }] })
})

t.test('a line that is no message gets an error of JSON-RPC, and the next one its answer', async (t) => {
  const server = spawn(process.execPath, [CLI, 'mcp', '--service', gateway.baseUrl, '--journal', path('lines')], {
    env: BARE_ENV,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.teardown(() => server.kill())
  const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]()
  const ask = async (...chunks: (string | Buffer)[]) => {
    for (const chunk of chunks) server.stdin.write(chunk)
    return JSON.parse(String((await lines.next()).value))
  }
  const refused = (code: number, id: unknown = null) => ({ jsonrpc: '2.0', error: { code, message: String }, id })
  const ping = { jsonrpc: '2.0', id: 7, method: 'ping' }
  const secret = 'sk-a-secret'
  const broken = await ask(`{"jsonrpc": ${secret}\n`)
  t.match(broken, refused(-32_700))
  t.notMatch(JSON.stringify(broken), secret)
  t.match(await ask('in two', ' pieces\r\n'), refused(-32_700))
  for (const text of ['1', 'null', '[]', JSON.stringify([ping]), '{"id":3}'])
    t.match(await ask(`${text}\n`), refused(-32_600), text)
  t.match(await ask(`${JSON.stringify({ ...ping, jsonrpc: '1.0' })}\n`), refused(-32_600, 7))
  // A broken answer and blank lines get none.
  t.match(await ask('{"id":3,"result":1}\n\n \r\n', `${JSON.stringify(ping)}\n`), { id: 7, result: {} })
  const cut = Buffer.from(`${JSON.stringify({ ...ping, id: '\u00e9' })}\n`)
  t.match(await ask(cut.subarray(0, cut.indexOf(0xa9)), cut.subarray(cut.indexOf(0xa9))), { id: '\u00e9', result: {} })
  const long = Buffer.alloc(10 * 1024 * 1024, ' ')
  t.match(await ask(long), refused(-32_600), 'a line that is longer than the SDK reads, before it has ended')
  t.match(await ask(long, '\n', `${JSON.stringify(ping)}\n`), { id: 7, result: {} }, 'the next one')
  server.stdin.end()
  t.same(await once(server, 'close'), [0, null])
  t.ok((await lines.next()).done)
})

t.test('wrong usage, and the wallet in no output', async (t) => {
  const run = (args: string[]) => countersign(['mcp', ...args], { env: { COUNTERSIGN_SERVICE: gateway.baseUrl } })
  t.match(await run(['--wallet', path('wallet.key')]), { code: 2, stderr: /give --budget/ })
  t.match(await run(['--wallet', secret, '--budget', '1']), { code: 2, stderr: /takes a file, not the key/ })
  const host = await open(t, PAYING)
  t.match(await host.call('verify_source', { source_url: 'ftp://x', claim: 'x' }), { isError: true })
  t.match(await host.call('verify_source', { source_url: page, claim: 'x', max_age_seconds: 'old' }), { isError: true })
  const words = heard.join('')
  t.ok(words.length > 1000)
  t.notMatch(words, secret.slice(2))
  t.notMatch(readFileSync(path('mcp/keys.jsonl'), 'utf8'), secret.slice(2))
})
