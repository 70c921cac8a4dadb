// The whole service on a database of its own, as `npm start` wires it, reachable over real HTTP.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { readConfig } from '../server/config.ts'
import { openService, type Service } from '../server/service.ts'
import { openLog } from '../server/telemetry.ts'
import { openTestDatabase } from './database.ts'
import { openSite, type Page, type Site } from './site.ts'

export const VERIFY = '/api/agent/v1/verify-source'

export interface System extends AsyncDisposable {
  service: Service
  site: Site
  databaseUrl: string
  /** Every line logged, parsed. */
  logged: Record<string, unknown>[]
  url(path: string): string
  /** POSTs a verification; headers and body as given. */
  ask(options: AskOptions): Promise<Response>
}

export interface AskOptions {
  key: string
  body?: unknown
  headers?: Record<string, string>
  /** A paying fetch; the plain one without. */
  fetch?: typeof fetch
}

export interface SystemOptions {
  pages?: Record<string, string | Page | (() => Page | Promise<Page>)>
  env?: Record<string, string>
  overrides?: Parameters<typeof openService>[2]
}

export const PAGE = `<!doctype html><title>Harbour</title><h1>The harbour of Kelby</h1>
<p>The harbour was opened in 1874 by the county engineer. It has three piers and a lighthouse 21 metres high.</p>
<p>Fishing ended in 1962. The ferry to Orsay sails on Mondays and Thursdays.</p>`

/** Starts a system whose site serves PAGE at /harbour, besides the pages given. */
export async function startSystem(options: SystemOptions = {}): Promise<System> {
  await using opened = new AsyncDisposableStack()
  const database = opened.use(await openTestDatabase())
  const site = opened.use(await openSite({ '/harbour': PAGE, ...options.pages }))
  const dataDir = await mkdtemp(join(tmpdir(), 'countersign-data-'))
  opened.defer(() => rm(dataDir, { recursive: true, force: true }))
  const logged: Record<string, unknown>[] = []
  const log = openLog('trace', { write: (line) => logged.push(JSON.parse(line)) })
  const config = readConfig({ PORT: '0', DATA_DIR: dataDir, LOG_LEVEL: 'trace', ...site.env, ...options.env })
  const service = opened.use(await openService(config, database.url, { log, ...options.overrides }))
  const closing = opened.move()
  const url = (path: string) => new URL(path, service.address).href
  return {
    service,
    site,
    databaseUrl: database.url,
    logged,
    url,
    ask: ({ key, body = harbourClaim(site), headers, fetch: send = fetch }) =>
      send(url(VERIFY), {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': key, ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

export function harbourClaim(site: Site) {
  return { source_url: site.url('/harbour'), claim: 'The harbour was opened in 1874.' }
}

/** A stock x402 fetch with a wallet of its own. */
export function payingFetch(inner: typeof fetch = fetch): typeof fetch {
  const client = new x402Client().register(
    'eip155:84532',
    new ExactEvmScheme(privateKeyToAccount(generatePrivateKey())),
  )
  return wrapFetchWithPayment(inner, client) as typeof fetch
}
