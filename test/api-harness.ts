// API harness: the API process alone, on its own database. It accepts purchases; a test starts workers where it needs them.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { Verification } from '../client/checks.ts'
import { verifyChain, verifyResult } from '../client/verification.ts'
import { openServer } from '../server/app.ts'
import { readConfig } from '../server/config.ts'
import { type Api, type Core, openApi, openCore } from '../server/context.ts'
import { type PurchaseResult, purchaseResult } from '../server/interface/claims.ts'
import { type CompletedResult, completedResult } from '../server/interface/result.ts'
import { openLog } from '../server/telemetry.ts'
import { openTestDatabase } from './database.ts'
import { expectDocumented } from './documented-answers.ts'
import { sharedThreads } from './shared-threads.ts'
import { openSite, type Site } from './site.ts'
import { type AskOptions, harbourClaim, PAGE, usualSettings, VERIFY } from './system.ts'

export interface ApiHarness extends AsyncDisposable {
  core: Core
  api: Api
  site: Site
  databaseUrl: string
  /** For queries and changes of a test. */
  tables: pg.Pool
  /** Every log line, parsed. */
  logged: Record<string, unknown>[]
  /** Environment of further processes of this service. */
  env: Record<string, string>
  url(path: string): string
  /** POSTs a verification, by default of the page /harbour. */
  ask(options: AskOptions): Promise<Response>
}

export async function openApiHarness(env: Record<string, string> = {}): Promise<ApiHarness> {
  await using opened = new AsyncDisposableStack()
  const database = opened.use(await openTestDatabase())
  const site = opened.use(await openSite({ '/harbour': PAGE }))
  const dataDir = await mkdtemp(join(tmpdir(), 'countersign-data-'))
  opened.defer(() => rm(dataDir, { recursive: true, force: true }))
  const shared = {
    DATABASE_URL: database.url,
    DATA_DIR: dataDir,
    LOG_LEVEL: 'debug',
    PORT: '0',
    RATE_LIMIT_PER_MINUTE: '0',
    // A slow fetch stays with its job, so that one pass of the queue is one attempt of a request on every machine.
    WORKER_FETCHES: '0',
    ...usualSettings(env),
    ...site.env,
    ...env,
  }
  const logged: Record<string, unknown>[] = []
  const log = openLog('trace', { write: (line) => logged.push(JSON.parse(line)) })
  const overrides = { log, maxConnections: 4, threads: sharedThreads() }
  const core = opened.use(await openCore(readConfig(shared), database.url, overrides))
  const api = opened.use(await openApi(core))
  const server = opened.use(await openServer(api))
  opened.use(expectDocumented(server.address))
  opened.defer(() => api.drain())
  const tables = new pg.Pool({ connectionString: database.url, max: 2 })
  tables.on('error', () => {})
  opened.defer(() => tables.end())
  const closing = opened.move()
  const url = (path: string) => new URL(path, server.address).href
  return {
    core,
    api,
    site,
    databaseUrl: database.url,
    tables,
    logged,
    env: shared,
    url,
    ask: ({ key, body = harbourClaim(site), headers, fetch: send = fetch }) =>
      send(url(VERIFY), {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': key, ...headers },
        body: JSON.stringify(body),
      }),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

/** Polls the recovery URL of a 202 until there is another answer. */
export async function outcomeOf(answer: Response): Promise<Response> {
  let now = answer
  while (now.status === 202) {
    const token = now.headers.get('x-service-recovery-token')
    const location = now.headers.get('location') ?? ''
    await now.body?.cancel()
    now = await fetch(location, { headers: { authorization: `Bearer ${token}`, prefer: 'wait=25' } })
  }
  return now
}

export interface Audit {
  /** Failed checks of the results that do not verify, by request id. */
  badResults: Record<string, Verification['checks']>
  /** Failed checks of the chain. */
  badLinks: Verification['checks']
  receipts: number
}

/** Verifies the results, and that the chain consists of exactly their receipts. */
export async function audit(
  { tables, url }: Pick<ApiHarness, 'tables' | 'url'>,
  results: PurchaseResult[],
): Promise<Audit> {
  const { keys } = (await (await fetch(url('/v1/keys'))).json()) as { keys: { key_id: number; pubkey_hex: string }[] }
  const { rows: heads } = await tables.query(
    `select serial::int, encode(receipt_hash, 'hex') receipt_hash from chain_head`,
  )
  const failing = ({ checks }: Verification) => checks.filter((check) => !check.ok)
  const chain = results.map((result) => result.receipt.attestation).sort((a, b) => a.serial - b.serial)
  const bad = results.map((result) => [result.request_id, failing(verifyResult(result, { keys }))] as const)
  const { rows } = await tables.query<{ count: number }>('select count(*)::int from receipts')
  return {
    badResults: Object.fromEntries(bad.filter(([, checks]) => checks.length > 0)),
    badLinks: failing(verifyChain(chain, { keys, head: heads[0], signatures: 'every' })),
    receipts: rows[0]?.count ?? 0,
  }
}

export async function readResult(answer: Response): Promise<CompletedResult> {
  return completedResult.parse(await readBody(answer))
}

/** Of verify-source or of verify-claims. */
export async function readAnyResult(answer: Response): Promise<PurchaseResult> {
  return purchaseResult.parse(await readBody(answer))
}

async function readBody(answer: Response): Promise<unknown> {
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`${answer.status} ${text}`)
  return JSON.parse(text)
}

/** A page that is served when the test calls `serve`; `asked` resolves at the request. */
export function openSlowPage(body: string) {
  const asked = Promise.withResolvers<void>()
  const served = Promise.withResolvers<void>()
  const page = async () => {
    asked.resolve()
    await served.promise
    return { body }
  }
  return { page, asked: asked.promise, serve: () => served.resolve() }
}

/** `heard` resolves at a notification of the channel; every notification after this returns is noticed. */
export async function listen(databaseUrl: string, channel: string) {
  const client = new pg.Client({ connectionString: databaseUrl })
  client.on('error', () => {})
  await client.connect()
  await client.query(`listen "${channel}"`)
  return { heard: once(client, 'notification'), [Symbol.asyncDispose]: () => client.end() }
}
