// The facilitator for payments that move money: each payment is checked here, then by an HTTP facilitator. Settlement is in
// live-settlement.ts.
import { AppError } from '../../errors.ts'
import { PRICE, type Price } from '../../interface/price.ts'
import type { Logger } from '../../telemetry.ts'
import type { PaymentNetwork } from '../chains/payment-network.ts'
import { buildCovers } from '../cover.ts'
import { readPayload, readPayment } from '../payload.ts'
import { type Facilitator, type OfferedPayment, type PaymentPayload, pricedAt } from '../x402.ts'
import { askToVerify, type FacilitatorCalls, samePayer } from './facilitator-answers.ts'
import { buildLiveSettlement } from './live-settlement.ts'
import { buildUpstreamCalls, type UpstreamLimits } from './upstream-calls.ts'

export interface LiveOptions {
  /** The name in results, at most 64 characters. */
  provider: string
  mode: 'testnet' | 'mainnet'
  calls: FacilitatorCalls
  /** In the order of the terms. */
  networks: readonly PaymentNetwork[]
  log: Logger
  /** Unix seconds. */
  now?: () => number
  /** Milliseconds to wait for the chain when a settlement or a balance is read from it. */
  chainTimeoutMs?: number
  upstream?: UpstreamLimits
  /** Closes the networks' resources. */
  close(): Promise<void>
}

export function buildLiveFacilitator(options: LiveOptions): Facilitator {
  const { provider, mode, calls, networks, log, chainTimeoutMs } = options
  const now = options.now ?? (() => Math.floor(Date.now() / 1000))
  const upstream = buildUpstreamCalls(options.upstream)
  const covers = buildCovers(chainTimeoutMs)
  const termsFor = (requestId: string | null, price: Price = PRICE) =>
    networks.flatMap((network) => network.termsFor(requestId) ?? []).map((terms) => pricedAt(terms, price))

  function networkOf(id: string): PaymentNetwork {
    const network = networks.find((candidate) => candidate.id === id)
    if (!network) throw new Error(`payments on ${id} are no longer configured`)
    return network
  }

  function networkFor(payload: PaymentPayload): PaymentNetwork {
    const network = networks.find((candidate) => candidate.id === payload.accepted.network)
    if (!network) throw new AppError('payment_invalid', 'The payment is for a network that is not offered here.')
    return network
  }

  /** Asks the facilitator whether the payment is valid. @param proved whether the payer is proved already */
  async function askFacilitator({ payload, bound }: OfferedPayment, proved: boolean): Promise<void> {
    const { network, payer } = bound.identity
    const answer = await askToVerify(calls, payload, bound.requirements)
    if (answer.kind === 'invalid')
      throw new AppError('payment_invalid', `The payment was not accepted: ${answer.reason}. Nothing was charged.`)
    if (answer.kind === 'valid' && answer.payer === null) {
      if (proved) return
      throw new AppError(
        'payment_invalid',
        "A contract wallet's signature cannot be checked here. Nothing was charged.",
      )
    }
    if (answer.kind === 'valid' && answer.payer !== null && samePayer(answer.payer, payer, network)) return
    const reason = answer.kind === 'valid' ? 'another_payer' : answer.reason
    // That it is away is logged once (see watched-upstreams.ts).
    const level = answer.kind === 'unanswered' ? 'debug' : 'warn'
    log[level]({ event: 'facilitator_unavailable', call: 'verify', reason })
    throw new AppError('provider_unavailable', 'The payment cannot be checked right now. Nothing was charged.', {
      headers: { 'retry-after': '5' },
    })
  }

  return {
    provider,
    get accepts() {
      return termsFor(null)
    },
    termsFor,
    read: (given, requestId, resourceOf, price) =>
      readPayment(given, { accepts: termsFor(requestId, price), resourceOf }, (payload, terms) =>
        networkOf(terms.network).read(payload, terms),
      ),
    readClaim(given) {
      const payload = readPayload(given)
      const { read, asset } = networkFor(payload)
      const { identity, signature_sha256 } = read(payload, { ...payload.accepted, asset })
      return { identity, signature_sha256 }
    },
    async identify(given, address) {
      const payload = readPayload(given)
      return networkFor(payload).identify(payload, (call) => upstream.attempt(address, call))
    },
    async verify(offer, address) {
      const network = networkOf(offer.bound.identity.network)
      const checked = await network.check(offer, now())
      await upstream.attempt(address, async () => askFacilitator(offer, await network.consult(offer, checked)))
    },
    async cover(offer) {
      const network = networkOf(offer.bound.identity.network)
      const account = network.accountOf(offer)
      const read = () => network.balanceOf(account)
      return covers.coverOf(`${network.id} ${account}`, BigInt(PRICE.atomic), read)
    },
    async prepare({ bound }) {
      const at = now()
      // Without a height the chain is searched from an earlier block; the settlement does not wait for it.
      const block = await networkOf(bound.identity.network)
        .height()
        .catch(() => null)
      return { at, block, transaction: null }
    },
    ...buildLiveSettlement({ provider, mode, calls, networkOf, log, now, chainTimeoutMs }),
    [Symbol.asyncDispose]: options.close,
  }
}
