// A PostgreSQL for one test or bench only, behind a port that stays the same when the server restarts. It can be frozen,
// stopped and started.
import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../server/embedded/postgres.ts'
import { openTcpProxy } from './tcp-proxy.ts'

export type PrivatePostgres = Awaited<ReturnType<typeof openPrivatePostgres>>

/** @param options.prepare is called with the folder before the cluster is made in it, for example to mount something there */
export async function openPrivatePostgres(options: { prepare?: (folder: string) => Promise<AsyncDisposable> } = {}) {
  await using opened = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'countersign-outage-'))
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  if (options.prepare) opened.use(await options.prepare(folder))
  opened.defer(async () => {
    const cluster = await realpath(join(folder, 'postgres'))
    await rm(cluster, { recursive: true, force: true })
  })
  await chmod(folder, 0o711)
  const start = () => openEmbeddedPostgres({ dataDir: folder, durable: true, log: () => {} })
  let server: EmbeddedPostgres | undefined = await start()
  opened.defer(async () => void (await server?.[Symbol.asyncDispose]()))
  const proxy = await openTcpProxy(() => Number(new URL(server!.url).port))
  opened.use(proxy)
  const url = new URL(server.url)
  url.port = String(proxy.port)

  const frozen = new Set<number>()
  /**
   * A frozen process does not react to a request to end, also not to that of the guard of a server whose process has
   * ended.
   */
  const thawNow = () => {
    for (const pid of frozen)
      try {
        process.kill(pid, 'SIGCONT')
      } catch {
        // It was killed while it was frozen, or ended when the server went on.
      }
  }
  process.once('exit', thawNow)
  opened.defer(() => void process.off('exit', thawNow))

  /** Stops the server and its backends. */
  async function freeze() {
    const home = await realpath(join(folder, 'postgres'))
    const [pid] = (await readFile(join(home, 'data', 'postmaster.pid'), 'utf8')).split('\n')
    const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
    for (const one of [pid, ...children.split(' ').filter(Boolean)].map(Number)) {
      frozen.add(one)
      try {
        process.kill(one, 'SIGSTOP')
      } catch {
        // A backend that ended since the list was read.
      }
    }
  }

  /** The server goes on first and may end a backend, so every process of the list is tried: one that stays stopped keeps its locks. */
  async function thaw() {
    thawNow()
    frozen.clear()
  }
  const closing = opened.move()
  return {
    url: url.href,
    folder,
    /** Ends every connection; new ones are accepted. */
    drop: proxy.drop,
    /** Each ends an outage that the one before it began. */
    freeze,
    thaw,
    async stop() {
      await proxy.close()
      await server?.[Symbol.asyncDispose]()
      server = undefined
    },
    async start() {
      server = await start()
      await proxy.open()
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}
