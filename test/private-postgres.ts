// A PostgreSQL of one test or bench alone, behind a port that stays when the server is started again. It can be frozen, stopped
// and started.
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../server/db/embedded.ts'

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
  const sockets = new Set<Socket>()
  const door = createServer((near) => {
    const far = connect(Number(new URL(server!.url).port), '127.0.0.1')
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        near.destroy()
        far.destroy()
      })
    }
    near.pipe(far).pipe(near)
  })
  const drop = () => {
    for (const socket of sockets) socket.destroy()
  }
  const shut = async () => {
    const closed = once(door, 'close')
    door.close()
    drop()
    await closed
  }
  door.listen(0, '127.0.0.1')
  await once(door, 'listening')
  const { port } = door.address() as AddressInfo
  opened.defer(async () => void (door.listening && (await shut())))
  const url = new URL(server.url)
  url.port = String(port)

  /** The server and its backends, with a backend that was started meanwhile. */
  async function signal(name: 'SIGSTOP' | 'SIGCONT') {
    const home = await realpath(join(folder, 'postgres'))
    const [pid] = (await readFile(join(home, 'data', 'postmaster.pid'), 'utf8')).split('\n')
    const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
    for (const one of [pid, ...children.split(' ').filter(Boolean)]) process.kill(Number(one), name)
  }
  const closing = opened.move()
  return {
    url: url.href,
    folder,
    /** Ends every connection; new ones are taken. */
    drop,
    /** Each ends an outage that the one before it began. */
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    async stop() {
      await shut()
      await server?.[Symbol.asyncDispose]()
      server = undefined
    },
    async start() {
      server = await start()
      door.listen(port, '127.0.0.1')
      await once(door, 'listening')
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}
