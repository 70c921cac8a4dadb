import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { answerWith, askForPayment, complete, play, refuse, TERMS } from './counterpart.ts'
import { attest, issueChain, issueResult, KEY_ID, keys, pubkeyHex } from './issuer.ts'

const CLI = join(import.meta.dirname, '../../client/cli.ts')
const PIN = `--pin=${KEY_ID}:${pubkeyHex}`

async function run(args: string[], input: string | Buffer = '') {
  const child = spawn(process.execPath, [CLI, ...args])
  child.stdin.end(input)
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: code as number, stdout, stderr, lines: stdout.trimEnd().split('\n') }
}

const files = t.testdir({
  'result.json': JSON.stringify(issueResult(), null, 2),
  'keys.json': JSON.stringify({ keys: keys.map((key) => ({ ...key, use: 'receipt', status: 'active' })) }),
  'list.json': JSON.stringify(keys),
  'unrelated.json': '{"keys":7}',
})
const result = join(files, 'result.json')

t.test('verify prints a line per check and says good', async (t) => {
  for (const trust of [[PIN], ['--keys', join(files, 'keys.json')], ['--keys', join(files, 'list.json')]]) {
    const { code, lines, stderr } = await run(['verify', result, ...trust])
    t.equal(code, 0)
    t.equal(stderr, '')
    t.equal(lines.at(-1), 'good')
    t.equal(lines[0], 'ok   json: a completed result')
    t.ok(lines.includes('ok   signature'))
    t.equal(lines.length, 24)
  }
})

t.test('verify names what is bad', async (t) => {
  const forged = JSON.stringify({ ...issueResult(), claim: 'another' })
  const { code, lines } = await run(['verify', '-', PIN], forged)
  t.equal(code, 1)
  t.same(
    lines.filter((line) => !line.startsWith('ok ')),
    ['FAIL result_sha256: the result without its receipt is not the one in the envelope', 'BAD'],
  )
})

t.test('verify takes attestations and chains', async (t) => {
  const chain = issueChain(4)
  const at = (i: number) => `${chain[i]!.serial}:${chain[i]!.receipt_hash}`
  const good: [unknown, ...string[]][] = [
    [attest()],
    [{ attestation: attest() }],
    [chain, '--head', at(3)],
    [{ from: 1, to: 4, head_serial: 4, attestations: chain }, '--last-signature'],
    [chain.slice(2), '--from', at(1)],
  ]
  const verify = ([value, ...options]: (typeof good)[number]) =>
    run(['verify', '-', PIN, ...options], JSON.stringify(value))
  for (const { code, lines } of await Promise.all(good.map(verify))) t.equal(code, 0, lines.join('\n'))
  const bad: [unknown, ...string[]][] = [
    [{ ...attest(), serial: 1 }],
    [{ attestation: attest(), inclusion: {} }],
    [chain.toReversed()],
    [chain, '--head', at(2)],
    [chain.slice(2), '--from', at(0)],
    [{ attestations: [] }],
    [{ neither: 'one nor the other' }],
    [null],
  ]
  for (const { code, lines } of await Promise.all(bad.map(verify))) {
    t.equal(code, 1, lines.join('\n'))
    t.equal(lines.at(-1), 'BAD')
  }
})

t.test('verify refuses a file that two readers may read differently', async (t) => {
  const twice = JSON.stringify(issueResult()).replace('{', '{"claim_support":"supports",')
  for (const input of [twice, 'not json', '', Buffer.from([0x22, 0xff, 0x22])]) {
    const { code, lines } = await run(['verify', '-', PIN], input)
    t.equal(code, 1)
    t.match(lines[0], /^FAIL json: /)
    t.equal(lines.at(-1), 'BAD')
  }
})

t.test('what a file says cannot write lines of its own', async (t) => {
  const { code, lines, stdout } = await run(['verify', '-', PIN], JSON.stringify({ '\u001b[2J\ngood\n': '\ud800' }))
  t.equal(code, 1)
  t.notOk(lines.includes('good'))
  t.match(stdout, '/\\u{1b}[2J\\u{a}good\\u{a} is not well-formed Unicode')
})

t.test('wrong usage is 2, with a hint and no verdict', async (t) => {
  const cases = [
    [],
    ['notarise', result],
    ['toString', result],
    ['verify', PIN],
    ['verify', result],
    ['verify', result, result, PIN],
    ['verify', join(files, 'missing.json'), PIN],
    ['verify', result, '--pin', `${KEY_ID}:abc`],
    ['verify', result, '--pin', `${KEY_ID}:${'01'.padEnd(64, '0')}`],
    ['verify', result, '--keys', join(files, 'missing.json')],
    ['verify', result, '--keys', join(files, 'unrelated.json')],
    ['verify', result, PIN, '--from', '1'],
    ['verify', result, PIN, '--last-signature'],
    ['verify', result, PIN, '--unknown'],
    ['keys', 'not-a-url'],
    ['ask', 'https://127.0.0.1', '--source', 'https://example.org'],
  ]
  const runs = await Promise.all(cases.map((args) => run(args)))
  for (const [i, { code, stdout, stderr }] of runs.entries()) {
    t.equal(code, 2, String(cases[i]?.join(' ')))
    t.equal(stdout, '')
    t.match(stderr, /^countersign: .+\nSee countersign --help\.\n$/)
  }
})

t.test('help', async (t) => {
  for (const args of [['--help'], ['verify', '-h']]) {
    const { code, stdout } = await run(args)
    t.equal(code, 0)
    for (const word of ['verify FILE', 'keys BASE_URL', 'ask BASE_URL', '--pin', 'Exit status'])
      t.ok(stdout.includes(word))
  }
})

t.test('keys prints what can be kept and pinned', async (t) => {
  const published = { keys: [{ ...keys[0], use: 'receipt', status: 'active' }] }
  const { baseUrl } = await play(t, answerWith(200, JSON.stringify(published)), refuse(503, 'internal_error'))
  const { code, stdout, stderr } = await run(['keys', baseUrl])
  t.equal(code, 0)
  t.same(JSON.parse(stdout), published)
  t.match(stderr, /before you trust them/)
  const refused = await run(['keys', baseUrl])
  t.equal(refused.code, 1)
  t.equal(refused.stderr, 'internal_error: about internal_error\n')
})

t.test('ask shows the terms and pays nothing', async (t) => {
  const { baseUrl, received } = await play(t, askForPayment(), refuse(422, 'budget_exceeded'), complete())
  const question = ['ask', baseUrl, '--source', 'https://example.org/bridge', '--claim', 'It opened in 1932.']
  const { code, stdout } = await run(question)
  t.equal(code, 0)
  const shown = JSON.parse(stdout)
  t.same(shown.payment_required, TERMS)
  t.equal(shown.idempotency_key, received[0]?.headers['idempotency-key'])
  t.same(JSON.parse(received[0]?.body ?? ''), { source_url: 'https://example.org/bridge', claim: 'It opened in 1932.' })
  const refused = await run(question)
  t.equal(refused.code, 1)
  t.equal(refused.stderr, 'budget_exceeded: about budget_exceeded\n')
  t.equal((await run(question)).code, 1, 'a service that does not ask for payment is not what it says')
})

t.test('ask --dry-run asks for nothing but the published price', async (t) => {
  const price = { amount_atomic: '30000', currency: 'USDC', decimals: 6, usd: '0.03' }
  const capabilities = { price, networks: ['eip155:84532'], payment_mode: 'offline', service: 'x' }
  const { baseUrl, received } = await play(t, answerWith(200, JSON.stringify(capabilities)))
  const { code, stdout } = await run(['ask', baseUrl, '--source', 'https://a.example', '--claim', 'c', '--dry-run'])
  t.equal(code, 0)
  const request = { source_url: 'https://a.example', claim: 'c' }
  t.same(JSON.parse(stdout), { request, price, networks: ['eip155:84532'], payment_mode: 'offline' })
  t.same(
    received.map(({ method, url }) => `${method} ${url}`),
    ['GET /api/agent/v1/capabilities'],
  )
})
