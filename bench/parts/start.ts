// The time from a command to its end, to the first answer or to the first verdict: `npm start` and `npm run demo`, as a user types them.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { findPort } from '../child.ts'
import type { Lab } from '../lab.ts'
import { median } from '../rounds.ts'
import { figure, printHeading, printRows } from '../table.ts'
import { openSource } from '../worker-harness.ts'

/** Seconds. The verdict is counted from the first answer. */
const AIMS = { start: 1.5, verdict: 4, demo: 10 }

export async function benchStart(lab: Lab): Promise<void> {
  await using source = await openSource(lab)
  const env = {
    ...process.env,
    ...source.env,
    DATA_DIR: join(lab.folder, 'start'),
    HOST: '127.0.0.1',
    ASSESSMENT: 'local',
  }
  printHeading('start', 'seconds from the command, not for the first time, medians')
  const starts = await timeRounds(lab, () => timeStart(lab, env, source.nextUrl('/short/')))
  const demos = await timeRounds(lab, () => timeDemo(lab, env))
  printRows([
    row('npm start, until /healthz answers', median(starts.map(({ answer }) => answer)), AIMS.start),
    row('from then until a first verdict is bought', median(starts.map(({ verdict }) => verdict)), AIMS.verdict),
    row('npm run demo, until it ends', median(demos), AIMS.demo),
  ])
}

function row(what: string, seconds: number, aim: number): [string, ...string[]] {
  return [what, `${figure(seconds)} s`, `  aim ${figure(aim)}: ${seconds <= aim ? 'met' : 'MISSED'}`]
}

/** The first time makes the database and fills caches, so it does not count. */
async function timeRounds<T>(lab: Lab, once: () => Promise<T>): Promise<T[]> {
  await once()
  const times: T[] = []
  for (let n = 0; n < lab.rounds; n++) times.push(await once())
  return times
}

async function timeStart(lab: Lab, env: NodeJS.ProcessEnv, page: string) {
  const port = await findPort()
  const address = `http://127.0.0.1:${port}`
  const started = performance.now()
  const child = run(lab, ['start'], { ...env, PORT: String(port) })
  const ended = once(child, 'exit')
  const until = async (path: string) => {
    while (!(await answers(`${address}${path}`))) {
      if (child.exitCode !== null) throw new Error(`npm start ended with ${child.exitCode}`)
      await pause(POLL_MS)
    }
  }
  await until('/healthz')
  const answered = performance.now()
  // Nothing is sold before the weights are loaded.
  await until('/readyz')
  await buyVerdict(address, page)
  const bought = performance.now()
  child.kill('SIGTERM')
  await ended
  return { answer: (answered - started) / 1000, verdict: (bought - answered) / 1000 }
}

/** Throws unless the purchase is complete within the time that the service waits by itself. */
async function buyVerdict(address: string, source_url: string): Promise<void> {
  const account = privateKeyToAccount(generatePrivateKey())
  const pay = wrapFetchWithPayment(fetch, new x402Client().register('eip155:*', new ExactEvmScheme(account)))
  const answer = await pay(`${address}/api/agent/v1/verify-source`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID(), prefer: 'wait=25' },
    body: JSON.stringify({ source_url, claim: 'The harbour was opened in 1874.' }),
  })
  const { claim_support } = (await answer.json()) as { claim_support?: string }
  if (answer.status !== 200 || claim_support === undefined)
    throw new Error(`the purchase was answered ${answer.status}`)
}

async function timeDemo(lab: Lab, env: NodeJS.ProcessEnv): Promise<number> {
  const started = performance.now()
  const [code] = await once(run(lab, ['run', '--silent', 'demo'], env), 'exit')
  if (code !== 0) throw new Error(`npm run demo ended with ${code}`)
  return (performance.now() - started) / 1000
}

function run(lab: Lab, args: string[], env: NodeJS.ProcessEnv): ChildProcess {
  const child = spawn('npm', args, { cwd: join(import.meta.dirname, '../..'), env, stdio: 'ignore' })
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
