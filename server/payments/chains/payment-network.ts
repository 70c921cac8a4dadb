// One chain that is paid on, as the live facilitator uses it. Implementations: evm.ts, solana.ts.
import type { LedgerEntry } from '../ledger.ts'
import type { LiveNetworkId } from '../networks.ts'
import type { PaymentReader } from '../payload.ts'
import type { Inspection } from '../startup-checks.ts'
import type { OfferedPayment, PaymentIdentity, PaymentPayload, PaymentRequirements, SettlementIntent } from '../x402.ts'

/** The state of one payment on its chain. */
export type Finding =
  /** `logIndex`: which log of the transaction used the authorization. */
  | { kind: 'paid'; transaction: string; logIndex: number }
  /** Final: the authorization did not pay this service and never will. */
  | { kind: 'unpaid'; reason: string }
  /** Not used so far, and still valid. */
  | { kind: 'open' }
  /** The state cannot be read for certain before so many seconds. */
  | { kind: 'waiting'; reason: string; seconds: number }

/** The entry for one network in a facilitator's /supported. */
export interface SupportedKind {
  extra?: Record<string, unknown>
}

export interface Income {
  transaction: string
  from: string
  amount: bigint
}

/** Whether the chain agrees with a ledger entry. `logIndex`: the log of the use; null if nothing was charged. */
export type Audit = { agrees: boolean; logIndex: number | null }

export interface PaymentNetwork {
  /** CAIP-2. */
  readonly id: LiveNetworkId
  /** The token of the payments. */
  readonly asset: string
  /**
   * Whether the operator configured a node. If so, a settlement counts when that node shows it; if not, a public node is
   * asked in cases of doubt.
   */
  readonly proves: boolean
  /** Null while payments on this network cannot be offered. Without a request: the terms common to all requests. */
  termsFor(requestId: string | null): PaymentRequirements | null
  read: PaymentReader
  /** The payment's identity, proved by its signature. Throws AppError `payment_invalid`. @param call makes a call to the node */
  identify(payload: PaymentPayload, call: CallUpstream): Promise<PaymentIdentity>
  /**
   * Checks this service's own rules, and the payer's signature if that needs no outside call. Answers whether the payer is
   * proved. Throws AppError `payment_invalid`.
   */
  check(offer: OfferedPayment, nowSeconds: number): Promise<boolean>
  /**
   * Asks the node for what only the chain can tell. Answers whether the payer is proved.
   * Throws AppError `payment_invalid`, `provider_unavailable`.
   */
  consult(offer: OfferedPayment, proved: boolean): Promise<boolean>
  /** The account from which this payment is made, and by whom if that is not its owner alone. */
  accountOf(offer: OfferedPayment): string
  /** USDC that this payer may spend of the account, in atomic units. Throws if the chain cannot be read. */
  balanceOf(account: string): Promise<bigint>
  /** Height of the chain. Throws if it cannot be read. */
  height(): Promise<number>
  /** Looks for the payment on the chain. Throws if the chain cannot be read. */
  findSettlement(offer: OfferedPayment, intent: SettlementIntent): Promise<Finding>
  /** A transaction id in the form in which it is stored; null for text that is no id on this network. */
  readTransactionId(text: string): string | null
  /** Stores what the facilitator announces for this network; false if that is not enough for payments through it. */
  adopt(kind: SupportedKind | undefined): boolean
  /** Null while the chain cannot give a final answer yet. Throws if the chain cannot be read. */
  audit(entry: LedgerEntry): Promise<Audit | null>
  /** All transfers to this service from the block of one transaction to that of another; null if they cannot be listed. */
  income(first: string, last: string): Promise<Income[] | null>
  /** Checks that the node is of this chain and that this service can be paid on it. */
  inspect(): Promise<Inspection[]>
}

/** Makes a call to another service, or throws AppError `rate_limited`. */
export type CallUpstream = <T>(calls: () => Promise<T>) => Promise<T>
