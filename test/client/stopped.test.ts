// What holds for every command: stopped before the service has answered, it ends within five seconds with the status that its help names,
// and leaves no new file, and a file that is there as it was.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { BARE_ENV } from '../children.ts'
import { stopTogether } from '../waiting-commands.ts'
import { countersign } from './command-line.ts'
import { argumentsOf, CALLS, type Call, COMMANDS, fillFolder, makeFiles, READ_OPTIONS } from './every-command.ts'
import { listen } from './liar.ts'
import { issueExport, issueLog, VKEY } from './log-issuer.ts'

const CLI = join(import.meta.dirname, '../../client/cli.ts')
const HASH = '0'.repeat(64)

/** A call that names a file for everything that the command can write. */
function writing({ name, args, asks }: Call): Call | null {
  const written = Object.entries(COMMANDS.get(name)?.options ?? {}).filter(
    ([option, { value = '' }]) => /FILE|DIR/.test(value) && !READ_OPTIONS.has(option) && !args.includes(`--${option}`),
  )
  const isWriting = written.length > 0 || args.some((word) => /^@\/(new|out|journal)/.test(word))
  if (!asks || !isWriting) return null
  const budget = written.some(([option]) => option === 'budget-file') && !args.includes('--budget')
  const more = written.flatMap(([option, { value }]) => [
    `--${option}`,
    `@/made-${value === 'DIR' ? 'folder' : option}`,
  ])
  return { name, asks, args: [...args, ...more, ...(budget ? ['--budget', '1'] : [])] }
}

const calls = CALLS.flatMap((call) => writing(call) ?? [])
const MORE: Record<string, readonly string[]> = {
  export: ['--head', `3:${HASH}`],
  check: ['--verify', '--wallet', '@/wallet.key', '--yes'],
}
/** Calls that do more than those of the table. */
const further = calls.flatMap((call) => {
  const more = MORE[call.name]
  return more ? [{ ...call, args: [...call.args, ...more] }] : []
})

/** What a file may hold that the command goes on with; every other one is replaced at its end. */
const CONTENTS: Readonly<Record<string, string>> = {
  'new.jsonl': issueExport(issueLog([2]).chain).slice(0, -10),
  'new.json': JSON.stringify({ vkey: VKEY, serial: 0, receipt_hash: HASH, root_hash: HASH, checkpoint: '' }),
  'made-cache': '{"version":1,"service":"https://service.example","pages":{}}\n',
  'made-budget-file': '{"payment":"run/row/1","atoms":"30000"}\n',
}

function contentsOf(folder: string) {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => [name, statSync(join(folder, name)).isFile() ? readFileSync(join(folder, name), 'utf8') : null])
}

/** Milliseconds in which a stopped command ends; starting it included. */
const LIMIT_MS = 5000

interface Stop {
  folder: string
  signal: NodeJS.Signals
  /** What the command reads from standard input, which does not end. */
  input?: string
  /** The moment of the signal; by default the command's first request. */
  at?: Promise<unknown>
}

/** What the command reads and asks, and the moment of its first request. */
async function openSilent(t: Test): Promise<{ baseUrl: string; asked: Promise<void> }> {
  const { promise: asked, resolve } = Promise.withResolvers<void>()
  return {
    baseUrl: await listen(
      t,
      createServer(() => resolve()),
    ),
    asked,
  }
}

/** Whether it ends its work itself. A signal that the command leaves to the system ends it at once. */
function hears({ name, args }: Pick<Call, 'name' | 'args'>): boolean {
  const isNamed = COMMANDS.get(name)?.exitStatus?.includes('130') === true
  return isNamed && (name !== 'check' || args.includes('--verify'))
}

/** Stops the command while it waits. With a signal that the command leaves to the system, a shell shows 128 and its number. */
async function expectStopped(t: Test, call: Pick<Call, 'name' | 'args'>, how: Stop): Promise<void> {
  const { folder, signal, input = '' } = how
  const { baseUrl, asked } = await openSilent(t)
  const child = spawn(process.execPath, [CLI, ...argumentsOf(call, baseUrl, folder)], {
    env: BARE_ENV,
    cwd: folder,
  })
  void (how.at ?? asked).then(() => child.kill(signal))
  child.stdin.on('error', () => {}).write(input)
  let said = ''
  child.stderr.on('data', (chunk) => (said += chunk))
  const limit = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS)
  const [code, by] = await once(child, 'close')
  clearTimeout(limit)
  t.same(
    { code, by },
    hears(call) ? { code: 130, by: null } : { code: null, by: signal },
    `${call.name} is stopped: ${said}`,
  )
}

async function expectUnchanged(t: Test, call: Pick<Call, 'name' | 'args'>, how: Stop): Promise<void> {
  const before = contentsOf(how.folder)
  await expectStopped(t, call, how)
  t.same(contentsOf(how.folder), before)
}

interface Placed {
  call: Pick<Call, 'name' | 'args'>
  folder: string
}

/** A folder with the files of all calls for each of these. */
function place(t: Test, calls: readonly Placed['call'][]): Promise<Placed[]> {
  const root = t.testdir({})
  return Promise.all(
    calls.map(async (call, n) => {
      const folder = join(root, String(n))
      mkdirSync(folder)
      await fillFolder(folder)
      return { call, folder }
    }),
  )
}

/** The same of commands that leave the signal to the system, all in one process. Each has its folder, in which nothing changes. */
async function expectAllStopped(t: Test, calls: readonly Placed[], signal: NodeJS.Signals): Promise<void> {
  const cwd = join(t.testdirName, 'working')
  mkdirSync(cwd)
  const silent = await Promise.all(calls.map(() => openSilent(t)))
  const commands = calls.map(({ call, folder }, n) => ({ args: argumentsOf(call, silent[n]!.baseUrl, folder) }))
  const before = calls.map(({ folder }) => contentsOf(folder))
  const allWait = Promise.all(silent.map(({ asked }) => asked))
  const { code, by, said } = await stopTogether('client/commands/main.ts', commands, { signal, allWait, cwd })
  t.same({ code, by }, { code: null, by: signal }, said)
  for (const [n, { call, folder }] of calls.entries())
    t.same(contentsOf(folder), before[n], `${call.name} changes no file`)
  t.same(contentsOf(cwd), [])
}

const together = [...calls, ...further].filter((call) => !hears(call))
const [first] = together

t.test('a stop before the first answer', async (t) => {
  t.ok(calls.length > 10, calls.map(({ name }) => name).join())
  t.ok(first && together.length > 10)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    await t.test(`${together.length} calls at once: ${signal} leaves no new file`, async (t) => {
      await expectAllStopped(t, await place(t, together), signal)
    })
    for (const call of [...calls, ...further].filter((call) => call === first || hears(call)))
      await t.test(`${call.name} as a program: ${signal} leaves no new file`, async (t) => {
        await expectUnchanged(t, call, { folder: await makeFiles(t), signal })
      })
  }

  const kept = calls.flatMap(({ name, args }) => {
    const isNew = (word: string) => word === '@/made-save' || (name === 'recover' && word === '@/made-evidence')
    const left = args.filter((word, i) => !isNew(word) && !isNew(args[i + 1] ?? ''))
    const files = left.filter((word) => /^@\/(new\.|made-(?!folder))/.test(word)).map((word) => word.slice(2))
    return files.length === 0 ? [] : [{ call: { name, args: left }, files }]
  })
  const write = (folder: string, files: readonly string[]) => {
    for (const name of files) writeFileSync(join(folder, name), CONTENTS[name] ?? 'what was there\n')
  }
  const unheard = kept.filter(({ call }) => !hears(call))
  t.ok(unheard.length > 2)
  await t.test('files that are there stay as they were', async (t) => {
    const placed = await place(
      t,
      unheard.map(({ call }) => call),
    )
    for (const [n, { folder }] of placed.entries()) write(folder, unheard[n]!.files)
    await expectAllStopped(t, placed, 'SIGINT')
  })
  for (const { call, files } of kept.filter(({ call }) => hears(call)))
    await t.test(`${call.name}: ${files} stay as they were`, async (t) => {
      const folder = await makeFiles(t)
      write(folder, files)
      await expectUnchanged(t, call, { folder, signal: 'SIGINT' })
    })
})

/** Neither a service nor a file can keep it waiting. */
const NEVER_WAITS = ['wallet new']
const PURCHASE = { name: 'verify_source', arguments: { source_url: 'https://example.org/', claim: 'x' } }
const TOOL_CALL = `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: PURCHASE })}\n`

/** Replaces the first file that the command reads by a pipe that never ends. `read` resolves when the command has opened it. */
function openEndless(t: Test, folder: string, { args }: Call): { read: Promise<unknown> } & AsyncDisposable {
  const file = join(folder, args.find((word) => word.startsWith('@/'))?.slice(2) ?? '')
  rmSync(file)
  t.equal(spawnSync('mkfifo', ['-m', '600', file]).status, 0)
  // To open it waits for a reader.
  const read = open(file, constants.O_WRONLY)
  return {
    read,
    async [Symbol.asyncDispose]() {
      const reader = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
      await (await read).close()
      closeSync(reader)
    },
  }
}

t.test('a command that waits ends at a signal', async (t) => {
  const written = new Set(calls.map(({ name }) => name))
  const others = CALLS.filter(({ name }) => !written.has(name))
  t.ok(others.length > 10)
  const [asking, alone] = [
    others.filter((call) => call.asks && !hears(call)),
    others.filter((call) => !call.asks || hears(call)),
  ]
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    await t.test(`${asking.length} calls at once: ${signal}`, async (t) => {
      await expectAllStopped(t, await place(t, asking), signal)
    })
    for (const call of alone)
      await t.test(`${call.name}: ${signal}`, async (t) => {
        const folder = await makeFiles(t)
        if (call.asks) await expectStopped(t, call, { folder, signal })
        else if (call.name === 'mcp') await expectStopped(t, call, { folder, signal, input: TOOL_CALL })
        else if (!NEVER_WAITS.includes(call.name)) {
          await using endless = openEndless(t, folder, call)
          await expectStopped(t, call, { folder, signal, at: endless.read })
        }
      })
  }
})

t.test('what the service refuses leaves no new file either', async (t) => {
  const refusing = createServer((_request, response) => {
    const error = { code: 'not_found', message: 'There is none.', retryable: false }
    response.writeHead(404, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
  })
  const baseUrl = await listen(t, refusing)
  // A page that the service refuses to read is an outcome of a check, which is written.
  for (const { name, args } of calls.filter(({ name }) => name !== 'check')) {
    const folder = await makeFiles(t)
    const before = contentsOf(folder)
    const { code, stderr } = await countersign(argumentsOf({ args }, baseUrl, folder))
    t.not(code, 0, name)
    t.same(contentsOf(folder), before, `${name}: ${stderr}`)
  }
})

t.test('a secret that cannot be kept after all is printed, because it does not come again', async (t) => {
  const folder = await makeFiles(t)
  const file = join(folder, 'new.key')
  const baseUrl = await listen(
    t,
    createServer((_request, response) => {
      writeFileSync(file, 'of another program')
      const answer = { handle: 'a', api_key: 'ctk_new', tier: 'free', limits: {} }
      response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    }),
  )
  t.match(await countersign(['account', 'register', 'a', '--service', baseUrl, '--save', file]), {
    code: 1,
    stdout: /^API key: +ctk_new$/m,
    stderr: /^This secret is shown once\..*\ncountersign: Cannot use \S+new\.key: EEXIST/,
  })
  t.equal(readFileSync(file, 'utf8'), 'of another program')
})
