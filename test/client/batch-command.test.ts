// How `countersign batch` is called: what it prints before it buys, when it asks for confirmation, which calls are wrong
// usage, and that none of this pays.
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createWalletKey } from '../../client/wallet.ts'
import { csvOf, lose, openCommand, openFolder, openShop, posts, rowsOf, type Shop } from './batch-desk.ts'
import { countersign } from './command-line.ts'
import { refuse } from './counterpart.ts'

const KEY = `0x${'5b'.repeat(32)}`

async function openDesk(t: Test) {
  const shop = await openShop(t)
  const folder = openFolder(t)
  const path = (name: string) => join(folder, name)
  const write = (name: string, contents: string) => {
    writeFileSync(path(name), contents, { mode: 0o600 })
    return path(name)
  }
  const env = { COUNTERSIGN_SERVICE: shop.baseUrl, COUNTERSIGN_WALLET: write('wallet.key', KEY) }
  const batch = (args: readonly string[], more: Parameters<typeof countersign>[1] = {}) =>
    countersign(['batch', ...args], { env, ...more })
  return { shop, path, write, env, batch }
}

const isUnpaid = ({ settled, payments }: Shop) => settled.size === 0 && payments.length === 0

t.test('--dry-run says what would be bought, and sends no order', async (t) => {
  const { shop, write, batch } = await openDesk(t)
  const file = write('in.csv', `${csvOf(rowsOf(3))}bad,http://example.org/,Not https.\n`)
  const text = await batch([file, '--dry-run', '--budget', '0.06'])
  t.equal(text.code, 0)
  t.equal(text.stdout, '')
  t.equal(
    text.stderr,
    '3 rows at 0.03 USDC: 0.09 USDC.\n--group buys those of one page together: 1 purchase, 0.05 USDC, 0.04 less.\n' +
      'The service is on a test network: its USDC is worth nothing.\n' +
      '1 row cannot be bought:\n  line 5: source_url is not an https:// URL\n' +
      'Budget 0.06 USDC: enough for 2 rows. The others are left.\n',
  )
  const { code, stdout, stderr } = await batch([file, '--dry-run', '--json'], {
    env: { COUNTERSIGN_SERVICE: shop.baseUrl },
  })
  t.same([code, stderr], [0, ''], 'no wallet is needed')
  t.same(JSON.parse(stdout), {
    rows: 4,
    bought: 3,
    purchases: 3,
    grouping_saves_usd: '0.04',
    unusable: [{ id: 'bad', line: 5, reason: 'source_url is not an https:// URL' }],
    price_usd: '0.03',
    cost_usd: '0.09',
    budget_usd: null,
    payment_mode: 'testnet',
  })
  t.same(posts(shop), [])
})

t.test('--group names the purchases and what they save, before anything is paid', async (t) => {
  const { shop, path, write, batch } = await openDesk(t)
  const rows = [...rowsOf(12), ...rowsOf(3).map((row) => ({ ...row, id: `${row.id}-twin` }))]
  const other = rowsOf(1).map((row) => ({ ...row, id: 'other', source_url: 'https://example.org/other' }))
  const file = write('in.csv', csvOf([...rows, ...other]))
  const plan = await batch([file, '--dry-run', '--group', '--budget', '0.10'])
  t.equal(
    plan.stderr,
    '16 rows: 13 to buy, 3 that ask the same as one of these and get its outcome for nothing.\n' +
      '13 rows in 3 purchases by page: 0.19 USDC, 0.20 less than one by one.\n' +
      'The service is on a test network: its USDC is worth nothing.\n' +
      'Budget 0.10 USDC: enough for 3 rows. The others are left.\n',
  )
  const asJson = await batch([file, '--dry-run', '--group', '--json'])
  t.match(JSON.parse(asJson.stdout), { bought: 13, purchases: 3, cost_usd: '0.19', grouping_saves_usd: '0.20' })
  t.same(posts(shop), [])

  // This service answers with the terms of one claim, which are no terms for ten.
  const args = [file, '--group', '--budget', '1', '--out', path('out')]
  t.match(await batch(args), { code: 2, stderr: /asks for 30000 atomic units and publishes a price of 120000/ })
  t.ok(posts(shop).every(({ url }) => url.endsWith('/verify-claims')))
  t.ok(isUnpaid(shop))
})

t.test('asks before it buys, and again before it buys more', async (t) => {
  const { shop, path, write, batch } = await openDesk(t)
  const args = [write('in.csv', csvOf(rowsOf(3))), '--budget', '0.06', '--out', path('out')]
  const silent = await batch(args)
  t.match(silent, { code: 2, stderr: /Buy 3 verifications for 0\.09 USDC\? Repeat with --yes/ })
  t.match(await batch(args, { typed: 'n\n' }), { code: 2, stderr: /Nothing was done\./ })
  t.ok(isUnpaid(shop))
  t.notOk(existsSync(path('out')))
  const first = await batch(args, { typed: 'y\n' })
  t.match(first, { code: 3, stdout: /^3 rows: 2 completed, 0 failed\n/ })
  t.match(first.stderr, /Paid to \S+ on eip155:84532, from 0x[\s\S]*Buy 3 verifications for 0\.09 USDC\? \[y\/N\]/)

  const more = [...args.with(2, '0.09'), '--resume']
  t.match(await batch(more), { code: 2, stderr: /Buy 1 verification for 0\.03 USDC\? Repeat with --yes/ })
  t.match(await batch(more, { typed: '\u0004' }), { code: 2 })
  t.equal(shop.settled.size, 2)
  t.match(await batch(more, { typed: 'yes\n' }), { code: 0, stderr: /1 row of 3 left/ })
  t.equal(shop.settled.size, 3)
  t.match(await batch(more), { code: 0 }, 'nothing is left to ask about')
  t.match(await batch([...more, '--json']), { code: 0, stdout: /"completed": 3/ })

  // Paid results that were not fetched yet are fetched without a question.
  const journal = readFileSync(path('out/journal.jsonl'), 'utf8')
  t.equal(journal.match(/"type":"signed"/g)?.length, 3)
  writeFileSync(path('out/results.jsonl'), '')
  t.match(await batch(more), { code: 0, stderr: /3 rows of 3 left/ })
  t.equal(new Set(shop.payments).size, 3, 'with the payments that were signed')
})

t.test('wrong usage buys nothing', async (t) => {
  const { shop, path, write, env, batch } = await openDesk(t)
  const file = write('in.csv', csvOf(rowsOf(1)))
  const whole = [file, '--budget', '1', '--out', path('out'), '--yes']
  const cases: [args: string[], message: RegExp, env?: Record<string, string>][] = [
    [[], /It is: countersign batch FILE/],
    [[file, file], /It is: countersign batch FILE/],
    [[path('none.csv'), ...whole.slice(1)], /Cannot read \S+none\.csv: ENOENT: no such file or directory$/m],
    [[write('in.txt', ''), ...whole.slice(1)], /Which format has .*Give --format csv, tsv, jsonl/],
    [[...whole, '--format', 'xlsx'], /--format xlsx is none of csv, tsv, jsonl/],
    [[file, '--out', path('out'), '--yes'], /The most that may be spent is missing/],
    [[file, '--budget', '1', '--yes'], /The folder for the results is missing/],
    [whole.with(2, '1,00'), /--budget 1,00 is not an amount/],
    [whole.with(2, '-1'), /'--budget' argument is ambiguous\. Did you forget/],
    [whole.with(4, join(file, 'x')), /Cannot use \S+in\.csv\/x: ENOTDIR: not a directory\n/],
    [whole.with(4, file), /Cannot use \S+in\.csv: ENOTDIR/],
    [whole.with(4, ''), /The name of a file or folder is empty/],
    [[...whole, '--budget-file', path('none/money')], /Cannot use \S+none\/money: ENOENT/],
    [[...whole, '--concurrency', '0'], /--concurrency 0 is not a number from 1 to 9999/],
    [[...whole, '--concurrency', 'many'], /--concurrency many/],
    [[...whole, '--resume'], /There is no batch in .* to go on with/],
    [[...whole, '--retry-errors'], /There is no batch in/],
    [[...whole, '--wallet', KEY], /--wallet takes a file, not the key/],
    [[...whole, '--wallet', path('none')], /Cannot read the key of a wallet/],
    [[...whole, '--service', 'service.example'], /is not the URL of a service/],
    [[...whole, '--speed', '9'], /Unknown option '--speed'/],
    [whole, /Which service\?/, { COUNTERSIGN_WALLET: env.COUNTERSIGN_WALLET }],
    [whole, /Which wallet\?/, { COUNTERSIGN_SERVICE: shop.baseUrl }],
    [[write('unusable.csv', 'source_url,claim\nx,y\n'), ...whole.slice(1)], /No row can be bought/],
    [[write('torn.csv', 'url,claim\nx,y\n'), ...whole.slice(1)], /no column source_url/],
  ]
  for (const [args, message, own = env] of cases) {
    const { code, stdout, stderr } = await batch(args, { env: own })
    t.same([code, stdout], [2, ''], args.join(' '))
    t.match(stderr, message, args.join(' '))
    t.notMatch(stderr, KEY.slice(2))
  }
  t.same(posts(shop), [])
  t.notOk(existsSync(path('out')))
})

t.test('a disk that becomes full: the first error, the folder, and that --resume goes on', async (t) => {
  const { shop, path, write, batch } = await openDesk(t)
  const file = write('in.csv', csvOf(rowsOf(1)))
  const args = [file, '--budget', '1', '--out', path('out'), '--yes']
  const words =
    `Cannot use ${path('out')}: ENOSPC: no space left on device. ` +
    'Free some space, then --resume goes on, and pays nothing twice.'
  for (const [more, line] of [
    [[], `countersign: ${words}\n`],
    [['--resume', '--json'], `{"error":{"code":"failed","retryable":false,"message":"${words}"}}\n`],
  ] as const)
    await t.test(`full ${more}`, async (t) => {
      const handles = Object.getPrototypeOf(await opened(t, file)) as FileHandle
      shop.rule = ({ headers }) => {
        if (headers['payment-signature'] === undefined) return
        t.intercept(handles, 'appendFile', { value: () => Promise.reject(fullDisk()) })
        // The table cannot be written either, so that the closing fails too.
        mkdirSync(path('out/results.csv.new'))
        return undefined
      }
      const full = await batch([...args, ...more])
      t.match(full, { code: 1, stdout: '' })
      t.equal(full.stderr.slice(-line.length), line)
      rmdirSync(path('out/results.csv.new'))
    })
  shop.rule = () => undefined
  t.match(await batch([...args, '--resume']), { code: 0, stdout: /^1 row: 1 completed, 0 failed\n/ })
  t.equal(new Set(shop.payments).size, 1)
})

async function opened(t: Test, file: string): Promise<FileHandle> {
  const handle = await open(file)
  t.teardown(() => handle.close())
  return handle
}

const fullDisk = () =>
  Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', syscall: 'write' })

t.test('standard input needs its format and --yes, and another input is another batch', async (t) => {
  const { shop, path, write, batch } = await openDesk(t)
  const rows = rowsOf(2)
  const lines = rows.map(({ id, source_url, claim }) => JSON.stringify({ custom_id: id, source_url, claim })).join('\n')
  const args = ['-', '--budget', '1', '--out', path('out')]
  t.match(await batch([...args, '--yes'], { input: lines }), { code: 2, stderr: /Which format has -\?/ })
  t.match(await batch([...args, '--format', 'jsonl'], { input: lines }), { code: 2, stderr: /Repeat with --yes/ })
  t.ok(isUnpaid(shop))
  const bought = await batch([...args, '--format', 'jsonl', '--yes'], { input: lines })
  t.match(bought, { code: 0, stdout: /^2 rows: 2 completed/ })
  const tsv = ['id\tsource_url\tclaim', ...rows.map((row) => `${row.id}\t${row.source_url}\t${row.claim}`)].join('\n')
  const own = [...args.with(4, path('other')), '--format', 'tsv', '--yes']
  t.match(await batch(own, { input: tsv }), { code: 0, stdout: /^2 rows: 2 completed/ })

  const before = shop.received.length
  const again = [write('in.csv', csvOf(rowsOf(3))), ...args.slice(1), '--yes']
  t.match(await batch(again), { code: 2, stderr: /has a batch already: --resume goes on with it/ })
  t.match(await batch([...again, '--resume']), { code: 2, stderr: /has a batch of another input/ })
  const moved = [
    ...args,
    '--format',
    'jsonl',
    '--yes',
    '--resume',
    '--service',
    shop.baseUrl.replace('127.0.0.1', 'localhost'),
  ]
  t.match(await batch(moved, { input: lines }), { code: 2, stderr: /The folder has a batch for http:\/\/127/ })
  t.same(posts({ ...shop, received: shop.received.slice(before) }), [])
})

t.test('a service that refuses before it names terms', async (t) => {
  const { shop, path, write, batch } = await openDesk(t)
  const args = [write('in.csv', csvOf(rowsOf(2))), '--budget', '1', '--out', path('out'), '--yes']
  shop.rule = () => refuse(400, 'invalid_request')
  t.match(await batch(args), { code: 1, stderr: /invalid_request/ })
  t.ok(isUnpaid(shop))
  shop.terms.accepts = shop.terms.accepts.map((terms) => ({ ...terms, network: 'solana:unknown' }))
  shop.rule = () => undefined
  t.match(await batch(args), { code: 2, stderr: /has no key for the networks .*solana:unknown/ })
  const solana = write('solana.key', (await createWalletKey('solana')).text)
  t.match(await batch([...args, '--wallet', solana]), { code: 2, stderr: /which is not USDC there/ })
  t.ok(isUnpaid(shop))
})

t.test('rows that the service refuses keep no other row from being bought, however many come first', async (t) => {
  const { shop, path, write, batch } = await openDesk(t)
  shop.rule = ({ body }) => (body.includes('Claim 7.') ? undefined : refuse(422, 'source_blocked'))
  const args = [write('in.csv', csvOf(rowsOf(8))), '--budget', '1', '--out', path('out'), '--yes']
  t.match(await batch(args), { code: 1, stdout: /^8 rows: 1 completed, 7 failed/ })
  t.equal(shop.settled.size, 1)
})

t.test('a budget smaller than the rows: what it allows is bought, and the command ends', async (t) => {
  const { shop, path, write } = await openDesk(t)
  const { run } = openCommand(t, shop)
  const file = write('in.csv', csvOf(rowsOf(40)))
  const { code, stdout } = await run(['batch', file, '--budget', '0.30', '--out', path('out'), '--yes'])
  t.match({ code, stdout }, { code: 3, stdout: /40 rows: 10 completed, 0 failed\n[\s\S]*30 untouched/ })
  t.equal(shop.settled.size, 10)
})

t.test('rows that ask the same are bought once, and each has its line', async (t) => {
  const { shop, path, write, batch } = await openDesk(t)
  const url = 'https://example.org/'
  const text = `id,source_url,claim\nz,${url},one\ny,${url},two\nx,${url},one\nbad,http://example.org/,one\nw,${url},one\n`
  const args = [write('in.csv', text), '--budget', '1', '--out', path('out'), '--yes']
  const asked = await batch([...args.slice(0, 1), '--dry-run'])
  t.match(
    asked.stderr,
    /^5 rows: 2 to buy, 2 that ask the same as one of these and get its outcome for nothing, 1 that cannot be bought\.\n2 rows at 0\.03 USDC: 0\.06 USDC\./,
  )
  const { stdout, stderr } = await batch([...args, '--concurrency', '1', '--json'])
  t.match(JSON.parse(stdout), { rows: 5, completed: 4, failed: 1, untouched: 0, spent_usd: '0.06' }, stderr)
  t.match(stderr, /\] 5 of 5 {2}1 failed {2}0\.06 of 1\.00 USDC/, 'the progress counts the same rows')
  t.equal(shop.settled.size, 2)
  const table = () => readFileSync(path('out/results.csv'), 'utf8').trim().split('\n')
  t.same(
    table().map((line) => line.split(',')[0]),
    ['id', 'z', 'y', 'x', 'bad', 'w'],
    'in the order of the input',
  )
  t.match(table()[4], /^bad,http:\/\/example\.org\/,one,,,,,0\.00,unusable_row: source_url is not an https:\/\/ URL$/)
  const whole = readFileSync(path('out/results.jsonl'), 'utf8')
  const lines = whole.trim().split('\n')
  const parsed = lines.map((line) => JSON.parse(line))
  t.same(
    parsed.map(({ id, cost_usd, same_as }) => [id, cost_usd, same_as]),
    [
      ['z', '0.03', undefined],
      ['x', '0.00', 'z'],
      ['w', '0.00', 'z'],
      ['y', '0.03', undefined],
    ],
  )
  t.equal(parsed[1].result_base64, parsed[0].result_base64)

  // Killed before the lines of the twins were on the disk.
  writeFileSync(path('out/results.jsonl'), `${lines[0]}\n${lines[1]}\n`)
  t.match(await batch([...args, '--resume']), { code: 1, stdout: /5 rows: 4 completed, 1 failed/ })
  t.equal(readFileSync(path('out/results.jsonl'), 'utf8').trim().split('\n').length, 4)
  t.equal(shop.settled.size, 2)
  t.equal(new Set(shop.payments).size, 2)

  // A failure is that of its twins, too, and so is another attempt.
  const failed = [write('some.csv', text.replaceAll('two', 'one')), '--budget', '1', '--out', path('some'), '--yes']
  shop.rule = (request) =>
    request.headers['payment-signature'] ? refuse(422, 'source_timeout', { retryable: true }) : undefined
  t.match(await batch(failed), { code: 1, stdout: /5 rows: 0 completed, 5 failed/ })
  shop.rule = () => undefined
  t.match(await batch([...failed, '--retry-errors']), {
    code: 1,
    stdout: /5 rows: 4 completed, 1 failed/,
    stderr: /4 rows of 5 left, 4 failures tried again\.\n[\s\S]*\] 5 of 5 {2}1 failed/,
  })
  t.equal(shop.settled.size, 3)
})

t.test('rows that ask the same as one without an outcome have none either, and are not untouched', async (t) => {
  const { shop, path, write, batch } = await openDesk(t)
  const [row] = rowsOf(1)
  const rows = ['one', 'twin', 'third', 'other'].map((id) => ({ ...row!, id, ...(id === 'other' && { claim: id }) }))
  const args = [write('in.csv', csvOf(rows)), '--budget', '1', '--out', path('out'), '--yes', '--concurrency', '1']
  shop.rule = (request, sell) => {
    if (request.headers['payment-signature'] === undefined) return undefined
    process.emit('SIGINT')
    return lose(sell)
  }
  const { code, stdout } = await batch([...args, '--json'])
  t.match({ code, ...JSON.parse(stdout) }, { code: 130, completed: 0, unfinished: 3, untouched: 1, spent_usd: '0.03' })
  shop.rule = () => undefined
  t.match(await batch([...args, '--resume']), { code: 0, stderr: /^4 rows of 4 left/ })
})
