// The operator's command line, within the process of the test or as a process of its own.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { main } from '../server/commands.ts'
import { BARE_ENV } from './children.ts'
import { type RunOptions, runHere } from './own-process.ts'

export interface Ran {
  code: number
  stdout: string
  stderr: string
}

/** Runs `npm run cli -- ...args` within this process, with this environment alone, and without a terminal. */
export function runCli(env: Record<string, string>, ...args: string[]): Promise<Ran> {
  return runHere(main, args, { env })
}

/** The same on a terminal, where `typed` is what a person types. */
export function askCli(env: Record<string, string>, typed: RunOptions['typed'], ...args: string[]): Promise<Ran> {
  return runHere(main, args, { env, typed })
}

/** As a process of its own. */
export async function runCliApart(env: Record<string, string>, ...args: string[]): Promise<Ran> {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../server/cli.ts'), ...args], {
    env: { ...BARE_ENV, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: code as number, stdout, stderr }
}
