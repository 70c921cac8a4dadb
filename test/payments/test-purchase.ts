// A purchase of a page of its own by a stock x402 client, which repeats what it asks as real callers do.
import { randomUUID } from 'node:crypto'
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from '@x402/core/http'
import { wrapFetchWithPayment, type x402Client } from '@x402/fetch'
import { PAGE, type System } from '../system.ts'

/** Who pays: a client with a wallet in it, and what is in that wallet. */
export interface Purse {
  client: x402Client
  balance(): Promise<bigint>
}

export interface OrderOptions {
  /** Where it is ordered, if not from the system itself. */
  url?: string
  key?: string
}

export type Order = Awaited<ReturnType<typeof openOrder>>

export async function openOrder(
  system: Pick<System, 'site' | 'url'>,
  purse: Purse,
  seller: Pick<Purse, 'balance'>,
  options: OrderOptions = {},
) {
  const [funds, income] = [await purse.balance(), await seller.balance()]
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
  const paying = wrapFetchWithPayment(wire, purse.client)
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
      return encodePaymentSignatureHeader(await purse.client.createPaymentPayload(terms))
    },
    /** As an x402 client does it: unsigned, and if that is answered 402, signed. */
    buy: (headers: Record<string, string> = {}) => send(paying as typeof fetch, headers),
    /** Waits for the end, as far as one call can. */
    buyAndWait: () => send(paying as typeof fetch, { prefer: 'wait=25' }),
    /** The same call by a client that cannot pay. */
    ask: (headers: Record<string, string> = {}) => send(wire as typeof fetch, headers),
    /** What the seller has got, and the buyer has paid, since this order was opened. */
    earned: async () => (await seller.balance()) - income,
    spent: async () => funds - (await purse.balance()),
    fetches: () => system.site.requests.filter((asked) => asked === path).length,
  }
}
