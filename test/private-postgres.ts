// A PostgreSQL of one test or bench alone, behind a port that stays when the server is started again. It can be frozen, stopped
// and started.
import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../server/db/embedded.ts'
import { openDoor } from './door.ts'

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
  const door = await openDoor(() => Number(new URL(server!.url).port))
  opened.use(door)
  const url = new URL(server.url)
  url.port = String(door.port)

  const frozen = new Set<number>()
  /** What is frozen hears no request to end, also not that of the guard of a server whose process has ended. */
  const thawNow = () => {
    for (const pid of frozen)
      try {
        process.kill(pid, 'SIGCONT')
      } catch {
        // It was killed while it was frozen.
      }
  }
  process.once('exit', thawNow)
  opened.defer(() => void process.off('exit', thawNow))

  /** The server and its backends, with a backend that was started meanwhile. */
  async function signal(name: 'SIGSTOP' | 'SIGCONT') {
    const home = await realpath(join(folder, 'postgres'))
    const [pid] = (await readFile(join(home, 'data', 'postmaster.pid'), 'utf8')).split('\n')
    const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
    for (const one of [pid, ...children.split(' ').filter(Boolean)].map(Number)) {
      process.kill(one, name)
      if (name === 'SIGSTOP') frozen.add(one)
      else frozen.delete(one)
    }
  }
  const closing = opened.move()
  return {
    url: url.href,
    folder,
    /** Ends every connection; new ones are taken. */
    drop: door.drop,
    /** Each ends an outage that the one before it began. */
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    async stop() {
      await door.shut()
      await server?.[Symbol.asyncDispose]()
      server = undefined
    },
    async start() {
      server = await start()
      await door.open()
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}
