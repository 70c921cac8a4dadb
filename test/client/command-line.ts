// Runs the command line of the client as a program of its own, with an environment that holds nothing of the test's.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'

const CLI = join(import.meta.dirname, '../../client/cli.ts')

export interface Ran {
  code: number
  stdout: string
  stderr: string
  /** Standard output, byte for byte. */
  bytes: Buffer
}

export async function countersign(
  args: string[],
  { env = {}, input = '' }: { env?: Record<string, string>; input?: string | Buffer } = {},
): Promise<Ran> {
  const child = spawn(process.execPath, [CLI, ...args], { env: { PATH: process.env.PATH, ...env } })
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  return ended(child)
}

/** The same on a terminal of its own, where `typed` is what a person types. Needs `script` of util-linux. */
export async function onTerminal(args: string[], env: Record<string, string>, typed: string): Promise<Ran> {
  const words = [process.execPath, CLI, ...args].map((word) => `'${word}'`).join(' ')
  const child = spawn('script', ['-qefc', words, '/dev/null'], { env: { PATH: process.env.PATH, ...env } })
  // Typed only once it was asked, as a person does.
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
