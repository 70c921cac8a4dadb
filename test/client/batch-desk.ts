// The parts of a batch in one process, with a wallet that counts its signatures and a clock whose waits take no time. And a
// service that a test can make lose answers, refuse calls and raise its price: a real HTTP server, which the command line
// can use too.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { openBudgetFile, openRunBudget } from '../../client/batch/budget.ts'
import { Buyer } from '../../client/batch/buyer.ts'
import { Journal } from '../../client/batch/journal.ts'
import { type ErrorLine, isRetried, OutputFiles, type ResultLine } from '../../client/batch/output-files.ts'
import { Pace } from '../../client/batch/pace.ts'
import type { Row } from '../../client/batch/rows.ts'
import { runRows } from '../../client/batch/run.ts'
import type { Clock, PaymentRequired } from '../../client/client.ts'
import type { Terms, Wallet } from '../../client/wallet.ts'
import { countersignIn } from './command-line.ts'
import { buildClock, complete, type Received, refuse, type Step, TERMS } from './counterpart.ts'
import { issueResult } from './issuer.ts'

const CLI = join(import.meta.dirname, '../../client/cli.ts')
const KEY = `0x${'5b'.repeat(32)}`
export const PRICE = 30_000n
export const SERVICE_TERMS = TERMS.accepts[0] as Terms

export function openFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-desk-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** The complete lines of a JSON Lines file; none if the file does not exist. */
export async function linesOf<Line = Record<string, unknown>>(path: string): Promise<Line[]> {
  const contents = await readFile(path, 'utf8').catch(() => '')
  return contents
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line)
}

export function rowsOf(count: number): Row[] {
  return Array.from({ length: count }, (_, i) => ({
    id: `row${i}`,
    line: i + 2,
    source_url: 'https://example.org/',
    claim: `Claim ${i}.`,
  }))
}

export interface Shop {
  baseUrl: string
  received: Received[]
  /** The payments of each idempotency key, in the order of arrival. One payment of each key is settled. */
  settled: Map<string, string>
  /** Every payment that arrived, also those that were not settled. */
  payments: string[]
  terms: PaymentRequired
  capabilities: Record<string, unknown>
  /** If it returns a step, that step replaces the answer of the service. `sell` makes the normal answer. */
  rule: (request: Received, sell: Step) => Step | undefined
}

export async function openShop(t: Test): Promise<Shop> {
  const price = { amount_atomic: '30000', currency: 'USDC', decimals: 6, usd: '0.03' }
  const shop: Shop = {
    baseUrl: '',
    received: [],
    settled: new Map(),
    payments: [],
    terms: structuredClone(TERMS),
    capabilities: { payment_mode: 'testnet', price },
    rule: () => undefined,
  }
  const sell: Step = (response, request) => {
    const key = String(request.headers['idempotency-key'])
    const payment = request.headers['payment-signature']
    if (shop.settled.has(key)) return complete({}, buildResult())(response, request)
    if (payment === undefined) return askFor(shop.terms)(response, request)
    shop.settled.set(key, String(payment))
    complete({}, buildResult())(response, request)
  }
  const server = createServer(async (request, response: ServerResponse) => {
    const { method = '', url = '', headers } = request
    const one = { method, url, headers, body: await text(request) }
    shop.received.push(one)
    if (headers['payment-signature']) shop.payments.push(String(headers['payment-signature']))
    if (method === 'GET') return response.end(JSON.stringify(shop.capabilities))
    return (shop.rule(one, sell) ?? sell)(response, one)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  shop.baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return shop
}

/** A result of this moment. `check --verify` does not keep verdicts that are older than a week. */
function buildResult(): string {
  const now = new Date().toISOString()
  const result = issueResult({
    result(draft) {
      draft.checked_at = draft.served_at = draft.cache.original_checked_at = now
    },
    envelope: (envelope) => (envelope.issued_at = now),
  })
  return JSON.stringify(result)
}

/** A 402 with these terms. */
export function askFor(terms: PaymentRequired, code = 'payment_required'): Step {
  const header = Buffer.from(JSON.stringify(terms)).toString('base64')
  return refuse(402, code, { retryable: true, headers: { 'payment-required': header } })
}

/** Does the work, and closes the connection before the answer. */
export function lose(step: Step): Step {
  return (response, request) => {
    const sink = { writeHead: () => sink, end: () => {} } as unknown as ServerResponse
    step(sink, request)
    response.socket?.destroy()
  }
}

export const posts = ({ received }: Shop) => received.filter(({ method }) => method === 'POST')

/** Signs nothing real; the payments are numbered. */
export function buildWallet(clock: Clock, lifeMs = 300_000) {
  const signed: Terms[] = []
  const wallet: Wallet = {
    addresses: [{ kind: 'evm', address: '0x1' }],
    choose: ({ accepts }) => accepts[0],
    async sign(_required, terms) {
      signed.push(terms)
      const validBefore = Math.floor((clock.now() + lifeMs) / 1000)
      return { header: `payment-${signed.length}`, terms, validBefore }
    },
  }
  return { wallet, signed }
}

export interface DeskOptions {
  folder: string
  shop: Pick<Shop, 'baseUrl'>
  rows: readonly Row[]
  cap?: bigint
  clock?: Clock & { waits?: number[] }
  wallet?: Wallet
  terms?: Terms
  budgetFile?: string
  retry?: boolean
  /** Rows at once. */
  most?: number
  finish?: AbortSignal
  abort?: AbortSignal
}

/** One run of a batch, as the command makes it. */
export async function runDesk(options: DeskOptions) {
  const { folder, shop, rows, cap = 100n * PRICE, clock = buildClock(), terms = SERVICE_TERMS, most = 1 } = options
  await using opened = new AsyncDisposableStack()
  const stub = buildWallet(clock)
  const expected = { service: shop.baseUrl, input_sha256: 'of the input' }
  const journal = opened.use(await Journal.open(join(folder, 'journal.jsonl'), expected, async () => terms))
  const retry = {
    isRetried: (error: ErrorLine) => isRetried(error, Date.now()),
    before: (ids: string[]) => journal.retry(ids),
  }
  const files = opened.use(await OutputFiles.open(folder, options.retry ? { retry } : {}))
  const budget = options.budgetFile
    ? opened.use(
        await openBudgetFile(options.budgetFile, { cap, run: `${journal.header.run}/`, sent: journal.reserved }),
      )
    : openRunBudget(cap, journal.reserved)
  const pace = new Pace(most, clock)
  const { wallet = stub.wallet } = options
  const service = shop.baseUrl
  const buyer = new Buyer({ service, wallet, terms, journal, budget, pace, clock, timeoutMs: 600_000 })
  const never = new AbortController().signal
  const { finish = never, abort = never } = options
  const left = rows.filter(({ id }) => !files.isDone(id))
  const run = await runRows({ rows: left, buyer, files, pace, finish, abort })
  return { run, spent: budget.spent, tally: structuredClone(files.tally), signed: stub.signed, limit: pace.limit }
}

export const resultsIn = (folder: string) => linesOf<ResultLine>(join(folder, 'results.jsonl'))
export const errorsIn = (folder: string) => linesOf<ErrorLine>(join(folder, 'errors.jsonl'))

/** The command in a folder of its own, with a wallet. */
export function openCommand(t: Test, shop?: Pick<Shop, 'baseUrl'>) {
  const folder = openFolder(t)
  const wallet = join(folder, 'wallet.key')
  writeFileSync(wallet, KEY, { mode: 0o600 })
  const own = { COUNTERSIGN_SERVICE: shop?.baseUrl ?? '', COUNTERSIGN_WALLET: wallet }
  const start = (args: readonly string[]) =>
    spawn(process.execPath, [CLI, ...args], { cwd: folder, env: { ...process.env, ...own } })
  const end = async (child: ReturnType<typeof start>) => {
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    return { code: code as number | null, stdout, stderr }
  }
  return {
    folder,
    wallet,
    path: (name: string) => join(folder, name),
    write(name: string, contents: string) {
      writeFileSync(join(folder, name), contents)
      return name
    },
    start,
    end,
    /** In this process, one call at a time. */
    run: (args: readonly string[], env: Record<string, string> = {}) =>
      countersignIn(folder, args, { env: { ...own, ...env } }),
    async pipe(args: readonly string[], input: string) {
      const child = start(args)
      child.stdin.end(input)
      return end(child)
    },
  }
}

export function csvOf(rows: readonly Row[]): string {
  return ['id,source_url,claim', ...rows.map(({ id, source_url, claim }) => `${id},${source_url},${claim}`), ''].join(
    '\n',
  )
}
