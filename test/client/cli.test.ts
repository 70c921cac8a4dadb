import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { countersign, countersignApart } from './command-line.ts'
import {
  answerWith,
  askForPayment,
  complete,
  play,
  REQUEST_ID,
  RESULT_BYTES,
  refuse,
  TERMS,
  TOKEN,
} from './counterpart.ts'
import { attest, issueChain, issueResult, KEY_ID, keys, pubkeyHex } from './issuer.ts'

const CLI = join(import.meta.dirname, '../../client/cli.ts')
const PIN = `--pin=${KEY_ID}:${pubkeyHex}`

async function run(args: string[], input: string | Buffer = '') {
  const ran = await countersign(args, { input })
  return { ...ran, lines: ran.stdout.trimEnd().split('\n') }
}

const files = await mkdtemp(join(tmpdir(), 'countersign-cli-'))
t.teardown(() => rm(files, { recursive: true }))
for (const [name, content] of Object.entries({
  'result.json': JSON.stringify(issueResult(), null, 2),
  'keys.json': JSON.stringify({ keys: keys.map((key) => ({ ...key, use: 'receipt', status: 'active' })) }),
  'list.json': JSON.stringify(keys),
  'unrelated.json': '{"keys":7}',
}))
  await writeFile(join(files, name), content)
const result = join(files, 'result.json')

t.test('verify prints a line per check and says good', async (t) => {
  for (const trust of [[PIN], ['--keys', join(files, 'keys.json')], ['--keys', join(files, 'list.json')]]) {
    const { code, lines, stderr } = await run(['verify', result, ...trust])
    t.equal(code, 0)
    t.equal(stderr, '')
    t.equal(lines.at(-1), 'good')
    t.same(lines.slice(0, 6), [
      'Claim:    The bridge opened in 1932.',
      'Verdict:  mixed: The page says both',
      'Page:     https://www.example.org/bridge',
      'Read on:  Friday, 20 November 2026 at 09:00:00 UTC',
      'Receipt:  serial 42, offline mode: no money moved',
      'ok   json: a completed result',
    ])
    t.ok(lines.includes('ok   signature'))
    t.equal(lines.length, 29)
    t.notOk(
      lines.some((line) => line.includes('\u001b')),
      'no colours in a pipe',
    )
  }
})

t.test('verify names what is bad', async (t) => {
  const forged = JSON.stringify({ ...issueResult(), claim: 'another' })
  const { code, lines } = await run(['verify', '-', PIN], forged)
  t.equal(code, 1)
  t.same(
    lines.slice(5).filter((line) => !line.startsWith('ok ')),
    ['FAIL result_sha256: the result without its receipt is not the one in the envelope', 'BAD'],
  )
})

t.test('a key outside the pins is an unknown key, not a forgery; a changed file is bad under any pin', async (t) => {
  const [, hex] = PIN.split('=')[1]?.split(':') ?? []
  const older = `--pin=6:${hex}`
  const result = issueResult()
  const stranger = await run(['verify', '-', older], JSON.stringify(result))
  t.equal(stranger.code, 1, 'nothing is proved')
  t.equal(stranger.lines.at(-1), 'unknown key')
  t.match(stranger.lines.at(-2), /^Nothing was changed since it was signed.*--introduced FILE/)
  t.notMatch(stranger.lines.join('\n'), /BAD|FAIL/)
  t.match(JSON.parse((await run(['verify', '-', older, '--json'], JSON.stringify(result))).lines.join('\n')), {
    ok: false,
    unknown_key: true,
  })
  const { receipt } = result
  const { attestation } = receipt
  const flipped = attestation.sig_ed25519_hex.replace(/^./, (digit) => (digit === '0' ? '1' : '0'))
  const changed = [
    { ...result, claim: 'another' },
    { ...result, receipt: { ...receipt, attestation: { ...attestation, sig_ed25519_hex: flipped } } },
    { ...result, receipt: { ...receipt, attestation: { ...attestation, pubkey_hex: '00'.repeat(32) } } },
  ]
  for (const forged of changed) t.equal((await run(['verify', '-', older], JSON.stringify(forged))).lines.at(-1), 'BAD')
  const renamed = await run(
    ['verify', '-', PIN],
    JSON.stringify({
      ...result,
      receipt: { ...receipt, attestation: { ...attestation, pubkey_hex: '00'.repeat(32) } },
    }),
  )
  t.equal(renamed.lines.at(-1), 'BAD', 'another key under the id of a pin')
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

t.test('text from a file cannot add lines to the output', async (t) => {
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

t.test('help lists all commands, and explains each', async (t) => {
  const { code, stdout } = await run(['--help'])
  t.equal(code, 0)
  for (const word of ['verify FILE', 'keys BASE_URL', 'ask BASE_URL', '--pin', 'Exit status', 'Examples:'])
    t.ok(stdout.includes(word), word)
  const listed = [...stdout.matchAll(/^ {2}countersign (\w+) [A-Z]/gm)].map(([, name = '']) => name)
  t.ok(listed.length >= 7)
  for (const name of listed) {
    const help = await run([name, name === 'verify' ? '-h' : '--help'])
    t.same([help.code, help.stderr], [0, ''], name)
    for (const word of [`countersign ${name} `, 'Examples:', '--json', 'Exit status']) t.ok(help.stdout.includes(word))
    t.notOk(help.stdout.split('\n').some((line) => line.length > 120))
  }
  const verify = (await run(['verify', '--help'])).stdout
  t.ok(verify.includes('--pin KEYID:HEX'))
  t.notOk(verify.includes('--interval'), 'an option of another command')
})

t.test('an option of another command is refused', async (t) => {
  for (const args of [
    ['verify', result, PIN, '--interval', '5'],
    ['cite', result, '--pin', 'x'],
    ['keys', 'https://a.example', '--dry-run'],
    ['--json', 'verify', result],
  ]) {
    const { code, stderr } = await run(args)
    t.equal(code, 2, args.join(' '))
    t.match(stderr, /--(interval|pin|dry-run)|Options come after/)
  }
})

t.test('keys prints the keys in the form that can be pinned', async (t) => {
  const published = { keys: [{ ...keys[0], use: 'receipt', status: 'active' }] }
  const { baseUrl } = await play(t, answerWith(200, JSON.stringify(published)), refuse(503, 'internal_error'))
  const { code, stdout, stderr } = await run(['keys', baseUrl])
  t.equal(code, 0)
  t.same(JSON.parse(stdout), published)
  t.match(stderr, /before you trust them/)
  t.match(stderr, `--pin ${KEY_ID}:${pubkeyHex}\n`)
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

t.test('verify of an answer without a receipt says so', async (t) => {
  const error = { code: 'source_timeout', message: 'The page did not answer.\nNothing was charged.', retryable: true }
  const failed = JSON.stringify({ schema_version: '1.0.0', request_id: 'r', status: 'failed', error })
  const { code, stdout } = await run(['verify', '-', PIN], failed)
  t.equal(code, 1)
  const message = 'Error:    source_timeout: The page did not answer.\\u{a}Nothing was charged.'
  t.equal(stdout, `${message}\na failed request; there is no receipt\n`)
  const pending = await run(['verify', '-', PIN, '--json'], failed.replace('failed', 'pending'))
  t.equal(pending.code, 1)
  const failure = 'a request that is not completed; there is no receipt yet'
  t.match(JSON.parse(pending.stdout), { ok: false, failure, says: { Error: /^source_timeout: / }, checks: [] })
  const unpaid = await run(['verify', '-', PIN], failed.replace('failed', 'payment_required'))
  t.equal(unpaid.code, 1)
  t.match(unpaid.stdout, /\nterms of payment; there is no receipt\n$/)
})

t.test('--json: results on standard output, errors on standard error', async (t) => {
  const good = await run(['verify', result, PIN, '--json'])
  t.equal(good.code, 0)
  const { ok, says, checks } = JSON.parse(good.stdout)
  t.match({ ok, says }, { ok: true, says: { Claim: 'The bridge opened in 1932.' } })
  t.equal(checks.length, 23)
  const wrong = await run(['verify', result, '--json'])
  t.equal(wrong.code, 2)
  t.match(JSON.parse(wrong.stderr), { error: { code: 'wrong_usage', message: /there is no key/ } })
  const published = { keys: [{ ...keys[0], use: 'receipt', status: 'active' }] }
  const limited = refuse(429, 'rate_limited', { retryable: true, headers: { 'retry-after': '7' } })
  const { baseUrl } = await play(t, answerWith(200, JSON.stringify(published)), limited)
  const listed = await run(['keys', baseUrl, '--json'])
  t.same([JSON.parse(listed.stdout), listed.stderr], [published, ''])
  const refused = await run(['keys', baseUrl, '--json'])
  t.match(JSON.parse(refused.stderr), { error: { code: 'rate_limited', retryable: true, status: 429, retry_after: 7 } })
})

t.test('as a process of its own: streams and exit status', async (t) => {
  const good = await countersignApart(['verify', '-', PIN], { input: JSON.stringify(issueResult()) })
  t.match(good, { code: 0, stderr: '', stdout: /\ngood\n$/ })
  t.match(await countersignApart(['verify', '-', PIN], { input: 'no json' }), { code: 1, stdout: /\nBAD\n$/ })
  t.match(await countersignApart(['verify', result]), { code: 2, stdout: '', stderr: /there is no key/ })
})

t.test('a reader that stops early gets no stack trace', async (t) => {
  const child = spawn(process.execPath, [CLI, 'verify', '-', PIN])
  // The pipe is closed before the first line can be written, because the file is not there yet.
  child.stdout.destroy()
  await once(child.stdout, 'close')
  child.stdin.end(JSON.stringify(issueResult()))
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  t.equal(stderr, '')
  t.equal(code, 0, 'the exit status still says what was found')
})

t.test('a full disk gets one line and no stack trace, and no other status than 74 in place of 0', async (t) => {
  const full = await open('/dev/full', 'w')
  t.teardown(() => full.close())
  const { baseUrl } = await play(t, answerWith(200, '{"keys":[]}'), answerWith(200, '{"keys":[]}'))
  const COMPARE = 'Compare these with a source independent of this service before you trust them. To pin them:'
  const why = 'cannot write standard output: no space left on device'
  const asJson = { error: { code: 'failed', retryable: false, message: why } }
  for (const [args, input, status, lines] of [
    [['verify', '-', PIN], JSON.stringify(issueResult()), 74, [`countersign: ${why}`]],
    [['verify', '-', PIN], 'no json', 1, [`countersign: ${why}`]],
    [['keys', baseUrl], '', 74, [COMPARE, `countersign: ${why}`]],
    [['keys', baseUrl, '--json'], '', 74, [JSON.stringify(asJson)]],
    [['buy', '--help'], '', 74, [`countersign: ${why}`]],
  ] as const) {
    const child = spawn(process.execPath, [CLI, ...args], { stdio: ['pipe', full.fd, 'pipe'] })
    child.stdin!.end(input)
    const [stderr, [code]] = await Promise.all([text(child.stderr!), once(child, 'exit')])
    t.same([code, stderr.trimEnd().split('\n')], [status, lines], args.join(' '))
  }
  t.match((await run(['buy', '--help'])).stdout, /\n74 in place of 0, where standard output cannot be written\.\n$/)
})

t.test('export keeps a file that holds something else, and says what to do', async (t) => {
  const { baseUrl } = await play(t)
  const csv = join(files, 'table.csv')
  await writeFile(csv, 'a,b\n1,2\n')
  const { code, stdout, stderr } = await run(['export', baseUrl, csv])
  t.same([code, stdout, await readFile(csv, 'utf8')], [2, '', 'a,b\n1,2\n'])
  t.match(
    stderr,
    /Cannot use .*table\.csv: it holds something else than the beginning of this export \(.*\)\. It is kept as it is: name another file\.\n/,
  )
})

t.test('recover prints the bytes of the paid result, and reads the token from a file', async (t) => {
  const { baseUrl, received } = await play(t, complete())
  const { code, stdout } = await run(['recover', baseUrl, REQUEST_ID, '--token', '-'], `${TOKEN}\n`)
  t.equal(code, 0)
  t.equal(stdout, RESULT_BYTES.toString())
  t.equal(received[0]?.headers.authorization, `Bearer ${TOKEN}`)
  t.equal((await run(['recover', baseUrl, REQUEST_ID])).code, 2)
})

t.test('recover finds a path for the evidence that cannot be used before it asks the service', async (t) => {
  const { baseUrl, received } = await play(t)
  const there = join(files, 'there.wacz')
  await writeFile(there, 'kept')
  const cases = [
    [there, `Cannot use ${there}: it exists, and is not replaced\n`],
    [files, `Cannot use ${files}: it exists, and is not replaced\n`],
    [join(files, 'none/e.wacz'), `Cannot use ${files}/none/e.wacz: ENOENT: no such file or directory\n`],
    [join(there, 'e.wacz'), `Cannot use ${there}/e.wacz: ENOTDIR: not a directory\n`],
    ['', 'The name of a file or folder is empty.\n'],
  ] as const
  for (const [evidence, message] of cases) {
    const args = ['recover', baseUrl, REQUEST_ID, '--token', '-', '--evidence', evidence]
    const { code, stdout, stderr } = await run(args, TOKEN)
    t.same([code, stdout], [2, ''], evidence)
    t.ok(stderr.includes(message), stderr)
  }
  t.same(received, [])
  t.same([await readFile(there, 'utf8'), readdirSync(files).filter((name) => name.endsWith('.new'))], ['kept', []])
})

t.test('recover prints the result even if there is no evidence of it', async (t) => {
  const { baseUrl } = await play(t, complete(), refuse(404, 'evidence_not_found'))
  const evidence = join(files, 'missing.wacz')
  const ran = await run(['recover', baseUrl, REQUEST_ID, '--token', '-', '--evidence', evidence], TOKEN)
  t.same([ran.code, ran.stdout], [1, RESULT_BYTES.toString()])
  t.match(ran.stderr, /^evidence_not_found: /)
  t.notOk(existsSync(evidence))
})

t.test('cite prints every format, for people and as JSON', async (t) => {
  const cite = async (...args: string[]) => (await run(['cite', result, ...args])).stdout
  const first = 'https://www.example.org/bridge#:~:text=The%20bridge%20opened%20in%201932.'
  t.equal((await cite('--format', 'text-fragment')).split('\n')[0], first)
  t.match(JSON.parse(await cite('--format', 'text-fragment', '--json'))[0], { evidence_id: 'e1', url: first })
  const selectors = await cite('--format', 'selector')
  t.equal(selectors, await cite('--format', 'selector', '--json'))
  t.match(JSON.parse(selectors)[1].selector, [{ type: 'TextQuoteSelector' }, { type: 'TextPositionSelector' }])
  t.match(await cite('--format', 'bibtex'), /^@misc\{countersign-42,\n[\s\S]*\n\}\n$/)
  t.match(JSON.parse(await cite('--format', 'bibtex', '--json')), { bibtex: /^@misc/ })
  t.match(await cite(), /^(\[\^countersign-42-e[12]\]: .*\n){2}$/)
  t.equal(JSON.parse(await cite('--json')).length, 2)
})

t.test('cite refuses what it cannot cite', async (t) => {
  const { source } = issueResult()
  const script = { ...issueResult(), source: { ...source, final_url: 'javascript:alert(1)' } }
  const inputs = ['{}', 'no json', '{"error":{"code":"a","message":"b"}}', JSON.stringify(script)]
  for (const { code, stdout } of await Promise.all(inputs.map((input) => run(['cite', '-'], input))))
    t.same([code, stdout], [2, ''])
  t.equal((await run(['cite', result, '--format', 'apa'])).code, 2)
})
