// The buyers of the run. Each has a wallet on the chain and logs what it bought. Some repeat their call through another web
// process while the first call still runs, and some ask for pages that never end.
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { PRICE } from '../../server/interface/price.ts'
import { seeded } from '../eval/random.ts'
import { type Clients, type Closing, type Errand, insist, openClients } from './errand.ts'
import { pick, type World } from './world.ts'

export const PRICE_ATOMIC = BigInt(PRICE.atomic)
/** More than any buyer spends. */
const PURSE = 100_000n * PRICE_ATOMIC
const PACE_MS = 400
const TIMEOUT_MS = { usual: 45_000, short: 6_000 }
/** One of so many purchases is of a page that never ends. */
const HOSTILE = 12
/** One of so many results is fetched once more, by its key. */
const REPEATED = 5

export interface Bought {
  requestId: string
  serial: number
  receiptHash: string
  /** The bytes of the body, as the service sent it. */
  bytes: string
}

export interface JournalEntry extends Omit<Errand<Bought>, 'value'> {
  key: string
  isHostile: boolean
  /** Undefined when nothing was bought. */
  bought: Bought | undefined
  /** A repeat with the same key got other bytes. */
  differs: boolean
}

export interface Buyer {
  address: `0x${string}`
  funds: bigint
  journal: JournalEntry[]
}

/** @param count the number of buyers; all have money when this resolves */
export async function openBuyers(world: World, count: number): Promise<(Buyer & { fetch: typeof fetch })[]> {
  const buyers = []
  for (let n = 0; n < count; n++) {
    const account = await world.chain.openAccount()
    await world.chain.mint(account.address, PURSE)
    const wallet = new x402Client().register('eip155:*', new ExactEvmScheme(account))
    const pay = wrapFetchWithPayment(fetch, wallet) as typeof fetch
    buyers.push({ address: account.address, funds: PURSE, journal: [], fetch: pay })
  }
  return buyers
}

/** Buys until the end of the run, and finishes purchases that have begun. */
export async function shop(
  world: World,
  origins: string[],
  buyer: Buyer & { fetch: typeof fetch },
  { seed, closing }: { seed: number; closing: Closing },
): Promise<void> {
  const random = seeded(seed)
  const clients = openClients(origins, random, { fetch: buyer.fetch })
  while (!closing.over.aborted) {
    const isHostile = random(HOSTILE) === 0
    const host = pick(random, isHostile ? world.hosts.drips : world.hosts.pages)
    const order: Order = {
      key: randomUUID(),
      input: { source_url: `https://${host}/${randomUUID()}`, claim: 'The harbour was opened in 1874.' },
      timeoutMs: random(3) === 0 ? TIMEOUT_MS.short : TIMEOUT_MS.usual,
      isHostile,
    }
    const entry = await buy(clients, closing, order)
    buyer.journal.push(entry)
    if (entry.bought && random(REPEATED) === 0) await repeat(clients, closing, order, entry)
    await pause(PACE_MS)
  }
}

interface Order {
  key: string
  input: { source_url: string; claim: string }
  timeoutMs: number
  isHostile: boolean
}

async function buy(clients: Clients, closing: Closing, order: Order): Promise<JournalEntry> {
  const { value, ...rest } = await insist(
    clients,
    closing,
    (client) => purchase(client, order),
    (code) => order.isHostile && code.startsWith('source_'),
  )
  return { ...rest, key: order.key, isHostile: order.isHostile, bought: value, differs: false }
}

async function repeat(clients: Clients, closing: Closing, order: Order, entry: JournalEntry) {
  const { value } = await insist(clients, closing, (client) => purchase(client, order))
  entry.differs = value !== undefined && value.bytes !== entry.bought?.bytes
}

async function purchase(client: ReturnType<Clients['any']>, { key, input, timeoutMs }: Order): Promise<Bought> {
  const { result, bytes, requestId } = await client.verifySource(input, { idempotencyKey: key, timeoutMs })
  const { serial, receipt_hash } = result.receipt.attestation
  return { requestId, serial, receiptHash: receipt_hash, bytes: Buffer.from(bytes).toString('base64') }
}
