// The part of the hostile callers of the crowd run that keeps threads and turns busy: every few seconds four new wallets each buy
// a page that is costly to read, and free accounts look for quotes in pages, on the hosts of the honest buyers, that never end.
import { randomInt, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { x402Client } from '@x402/core/client'
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from '@x402/core/http'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import type { Tally } from './messages.ts'

const VERIFY = '/api/agent/v1/verify-source'
const EVERY_MS = 5000
const AT_ONCE = 4

/**
 * @param over ends it
 * @returns the answers, and the addresses of all wallets that paid
 */
export async function burn(origin: string, hosts: readonly string[], over: AbortSignal) {
  const payers: string[] = []
  const answers = await repeat(over, async (n) => {
    const address = `198.18.${randomInt(256)}.${randomInt(256)}`
    const headers = { 'content-type': 'application/json', 'idempotency-key': randomUUID(), 'x-forwarded-for': address }
    const url = `https://${hosts[n % hosts.length]}/${n}`
    const body = JSON.stringify({ source_url: url, claim: 'The harbour was opened in 1874.' })
    const ask = (signed = {}) =>
      fetch(`${origin}${VERIFY}`, { method: 'POST', headers: { ...headers, ...signed }, body, signal: over })
    const terms = decodePaymentRequiredHeader((await ask()).headers.get('payment-required') ?? '')
    const wallet = privateKeyToAccount(generatePrivateKey())
    const client = new x402Client().register('eip155:*', new ExactEvmScheme(wallet))
    const payment = encodePaymentSignatureHeader(await client.createPaymentPayload(terms))
    // Before it is sent: it may be charged although no answer comes.
    payers.push(wallet.address.toLowerCase())
    return (await ask({ 'payment-signature': payment })).status
  })
  return { answers, payers }
}

/** @param hosts of honest pages */
export async function hold(
  origin: string,
  hosts: readonly string[],
  authorizations: readonly string[],
  over: AbortSignal,
): Promise<Tally> {
  return repeat(over, async (n) => {
    const authorization = authorizations[n % authorizations.length]!
    const source_url = `https://${hosts[n % hosts.length]}/drip-${n}`
    const answer = await fetch(`${origin}/v1/quote-check`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': `198.51.100.${n % 250}`, authorization },
      body: JSON.stringify({ source_url, quotes: ['three piers'] }),
      signal: over,
    })
    return answer.status
  })
}

async function repeat(over: AbortSignal, act: (n: number) => Promise<number>): Promise<Tally> {
  const tally: Tally = {}
  for (let n = 0; !over.aborted; n += AT_ONCE) {
    const acts = Array.from({ length: AT_ONCE }, (_, m) => act(n + m).catch(() => null))
    for (const status of await Promise.all(acts)) {
      const name = String(status ?? 'no answer')
      tally[name] = (tally[name] ?? 0) + 1
    }
    await pause(EVERY_MS, undefined, { signal: over }).catch(() => {})
  }
  return tally
}
