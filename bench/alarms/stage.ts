// The environment in which alarms are provoked: web and worker processes with all dependencies (see house/world.ts), their
// logs, their metrics as Prometheus would scrape them, and the operator's commands.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { Countersign } from '../../client/client.ts'
import { openDatabase, sql, transact } from '../../server/db/pool.ts'
import { closeMinute } from '../../server/operate/minutes.ts'
import { openTcpProxy, type TcpProxy } from '../../test/tcp-proxy.ts'
import { openAccounts } from '../accounts.ts'
import { type Child, findPort, openChild } from '../child.ts'
import { openBuyers } from '../house/buyers.ts'
import { openWorld, type World } from '../house/world.ts'
import type { Lab } from '../lab.ts'
import { Scrapes } from './scrapes.ts'

const TOKEN = 'the token of the operator'
const VERIFY = '/api/agent/v1/verify-source'
/** Beyond the window of the warnings. */
const WINDOW_MS = 16 * 60_000
const PURCHASE_MS = 90_000

export type Line = Record<string, unknown>

export interface Ran {
  code: number
  stdout: string
  stderr: string
}

export interface Stage extends AsyncDisposable {
  lab: Lab
  world: World
  scrapes: Scrapes
  /** Lines of all logs since they were forgotten last. */
  lines: Line[]
  /** Pages and the receiver of alerts are behind it. */
  hosts: TcpProxy
  account: Countersign
  /** Null while there is none. */
  web: Child | null
  workers: Child[]
  /** Of another release in place of this one. */
  root: string | undefined
  startWeb(): Promise<void>
  startWorker(more?: Record<string, string>): Promise<Child>
  /** With SIGKILL. */
  kill(child: Child): Promise<void>
  /** Runs one of the operator's commands. */
  cli(...args: string[]): Promise<Ran>
  /** Makes a scrape, and keeps it. */
  scrape(): Promise<void>
  /** Simulates a quarter of an hour in which nothing was counted. */
  passTime(): Promise<void>
  /** A paid call that does not wait. Answers its HTTP status. */
  order(host?: string): Promise<number>
  /** A call without a payment. Answers its HTTP status. */
  askTerms(): Promise<number>
  /** Rejects unless there is a result in time. */
  buy(): Promise<void>
}

export async function openStage(lab: Lab, heard: (line: Line) => void = () => {}): Promise<Stage> {
  await using opened = new AsyncDisposableStack()
  const world = opened.use(await openWorld(lab, 1, { smallDisk: false }))
  world.calm()
  const hosts = opened.use(await openTcpProxy(() => Number(world.hosts.fixtures.match(/:(\d+)/)?.[1])))
  const port = await findPort()
  const env = {
    ...world.env,
    FIXTURE_HOSTS: world.hosts.fixtures.replace(/:\d+/g, `:${hosts.port}`),
    OPERATOR_TOKEN: TOKEN,
    PORT: String(port),
    WORKER_CONCURRENCY: '16',
  }
  const origin = `http://127.0.0.1:${port}`
  const [buyer] = await openBuyers(world, 1)
  const [account] = await openAccounts(world.admin, 'alarms')
  const db = await openDatabase(world.postgres.url, { maxConnections: 2 })
  opened.defer(() => db.end())
  const scrapes = new Scrapes()
  const lines: Line[] = []
  const hear = (line: Line) => {
    lines.push(line)
    heard(line)
  }
  let page = 0
  const orderOf = (host: string) => ({
    source_url: `https://${host}/${randomUUID()}`,
    claim: 'The harbour was opened in 1874.',
  })
  const nextPage = () => world.hosts.pages[1 + (page++ % 4)]!
  const post = async (send: typeof fetch, host: string) => {
    const headers = { 'content-type': 'application/json', 'idempotency-key': randomUUID() }
    const answer = await send(origin + VERIFY, { method: 'POST', headers, body: JSON.stringify(orderOf(host)) })
    await answer.arrayBuffer()
    return answer.status
  }
  const closing = opened.move()
  const stage: Stage = {
    lab,
    world,
    scrapes,
    lines,
    hosts,
    account: new Countersign({ baseUrl: origin, apiKey: account!.key }),
    web: null,
    workers: [],
    root: undefined,
    async startWeb() {
      const root = stage.root ? { root: stage.root } : {}
      stage.web = await openChild(lab, 'server/main.ts', { event: 'listening', env, quiet: true, heard: hear, ...root })
    },
    async startWorker(more = {}) {
      const options = { event: 'worker_started', env: { ...env, ...more }, quiet: true, heard: hear }
      const worker = await openChild(lab, 'workers/main.ts', options)
      stage.workers.push(worker)
      return worker
    },
    async kill(child) {
      if (stage.web === child) stage.web = null
      stage.workers = stage.workers.filter((one) => one !== child)
      const gone = once(child.process, 'exit')
      child.process.kill('SIGKILL')
      await gone
    },
    async cli(...args) {
      const root = stage.root ?? join(import.meta.dirname, '../..')
      const child = spawn(process.execPath, [join(root, 'server/cli.ts'), ...args], {
        cwd: root,
        env: { ...lab.env, ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      const [stdout, stderr, [code]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, 'close') as Promise<[number]>,
      ])
      return { code, stdout, stderr }
    },
    async scrape() {
      const headers = { authorization: `Bearer ${TOKEN}` }
      const answer = await fetch(`${origin}/metrics`, { headers, signal: AbortSignal.timeout(10_000) }).catch(
        () => null,
      )
      scrapes.add(answer?.ok ? await answer.text() : null, performance.now() / 1000)
    },
    async passTime() {
      await transact(db, async (tx) => {
        const now = new Date(Date.now() - WINDOW_MS)
        await tx.query(sql.unsafe`delete from minute_figures where minute < ${sql.timestamp(now)}`)
        await closeMinute(tx, { dead: sql.fragment`false`, now })
      })
      scrapes.clear()
      await stage.scrape()
    },
    order: (host = nextPage()) => post(buyer!.fetch, host),
    askTerms: () => post(fetch, nextPage()),
    async buy() {
      const client = new Countersign({ baseUrl: origin, fetch: buyer!.fetch })
      const deadline = performance.now() + PURCHASE_MS
      for (;;) {
        try {
          await client.verifySource(orderOf(nextPage()), { idempotencyKey: randomUUID(), timeoutMs: 30_000 })
          return
        } catch (error) {
          if (performance.now() > deadline) throw error
          await pause(1000)
        }
      }
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
  await stage.startWeb()
  await stage.startWorker()
  return stage
}
