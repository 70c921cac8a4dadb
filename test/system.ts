// The whole service on its own database, composed as by `npm start`, over real HTTP.
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodePaymentRequiredHeader } from '@x402/core/http'
import type { PaymentRequired } from '@x402/core/types'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import pg from 'pg'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { readConfig } from '../server/config.ts'
import { openOfflineFacilitator } from '../server/payments/facilitators/offline-facilitator.ts'
import type { Facilitator, OfferedPayment, SettlementOutcome } from '../server/payments/x402.ts'
import { openService, type Service } from '../server/service.ts'
import { openLog } from '../server/telemetry.ts'
import { openTestDatabase } from './database.ts'
import { expectDocumented } from './documented-answers.ts'
import { sharedThreads } from './shared-threads.ts'
import { openSite, type Page, type Site } from './site.ts'

export const VERIFY = '/api/agent/v1/verify-source'
export const VERIFY_CLAIMS = '/api/agent/v1/verify-claims'

/** The two operations that sell verifications, by the same states. */
export type Sold = 'source' | 'claims'

export const SELLERS: Readonly<Record<Sold, string>> = { source: VERIFY, claims: VERIFY_CLAIMS }

export interface System extends AsyncDisposable {
  service: Service
  site: Site
  databaseUrl: string
  /** Every log line, parsed. */
  logged: Record<string, unknown>[]
  url(path: string): string
  /** POSTs a verification; headers and body as given. */
  ask(options: AskOptions): Promise<Response>
  /** GETs the recovery URL of a request. */
  recover(id: string, token: string, headers?: Record<string, string>, at?: Service): Promise<Response>
  /** Queries the database, also to produce states that otherwise need time or a fault. */
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  /** A second service on the same database, folder and site, like a second machine. */
  openTwin(overrides?: SystemOptions['overrides'], env?: Record<string, string>): Promise<Service>
}

export interface AskOptions {
  key: string
  body?: unknown
  headers?: Record<string, string>
  /** For example a paying fetch; by default the plain one. */
  fetch?: typeof fetch
  /** The service that is called; by default the first one. */
  at?: Service
}

export interface SystemOptions {
  pages?: Record<string, string | Page | (() => Page | Promise<Page>)>
  env?: Record<string, string>
  overrides?: Parameters<typeof openService>[2]
}

/**
 * Settings of tests that set nothing else. Without a model they get quotes alone: a verdict takes a second of a core. Only tests about
 * evidence keep captures: with them a purchase has two receipts.
 */
export function usualSettings(env: Readonly<Record<string, string>>): Record<string, string> {
  return { SOURCE_CAPTURE: 'off', ...(env.ANTHROPIC_API_KEY || env.OPENAI_API_KEY ? {} : { ASSESSMENT: 'literal' }) }
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
  const documented = opened.use(new DisposableStack())
  const open = async (env: SystemOptions['env'], overrides: SystemOptions['overrides']) => {
    const own = { RATE_LIMIT_PER_MINUTE: '0', ...site.env, ...options.env, ...env }
    const config = readConfig({ PORT: '0', DATA_DIR: dataDir, LOG_LEVEL: 'trace', ...usualSettings(own), ...own })
    const service = await openService(config, database.url, { log, threads: sharedThreads(), ...overrides })
    documented.use(expectDocumented(service.address))
    return service
  }
  const service = opened.use(await open({}, options.overrides))
  const closing = opened.move()
  const url = (path: string) => new URL(path, service.address).href
  return {
    service,
    site,
    databaseUrl: database.url,
    logged,
    url,
    ask: ({ key, body = harbourClaim(site), headers, fetch: send = fetch, at = service }) =>
      send(new URL(VERIFY, at.address), {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': key, ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    recover: (id, token, headers, at = service) =>
      fetch(new URL(`/api/agent/v1/requests/${id}`, at.address), {
        headers: { authorization: `Bearer ${token}`, ...headers },
      }),
    sql: (text, values) => query(database.url, text, values),
    openTwin: (overrides, env) => open(env, overrides),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

export function harbourClaim(site: Site) {
  return { source_url: site.url('/harbour'), claim: 'The harbour was opened in 1874.' }
}

/** A stock x402 fetch with a new wallet. */
export function payingFetch(inner: typeof fetch = fetch): typeof fetch {
  const client = new x402Client().register(
    'eip155:84532',
    new ExactEvmScheme(privateKeyToAccount(generatePrivateKey())),
  )
  return wrapFetchWithPayment(inner, client) as typeof fetch
}

/** The rows of one query on a connection of its own. */
export async function query(databaseUrl: string, text: string, values?: unknown[]) {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    return (await client.query(text, values)).rows as Record<string, unknown>[]
  } finally {
    await client.end()
  }
}

/** The payment terms in the header of a 402. */
export function termsOf(response: Response): PaymentRequired {
  return decodePaymentRequiredHeader(response.headers.get('payment-required') ?? '')
}

export interface PaymentChanges {
  wallet?: ReturnType<typeof privateKeyToAccount>
  /** Members of the accepted terms that differ from the offered ones. */
  accepted?: Record<string, unknown>
  /** Members of the authorization, which is signed with them. */
  authorization?: Record<string, string>
  /** Changes the payload after signing. */
  alter?: (payload: SignedPayload) => unknown
}

export interface SignedPayload extends Record<string, unknown> {
  accepted: Record<string, unknown>
  payload: { signature: string; authorization: Record<string, string> }
}

/** The message of EIP-3009. Its values are loosely typed, for messages that are wrong on purpose. */
const TRANSFER_TYPES: Record<string, { name: string; type: string }[]> = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
}

/** A payment made without a client: the first of the terms, authorized by EIP-3009, with the given changes. */
export async function signPayment(terms: PaymentRequired, changes: PaymentChanges = {}) {
  const [first] = terms.accepts
  if (!first) throw new Error('no terms are offered')
  const wallet = changes.wallet ?? privateKeyToAccount(generatePrivateKey())
  const now = Math.floor(Date.now() / 1000)
  const authorization: Record<string, string> = {
    from: wallet.address,
    to: first.payTo,
    value: first.amount,
    validAfter: String(now - 600),
    validBefore: String(now + first.maxTimeoutSeconds),
    nonce: `0x${randomBytes(32).toString('hex')}`,
    ...changes.authorization,
  }
  const signature = await wallet.signTypedData({
    domain: {
      name: String(first.extra.name),
      version: String(first.extra.version),
      chainId: Number(first.network.split(':')[1]),
      verifyingContract: first.asset as `0x${string}`,
    },
    types: TRANSFER_TYPES,
    primaryType: 'TransferWithAuthorization',
    message: authorization,
  })
  const payload: SignedPayload = {
    x402Version: 2,
    resource: terms.resource,
    accepted: { ...first, ...changes.accepted },
    payload: { signature, authorization },
  }
  const header = Buffer.from(JSON.stringify(changes.alter?.(payload) ?? payload)).toString('base64')
  return { header, headers: { 'payment-signature': header }, signature, nonce: authorization.nonce ?? '', wallet }
}

/** Undefined: the payment is settled. */
export type Outcome = () => SettlementOutcome | undefined | Promise<SettlementOutcome | undefined>

export interface ScriptedFacilitator extends Facilitator {
  /** Every requested settlement, in order. */
  settled: OfferedPayment[]
  /** Outcomes of the next settlements, in place of success. */
  outcomes: Outcome[]
}

/** The offline facilitator with a record of its settlements and with outcomes that tests choose. */
export function openScriptedFacilitator(): ScriptedFacilitator {
  const facilitator = openOfflineFacilitator({ threads: sharedThreads() })
  const settled: OfferedPayment[] = []
  const outcomes: Outcome[] = []
  return {
    ...facilitator,
    settled,
    outcomes,
    async settle(offer, ...rest) {
      settled.push(offer)
      return (await outcomes.shift()?.()) ?? facilitator.settle(offer, ...rest)
    },
  }
}
