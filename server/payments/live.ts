// Payments that move money: checked here first, then by an HTTP facilitator. How they are settled is in settling.ts.
import type { PaymentRequirements } from '@x402/core/types'
import { AppError } from '../errors.ts'
import { PRICE } from '../interface/payment.ts'
import type { Logger } from '../telemetry.ts'
import { askToVerify, type FacilitatorCalls, samePayer } from './answers.ts'
import { buildCovers } from './cover.ts'
import type { LedgerEntry } from './ledger.ts'
import { buildOutsideCalls, type OutsideLimits } from './outside-calls.ts'
import { type PaymentReader, readPayload, readPayment } from './payload.ts'
import { buildSettling } from './settling.ts'
import type { Inspection } from './startup-checks.ts'
import type { Facilitator, OfferedPayment, PaymentIdentity, PaymentPayload, SettlementIntent } from './x402.ts'

/** What a chain says of one payment. */
export type Finding =
  /** `logIndex`: which log of the transaction used the authorization. */
  | { kind: 'paid'; transaction: string; logIndex: number }
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

/** What the chain says of an entry of the ledger. `logIndex`: where it shows the use; null for what was not charged. */
export type Audit = { agrees: boolean; logIndex: number | null }

/** One chain that is paid on. Implementations: evm.ts, solana.ts. */
export interface PaymentNetwork {
  /** CAIP-2. */
  readonly id: string
  /** The token that is paid. */
  readonly asset: string
  /** Whether the operator named a node, so that a settlement counts when that node shows it; else a public one is asked in doubt. */
  readonly proves: boolean
  /** Null while it cannot be offered. Without a request: what is common to all requests. */
  termsFor(requestId: string | null): PaymentRequirements | null
  read: PaymentReader
  /** Whose payment this is, proved by its signature. Throws AppError `payment_invalid`. @param calls makes a call to the node */
  identify(payload: PaymentPayload, calls: Calls): Promise<PaymentIdentity>
  /**
   * Our own rules, and the payer's signature where it can be checked here; asks no one. Answers whether the payer is
   * proved. Throws AppError `payment_invalid`.
   */
  check(offer: OfferedPayment, nowSeconds: number): Promise<boolean>
  /**
   * What only the chain can tell, asked of the node; answers whether the payer is proved now.
   * Throws AppError `payment_invalid`, `provider_unavailable`.
   */
  consult(offer: OfferedPayment, proved: boolean): Promise<boolean>
  /** The account that this payment is from. */
  accountOf(offer: OfferedPayment): string
  /** USDC in that account, in atomic units. Throws when the chain cannot be read. */
  balanceOf(account: string): Promise<bigint>
  /** Height of the chain. Throws when it cannot be read. */
  height(): Promise<number>
  /** Throws when the chain cannot be read. */
  look(offer: OfferedPayment, intent: SettlementIntent): Promise<Finding>
  /** A transaction id in the one form it is kept in; null for text that is none here. */
  readTransactionId(text: string): string | null
  /** Takes what the facilitator says of this network; false when that is not enough to be paid by it. */
  adopt(kind: SupportedKind | undefined): boolean
  /** Null while it is too early to say. Throws when the chain cannot be read. */
  audit(entry: LedgerEntry): Promise<Audit | null>
  /** Money that came in from the block of one transaction to that of another, ours or not; null where it is not known. */
  income(first: string, last: string): Promise<Income[] | null>
  /** Whether the chain is the one meant, and we could be paid there. */
  inspect(): Promise<Inspection[]>
}

/** Makes calls outside, or throws AppError `rate_limited`. */
export type Calls = <T>(calls: () => Promise<T>) => Promise<T>

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
  /** Milliseconds for which the chain is waited for, where a settlement or a balance is asked of it. */
  patienceMs?: number
  outside?: OutsideLimits
  /** Closes what the networks hold open. */
  close(): Promise<void>
}

export function buildLiveFacilitator(options: LiveOptions): Facilitator {
  const { provider, mode, calls, networks, log, patienceMs } = options
  const now = options.now ?? (() => Math.floor(Date.now() / 1000))
  const outside = buildOutsideCalls(options.outside)
  const covers = buildCovers(patienceMs)
  const termsFor = (requestId: string | null) => networks.flatMap((network) => network.termsFor(requestId) ?? [])

  function networkOf(id: string): PaymentNetwork {
    const network = networks.find((candidate) => candidate.id === id)
    if (!network) throw new Error(`payments on ${id} are not configured any more`)
    return network
  }

  function networkFor(payload: PaymentPayload): PaymentNetwork {
    const network = networks.find((candidate) => candidate.id === payload.accepted.network)
    if (!network) throw new AppError('payment_invalid', 'The payment is for a network that is not paid on here.')
    return network
  }

  /** The facilitator's part of `verify`. @param proved whether the payer is proved already */
  async function askFacilitator({ payload, bound }: OfferedPayment, proved: boolean): Promise<void> {
    const { network, payer } = bound.identity
    const answer = await askToVerify(calls, payload, bound.requirements as unknown as PaymentRequirements)
    if (answer.kind === 'invalid')
      throw new AppError('payment_invalid', `The payment was not accepted: ${answer.reason}. Nothing was charged.`)
    if (answer.kind === 'valid' && answer.payer === null) {
      if (proved) return
      throw new AppError(
        'payment_invalid',
        "A contract wallet's signature cannot be checked here. Nothing was charged.",
      )
    }
    if (answer.kind === 'valid' && samePayer(answer.payer ?? '', payer, network)) return
    const reason = answer.kind === 'valid' ? 'another_payer' : answer.reason
    log.warn({ event: 'facilitator_unavailable', call: 'verify', reason })
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
    read: (given, requestId, resourceOf) =>
      readPayment(given, { accepts: termsFor(requestId), resourceOf }, (payload, terms) =>
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
      return networkFor(payload).identify(payload, (ask) => outside.attempt(address, ask))
    },
    async verify(offer, address) {
      const network = networkOf(offer.bound.identity.network)
      const checked = await network.check(offer, now())
      await outside.attempt(address, async () => askFacilitator(offer, await network.consult(offer, checked)))
    },
    async cover(offer) {
      const network = networkOf(offer.bound.identity.network)
      const account = network.accountOf(offer)
      const read = () => network.balanceOf(account)
      return covers.coverOf(`${network.id} ${account}`, BigInt(PRICE.atomic), read)
    },
    async prepare({ bound }) {
      const at = now()
      // Without it a look at the chain begins further back; a settlement need not wait for that.
      const block = await networkOf(bound.identity.network)
        .height()
        .catch(() => null)
      return { at, block, transaction: null }
    },
    ...buildSettling({ provider, mode, calls, networkOf, log, now, patienceMs }),
    [Symbol.asyncDispose]: options.close,
  }
}
