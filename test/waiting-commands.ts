// Commands that wait for something outside, many in one process, and the signal that stops them. A process for each would cost most of
// its time for loading the same.
//
// As a program: runs the commands of its second argument, by the `main` of the file that its first argument names.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { BARE_ENV } from './children.ts'
import { runHere } from './own-process.ts'

export interface WaitingCommand {
  args: readonly string[]
  /** All of its environment. */
  env?: Readonly<Record<string, string>>
}

export interface Stopped {
  code: number | null
  by: NodeJS.Signals | null
  /** Which command ended by itself, and with what words. */
  said: string
}

/** Milliseconds from the signal after which what still runs is killed. */
const LIMIT_MS = 5000

/**
 * Runs all of them in one process, and stops that when all wait. A command that holds the signal up holds the process up, and one
 * that ends by itself ends it with 1.
 *
 * @param main from the root of the repository: the file that exports `main`
 * @param allWait resolves when each of them waits
 */
export async function stopTogether(
  main: string,
  commands: readonly WaitingCommand[],
  { signal, allWait, cwd }: { signal: NodeJS.Signals; allWait: Promise<unknown>; cwd?: string },
): Promise<Stopped> {
  const child = spawn(process.execPath, [import.meta.filename, main, JSON.stringify(commands)], {
    env: BARE_ENV,
    ...(cwd === undefined ? {} : { cwd }),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let limit: NodeJS.Timeout | undefined
  void allWait.then(() => {
    limit = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS)
    child.kill(signal)
  })
  let said = ''
  child.stderr.on('data', (chunk) => (said += chunk))
  const [code, by] = await once(child, 'close')
  clearTimeout(limit)
  return { code, by, said }
}

async function runAll(file: string, commands: readonly WaitingCommand[]): Promise<void> {
  const { main } = await import(pathToFileURL(join(import.meta.dirname, '..', file)).href)
  for (const { args, env = {} } of commands)
    void runHere(main, args, { env }).then(({ code, stdout, stderr }) => {
      console.error(`${args.join(' ')} ended with ${code}: ${stdout}${stderr}`)
      process.exit(1)
    })
}

if (import.meta.main) await runAll(process.argv[2] ?? '', JSON.parse(process.argv[3] ?? '[]'))
