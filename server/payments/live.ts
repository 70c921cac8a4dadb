// Payments that move money. An HTTP facilitator verifies and settles them; whatever it says of a settlement short of a
// success with its transaction is held against the chain, because it may say "failed" of what it sent a moment ago, and a
// buyer who is told so signs a second payment.
import type { PaymentRequirements } from '@x402/core/types'
import { AppError } from '../errors.ts'
import type { Logger } from '../telemetry.ts'
import { PRICE } from '../verification/result.ts'
import { askToSettle, askToVerify, type FacilitatorCalls } from './answers.ts'
import type { Inspection } from './inspection.ts'
import type { LedgerEntry } from './ledger.ts'
import {
  type Facilitator,
  type OfferedPayment,
  type PaymentIdentity,
  type PaymentPayload,
  type PaymentReader,
  readPayload,
  readPayment,
  type SettlementIntent,
  type SettlementOutcome,
} from './x402.ts'

/** What a chain says of one payment. */
export type Finding =
  | { kind: 'paid'; transaction: string }
  /** Final: the authorization moved nothing to us and never will. */
  | { kind: 'unpaid'; reason: string }
  /** Not used so far, and there is time to use it. */
  | { kind: 'open' }
  /** Nothing can be said or done before some seconds are over. */
  | { kind: 'waiting'; reason: string; seconds: number }

/** What a facilitator says in /supported of one network. */
export interface SupportedKind {
  extra?: Record<string, unknown>
}

export interface Income {
  transaction: string
  from: string
  amount: bigint
}

/** One chain that is paid on. Implementations: evm.ts, solana.ts. */
export interface PaymentNetwork {
  /** CAIP-2. */
  readonly id: string
  /** Null while it cannot be offered. Without a request: what is common to all requests. */
  termsFor(requestId: string | null): PaymentRequirements | null
  read: PaymentReader
  /** Whose payment this is, proved by its signature. Throws AppError `payment_invalid`. */
  identify(payload: PaymentPayload): Promise<PaymentIdentity>
  /** Our own rules, before the facilitator's. Throws AppError `payment_invalid`. */
  check(offer: OfferedPayment, nowSeconds: number): Promise<void>
  /** Height of the chain. Throws when it cannot be read. */
  height(): Promise<number>
  /** Throws when the chain cannot be read. */
  look(offer: OfferedPayment, intent: SettlementIntent): Promise<Finding>
  isTransaction(id: string): boolean
  /** Takes what the facilitator says of this network; false when that is not enough to be paid by it. */
  adopt(kind: SupportedKind | undefined): boolean
  /** What the chain says of an entry of the ledger; null while it is too early to say. Throws when it cannot be read. */
  audit(entry: LedgerEntry): Promise<boolean | null>
  /** Money that came in from the block of one transaction to that of another, ours or not; null where it is not known. */
  income(first: string, last: string): Promise<Income[] | null>
  /** Whether the chain is the one meant, and we could be paid there. */
  inspect(): Promise<Inspection[]>
}

export interface LiveOptions {
  /** Named in results, at most 64 characters. */
  provider: string
  mode: 'testnet' | 'mainnet'
  calls: FacilitatorCalls
  /** In the order in which they are offered. */
  networks: readonly PaymentNetwork[]
  log: Logger
  /** Unix seconds. */
  now?: () => number
  /** Closes what the networks hold open. */
  close(): Promise<void>
}

/** Seconds between looks at a settlement in doubt: often at first, when it is likely to turn up. */
const PACE = { first: 2, most: 30, share: 0.25 }

export function buildLiveFacilitator(options: LiveOptions): Facilitator {
  const { provider, mode, calls, networks, log } = options
  const now = options.now ?? (() => Math.floor(Date.now() / 1000))
  const termsFor = (requestId: string | null) => networks.flatMap((network) => network.termsFor(requestId) ?? [])

  function networkOf(id: string): PaymentNetwork {
    const network = networks.find((candidate) => candidate.id === id)
    if (!network) throw new Error(`payments on ${id} are not configured any more`)
    return network
  }

  /** A chain that does not answer has said nothing. */
  async function look(offer: OfferedPayment, intent: SettlementIntent): Promise<Finding> {
    const network = networkOf(offer.bound.identity.network)
    try {
      return await network.look(offer, intent)
    } catch (error) {
      // Its message may hold the address of the RPC, which may hold a key.
      log.warn({
        event: 'chain_unreadable',
        network: network.id,
        error: error instanceof Error ? error.name : 'unknown',
      })
      return { kind: 'waiting', reason: 'chain_unreadable', seconds: pace(intent) }
    }
  }

  function pace(intent: SettlementIntent): number {
    return Math.round(Math.min(PACE.most, Math.max(PACE.first, (now() - intent.at) * PACE.share)))
  }

  function paid({ bound }: OfferedPayment, transaction: string): SettlementOutcome {
    const { network, payer } = bound.identity
    const { asset, amount } = bound.requirements as unknown as PaymentRequirements
    return {
      kind: 'paid',
      payment: {
        status: 'settled',
        provider,
        mode,
        simulated: false,
        network: network as 'eip155:8453',
        asset,
        currency: PRICE.currency,
        amount_atomic: amount,
        price_usd: PRICE.usd,
        transaction,
        facilitator_fee_usd: null,
        network_fee_usd: null,
      },
      response: { success: true, transaction, network: network as PaymentRequirements['network'], payer, amount },
    }
  }

  return {
    provider,
    get accepts() {
      return termsFor(null)
    },
    termsFor,
    read: (given, requestId) =>
      readPayment(given, termsFor(requestId), (payload, terms) => networkOf(terms.network).read(payload, terms)),

    async identify(given) {
      const payload = readPayload(given)
      const network = networks.find((candidate) => candidate.id === payload.accepted.network)
      if (!network) throw new AppError('payment_invalid', 'The payment is for a network that is not paid on here.')
      return network.identify(payload)
    },

    async verify({ payload, bound }) {
      await networkOf(bound.identity.network).check({ payload, bound }, now())
      const answer = await askToVerify(calls, payload, bound.requirements as unknown as PaymentRequirements)
      if (answer.kind === 'valid') return
      if (answer.kind === 'invalid')
        throw new AppError('payment_invalid', `The payment was not accepted: ${answer.reason}. Nothing was charged.`)
      log.warn({ event: 'facilitator_unavailable', call: 'verify', reason: answer.reason })
      throw new AppError('provider_unavailable', 'The payment cannot be checked right now. Nothing was charged.', {
        headers: { 'retry-after': '5' },
      })
    },

    cover: async () => null,

    async prepare({ bound }) {
      const at = now()
      // Without it a look at the chain begins further back; a settlement need not wait for that.
      const block = await networkOf(bound.identity.network)
        .height()
        .catch(() => null)
      return { at, block, transaction: null }
    },

    async settle(offer, intent) {
      const { payload, bound } = offer
      const { isTransaction } = networkOf(bound.identity.network)
      const terms = bound.requirements as unknown as PaymentRequirements
      const answer = await askToSettle(calls, payload, terms, isTransaction)
      if (answer.kind === 'done') return paid(offer, answer.transaction)
      const transaction = answer.transaction ?? intent.transaction
      const found = await look(offer, { ...intent, transaction })
      if (found.kind === 'paid') return paid(offer, found.transaction)
      if (found.kind === 'unpaid') return found
      const seconds = found.kind === 'waiting' ? found.seconds : pace(intent)
      return unknown(answer.reason, seconds, transaction)
    },

    async resolve(offer, intent) {
      const found = await look(offer, intent)
      if (found.kind === 'paid') return paid(offer, found.transaction)
      return found.kind === 'waiting' ? unknown(found.reason, found.seconds, intent.transaction) : found
    },

    [Symbol.asyncDispose]: options.close,
  }
}

function unknown(reason: string, seconds: number, transaction: string | null): SettlementOutcome {
  return { kind: 'unknown', reason, retryAfterSeconds: seconds, ...(transaction && { transaction }) }
}
