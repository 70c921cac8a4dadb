// Runs the tests: `npm run test:only -- [files] [options of tap]`.
//
// All files share one throwaway PostgreSQL, which they find in TEST_DATABASE_URL (a superuser's URL, from which each
// makes databases of its own). If that variable is set already, the server it names is used.
//
// The last line is always `N passed, N failed, N skipped`, in assertions; a run without any assertion fails.

import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs, stripVTControlCharacters } from 'node:util'
import { openEmbeddedPostgres } from '../server/db/embedded.ts'

interface Result {
  code: number
  passed: number
  failed: number
  skipped: number
}

async function run(args: string[]): Promise<Result> {
  const signals = new Signals()
  await using cleanup = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'countersign-test-'))
  cleanup.defer(() => rm(folder, { recursive: true, force: true }))
  // Under root, PostgreSQL runs as another user, who must get into the folder.
  await chmod(folder, 0o711)

  if (!(await isBuilt())) await build()
  let url = process.env.TEST_DATABASE_URL
  if (url === undefined) {
    const postgres = await openEmbeddedPostgres({ dataDir: folder, durable: false, log: console.error })
    url = cleanup.use(postgres).adminUrl
  }
  // `await`, or the database would end as soon as the tests have started.
  return await runTap(args, { ...process.env, TEST_DATABASE_URL: url }, join(folder, 'output.tap'), signals)
}

/**
 * The set of plugins that tap was built with, in its package folder, is the default one after each `npm install`. tap
 * would rebuild it by itself, but only after it has chosen the loaders for the first run from the old set: one of them
 * is the TypeScript loader that .taprc excludes, and it cannot work with this compiler.
 */
async function isBuilt(): Promise<boolean> {
  const config = await readFile(join(ROOT, '.taprc'), 'utf8')
  const excluded = config.match(/(?<=!)@tapjs\/[\w-]+/g) ?? []
  // Read, not imported: the module is part of a cycle that only tap's own entry point can start.
  const built = await readFile(createRequire(import.meta.resolve('tap')).resolve('@tapjs/test/built'), 'utf8')
  const plugins = built.match(/signature = `([^`]*)`/)?.[1]?.split('\n') ?? []
  return !excluded.some((name) => plugins.includes(name))
}

/** No signal is passed on: half a build leaves a tap that cannot even build itself. */
async function build() {
  const { code } = await spawnTap(['build'], process.env, 'inherit')
  if (code !== 0) throw new Error('tap could not be built with the plugins of .taprc. `npm ci` brings a new one.')
}

/**
 * On a terminal, tap draws as .taprc says. Anywhere else its reporters for people still draw over their own lines, and
 * under `CI` they lose what they have drawn: there it prints the plain protocol, unless another reporter is asked for.
 */
async function runTap(args: string[], env: NodeJS.ProcessEnv, file: string, signals: Signals): Promise<Result> {
  const plain = !process.stdout.isTTY || 'CI' in env
  const options = { reporter: { type: 'string', short: 'R' } } as const
  const reporter = parseArgs({ args, strict: false, options }).values.reporter ?? (plain ? 'tap' : undefined)
  // With this reporter, tap would print everything twice if it also wrote the file.
  const raw = reporter === 'tap'
  const flags = [raw ? '--reporter=tap' : `--output-file=${file}`, ...(plain ? ['--no-color'] : [])]
  const { code, printed } = await spawnTap([...flags, ...args], env, raw || plain ? 'pipe' : 'inherit', signals)
  const counts = count(raw ? printed : await readFile(file, 'utf8').catch(() => ''))
  return { ...counts, code: code === 0 && counts.passed + counts.failed === 0 ? 1 : code }
}

/** `stdout: 'pipe'` prints what tap prints, without colours and cursor movements, and returns it. */
async function spawnTap(args: string[], env: NodeJS.ProcessEnv, stdout: 'inherit' | 'pipe', signals?: Signals) {
  const bin = join(createRequire(import.meta.url).resolve('tap/package.json'), '../dist/esm/run.mjs')
  // In a group of its own, so that Ctrl-C reaches it once: through us. The second one would end it, not its tests.
  const tap = spawn(process.execPath, [bin, ...args], {
    cwd: ROOT,
    env,
    detached: true,
    stdio: ['ignore', stdout, 'inherit'],
  })
  const lines: string[] = []
  if (tap.stdout) {
    createInterface({ input: tap.stdout }).on('line', (line) => {
      lines.push(stripVTControlCharacters(line))
      console.log(lines.at(-1))
    })
  }
  signals?.forwardTo(tap)
  const [code, signal] = (await once(tap, 'close')) as [number | null, NodeJS.Signals | null]
  const end = signals?.received ?? signal
  return { code: end ? 128 + constants.signals[end] : (code ?? 1), printed: lines.join('\n') }
}

/** tap's last comment tells the sums, and leaves out what is zero. What tests print themselves is indented. */
function count(output: string) {
  const sums = output.match(/^# \{ total: .*\}$/gm)?.at(-1) ?? ''
  const sum = (name: string) => Number(sums.match(new RegExp(`\\b${name}: (\\d+)`))?.[1] ?? 0)
  return { passed: sum('pass'), failed: sum('fail'), skipped: sum('skip') + sum('todo') }
}

/** A signal ends tap, and us by that: the database and the folder are always put away. */
class Signals {
  received: NodeJS.Signals | undefined
  #child: ChildProcess | undefined

  constructor() {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      // The same Ctrl-C may come twice: npm passes on what the terminal has sent us already.
      process.on(signal, () => this.received === undefined && this.#pass(signal))
    }
  }

  /** Passes on a signal to the child's group, also one that came earlier. */
  forwardTo(child: ChildProcess) {
    this.#child = child
    child.once('exit', () => {
      this.#child = undefined
    })
    if (this.received !== undefined) this.#pass(this.received)
  }

  #pass(signal: NodeJS.Signals) {
    this.received = signal
    const pid = this.#child?.pid
    if (pid === undefined) return
    process.kill(-pid, signal)
    // A test that waits for something does not end by a signal.
    const force = setTimeout(() => process.kill(-pid, 'SIGKILL'), GRACE_MS)
    this.#child?.once('exit', () => clearTimeout(force))
  }
}

const ROOT = join(import.meta.dirname, '..')
const GRACE_MS = 2000

const result = await run(process.argv.slice(2)).catch((error): Result => {
  console.error(error)
  return { code: 1, passed: 0, failed: 0, skipped: 0 }
})
process.exitCode = result.code
console.log(`${result.passed} passed, ${result.failed} failed, ${result.skipped} skipped`)
