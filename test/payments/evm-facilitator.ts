// A facilitator made of the protocol's own packages behind HTTP. Tests script its answers and its transactions.
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { x402Facilitator } from '@x402/core/facilitator'
import type { PaymentPayload, PaymentRequirements, SettleResponse } from '@x402/core/types'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { ExactEvmScheme } from '@x402/evm/exact/facilitator'
import type { EvmChain } from './evm-chain.ts'

/** One call of /settle. `perform` does what the packages do; only the deed sends an answer. */
export interface SettleCall {
  payload: PaymentPayload
  perform(): Promise<SettleResponse>
  answer(status: number, body: unknown): void
  /** Closes the connection. */
  drop(): void
}
export type Deed = (call: SettleCall) => Promise<void> | void

/** The scripted ways in which a settlement goes. */
export const deeds = {
  settles: async (call) => call.answer(200, await call.perform()),
  /** The answer is lost, and nothing was sent to the chain. */
  lostBefore: (call) => call.drop(),
  /** The answer is lost after the payment was sent. */
  async lostAfter(call) {
    await call.perform()
    call.drop()
  },
  /** Answers that the settlement failed, without having sent anything. */
  neverSends: (call) =>
    call.answer(200, {
      success: false,
      errorReason: 'unexpected_settle_error',
      transaction: '',
      network: call.payload.accepted.network,
    }),
  /** Some facilitators answer with this status what others answer with 200. */
  async answers500(call) {
    const settled = await call.perform()
    call.answer(settled.success ? 200 : 500, settled)
  },
  notJsonBefore: (call) => call.answer(503, '<html>503 Service Temporarily Unavailable</html>'),
  async notJsonAfter(call) {
    await call.perform()
    call.answer(503, '<html>503 Service Temporarily Unavailable</html>')
  },
  /** Sends the payment and never answers. */
  async neverAnswers(call) {
    await call.perform()
  },
} satisfies Record<string, Deed>

/** Settles nothing, and answers success with this transaction. */
export function claims(transaction: string, more: Record<string, unknown> = {}): Deed {
  return ({ payload, answer }) =>
    answer(200, { success: true, transaction, network: payload.accepted.network, ...more })
}

export type FacilitatorRig = Awaited<ReturnType<typeof openFacilitatorRig>>

export async function openFacilitatorRig(chain: EvmChain) {
  const { scheme, rig } = await buildEvmScheme(chain)
  return openShell(new x402Facilitator().register(chain.network, scheme), rig)
}

/** Settles on this chain from its own account. Without `confirms` it does not wait for blocks. */
export async function buildEvmScheme(chain: EvmChain) {
  const account = await chain.openAccount()
  const wallet = chain.walletOf(account)
  const rig = { confirms: true }
  const signer = toFacilitatorEvmSigner({
    address: account.address,
    readContract: (call) => wallet.readContract(call as Parameters<typeof wallet.readContract>[0]),
    verifyTypedData: (call) => wallet.verifyTypedData(call as Parameters<typeof wallet.verifyTypedData>[0]),
    writeContract: (call) => wallet.writeContract(call as Parameters<typeof wallet.writeContract>[0]),
    sendTransaction: (call) => wallet.sendTransaction(call),
    waitForTransactionReceipt: async ({ hash }) => {
      if (!rig.confirms) throw new Error('the block is not here yet')
      return chain.receiptOf(hash)
    },
    getCode: (call) => wallet.getCode(call),
  })
  return { scheme: new ExactEvmScheme(signer), rig }
}

/** The three routes of a facilitator. */
export async function openShell<R extends object>(facilitator: x402Facilitator, rig: R) {
  /** Deeds for the next calls of /settle, in order; later calls settle. */
  const script: Deed[] = []
  /** Answers to the next calls of /verify, in order. */
  const verdicts: ((payload: PaymentPayload) => { status: number; body: unknown })[] = []
  const asked = { verify: 0, settle: 0 }
  /** Every payment that was received, in order. */
  const received: { path: string; paymentPayload: PaymentPayload; paymentRequirements: PaymentRequirements }[] = []
  /** Called with the path of every request before it is handled. */
  const watch = { request: async (_path: string, _headers: Record<string, unknown>) => {} }
  const server = createServer(async (request, response) => {
    const path = request.url ?? ''
    await watch.request(path, request.headers)
    if (path === '/supported') return answer(response, 200, facilitator.getSupported())
    const body = (await json(request)) as { paymentPayload: PaymentPayload; paymentRequirements: PaymentRequirements }
    const { paymentPayload: payload, paymentRequirements: terms } = body
    received.push({ path, ...body })
    if (path === '/verify') {
      asked.verify++
      const verdict = verdicts.shift()?.(payload)
      return answer(response, verdict?.status ?? 200, verdict?.body ?? (await facilitator.verify(payload, terms)))
    }
    asked.settle++
    const deed = script.shift() ?? deeds.settles
    await deed({
      payload,
      perform: () => facilitator.settle(payload, terms),
      answer: (status, said) => answer(response, status, said),
      drop: () => response.destroy(),
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return Object.assign(rig, {
    url: `http://127.0.0.1:${port}`,
    script,
    verdicts,
    asked,
    received,
    watch,
    facilitator,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  })
}

function answer(response: ServerResponse, status: number, body: unknown) {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  response.writeHead(status, { 'content-type': typeof body === 'string' ? 'text/html' : 'application/json' }).end(text)
}
