// What holds for each of the operator's commands: stopped while the database is silent, it ends within five seconds.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { BARE_ENV } from '../children.ts'
import { runCli } from '../cli-process.ts'
import { stopTogether } from '../waiting-commands.ts'

const CLI = join(import.meta.dirname, '../../server/cli.ts')
/** Milliseconds from the signal. */
const LIMIT_MS = 5000
/** These ask no database. */
const OFFLINE = ['config', 'sign-offline']

/** Each command as the help names it, with an argument of the right form for each that it needs. */
async function listCalls(): Promise<string[][]> {
  const { stdout } = await runCli({}, '--help')
  const named = [...stdout.matchAll(/^ {2}(\S+(?: \S+)*) {2}/gm)].map(([, call = '']) => call)
  return named.map((call) =>
    call.split(' ').map((word) => {
      if (word === '<request-id>') return '3f0e6a52-0f47-4a3b-9b6b-3f1f0f0f0f0f'
      return word.startsWith('<') ? (word.slice(1, -1).split('|').at(-1) ?? '') : word
    }),
  )
}

/** Accepts connections and says nothing. `called` resolves at the first. */
async function listenSilently(t: Test): Promise<{ url: string; called: Promise<void> }> {
  const { promise: called, resolve } = Promise.withResolvers<void>()
  const server = createServer((socket) => {
    socket.on('error', () => {}).resume()
    resolve()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { url: `postgres://nobody@127.0.0.1:${(server.address() as AddressInfo).port}/none`, called }
}

/** The program itself, with one command. */
async function expectStopped(t: Test, args: string[], signal: NodeJS.Signals): Promise<void> {
  const { url, called } = await listenSilently(t)
  const child = spawn(process.execPath, [CLI, ...args, '--yes'], {
    env: { ...BARE_ENV, DATABASE_URL: url, DATA_DIR: t.testdir({}) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let limit: NodeJS.Timeout | undefined
  void called.then(() => {
    limit = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS)
    child.kill(signal)
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += chunk))
  const [code, by] = await once(child, 'close')
  clearTimeout(limit)
  t.same({ code, by }, { code: null, by: signal }, `${args.join(' ')}: ${said}`)
}

t.test('a command that waits for the database ends at a signal', async (t) => {
  const calls = (await listCalls()).filter(([name = '']) => !OFFLINE.includes(name))
  t.ok(calls.length > 25, JSON.stringify(calls))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    await t.test(`all of them: ${signal}`, async (t) => {
      const DATA_DIR = t.testdir({})
      const silent = await Promise.all(calls.map(() => listenSilently(t)))
      const commands = calls.map((args, n) => ({
        args: [...args, '--yes'],
        env: { ...BARE_ENV, DATABASE_URL: silent[n]!.url, DATA_DIR },
      }))
      const allWait = Promise.all(silent.map(({ called }) => called))
      const { code, by, said } = await stopTogether('server/commands.ts', commands, { signal, allWait })
      t.same({ code, by }, { code: null, by: signal }, said)
    })
    await t.test(`the program with the first: ${signal}`, (t) => expectStopped(t, calls[0]!, signal))
  }
})
