// A purchase of a page of its own by a stock x402 client, which repeats its calls as real callers do.
import { randomUUID } from 'node:crypto'
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from '@x402/core/http'
import { wrapFetchWithPayment, type x402Client } from '@x402/fetch'
import { PAGE, type System } from '../system.ts'

/** The buyer: a client with a wallet, and the wallet's balance. */
export interface Buyer {
  client: x402Client
  balance(): Promise<bigint>
}

export interface PurchaseOptions {
  /** The URL of another process of the system. */
  url?: string
  key?: string
}

export type Purchase = Awaited<ReturnType<typeof openPurchase>>

export async function openPurchase(
  system: Pick<System, 'site' | 'url'>,
  buyer: Buyer,
  seller: Pick<Buyer, 'balance'>,
  options: PurchaseOptions = {},
) {
  const [funds, income] = [await buyer.balance(), await seller.balance()]
  const path = `/${randomUUID()}`
  system.site.pages.set(path, { body: PAGE })
  const key = options.key ?? randomUUID()
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
  const paying = wrapFetchWithPayment(wire, buyer.client)
  let url = options.url ?? system.url('/api/agent/v1/verify-source')
  const send = (how: typeof fetch, headers: Record<string, string>) =>
    how(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key, ...headers },
      body: JSON.stringify(body),
    })
  return {
    key,
    path,
    body,
    ...exchange,
    requestId: id.promise,
    /** Sends the following calls to another process of the service. */
    goTo(other: string) {
      url = other
    },
    /** The number of answers with this status, from the first signature up to the answer with this number. */
    count(status: number, end = exchange.answers.length) {
      const first = exchange.answers.findIndex((answer) => answer.paid)
      return first < 0 ? 0 : exchange.answers.slice(first, end).filter((answer) => answer.status === status).length
    },
    /** PAYMENT-SIGNATURE for the terms of a 402; it is not sent. */
    async sign(asked: Response): Promise<string> {
      const terms = decodePaymentRequiredHeader(asked.headers.get('payment-required') ?? '')
      return encodePaymentSignatureHeader(await buyer.client.createPaymentPayload(terms))
    },
    /** Calls unsigned, and after a 402 signed, as an x402 client does. */
    buy: (headers: Record<string, string> = {}) => send(paying as typeof fetch, headers),
    /** The same call with the longest wait. */
    buyAndWait: () => send(paying as typeof fetch, { prefer: 'wait=25' }),
    /** The same call without a wallet. */
    ask: (headers: Record<string, string> = {}) => send(wire as typeof fetch, headers),
    /** What the buyer paid and the seller received since this purchase was opened. */
    earned: async () => (await seller.balance()) - income,
    spent: async () => funds - (await buyer.balance()),
    fetches: () => system.site.requests.filter((asked) => asked === path).length,
  }
}
