// Runs the command line of the client, with an environment that holds nothing of the test's: within this process, or as a process of
// its own.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { main } from '../../client/commands/main.ts'
import { BARE_ENV } from '../children.ts'
import { type Ran, type RunOptions, runHere } from '../own-process.ts'

export type { Ran } from '../own-process.ts'

const CLI = join(import.meta.dirname, '../../client/cli.ts')

/** Within this process. */
export function countersign(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  return runHere(main, args, options)
}

/** The same in this folder, which meanwhile is the working folder of the whole process: one call at a time. */
export async function countersignIn(folder: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const before = process.cwd()
  if (inFolder) throw new Error(`another command runs in ${before}`)
  inFolder = true
  process.chdir(folder)
  try {
    return await countersign(args, options)
  } finally {
    process.chdir(before)
    inFolder = false
  }
}

let inFolder = false

/** As a program of its own, for what only a process has: signals, pipes, its exit status. */
export async function countersignApart(
  args: readonly string[],
  { env = {}, input = '' }: Omit<RunOptions, 'typed'> = {},
): Promise<Ran> {
  const child = spawn(process.execPath, [CLI, ...args], { env: { ...BARE_ENV, ...env } })
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  return ended(child)
}

/** The same on a terminal of its own, where `typed` is what a person types. Needs `script` of util-linux. */
export async function onTerminal(args: string[], env: Record<string, string>, typed: string): Promise<Ran> {
  const words = [process.execPath, CLI, ...args].map((word) => `'${word}'`).join(' ')
  const child = spawn('script', ['-qefc', words, '/dev/null'], { env: { ...BARE_ENV, ...env } })
  // Typed only after the command has asked, as a person does.
  let isAsked = false
  child.stdout.on('data', (chunk: Buffer) => {
    if (isAsked || !chunk.includes('[y/N]')) return
    isAsked = true
    child.stdin.write(typed)
  })
  return ended(child)
}

async function ended(child: ReturnType<typeof spawn>): Promise<Ran> {
  const [bytes, stderr, [code]] = await Promise.all([buffer(child.stdout!), text(child.stderr!), once(child, 'close')])
  return { code: code as number, stdout: bytes.toString(), stderr, bytes }
}
