// Account harness: the API process alone on its own database, with a clock that tests set, and accounts with API keys.
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { openServer } from '../../server/app.ts'
import { readConfig } from '../../server/config.ts'
import { type Api, openApi, openCore } from '../../server/context.ts'
import { openLog } from '../../server/telemetry.ts'
import { openTestDatabase } from '../database.ts'
import { expectDocumented } from '../documented-answers.ts'
import { usualSettings } from '../system.ts'

export interface Ask {
  key?: string
  /** Sent as JSON; a Buffer as the bytes it is. */
  body?: unknown
  headers?: Record<string, string>
}

export interface Answer {
  status: number
  headers: Headers
  bytes: Buffer
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  body: any
}

export interface ApiProcess extends AsyncDisposable {
  api: Api
  /** The address it listens on, which may differ from BASE_URL. */
  address: string
  call(method: string, path: string, ask?: Ask): Promise<Answer>
}

export interface AccountHarness extends ApiProcess {
  /** The present time of the service, in ms since the epoch. Tests advance it to end leases. */
  clock: { now: number }
  /** Registers an account, of the free tier by default, and returns its full key. */
  register(options?: { handle?: string; tier?: 'free' | 'dev' | 'pro' }): Promise<Account>
  tables: pg.Pool
  /** Another process on the same database, folder and clock. */
  openApiProcess(env?: Record<string, string>): Promise<ApiProcess>
}

export interface Account {
  handle: string
  key: string
  /** Calls with the account's full key. */
  call(method: string, path: string, ask?: Ask): Promise<Answer>
}

export async function openAccountHarness(env: Record<string, string> = {}): Promise<AccountHarness> {
  await using opened = new AsyncDisposableStack()
  const database = opened.use(await openTestDatabase())
  const dataDir = await mkdtemp(join(tmpdir(), 'countersign-data-'))
  opened.defer(() => rm(dataDir, { recursive: true, force: true }))
  const clock = { now: Date.now() }
  const openApiProcess = (more: Record<string, string> = {}) =>
    openProcess({ DATA_DIR: dataDir, PORT: '0', RATE_LIMIT_PER_MINUTE: '0', ...env, ...more }, database.url, clock)
  const firstProcess = opened.use(await openApiProcess())
  const tables = new pg.Pool({ connectionString: database.url, max: 2 })
  tables.on('error', () => {})
  opened.defer(() => tables.end())
  const closing = opened.move()
  return {
    ...firstProcess,
    clock,
    tables,
    openApiProcess,
    async register({ handle = `h-${randomUUID()}`, tier } = {}) {
      const { status, body } = await firstProcess.call('POST', '/v1/register', { body: { handle } })
      if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`)
      if (tier) await tables.query('update accounts set tier = $1 where handle = $2', [tier, handle])
      const key: string = body.api_key
      return { handle, key, call: (method, path, ask) => firstProcess.call(method, path, { key, ...ask }) }
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

async function openProcess(
  env: Record<string, string>,
  databaseUrl: string,
  clock: { now: number },
): Promise<ApiProcess> {
  await using opened = new AsyncDisposableStack()
  const log = openLog('silent')
  const core = opened.use(
    await openCore(readConfig({ ...usualSettings(env), ...env }), databaseUrl, {
      log,
      maxConnections: 6,
      now: () => clock.now,
    }),
  )
  const api = opened.use(await openApi(core))
  const server = opened.use(await openServer(api))
  opened.use(expectDocumented(server.address))
  opened.defer(() => api.drain())
  const closing = opened.move()
  return {
    api,
    address: server.address,
    call: (method, path, ask) => call(new URL(path, server.address), method, ask),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

async function call(url: URL, method: string, { key, body, headers }: Ask = {}): Promise<Answer> {
  const raw = body instanceof Buffer
  const type = body === undefined ? undefined : raw ? 'application/octet-stream' : 'application/json'
  const response = await fetch(url, {
    method,
    headers: { ...(key && { authorization: `Bearer ${key}` }), ...(type && { 'content-type': type }), ...headers },
    body: body === undefined ? null : raw ? new Uint8Array(body) : JSON.stringify(body),
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  const json = response.headers.get('content-type')?.startsWith('application/json') && bytes.length > 0
  return { status: response.status, headers: response.headers, bytes, body: json ? JSON.parse(bytes.toString()) : null }
}
