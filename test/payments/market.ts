// A whole service that is paid on a local chain, with everything between the two under the test's control: the
// facilitator's answers, the node's reachability, the miner, the queue's clock.
import { randomBytes, randomUUID } from 'node:crypto'
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from '@x402/core/http'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import type { Address } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { type LiveOverrides, openLiveFacilitator } from '../../server/payments/facilitator.ts'
import type { EvmNetwork } from '../../server/payments/x402.ts'
import { openLog } from '../../server/telemetry.ts'
import { recoveryToken } from '../../server/verification/recovery.ts'
import { rescue } from '../../workers/beat.ts'
import { openRunner } from '../../workers/runner.ts'
import { startChild } from '../children.ts'
import { PAGE, type System, startSystem } from '../system.ts'
import { type EvmChain, openEvmChain } from './evm-chain.ts'
import { openFacilitatorRig } from './evm-facilitator.ts'
import { openGate } from './gate.ts'
import { openLogBook } from './log-book.ts'
import type { Place } from './victim.ts'

export const PRICE = 30_000n

export type Market = Awaited<ReturnType<typeof openMarket>>

export async function openMarket(options: { network?: EvmNetwork; overrides?: LiveOverrides } = {}) {
  await using opened = new AsyncDisposableStack()
  const network = options.network ?? 'eip155:84532'
  const chain = opened.use(await openEvmChain(network))
  const rpc = opened.use(await openGate(chain.url))
  const facilitator = opened.use(await openFacilitatorRig(chain))
  const payTo = (await chain.openAccount()).address
  const book = openLogBook()
  const log = openLog('trace', book)
  const env = {
    PAYMENT_MODE: 'testnet',
    FACILITATOR_URL: facilitator.url,
    EVM_RPC_URL: rpc.url,
    PAY_TO_EVM: payTo,
    SIGNING_SEED: randomBytes(32).toString('hex'),
    RATE_LIMIT_PER_MINUTE: '0',
  }
  // Mainnet mode refuses the page of a test; a mainnet facilitator does not know where pages come from.
  const live = await openLiveFacilitator(
    {
      paymentMode: network === 'eip155:8453' ? 'mainnet' : 'testnet',
      facilitatorUrl: facilitator.url,
      cdpKey: undefined,
      payToEvm: payTo,
      payToSolana: undefined,
      evmRpcUrl: rpc.url,
      solanaRpcUrl: undefined,
    },
    log,
    options.overrides,
  )
  const system = opened.use(await startSystem({ env, overrides: { log, facilitator: live } }))
  const { work } = system.service
  let { runner } = system.service
  const closing = opened.move()
  return {
    chain,
    rpc,
    facilitator,
    payTo,
    book,
    system,
    env,
    order: (changes?: OrderOptions) => openOrder({ chain, payTo, system }, changes),
    recover: (id: string, headers?: Record<string, string>) =>
      system.recover(id, recoveryToken(work.secrets.recovery, id), headers),
    /** Lets everything that waits in the queue for a later time happen now. */
    async hurry() {
      await system.sql(`
        with due as (update graphile_worker._private_jobs set run_at = now() where locked_at is null returning id)
        select pg_notify('jobs:insert', json_build_object('r', random(), 'count', count(*))::text) from due`)
    },
    /** The worker of this process takes no more jobs. */
    stopWorker: () => runner[Symbol.asyncDispose](),
    /** Another worker, which finds what those before it left behind, as if they had been silent for long. */
    async startWorker() {
      await system.sql(`update worker_beats set beat_at = beat_at - interval '1 hour'`)
      await system.sql(`update graphile_worker._private_jobs set locked_at = locked_at - interval '1 hour'
                        where locked_by is not null`)
      await rescue(work)
      runner = closing.use(await openRunner(work))
    },
    /** A process of this service that dies at that place. */
    startVictim(half: 'api' | 'worker', place: Place) {
      const own = { DATABASE_URL: system.databaseUrl, PORT: '0', LOG_LEVEL: 'debug' }
      const aim = { VICTIM: half, VICTIM_PLACE: place }
      return closing.use(
        startChild('test/payments/victim.ts', { ...env, ...system.site.env, ...own, ...aim }, { ipc: true }),
      )
    },
    /** The next settlement of this order that is not paid, once the queue has it back. */
    inDoubt: async (order: Order) => book.next('settlement', { request_id: await order.requestId }),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

export interface OrderOptions {
  wallet?: PrivateKeyAccount
  /** Where it is ordered, if not from the system itself. */
  url?: string
  key?: string
}

export type Order = Awaited<ReturnType<typeof openOrder>>

/** One purchase of a page of its own by a stock x402 client with money in its wallet; it repeats what it asks as real callers do. */
export async function openOrder(
  { chain, payTo, system }: { chain: EvmChain; payTo: Address; system: Pick<System, 'site' | 'url'> },
  changes: OrderOptions = {},
) {
  const wallet = changes.wallet ?? (await chain.openAccount())
  const funds = 10n * PRICE
  await chain.mint(wallet.address, funds)
  const income = await chain.balanceOf(payTo)
  const path = `/${randomUUID()}`
  system.site.pages.set(path, { body: PAGE })
  const key = changes.key ?? randomUUID()
  const body = { source_url: system.site.url(path), claim: 'The harbour was opened in 1874.' }
  const exchange = { signatures: [] as string[], answers: [] as { status: number; paid: boolean }[] }
  const id = Promise.withResolvers<string>()
  const wire = async (input: string | URL | Request, init?: RequestInit) => {
    const request = new Request(input, init)
    const signature = request.headers.get('payment-signature')
    if (signature) exchange.signatures.push(signature)
    const response = await fetch(request)
    exchange.answers.push({ status: response.status, paid: signature !== null })
    if (response.status === 402) id.resolve(((await response.clone().json()) as { request_id: string }).request_id)
    return response
  }
  const client = new x402Client().register(chain.network, new ExactEvmScheme(wallet))
  const paying = wrapFetchWithPayment(wire, client)
  let url = changes.url ?? system.url('/api/agent/v1/verify-source')
  const send = (how: typeof fetch, headers: Record<string, string>) =>
    how(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key, ...headers },
      body: JSON.stringify(body),
    })
  return {
    key,
    body,
    wallet,
    ...exchange,
    requestId: id.promise,
    /** Sends what follows to another process of the service. */
    goTo(other: string) {
      url = other
    },
    /** Answers of this status from the first signature on, up to an answer by its number. */
    count(status: number, end = exchange.answers.length) {
      const first = exchange.answers.findIndex((answer) => answer.paid)
      return first < 0 ? 0 : exchange.answers.slice(first, end).filter((answer) => answer.status === status).length
    },
    /** PAYMENT-SIGNATURE for the terms of a 402, not sent. */
    async sign(asked: Response): Promise<string> {
      const terms = decodePaymentRequiredHeader(asked.headers.get('payment-required') ?? '')
      return encodePaymentSignatureHeader(await client.createPaymentPayload(terms))
    },
    /** As an x402 client does it: unsigned, and if that is answered 402, signed. */
    buy: (headers: Record<string, string> = {}) => send(paying as typeof fetch, headers),
    /** Waits for the end, as far as one call can. */
    buyAndWait: () => send(paying as typeof fetch, { prefer: 'wait=25' }),
    /** The same call by a client that cannot pay. */
    ask: (headers: Record<string, string> = {}) => send(wire as typeof fetch, headers),
    /** What the seller has got since this order was opened. */
    earned: async () => (await chain.balanceOf(payTo)) - income,
    spent: async () => funds - (await chain.balanceOf(wallet.address)),
    fetches: () => system.site.requests.filter((asked) => asked === path).length,
  }
}
