// A purchase of a page of its own by a stock x402 client, which repeats its calls as real callers do.
import { randomUUID } from 'node:crypto'
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from '@x402/core/http'
import { wrapFetchWithPayment, type x402Client } from '@x402/fetch'
import { PAGE, SELLERS, type Sold, type System } from '../system.ts'

/** The buyer: a client with a wallet, and the wallet's balance. */
export interface Buyer {
  client: x402Client
  balance(): Promise<bigint>
}

export interface PurchaseOptions {
  /** The URL of another process of the system. */
  url?: string
  key?: string
  /** What is bought: one claim, or two on one page. */
  sold?: Sold
  /** At /buy, without a key: a repeated call sends the same signed payment again, until it is refused. */
  keyless?: true
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
  const { sold = 'source' } = options
  const claim = 'The harbour was opened in 1874.'
  const asked = sold === 'claims' ? { claims: [claim, 'Fishing ended in 1962.'] } : { claim }
  const body = { source_url: system.site.url(path), ...asked }
  const exchange = { signatures: [] as string[], answers: [] as { status: number; paid: boolean }[] }
  const id = Promise.withResolvers<string>()
  /** The payment that was not refused. */
  let held: string | undefined
  const wire = async (input: string | URL | Request, init?: RequestInit) => {
    const request = new Request(input, init)
    const signature = request.headers.get('payment-signature')
    const isNew = signature !== null && !(options.keyless && exchange.signatures.includes(signature))
    if (isNew) exchange.signatures.push(signature)
    const response = await fetch(request)
    exchange.answers.push({ status: response.status, paid: signature !== null })
    if (signature !== null) held = response.status === 402 ? undefined : signature
    // The terms of /buy name no request.
    const body = (await response
      .clone()
      .json()
      .catch(() => ({}))) as { request_id?: string }
    if (body.request_id !== undefined) id.resolve(body.request_id)
    return response
  }
  const paying = wrapFetchWithPayment(wire, buyer.client)
  let url = options.url ?? system.url(options.keyless ? '/api/agent/v1/buy' : SELLERS[sold])
  const send = (how: typeof fetch, headers: Record<string, string>) =>
    how(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(options.keyless ? { prefer: 'wait=0' } : { 'idempotency-key': key }),
        ...headers,
      },
      body: JSON.stringify(body),
    })
  const proof = (): Record<string, string> =>
    options.keyless && held !== undefined ? { 'payment-signature': held } : {}
  /** A client without a key has nothing but its payment to name the purchase. */
  const repeat = async (headers: Record<string, string>) => {
    const known = proof()
    const answer = await send((known['payment-signature'] ? wire : paying) as typeof fetch, { ...headers, ...known })
    return known['payment-signature'] && answer.status === 402 ? send(paying as typeof fetch, headers) : answer
  }
  return {
    key,
    path,
    body,
    /** In atomic units. */
    price: sold === 'claims' ? 40_000n : 30_000n,
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
    buy: (headers: Record<string, string> = {}) => repeat(headers),
    /** The same call with the longest wait. */
    buyAndWait: () => repeat({ prefer: 'wait=25' }),
    /** The same call without a wallet; at /buy, with the last payment. */
    ask: (headers: Record<string, string> = {}) => send(wire as typeof fetch, { ...proof(), ...headers }),
    client: buyer.client,
    /** What the buyer paid and the seller received since this purchase was opened. */
    earned: async () => (await seller.balance()) - income,
    spent: async () => funds - (await buyer.balance()),
    fetches: () => system.site.requests.filter((asked) => asked === path).length,
  }
}
