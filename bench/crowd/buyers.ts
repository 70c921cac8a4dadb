// The honest part of the run with hostile load: buyers, each with its own wallet and address, who buy one page after
// another with a stock x402 client; and watchdogs whose receiver answers.
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import type { Child } from '../child.ts'
import { type AlertArrived, WATCHDOG } from './messages.ts'

export interface Purchase {
  /** Seconds from the start of all purchases to its first request. */
  at: number
  /** From the first request to the result, or to the timeout. */
  ms: number
  /** Undefined when it was bought; otherwise the answer that came instead. */
  problem: string | undefined
}

export const bought = (purchases: Purchase[]) => purchases.filter(({ problem }) => problem === undefined).length

export interface Buyer {
  address: string
  fetch: typeof fetch
}

const VERIFY = '/api/agent/v1/verify-source'
/**
 * The least pause between the starts of two purchases of one buyer, so that a service without other load is not at its
 * limit.
 */
const PACE_MS = 750
/** A result that has not come within this time after the start of the last purchase counts as missing. */
const GRACE_MS = 15_000

export function makeBuyers(count: number): Buyer[] {
  return Array.from({ length: count }, (_, n) => {
    const account = privateKeyToAccount(generatePrivateKey())
    const client = new x402Client().register('eip155:*', new ExactEvmScheme(account))
    return { address: `192.0.2.${n + 1}`, fetch: wrapFetchWithPayment(fetch, client) as typeof fetch }
  })
}

/** All buyers buy for the given number of seconds, each from all hosts in turn; purchases that have begun are finished. */
export async function buyAll(origin: string, buyers: Buyer[], hosts: string[], seconds: number): Promise<Purchase[]> {
  const start = performance.now()
  const end = start + seconds * 1000
  const deadline = AbortSignal.timeout(seconds * 1000 + GRACE_MS)
  const purchases = await Promise.all(
    buyers.map(async (buyer, place) => {
      const own: Purchase[] = []
      await pause((PACE_MS * place) / buyers.length)
      for (let n = place; performance.now() < end; n++) {
        const began = performance.now()
        const problem = await buy(origin, buyer, hosts[n % hosts.length]!, deadline)
        own.push({ at: (began - start) / 1000, ms: performance.now() - began, problem })
        await pause(Math.max(0, began + PACE_MS - performance.now()))
      }
      return own
    }),
  )
  return purchases.flat()
}

/** One page at a URL that was not requested before, so that no cache answers. */
async function buy(origin: string, buyer: Buyer, host: string, signal: AbortSignal): Promise<string | undefined> {
  const headers = { 'x-forwarded-for': buyer.address, prefer: 'wait=25' }
  try {
    const first = await buyer.fetch(new URL(VERIFY, origin), {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': randomUUID() },
      body: JSON.stringify({ source_url: `https://${host}/${randomUUID()}`, claim: 'The harbour was opened in 1874.' }),
      signal,
    })
    const answer = await followToEnd(first, headers, signal)
    const text = await answer.text()
    return answer.status === 200 ? undefined : `${answer.status} ${text.match(/"code":"(\w+)"/)?.[1] ?? ''}`
  } catch (error) {
    return signal.aborted ? 'no result' : `broken off: ${(error as Error).message}`
  }
}

/** Polls a purchase in progress until it has ended, and waits before each call as long as Retry-After says. */
export async function followToEnd(answer: Response, headers: Record<string, string>, signal: AbortSignal) {
  let last = answer
  while (last.status === 202) {
    await last.body?.cancel()
    await pause(1000 * Number(last.headers.get('retry-after')), undefined, { signal })
    const authorization = `Bearer ${last.headers.get('x-service-recovery-token')}`
    last = await fetch(last.headers.get('location') ?? '', { headers: { ...headers, authorization }, signal })
  }
  return last
}

export interface Account {
  authorization: string
  /** The limits of its tier, by name. */
  limits: Record<string, number>
}

/** Registers an account from an address of its own and gives it a watchdog that is not due for a day. */
export async function openAccount(origin: string, handle: string, address: string, webhook: string): Promise<Account> {
  const headers = { 'content-type': 'application/json', 'x-forwarded-for': address }
  const registered = await fetch(new URL('/v1/register', origin), {
    method: 'POST',
    headers,
    body: JSON.stringify({ handle }),
  })
  if (registered.status !== 201) throw new Error(`${handle} was not registered: ${await registered.text()}`)
  const { api_key, limits } = (await registered.json()) as { api_key: string; limits: Record<string, number> }
  const authorization = `Bearer ${api_key}`
  const made = await fetch(new URL(`/v1/watchdog/${WATCHDOG}`, origin), {
    method: 'PUT',
    headers: { ...headers, authorization },
    body: JSON.stringify({ interval_s: 86_400, webhook_url: webhook }),
  })
  if (made.status !== 201) throw new Error(`${handle} has no watchdog: ${await made.text()}`)
  return { authorization, limits }
}

export interface Victim {
  authorization: string
  address: string
  /** Of its webhook. */
  path: string
}

/**
 * One failed heartbeat of each victim, one after the other; answers for each how long its alert took to arrive.
 * @returns milliseconds; Infinity for one that did not arrive in time
 */
export async function timeAlerts(origin: string, victims: Victim[], hosts: Child, seconds: number): Promise<number[]> {
  const arrivals = new Map<string, number>()
  const listen = (message: unknown) => {
    const { kind, path, at } = message as AlertArrived
    if (kind === 'alert' && !arrivals.has(path)) arrivals.set(path, at)
  }
  hosts.process.on('message', listen)
  const sent = new Map<string, number>()
  const end = performance.now() + seconds * 1000
  for (const victim of victims) {
    await pause((seconds * 1000) / (victims.length + 1))
    sent.set(victim.path, Date.now())
    const answer = await fetch(new URL(`/v1/heartbeat/${WATCHDOG}`, origin), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-forwarded-for': victim.address,
        authorization: victim.authorization,
      },
      body: JSON.stringify({ status: 'fail' }),
    })
    if (answer.status !== 200) throw new Error(`a victim's heartbeat was answered with ${answer.status}`)
    await answer.body?.cancel()
  }
  while (arrivals.size < victims.length && performance.now() < end + GRACE_MS) await pause(50)
  hosts.process.off('message', listen)
  return victims.map(({ path }) => (arrivals.get(path) ?? Number.POSITIVE_INFINITY) - (sent.get(path) ?? 0))
}
