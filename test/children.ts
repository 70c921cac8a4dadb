// Child processes of a test. The test can wait for their log lines and messages, past ones included, and no child outlives its
// test.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { startOf } from '../bench/start-of.ts'

export interface Ending {
  code: number | null
  signal: NodeJS.Signals | null
}

export interface Child extends AsyncDisposable {
  pid: number
  /** Log lines with an `event`, and messages with a `type`, in the order in which they came. */
  heard: Heard[]
  /** The first line or message that matches, past ones included. Rejects with the last output when the child ends first. */
  hears(match: (heard: Heard) => boolean): Promise<Heard>
  /** A line of its log. */
  logs(event: string): Promise<Heard>
  /** A message it sent. */
  reports(type: string): Promise<Heard>
  send(message: object): void
  kill(signal: NodeJS.Signals): void
  ended: Promise<Ending>
}

export type Heard = Record<string, unknown> & { event?: string; type?: string }

const ROOT = join(import.meta.dirname, '..')

/**
 * The environment of a process that shares no settings with the test: the path of programs, and the folder of Node's
 * compile cache.
 */
export const BARE_ENV: Record<string, string> = Object.fromEntries(
  ['PATH', 'NODE_COMPILE_CACHE'].flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value]]
  }),
)

/**
 * @param file from the root of the repository, e.g. `workers/main.ts`; `env` is all its environment, besides `BARE_ENV` and the limit per address, which is off.
 * @param options `root`: the folder of other code, in place of this repository
 */
export function startChild(
  file: string,
  env: Record<string, string>,
  { ipc = false, root = ROOT }: { ipc?: boolean; root?: string } = {},
): Child {
  const start = startOf(file, root)
  const child = spawn(process.execPath, [...start.flags, join(root, file)], {
    cwd: root,
    env: { ...BARE_ENV, ...start.env, RATE_LIMIT_PER_MINUTE: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe', ...(ipc ? ['ipc' as const] : [])],
  })
  endWithProcess(child)
  const heard: Heard[] = []
  const listeners = new Set<(item: Heard) => void>()
  const hear = (item: Heard) => {
    heard.push(item)
    for (const listener of listeners) listener(item)
  }
  const output = readOutput(child, hear)
  child.on('message', (message) => hear(message as Heard))
  const ended = once(child, 'close').then(([code, signal]): Ending => ({ code, signal }))

  const hears = async (match: (item: Heard) => boolean): Promise<Heard> => {
    const known = heard.find(match)
    if (known) return known
    const { promise, resolve } = Promise.withResolvers<Heard>()
    const listener = (item: Heard) => match(item) && resolve(item)
    listeners.add(listener)
    const gone = ended.then(({ code, signal }): never => {
      throw new Error(`${file} ended (${signal ?? code}) before what was waited for:\n${output.slice(-20).join('\n')}`)
    })
    try {
      return await Promise.race([promise, gone])
    } finally {
      listeners.delete(listener)
    }
  }
  return {
    pid: child.pid ?? 0,
    heard,
    hears,
    logs: (event) => hears((item) => item.event === event),
    reports: (type) => hears((item) => item.type === type),
    send: (message) => child.send(message),
    kill: (signal) => child.kill(signal),
    ended,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** The last lines of both streams; those of the log are handed on. */
function readOutput(child: ChildProcess, hear: (item: Heard) => void): string[] {
  const output: string[] = []
  const keep = (line: string) => {
    output.push(line)
    if (output.length > 200) output.shift()
  }
  createInterface({ input: child.stderr! }).on('line', keep)
  createInterface({ input: child.stdout! }).on('line', (line) => {
    keep(line)
    if (line.startsWith('{')) hear(JSON.parse(line))
  })
  return output
}

/** Kills the child when this process ends before it, for example by a signal. */
export function endWithProcess(child: ChildProcess): void {
  if (living.size === 0) process.once('exit', killLiving)
  living.add(child)
  child.once('exit', () => {
    living.delete(child)
    if (living.size === 0) process.off('exit', killLiving)
  })
}

/** One listener for all: a test may have more processes than an emitter may have listeners without a warning. */
const living = new Set<ChildProcess>()

function killLiving() {
  for (const child of living) child.kill('SIGKILL')
}
