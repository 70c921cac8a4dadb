// The operator's command line as a process of its own.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { BARE_ENV } from './children.ts'

export interface Ran {
  code: number
  stdout: string
  stderr: string
}

/** Runs `npm run cli -- ...args` with this environment alone, and without a terminal. */
export async function runCli(env: Record<string, string>, ...args: string[]): Promise<Ran> {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../server/cli.ts'), ...args], {
    env: { ...BARE_ENV, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: code as number, stdout, stderr }
}
