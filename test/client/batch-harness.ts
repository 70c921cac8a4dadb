// A service, pages, and the command `countersign batch`; where it is killed, as a process of its own.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { generatePrivateKey } from 'viem/accounts'
import { type System, type SystemOptions, startSystem } from '../system.ts'
import { until } from '../until.ts'
import { countersignIn } from './command-line.ts'

const CLI = join(import.meta.dirname, '../../client/cli.ts')

export interface Ended {
  code: number | null
  stdout: string
  stderr: string
}

export interface BatchHarness extends AsyncDisposable {
  system: System
  folder: string
  /** The path of a file in the folder. */
  file(name: string, contents: string): Promise<string>
  read(name: string): Promise<string>
  /** The lines of a JSON Lines file in the folder; none if the file does not exist. */
  lines(name: string): Promise<Record<string, unknown>[]>
  /** Runs `countersign batch` with the wallet and the service, in this process. */
  batch(...args: string[]): Promise<Ended>
  /** The same in a process of its own, but kills the command with SIGKILL as soon as `when` is true of the number of results on disk. */
  batchUntil(when: (results: number) => boolean, ...args: string[]): Promise<Ended>
  /** Settled payments, by the ledger of the service. */
  settled(): Promise<number>
}

export async function openBatchHarness(options: SystemOptions = {}): Promise<BatchHarness> {
  await using opened = new AsyncDisposableStack()
  const env = { RATE_LIMIT_PER_MINUTE: '0', ...options.env }
  const system = opened.use(await startSystem({ ...options, env }))
  const folder = await mkdtemp(join(tmpdir(), 'countersign-batch-'))
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  const file = async (name: string, contents: string) => {
    await writeFile(join(folder, name), contents)
    return join(folder, name)
  }
  const wallet = await file('wallet.key', `${generatePrivateKey()}\n`)
  await chmod(wallet, 0o600)
  const read = (name: string) => readFile(join(folder, name), 'utf8')
  const lines = async (name: string) => {
    const contents = await read(name).catch(() => '')
    const whole = contents.slice(0, contents.lastIndexOf('\n') + 1)
    return whole
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  }
  const whole = (args: string[]) => [
    ...['batch', ...args, '--service', system.service.address, '--wallet', wallet, '--yes'],
  ]
  const start = (args: string[]) =>
    spawn(process.execPath, [CLI, ...whole(args)], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  const end = async (child: ReturnType<typeof start>): Promise<Ended> => {
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    return { code: code as number | null, stdout, stderr }
  }
  const closing = opened.move()
  return {
    system,
    folder,
    file,
    read,
    lines,
    batch: (...args) => countersignIn(folder, whole(args)),
    async batchUntil(when, ...args) {
      const child = start(args)
      const ended = end(child)
      let isOver = false
      void ended.then(() => {
        isOver = true
      })
      await until(async () => isOver || when((await lines('out/results.jsonl')).length))
      child.kill('SIGKILL')
      return await ended
    },
    async settled() {
      const rows = await system.sql(`select count(*)::int settled from payment_ledger where outcome = 'settled'`)
      return rows[0]?.settled as number
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

/** CSV with a claim about the harbour for each of the paths. */
export function csvOf(system: System, paths: readonly string[]): string {
  const rows = paths.map(
    (path, i) => `row${i},${system.site.url(path)},"The harbour was opened in 1874, says row ${i}."`,
  )
  return ['id,source_url,claim', ...rows, ''].join('\n')
}
