// What holds for the arguments of every command: what is wrong with one is found before the service is asked, is named, and ends with 2.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, constants, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { BARE_ENV } from '../children.ts'
import { until } from '../until.ts'
import { countersign } from './command-line.ts'
import { argumentsOf, CALLS, type Call, COMMANDS, makeFiles, READ_OPTIONS } from './every-command.ts'

const CLI = join(import.meta.dirname, '../../client/cli.ts')
const folder = await makeFiles(t)
let asked = 0
const server = createServer((_request, response) => {
  asked += 1
  response.writeHead(503).end()
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
t.teardown(() => server.close())
const service = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

async function refused(call: Pick<Call, 'args'>, more: string[] = []) {
  asked = 0
  const ran = await countersign([...argumentsOf(call, service, folder), ...more])
  const asJson = await countersign([...argumentsOf(call, service, folder), ...more, '--json'])
  return { ...ran, asJson }
}

/** These are made where they are not there. */
const MADE = new Set(['@/journal', '@/out', '@/verdicts'])
const MADE_BY_OPTION = new Set(['--journal', '--verdicts', '--weights'])
/** These are read and written. */
const CONTINUED = new Set(['budget-file', 'cache'])
/** Needs another option, and says so. */
const NEEDS_ANOTHER = new Set(['--timestamp-ca', '--verdicts', '--weights', '--budget-file', '--wallet'])

t.test('a file that cannot be used', async (t) => {
  const missing = join(folder, 'none/x')
  for (const call of CALLS)
    for (const [i, word] of call.args.entries()) {
      if (!word.startsWith('@/')) continue
      const bad = MADE.has(word) ? ['', join(folder, 'empty')] : ['', join(folder, 'folder'), missing]
      for (const value of bad) {
        const { code, stdout, stderr, asJson } = await refused({ args: call.args.with(i, value) })
        const name = `${call.name} ${word}: ${value}`
        t.same([code, stdout, asked], [2, '', 0], `${name}\n${stderr}`)
        t.ok(stderr.includes(value === '' ? 'is empty' : value), `${name}\n${stderr}`)
        t.notMatch(stderr, /chmod/, name)
        if (call.name !== 'mcp') t.equal(JSON.parse(asJson.stderr).error.code, 'wrong_usage', name)
      }
    }
})

t.test('a file of an option', async (t) => {
  for (const call of CALLS)
    for (const [option, { value = '' }] of Object.entries(COMMANDS.get(call.name)?.options ?? {})) {
      if (!/FILE|DIR/.test(value) || call.args.includes(`--${option}`)) continue
      const name = `${call.name} --${option}`
      const empty = await refused(call, [`--${option}`, ''])
      t.same([empty.code, empty.stdout, asked], [2, '', 0], `${name}\n${empty.stderr}`)
      t.match(empty.stderr, `--${option}: The name of a file or folder is empty.`)
      if (NEEDS_ANOTHER.has(`--${option}`)) continue
      for (const bad of [
        join(folder, MADE_BY_OPTION.has(`--${option}`) ? 'empty' : 'folder'),
        join(folder, 'empty/x'),
      ]) {
        const { code, stdout, stderr } = await refused(call, [`--${option}`, bad])
        t.same([code, stdout, asked], [2, '', 0], `${name} ${bad}\n${stderr}`)
        t.ok(stderr.includes(bad), `${name}\n${stderr}`)
      }
    }
})

/** Words and options that take any bytes, or any text. */
const ANY_BYTES = new Set(['receipt create @/claims.csv', 'receipt create --file', 'journal put @/claims.csv'])
const ANY_TEXT = new Set([...ANY_BYTES, 'check @/report.md'])

/** What the options that read a file need beside them. */
const BESIDE: Record<string, readonly string[]> = {
  check: ['--verify', '--yes', '--budget', '1', '--wallet', '@/wallet.key', '--verdicts', '@/verdicts'],
  buy: ['--budget', '1'],
}

/** A call for each word and each option that names a file to be read, with the file `@/odd` there. */
function readersOf(calls: readonly Call[]) {
  return calls.flatMap((call) => {
    const beside = BESIDE[call.name] ?? []
    const whole = { name: call.name, args: [...call.args, ...beside] }
    const words = whole.args.flatMap((word, i) =>
      word.startsWith('@/') && !MADE.has(word)
        ? [{ name: `${call.name} ${word}`, args: whole.args.with(i, '@/odd') }]
        : [],
    )
    const options = Object.entries(COMMANDS.get(call.name)?.options ?? {}).filter(
      ([option, { value }]) =>
        value?.endsWith('FILE') &&
        !whole.args.includes(`--${option}`) &&
        (READ_OPTIONS.has(option) || CONTINUED.has(option)),
    )
    return [
      ...words,
      ...options.map(([option]) => ({
        name: `${call.name} --${option}`,
        args: [...whole.args, `--${option}`, '@/odd'],
      })),
    ]
  })
}

t.test('a file with other contents', async (t) => {
  const contents: [bytes: Buffer, any: Set<string>][] = [
    [Buffer.from([0xff, 0x00, 0xfe, 0x0a]), ANY_BYTES],
    [Buffer.from('{"a":1}\n'), ANY_TEXT],
    [Buffer.from('something else'), ANY_TEXT],
  ]
  const readers = readersOf(CALLS.filter(({ name, asks }) => asks || name === 'mcp'))
  t.ok(readers.length > 60, `${readers.length}`)
  for (const [bytes, any] of contents)
    for (const { name, args } of readers) {
      if (any.has(name)) continue
      writeFileSync(join(folder, 'odd'), bytes, { mode: 0o600 })
      const { code, stdout, stderr } = await refused({ args })
      t.same([code, stdout, asked], [2, '', 0], `${name}: ${bytes}\n${stderr}`)
      if (name.includes('--')) t.ok(stderr.includes(join(folder, 'odd')), `${name}\n${stderr}`)
      t.same(readFileSync(join(folder, 'odd')), bytes, name)
    }
})

t.test('a device that has no end', async (t) => {
  for (const { name, args } of readersOf(CALLS)) {
    // What is written may be a device.
    if (name.includes('@/new') || NEEDS_ANOTHER.has(name.split(' ').at(-1) ?? '')) continue
    asked = 0
    const given = argumentsOf({ args }, service, folder).map((word) =>
      word === join(folder, 'odd') ? '/dev/zero' : word,
    )
    const { code, stdout, stderr } = await countersign(given)
    t.same([code, stdout, asked], [2, '', 0], `${name}\n${stderr}`)
    t.match(stderr, '/dev/zero', name)
  }
})

t.test('a pipe to which nothing writes: a signal ends the command', async (t) => {
  const ended = readersOf(CALLS)
    .filter(({ name }) => PIPES.has(name))
    .map(async ({ name, args }, n) => {
      const pipe = join(folder, `pipe-${n}`)
      spawnSync('mkfifo', ['-m', '600', pipe])
      const words = argumentsOf({ args }, service, folder).map((word) => (word === join(folder, 'odd') ? pipe : word))
      const child = spawn(process.execPath, [CLI, ...words], { env: BARE_ENV, stdio: 'ignore' })
      const closed = once(child, 'close')
      // Can be opened without waiting once the command has opened the other end.
      const writer = await until(() => open(pipe, constants.O_WRONLY | constants.O_NONBLOCK).catch(() => null))
      child.kill('SIGINT')
      const [code, signal] = await closed
      await writer.close()
      t.ok(code === 130 || signal === 'SIGINT', `${name}: ${code} ${signal}`)
    })
  await Promise.all(ended)
  t.equal(ended.length, PIPES.size)
})

/** One for each way to read. */
const PIPES = new Set(['recover @/token.txt', 'verify @/result.json', 'wallet address @/wallet.key', 'check --cache'])

t.test('no command reads a named file in another way', (t) => {
  const root = join(import.meta.dirname, '../../client/commands')
  const others = globSync('**/*.ts', { cwd: root }).filter((file) =>
    /\breadFile(?:Sync)?\b|\bcreateReadStream\b/.test(readFileSync(join(root, file), 'utf8')),
  )
  // These read files of the package.
  t.same(others.sort(), ['check/page.ts', 'own-version.ts'])
  t.end()
})

t.test('a file that is no secret of its kind is called that, and is not to be closed to others', async (t) => {
  const odd = join(folder, 'odd')
  const named = {
    wallet: 'is not a wallet file',
    key: 'does not hold an API key',
    token: 'does not hold a recovery token',
  }
  const secrets = CALLS.flatMap(({ name, args: own }) => {
    const args = [...own, ...(BESIDE[name] ?? [])]
    return args.flatMap((word, i) => {
      const [, kind] = /^@\/(wallet|key|token)\.(?:key|txt)$/.exec(word) ?? []
      return kind
        ? [{ name: `${name} ${word}`, args: args.with(i, '@/odd'), words: named[kind as keyof typeof named] }]
        : []
    })
  })
  t.ok(secrets.length > 30, `${secrets.length}`)
  writeFileSync(odd, 'source_url,claim\nhttps://example.org/,x\n')
  for (const mode of [0o600, 0o644]) {
    chmodSync(odd, mode)
    for (const { name, args, words } of secrets) {
      const { code, stdout, stderr } = await refused({ args })
      t.same([code, stdout, asked], [2, '', 0], `${name}\n${stderr}`)
      t.ok(stderr.includes(`${odd} ${words}`), `${name}\n${stderr}`)
      t.notMatch(stderr, /chmod|example\.org/, name)
    }
  }
  rmSync(odd)
  // What `recover` reads is no secret file: it may come through a pipe.
  for (const { name, args } of secrets.filter((call) => !call.name.startsWith('recover '))) {
    const endless = args.map((word) => word.replace('@/odd', '/dev/zero'))
    t.match(await refused({ args: endless }), { code: 2, stderr: '/dev/zero' }, name)
  }
})

t.test('a file that is written is named once: what is read there would be lost', async (t) => {
  let tried = 0
  for (const call of CALLS) {
    const options = Object.entries(COMMANDS.get(call.name)?.options ?? {}).filter(([, { value }]) =>
      value?.endsWith('FILE'),
    )
    t.same(
      options.filter(([, { isWritten }]) => isWritten).map(([option]) => option),
      options.map(([option]) => option).filter((option) => !READ_OPTIONS.has(option)),
      call.name,
    )
    const files = call.args.filter((word) => word.startsWith('@/') && existsSync(join(folder, word.slice(2))))
    for (const [option] of options.filter(([, { isWritten }]) => isWritten))
      for (const word of files) {
        const file = join(folder, word.slice(2))
        const before = readFileSync(file)
        const { code, stdout, stderr } = await refused(call, [`--${option}`, `${folder}/folder/../${word.slice(2)}`])
        t.same([code, stdout, asked], [2, '', 0], `${call.name} --${option} ${word}: ${stderr}`)
        t.match(stderr, new RegExp(`--${option} name.* the same file`), `${call.name} ${word}`)
        t.same(readFileSync(file), before)
        tried += 1
      }
  }
  t.ok(tried > 20, `${tried}`)
  const buy = CALLS.find(({ name }) => name === 'buy')?.args.filter((word) => !/wallet/.test(word)) ?? []
  const args = [...argumentsOf({ args: buy }, service, folder), '--out', join(folder, 'wallet.key')]
  const ran = await countersign(args, { env: { COUNTERSIGN_WALLET: join(folder, 'wallet.key') } })
  t.match(ran, { code: 2, stderr: /COUNTERSIGN_WALLET and --out name the same file/ })
  const register = ['account', 'register', 'a', '--service', service, '--save', join(folder, 'new.key')]
  const made = await countersign(register, { env: { COUNTERSIGN_KEY: join(folder, 'new.key') } })
  t.match(made, { code: 1, stderr: /503/ }, 'a command that reads no key makes the file of the setting')
  const both = await refused({ args: buy }, ['--out', join(folder, 'a'), '--evidence', `${folder}/folder/../a`])
  t.match(both, { code: 2, stderr: /--out and --evidence name the same file/ })
})

t.test('a folder with a damaged file', async (t) => {
  const argsOf = (name: string) => CALLS.find((call) => call.name === name)?.args ?? []
  for (const [args, damaged] of [
    [argsOf('buy'), 'journal/keys.jsonl'],
    [argsOf('mcp'), 'journal/keys.jsonl'],
    [[...argsOf('batch'), '--resume'], 'out/journal.jsonl'],
    [[...argsOf('batch'), '--resume'], 'out/results.jsonl'],
    [[...argsOf('batch'), '--retry-errors'], 'out/errors.jsonl'],
  ] as const) {
    const [name = ''] = damaged.split('/')
    mkdirSync(join(folder, name))
    if (name === 'out') writeFileSync(join(folder, 'out/journal.jsonl'), '{"type":"batch","version":1}\n')
    writeFileSync(join(folder, damaged), 'something else\n')
    const { code, stdout, stderr } = await refused({ args })
    t.same([code, stdout, asked], [2, '', 0], `${args.join(' ')}\n${stderr}`)
    t.match(stderr, `${join(folder, damaged)}, line 1: this is no JSON object.`)
    rmSync(join(folder, name), { recursive: true })
  }
})

t.test('a file or folder that another run holds', async (t) => {
  const argsOf = (name: string) => CALLS.find((call) => call.name === name)?.args ?? []
  const budget = ['--budget-file', '@/money.jsonl']
  const checking = [...argsOf('check'), ...(BESIDE.check ?? []), ...budget]
  mkdirSync(join(folder, 'out'))
  for (const [args, held] of [
    [[...argsOf('batch'), ...budget], 'money.jsonl.lock'],
    [argsOf('batch'), 'out/lock'],
    [checking, 'money.jsonl.lock'],
  ] as const) {
    // Of a process that lives, and is not this one.
    writeFileSync(join(folder, held), String(process.ppid))
    const { code, stdout, stderr } = await refused({ args })
    t.same([code, stdout, asked], [2, '', 0], `${args.join(' ')}\n${stderr}`)
    t.match(stderr, `Another run uses this (process ${process.ppid}). If there is none, remove ${join(folder, held)}.`)
    rmSync(join(folder, held))
  }
  rmSync(join(folder, 'out'), { recursive: true })
})

t.test('an address that is none', async (t) => {
  for (const call of CALLS)
    for (const [i, word] of call.args.entries()) {
      if (word !== '{service}') continue
      for (const value of ['', 'service.example', 'ftp://service.example/']) {
        const { code, stdout, stderr } = await refused({ args: call.args.with(i, value) })
        t.same([code, stdout, asked], [2, '', 0], `${call.name} ${value}\n${stderr}`)
        t.ok(stderr.includes(value === '' ? 'is empty' : value), `${call.name} ${value}\n${stderr}`)
      }
    }
})

t.test('a misspelt option, a missing word, and one too many', async (t) => {
  for (const call of CALLS) {
    const misspelt = await refused(call, ['--hepl'])
    t.same([misspelt.code, misspelt.stdout, asked], [2, '', 0], call.name)
    t.match(misspelt.stderr, /^countersign: Unknown option '--hepl'\. Did you mean --help\?\n/, call.name)
    const unknown = await refused(call, ['--frobnicate'])
    t.match(unknown, { code: 2, stderr: `Unknown option '--frobnicate'. countersign ${call.name} has --` }, call.name)
    const { operands } = COMMANDS.get(call.name)!
    const [first] = operands
    if (first && !first.startsWith('['))
      t.match(await refused({ args: call.name.split(' ') }), {
        code: 2,
        stderr: `${first} is missing. It is: countersign ${call.name}`,
      })
    if (operands.at(-1)?.endsWith('...]')) continue
    const words = [...operands.map(() => 'x'), 'surplus']
    t.match(
      await refused({ args: [...call.name.split(' '), ...words] }),
      { code: 2, stderr: /"surplus" is one word too many\. It is: / },
      call.name,
    )
  }
  t.match(await countersign(['verfy', 'x']), { code: 2, stderr: /no command verfy\. Did you mean verify\?/ })
  t.match(await countersign(['lease', 'revok', 'x']), { code: 2, stderr: /no command revok\. Did you mean revoke\?/ })
  t.notMatch((await countersign(['notarise', 'x'])).stderr, /Did you mean/)
})
