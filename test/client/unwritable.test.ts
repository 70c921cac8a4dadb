// What happens to a purchase whose files cannot be written: a path that cannot be used is found before anything is paid, and what was
// paid for is shown even if a disk becomes full afterwards.
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import fs, { type FileHandle, open } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { basename, join } from 'node:path'
import t, { type Test } from 'tap'
import type { SingleCommand } from '../../client/commands/command.ts'
import { countersign as all } from '../../client/commands/main.ts'
import { buildPaidTool } from '../../client/commands/mcp/purchase.ts'
import { explain } from '../../client/commands/output.ts'
import { Purse } from '../../client/commands/purchasing.ts'
import { runHere } from '../own-process.ts'
import { register } from '../quotes/harness.ts'
import { openMarket } from './buy-harness.ts'
import { countersign } from './command-line.ts'
import { READ_OPTIONS } from './every-command.ts'

const market = await openMarket(t, { SOURCE_CAPTURE: 'on' })
const { gateway, page, path, settled } = market
const env = { COUNTERSIGN_SERVICE: gateway.baseUrl, COUNTERSIGN_WALLET: path('wallet.key') }
t.beforeEach(() => {
  gateway.hook = (_, forward) => forward()
  gateway.received = []
})
const buy = (claim: string, args: string[] = []) =>
  countersign(['buy', page, claim, '--journal', path('journal'), '--yes', ...args], { env })

mkdirSync(path('folder'))
writeFileSync(path('file'), 'a file')
// A link, so that a test that fails replaces the link and not the device.
symlinkSync('/dev/full', path('full'))

/** The files that a failed write has left. */
const litter = () =>
  readdirSync(path('.'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.new'))

/** From the answer to the payment on, no journal can be continued, as on a full disk. */
async function fillAfterPayment(t: Test): Promise<void> {
  const probe = await open(path('file'))
  const handles = Object.getPrototypeOf(probe) as FileHandle
  await probe.close()
  gateway.hook = async (request, forward) => {
    const answer = await forward()
    if (request.isPaid) t.intercept(handles, 'appendFile', { value: () => Promise.reject(fullDisk()) })
    return answer
  }
}

const fullDisk = () =>
  Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', syscall: 'write' })

t.test('a path that cannot be written is wrong usage, and nothing is asked of the service', async (t) => {
  const none = path('none')
  const cases: [args: string[], message: string][] = [
    [['--out', join(none, 'r.json')], `Cannot use ${none}/r.json: ENOENT: no such file or directory\n`],
    [['--out', path('file/r.json')], `Cannot use ${path('file')}/r.json: ENOTDIR: not a directory\n`],
    [['--out', path('folder')], `Cannot use ${path('folder')}: it is a folder\n`],
    [['--out', ''], 'The name of a file or folder is empty.\n'],
    [['--evidence', join(none, 'x')], `Cannot use ${none}/x: ENOENT`],
    [['--evidence', path('folder')], 'it is a folder'],
    [['--journal', path('file')], `Cannot use ${path('file')}: ENOTDIR`],
    [['--journal', path('file/x')], `Cannot use ${path('file')}/x: ENOTDIR`],
    [['--budget', '1', '--budget-file', join(none, 'b')], `Cannot use ${none}/b: ENOENT`],
    [['--budget', '1', '--budget-file', path('folder')], 'it is a folder'],
  ]
  for (const [args, message] of cases) {
    const { code, stdout, stderr } = await buy('The harbour has three piers.', args)
    t.same([code, stdout], [2, ''], args.join(' '))
    t.ok(stderr.includes(message), stderr)
  }
  const asJson = await buy('The harbour has three piers.', ['--json', '--out', path('file/r.json')])
  t.match(asJson, { code: 2, stderr: /^\{"error":\{"code":"wrong_usage","retryable":false,"message":"Cannot use / })
  t.same(gateway.received, [])
  t.notOk(existsSync(path('journal')))
  t.equal(await settled(), 0)
  t.same(litter(), [])
})

t.test('a damaged record of a purchase is found before the service is asked', async (t) => {
  const claim = 'It has three piers, and a record.'
  const folder = path('records')
  const args = ['buy', page, claim, '--journal', folder, '--yes']
  t.equal((await countersign(args, { env })).code, 0)
  const records = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /(purchase|journal)\.jsonl$/.test(name),
  )
  t.equal(records.length, 2)
  const purse = await Purse.open({
    service: gateway.baseUrl,
    wallet: path('wallet.key'),
    'max-price': '1',
    journal: folder,
  })
  for (const record of records.map((name) => join(folder, name))) {
    const before = readFileSync(record)
    for (const [text, message] of [
      ['something else\n', `${record}, line 1: this is no JSON object.`],
      ...(record.endsWith('journal.jsonl') ? [['{"a":1}\n', 'The folder holds no journal of a batch.']] : []),
    ]) {
      writeFileSync(record, text!)
      gateway.received = []
      const { code, stdout, stderr } = await countersign([...args, '--again'], { env })
      t.same([code, stdout], [2, ''], stderr)
      t.match(stderr, message)
      const hooks = { again: true, confirm: async () => true, signal: new AbortController().signal }
      await t.rejects(
        purse.buy({ source_url: page, claim }, hooks, async () => {}),
        new Error(message),
      )
      t.same(gateway.received, [], record)
    }
    writeFileSync(record, before)
  }
  t.match(await countersign(args, { env }), { code: 0, stdout: /bought before/ })
})

t.test('a result that cannot be written is shown, and is got again for nothing', async (t) => {
  const claim = 'It has three piers, and a full disk.'
  const before = await settled()
  const full = await buy(claim, ['--out', path('full'), '--evidence', path('e.wacz')])
  t.match(full, {
    code: 6,
    stdout: /^supports: /,
    stderr:
      /\nnot_delivered: The purchase is paid\. Cannot use \S+\/full: ENOSPC: no space left on device\. The same command with another --out gets it again, and pays nothing\.\n$/,
  })
  t.ok(existsSync(path('e.wacz')), 'the other file is written')
  const asJson = await buy(claim, ['--out', path('full'), '--json', '--again'])
  t.match(asJson, { code: 6, stderr: /"code":"not_delivered","message":"The purchase is paid\./ })
  t.equal(JSON.parse(asJson.stdout).verified, true)
  const evidence = await buy(claim, ['--evidence', path('full')])
  t.match(evidence, { code: 6, stdout: /^supports: /, stderr: /not_delivered: .* with another --evidence gets it/ })
  const kept = await buy(claim, ['--out', path('r.json')])
  t.match(kept, { code: 0, stdout: /bought before, nothing is paid now/ })
  t.ok(existsSync(path('r.json')))
  t.equal(await settled(), before + 1)
  t.same(litter(), [])
})

t.test('a journal that becomes full after the payment: the verdict is shown, and the next run goes on', async (t) => {
  const claim = 'It has three piers, and a full journal.'
  const before = await settled()
  await t.test('full', async (t) => {
    await fillAfterPayment(t)
    t.match(await buy(claim), {
      code: 6,
      stdout: /^supports: /,
      stderr: new RegExp(
        `not_delivered: The purchase is paid, and could not be kept\\. Cannot use ${path('journal')}: ENOSPC: no space left on device\\. The same command gets it again, and pays nothing\\.\n$`,
      ),
    })
  })
  gateway.hook = (_, forward) => forward()
  t.match(await buy(claim, ['--again']), { code: 0, stdout: /^supports: / })
  t.equal(await settled(), before + 1)
})

t.test('a journal that is full before the payment: two sentences, and the folder', async (t) => {
  const probe = await open(path('file'))
  const handles = Object.getPrototypeOf(probe) as FileHandle
  await probe.close()
  const before = await settled()
  t.intercept(handles, 'appendFile', { value: () => Promise.reject(fullDisk()) })
  t.match(await buy('Three piers, and a disk that is full early.'), {
    code: 4,
    stdout: '',
    stderr: new RegExp(
      `\nfailed: Cannot use ${path('journal')}: ENOSPC: no space left on device\\. No payment is under way\\.\n$`,
    ),
  })
  t.equal(await settled(), before)
})

t.test('check', async (t) => {
  const reader = await register(market.system, 'pro')
  writeFileSync(path('key.txt'), reader.key, { mode: 0o600 })
  writeFileSync(path('report.md'), `Ships find [three piers](${page}) there.\n`)
  const own = { ...env, COUNTERSIGN_KEY: path('key.txt') }
  const check = (...args: string[]) => countersign(['check', path('report.md'), ...args], { env: own })
  const verify = (...args: string[]) =>
    check('--verify', '--budget', '1', '--yes', '--verdicts', path('verdicts'), ...args)
  const before = await settled()

  await t.test('a path that cannot be written is wrong usage, and nothing is asked of the service', async (t) => {
    for (const option of ['--output', '--html', '--summary', '--cache', '--budget-file']) {
      const { code, stdout, stderr } = await verify(option, path('none/x'))
      t.same([code, stdout], [2, ''], option)
      t.match(stderr, /Cannot use \S+none\/x: ENOENT: no such file or directory\n/)
      t.match(await verify(option, path('file/x')), { code: 2, stderr: /Cannot use \S+file\/x: ENOTDIR/ }, option)
      t.match(await verify(option, path('folder')), { code: 2, stderr: /Cannot use \S+folder: / }, option)
      t.match(await check(option, path('none/x')), { code: 2, stdout: '' }, option)
    }
    t.match(await verify('--verdicts', path('file/x')), { code: 2, stderr: /Cannot use \S+file\/x: ENOTDIR/ })
    t.same(gateway.received, [])
    t.same(litter(), [])
  })

  await t.test('verdicts that cannot be kept: what is known is printed, and the next run goes on', async (t) => {
    await t.test('full', async (t) => {
      await fillAfterPayment(t)
      t.match(await verify('--json'), {
        code: 1,
        stdout: /^\{\n/,
        stderr: new RegExp(
          `\n\\{"error":\\{"code":"failed","retryable":false,"message":"Cannot use ${path('verdicts')}: ENOSPC: no space left on device\\. Verdicts are missing above\\. The same command gets it again, and pays for nothing twice\\."\\}\\}\n$`,
        ),
      })
    })
    t.equal(await settled(), before + 1)
  })

  await t.test('a damaged record of verdicts is found before the service is asked', async (t) => {
    const records = readdirSync(path('verdicts'), { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.jsonl'),
    )
    t.same(new Set(records.map((name) => basename(name))), new Set(['journal.jsonl', 'results.jsonl', 'errors.jsonl']))
    for (const record of records.map((name) => join(path('verdicts'), name))) {
      const whole = readFileSync(record)
      writeFileSync(record, 'something else\n')
      gateway.received = []
      const { code, stdout, stderr } = await verify()
      t.same([code, stdout], [2, ''], stderr)
      t.match(stderr, `${record}, line 1: this is no JSON object.`)
      t.same(gateway.received, [], record)
      writeFileSync(record, whole)
    }
  })

  await t.test('files that cannot be written are named after the outcome, and the others are written', async (t) => {
    const full = await verify('--html', path('full'), '--output', path('full'), '--json', '--summary', path('s.md'))
    t.match(full, {
      code: 1,
      stdout: /^\{\n/,
      stderr:
        /(\{"error":.*Cannot use \S+full: ENOSPC: no space left on device\. The same command gets it again.*\n){2}$/,
    })
    t.ok(existsSync(path('s.md')))
    t.match(await verify('--html', path('full')), { code: 1, stdout: /1 supported\. all hold\n/, stderr: /Cannot use/ })
    t.match(await verify('--html', path('c.html')), { code: 0, stdout: /1 supported\. all hold\n/, stderr: '' })
    t.ok(existsSync(path('c.html')))
    t.equal(await settled(), before + 1)
    t.same(litter(), [])
  })
})

const PAYING = {
  buy: [page, 'x', '--yes', '--journal', path('journal')],
  batch: [path('claims.csv'), '--yes', '--out', path('out')],
  check: [path('file'), '--verify', '--yes', '--verdicts', path('verdicts')],
  mcp: ['--journal', path('journal')],
}

t.test('each option of a command that may pay that names a file or folder is tried, or only read', async (t) => {
  writeFileSync(path('key.txt'), 'ctk_key', { mode: 0o600 })
  writeFileSync(path('claims.csv'), `source_url,claim\n${page},x\n`)
  for (const [name, given] of Object.entries(PAYING)) {
    const { options } = all.commands[name] as SingleCommand
    const written = Object.entries(options).filter(
      ([option, { value }]) => /FILE|DIR/.test(value ?? '') && !READ_OPTIONS.has(option),
    )
    t.ok(written.length > 1, name)
    for (const [option] of written) {
      const own = { ...env, COUNTERSIGN_KEY: path('key.txt') }
      const args = [name, ...given, '--budget', '1', `--${option}`, path('file/x')]
      const { code, stderr } = await countersign(args, { env: own })
      t.equal(code, 2, `${name} --${option}: ${stderr}`)
      t.match(stderr, /Cannot use \S+file\/x: ENOTDIR: not a directory\n/, `${name} --${option}`)
    }
  }
  t.ok(gateway.received.every(({ method }) => method === 'GET'))
})

t.test('a budget file that can be read and not written is found before the service is asked', async (t) => {
  const { open: ours } = fs
  const locked = path('locked.jsonl')
  writeFileSync(locked, '')
  fs.open = async (file, flags, ...rest) => {
    if (file === locked && flags !== 'r')
      throw Object.assign(new Error(`EACCES: permission denied, open '${locked}'`), { code: 'EACCES', syscall: 'open' })
    return ours(file, flags, ...rest)
  }
  syncBuiltinESMExports()
  t.teardown(() => {
    fs.open = ours
    syncBuiltinESMExports()
  })
  const own = { ...env, COUNTERSIGN_KEY: path('key.txt') }
  for (const [name, given] of Object.entries(PAYING)) {
    const args = [name, ...given, '--budget', '1', '--budget-file', locked]
    const { code, stderr } = await countersign(args, { env: own })
    t.equal(code, 2, `${name}: ${stderr}`)
    t.match(stderr, /Cannot use \S+locked\.jsonl: EACCES: permission denied\n/, name)
  }
  t.same(gateway.received, [])
})

t.test('the tool for models tells what was bought, even if it cannot be kept', async (t) => {
  const purse = await Purse.open({
    service: gateway.baseUrl,
    wallet: path('wallet.key'),
    'max-price': '0.05',
    journal: path('models'),
  })
  await fillAfterPayment(t)
  const context = {
    canAsk: false,
    responses: undefined,
    signal: new AbortController().signal,
    progress: async () => {},
  }
  const question = { source_url: page, claim: 'It has three piers, and a full disk of a model.' }
  const told = await buildPaidTool(purse, { yes: true }).run(question, context)
  t.match(told, { structuredContent: { claim_support: 'supports', verified: true } })
})

t.test('the first of several errors is the one that is told', async (t) => {
  class SuppressedError extends Error {
    override name = 'SuppressedError'
    readonly suppressed: unknown
    constructor(suppressed: unknown) {
      super('An error was suppressed during disposal')
      this.suppressed = suppressed
    }
  }
  const error = new SuppressedError(new SuppressedError(new Error('The disk is full.')))
  t.match(await runHere(async () => explain(error, false), []), {
    code: 1,
    stderr: 'countersign: The disk is full.\n',
  })
})
