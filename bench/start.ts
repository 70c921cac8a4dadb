// The time from a command to its end or to the first answer: `npm start` and `npm run demo`, as a user types them.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { findPort } from './child.ts'
import type { Lab } from './lab.ts'
import { median } from './rounds.ts'
import { figure, printHeading, printRows } from './table.ts'

/** Seconds. */
const AIMS = { start: 1.5, demo: 2 }

export async function benchStart(lab: Lab): Promise<void> {
  const env = { ...process.env, DATA_DIR: join(lab.folder, 'start'), HOST: '127.0.0.1' }
  printHeading('start', 'seconds from the command, not for the first time, medians')
  printRows([
    row('npm start, until /healthz answers', await timeRounds(lab, () => timeStart(lab, env)), AIMS.start),
    row('npm run demo, until it ends', await timeRounds(lab, () => timeDemo(lab, env)), AIMS.demo),
  ])
}

function row(what: string, seconds: number, aim: number): [string, ...string[]] {
  return [what, `${figure(seconds)} s`, `  aim ${figure(aim)}: ${seconds <= aim ? 'met' : 'MISSED'}`]
}

/** The first time makes the database and fills caches, so it does not count. */
async function timeRounds(lab: Lab, once: () => Promise<number>): Promise<number> {
  await once()
  const times: number[] = []
  for (let n = 0; n < lab.rounds; n++) times.push(await once())
  return median(times)
}

async function timeStart(lab: Lab, env: NodeJS.ProcessEnv): Promise<number> {
  const port = await findPort()
  const started = performance.now()
  const child = run(lab, ['start'], { ...env, PORT: String(port) })
  const ended = once(child, 'exit')
  while (!(await answers(`http://127.0.0.1:${port}/healthz`))) {
    if (child.exitCode !== null) throw new Error(`npm start ended with ${child.exitCode}`)
    await pause(POLL_MS)
  }
  const seconds = (performance.now() - started) / 1000
  child.kill('SIGTERM')
  await ended
  return seconds
}

async function timeDemo(lab: Lab, env: NodeJS.ProcessEnv): Promise<number> {
  const started = performance.now()
  const [code] = await once(run(lab, ['run', '--silent', 'demo'], env), 'exit')
  if (code !== 0) throw new Error(`npm run demo ended with ${code}`)
  return (performance.now() - started) / 1000
}

function run(lab: Lab, args: string[], env: NodeJS.ProcessEnv): ChildProcess {
  const child = spawn('npm', args, { cwd: join(import.meta.dirname, '..'), env, stdio: 'ignore' })
  lab.children.add(child)
  return child.once('exit', () => lab.children.delete(child))
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok
  } catch {
    return false
  }
}

const POLL_MS = 10
