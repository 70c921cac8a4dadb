// Runs the tests: `npm run test:only -- [files or folders] [options]`. The options are in `test/suite.ts`.
//
// All files share one throwaway PostgreSQL, which they find in TEST_DATABASE_URL (a superuser's URL, from which each
// makes databases of its own). If that variable is set already, the server it names is used.
//
// The last line is always `N passed, N failed, N skipped`, in assertions; a run without any assertion fails.

import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, statfs } from 'node:fs/promises'
import { constants, freemem, tmpdir } from 'node:os'
import { join } from 'node:path'
import { openEmbeddedPostgres } from '../server/embedded/postgres.ts'
import { readProcessor } from './processor.ts'
import type { Sums } from './suite.ts'

interface Result extends Sums {
  code: number
}

async function run(args: string[]): Promise<Result> {
  const signals = new Signals()
  await using cleanup = new AsyncDisposableStack()
  const folder = await mkdtemp(join(await findFastFolder(), 'countersign-test-'))
  cleanup.defer(() => rm(folder, { recursive: true, force: true }))
  // Under root, PostgreSQL runs as another user, who must get into the folder.
  await chmod(folder, 0o711)

  let url = process.env.TEST_DATABASE_URL
  if (url === undefined) {
    const postgres = await openEmbeddedPostgres({ dataDir: folder, durable: false, log: console.error })
    url = cleanup.use(postgres).adminUrl
  }
  // `await`, or the database would end as soon as the tests have started.
  const result = await runSuite(args, { ...process.env, TEST_DATABASE_URL: url }, signals)
  if (args.includes('--slowest')) {
    const { ended, running } = readProcessor()
    console.log(
      `processor: ${Math.round(ended / 1000)} s of the tests, ${Math.round(running / 1000)} s of the database`,
    )
  }
  return result
}

/**
 * A folder in memory if there is one with enough room, else the folder for temporary files. Nearly every test makes a
 * database and drops it, which is hundreds of files each time.
 */
async function findFastFolder(): Promise<string> {
  const memory = await statfs(MEMORY).catch(() => undefined)
  const free = memory === undefined ? 0 : memory.bsize * memory.bavail
  return Math.min(free, freemem()) >= CLUSTER_BYTES ? MEMORY : tmpdir()
}

async function runSuite(args: string[], env: NodeJS.ProcessEnv, signals: Signals): Promise<Result> {
  // In a group of its own, so that Ctrl-C reaches it once: through us. The second one would end it, not its tests.
  const suite = spawn(process.execPath, [join(import.meta.dirname, 'suite.ts'), ...args], {
    env,
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  let sums: Sums = { passed: 0, failed: 0, skipped: 0 }
  // tap also sends messages of its own.
  suite.on('message', (message: Partial<Record<'sums', Sums>>) => {
    sums = message.sums ?? sums
  })
  signals.forwardTo(suite)
  const [exit, signal] = (await once(suite, 'close')) as [number | null, NodeJS.Signals | null]
  const end = signals.received ?? signal
  const code = end ? 128 + constants.signals[end] : (exit ?? 1)
  return { ...sums, code: code === 0 && sums.passed + sums.failed === 0 ? 1 : code }
}

/** A signal ends the suite, and us by that: the database and the folder are always put away. */
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

const GRACE_MS = 2000
const MEMORY = '/dev/shm'
/** The write-ahead log takes up to 1 GiB, the databases of the tests that run at a time take far less. */
const CLUSTER_BYTES = 4 * 1024 ** 3

const result = await run(process.argv.slice(2)).catch((error): Result => {
  console.error(error)
  return { code: 1, passed: 0, failed: 0, skipped: 0 }
})
process.exitCode = result.code
console.log(`${result.passed} passed, ${result.failed} failed, ${result.skipped} skipped`)
