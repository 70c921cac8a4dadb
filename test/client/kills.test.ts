// `countersign buy` and `countersign mcp`, killed at steps that a seeded generator chooses among all their requests and changes of
// files, and run again: one payment arrives, and the budget file counts it once. TEST_LONG kills them at every step.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import t, { type Test } from 'tap'
import { BARE_ENV } from '../children.ts'
import { LONG } from '../long.ts'
import { countersign } from './command-line.ts'
import { openLiar, PAGE, PIN, RECOVERY_TOKEN } from './liar.ts'

const CLI = join(import.meta.dirname, '../../client/cli.ts')
const PRELOAD = join(import.meta.dirname, 'killed-at.ts')
const { liar, path, secret, paidFor, written } = await openLiar(t)
let heard = ''

const optionsFor = (name: string) => [
  ...['--service', liar.baseUrl, '--wallet', path('wallet.key'), '--journal', path(name), ...PIN],
  ...['--budget', '0.03', '--budget-file', path(`${name}.jsonl`)],
]
const program = (args: string[]) => ['--import', PRELOAD, CLI, ...args]
const envOf = (killedAt: number) => ({ ...BARE_ENV, KILLED_AT: String(killedAt), STEPS: path('steps') })

/** Whether it was killed. */
async function buyKilled(name: string, killedAt: number): Promise<boolean> {
  const args = program(['buy', PAGE, name, '--yes', ...optionsFor(name)])
  const child = spawn(process.execPath, args, { env: envOf(killedAt) })
  const [out, err, [, signal]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  heard += out + err
  return signal === 'SIGKILL'
}

/** The same by a tool of a server. */
async function callKilled(name: string, killedAt: number): Promise<boolean> {
  const args = program(['mcp', ...optionsFor(name)])
  const env = envOf(killedAt) as Record<string, string>
  const transport = new StdioClientTransport({ command: process.execPath, args, env, stderr: 'pipe' })
  transport.stderr?.on('data', (chunk) => (heard += chunk))
  const host = new Client({ name: 'a-host', version: '1.0.0' })
  try {
    await host.connect(transport)
    const told = await host.callTool({ name: 'verify_source', arguments: { source_url: PAGE, claim: name } })
    heard += JSON.stringify(told)
    return false
  } catch {
    return true
  } finally {
    await host.close()
  }
}

/** The same purchase once more, and that it was paid once and counted once. */
async function expectOnePayment(t: Test, name: string) {
  const again = await countersign(['buy', PAGE, name, '--yes', '--json', ...optionsFor(name)])
  heard += again.stdout + again.stderr
  t.equal(again.code, 0, again.stderr)
  t.match(JSON.parse(again.stdout), { verified: true, cost_usd: '0.03' })
  t.equal(paidFor(name), 1, 'one payment')
  t.match(written(name), new RegExp(`^${RECOVERY_TOKEN}$`, 'm'), 'what fetches the result again is kept')
  const lines = readFileSync(path(`${name}.jsonl`), 'utf8')
    .trim()
    .split('\n')
  const spent = new Map(lines.map((line) => JSON.parse(line)).map(({ payment, atoms }) => [payment, Number(atoms)]))
  t.equal(
    [...spent.values()].reduce((sum, atoms) => sum + atoms, 0),
    30_000,
    'counted once',
  )
}

/** Numbers from 1 to `most`: the same in every run. */
function chosen(most: number, seed: number): number[] {
  if (LONG) return Array.from({ length: most }, (_, n) => n + 1)
  let state = seed
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return 1 + Math.floor((state / 2 ** 32) * most)
  }
  return Array.from({ length: 4 }, next)
}

const steps = () => Number(readFileSync(path('steps'), 'utf8'))

for (const [command, seed, run] of [
  ['buy', 36, buyKilled],
  ['mcp', 63, callKilled],
] as const)
  t.test(command, async (t) => {
    t.equal(await run(`${command}, never killed`, 0), false)
    const all = steps()
    t.ok(all > 30, `${all} steps`)
    await expectOnePayment(t, `${command}, never killed`)
    let killed = 0
    for (const at of chosen(all, seed)) {
      const name = `${command}, killed at step ${at}`
      if (await run(name, at)) killed++
      await expectOnePayment(t, name)
    }
    // Lines that are appended at one time share a step, so the last steps are not there in every run.
    t.ok(killed > 1)
  })

t.test('killed twice', async (t) => {
  const name = 'killed, and its repeat too'
  t.ok(await buyKilled(name, 25))
  t.ok(await buyKilled(name, 9))
  await expectOnePayment(t, name)
})

t.test('killed while it took over the lock of a killed one', async (t) => {
  const name = 'killed at the lock'
  t.ok(await buyKilled(name, 9))
  const gone = spawn(process.execPath, ['--version'], { stdio: 'ignore' })
  await once(gone, 'close')
  for (const end of ['lock', 'lock.takeover']) writeFileSync(path(`${name}.jsonl.${end}`), String(gone.pid))
  await expectOnePayment(t, name)
})

t.test('the wallet is in no output and in no file, and the recovery token in no output', async (t) => {
  t.ok(heard.length > 1000)
  t.notMatch(heard, RECOVERY_TOKEN)
  for (const said of [heard, written('')]) t.notOk(said.replaceAll(`0x${secret}\n`, '').includes(secret))
})
