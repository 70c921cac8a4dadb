// Processes of the bench: each says on stdout, in a line of JSON, when it is ready.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Lab } from './lab.ts'
import { startOf } from './start-of.ts'

export interface Child extends AsyncDisposable {
  pid: number
  process: ChildProcess
  /** The line by which it said that it is ready. */
  ready: Record<string, unknown>
}

export interface ChildOptions {
  event: string
  env?: Record<string, string>
  args?: string[]
  ipc?: boolean
  /** Its warnings are not shown: what goes wrong in it is what is tried. */
  quiet?: boolean
  /** The folder whose code it runs; default: this repository. */
  root?: string
  /** Gets every line of its log. */
  heard?: (line: Record<string, unknown>) => void
}

const { NODE_COMPILE_CACHE } = process.env
const COMPILED: Record<string, string> = NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }

/**
 * Starts `file` (from the root of the repository) and waits for its line with this `event`. Its environment is the lab's
 * and `env`, without the variables of this process but the folder of Node's compile cache. Disposing asks it to end and waits.
 */
export async function openChild(lab: Lab, file: string, options: ChildOptions): Promise<Child> {
  const profiling = lab.profile ? ['--cpu-prof', `--cpu-prof-dir=${lab.profile}`] : []
  const root = options.root ?? ROOT
  const { flags, env } = startOf(file, root)
  const child = spawn(process.execPath, [...flags, ...profiling, join(root, file), ...(options.args ?? [])], {
    cwd: root,
    env: { ...COMPILED, ...env, ...lab.env, ...options.env },
    stdio: ['ignore', 'pipe', 'inherit', ...(options.ipc ? (['ipc'] as const) : [])],
  })
  lab.children.add(child)
  child.once('exit', () => lab.children.delete(child))
  const ready = await waitForLine(child, file, options)
  return {
    pid: child.pid!,
    process: child,
    ready,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGCONT')
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

async function waitForLine(child: ChildProcess, file: string, { event, quiet, heard }: ChildOptions) {
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>()
  child.once('exit', (code) => reject(new Error(`${file} ended with ${code} before it was ready`)))
  createInterface({ input: child.stdout! }).on('line', (text) => {
    if (!text.startsWith('{')) return
    const line = JSON.parse(text) as Record<string, unknown>
    heard?.(line)
    if (line.event === event) resolve(line)
    else if (!quiet && LOUD.includes(String(line.level))) console.error(text)
  })
  return promise
}

const ROOT = join(import.meta.dirname, '..')
const LOUD = ['warn', 'error', 'fatal']

/** A port that is free, for a process that is started again where its callers look for it. */
export async function findPort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((closed) => server.close(closed))
  return port
}
