// x402 v2 in this service: the terms, the stored payment, and the Facilitator that checks and settles payments. Codecs and
// schemas come from the protocol's package. Its HTTP middleware is not used, because it answers an unknown settlement with a
// 402, and a stock client signs a new payment at every 402.
import { encodePaymentRequiredHeader, encodePaymentResponseHeader } from '@x402/core/http'
import type { PaymentPayload, PaymentRequired, PaymentRequirements, SettleResponse } from '@x402/core/types'
import { z } from 'zod'
import { EVM_NETWORKS, type EvmNetwork } from '../interface/networks.ts'
import { type Payment, payment as paymentShape } from '../interface/payment.ts'
import { PRICE, type Price } from '../interface/price.ts'
import { describeListing, extensions, type Resource, type Through } from './discovery.ts'

export type { PaymentPayload, PaymentRequired, PaymentRequirements, SettleResponse }

/** Seconds of validity of an authorization: enough for the slowest source and its settlement. */
export const MAX_TIMEOUT_SECONDS = 300

/** The terms of one verification on an EVM network. */
export function evmTerms(network: EvmNetwork, payTo: string): PaymentRequirements {
  const { asset, name, version } = EVM_NETWORKS[network].usdc
  return {
    scheme: 'exact',
    network,
    amount: PRICE.atomic,
    asset,
    payTo,
    maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
    extra: { name, version },
  }
}

const caip2 = z.templateLiteral([z.string(), ':', z.string()])

/** One entry of `accepts`; further members are kept. */
const paymentRequirements = z.looseObject({
  scheme: z.string(),
  network: caip2,
  amount: z.string(),
  asset: z.string(),
  payTo: z.string(),
  maxTimeoutSeconds: z.number(),
  extra: z.record(z.string(), z.unknown()),
}) satisfies z.ZodType<PaymentRequirements>

/** The body of PAYMENT-RESPONSE. */
const settleResponse = z.looseObject({
  success: z.boolean(),
  transaction: z.string(),
  network: caip2,
  payer: z.string().optional(),
  amount: z.string().optional(),
}) satisfies z.ZodType<SettleResponse>

/** The identity of an authorization, which can be used once, for one request. */
const paymentIdentity = z.object({
  network: z.string(),
  asset: z.string(),
  payer: z.string(),
  nonce: z.string(),
})
export type PaymentIdentity = z.output<typeof paymentIdentity>

/** A payment's own statement. It proves nothing before its signature is checked. */
const paymentClaim = z.object({
  identity: paymentIdentity,
  /** SHA-256 of the payer's signature, in hex. It recognises a caller who shows the same signature again. */
  signature_sha256: z.string().nullish(),
})
export type PaymentClaim = z.output<typeof paymentClaim>

/** The payment bound to a request. No payment can be made with what it contains. */
export const boundPayment = paymentClaim.extend({
  /** Unix seconds after which the chain refuses the authorization. */
  valid_before: z.number(),
  requirements: paymentRequirements,
  /** The client's own name for this payment (extension payment-identifier). */
  identifier: z.string().nullish(),
})
export type BoundPayment = z.output<typeof boundPayment>

/**
 * Stored before the facilitator is asked to settle: from then on the facilitator may have the authorization. Says where on
 * the chain to look for the settlement.
 */
export const settlementIntent = z.object({
  /** Unix seconds, by this service's clock. */
  at: z.number(),
  /** Height of the chain at that time; null if it could not be read, or if there is no chain. */
  block: z.number().nullable(),
  /** The transaction that the facilitator named. It is a hint; the chain decides. */
  transaction: z.string().nullable(),
  /**
   * Unix seconds when the chain or the ledger first contradicted a success that the facilitator reported. From then on only
   * the chain counts.
   */
  denied_at: z.number().nullish(),
})
export type SettlementIntent = z.output<typeof settlementIntent>

/**
 * The proof of a settlement. `chain`: the chain shows that this transaction used this authorization. `facilitator`: the
 * facilitator says so, and no node is configured. `unconfirmed`: the facilitator says so, and the configured node did not
 * answer.
 */
export const settlementProofs = ['chain', 'facilitator', 'unconfirmed'] as const
export type SettlementProof = (typeof settlementProofs)[number]

/** A settlement as it is stored; `response` is the content of PAYMENT-RESPONSE. */
export const settlement = z.object({
  payment: paymentShape,
  response: settleResponse,
  /** Null in offline mode. */
  proof: z.enum(settlementProofs).nullish(),
  /** The log of the transaction that used the authorization; null if the chain was not read. */
  log_index: z.number().nullish(),
})
export type Settlement = z.output<typeof settlement>

export type SettlementOutcome =
  | { kind: 'paid'; payment: Payment; response: SettleResponse; proof: SettlementProof | null; logIndex: number | null }
  /** Provably not charged, and this authorization can never be charged. */
  | { kind: 'unpaid'; reason: string }
  /** May have been charged: resolve it later, and ask for no other payment. `intent`: with what was learned, to be stored. */
  | { kind: 'unknown'; reason: string; retryAfterSeconds: number; intent?: SettlementIntent }

/** A payment read from its header. The payload is built again from checked members; nothing else of the caller's is in it. */
export interface OfferedPayment {
  payload: PaymentPayload
  bound: BoundPayment
}

/**
 * Checks and settles payments. Implementations: offline-facilitator.ts, live-facilitator.ts.
 *
 * A settlement has three steps with a commit after each: `prepare` the intent, `settle`, store the outcome. A worker that
 * finds an intent without an outcome calls `resolve` first.
 *
 * `address` is the caller's; calls to facilitators and nodes are limited by it. Beyond the limit both methods that take it
 * throw AppError `rate_limited` with Retry-After.
 */
export interface Facilitator extends AsyncDisposable {
  /** `payment.provider` of every result. */
  readonly provider: string
  /** The terms, in order of preference. The terms of one request may have more members: see `termsFor`. */
  readonly accepts: readonly PaymentRequirements[]
  /**
   * The terms of one request. They do not change as long as the request can be paid. @param price of the request; by default
   * that of verify-source
   */
  termsFor(requestId: string, price?: Price): readonly PaymentRequirements[]
  /**
   * Reads PAYMENT-SIGNATURE, or the object that MCP carries, as a payment of this request. Throws AppError
   * `payment_invalid`. @param resourceOf the resource, by the protocol whose offer the payment echoes @param price as for
   * `termsFor`
   */
  read(given: unknown, requestId: string, resourceOf: (through: Through) => Resource, price?: Price): OfferedPayment
  /** The identity that the payment claims; checks neither signature nor terms. Throws AppError `payment_invalid`. */
  readClaim(given: unknown): PaymentClaim
  /** The identity of the payment, proved by its signature; checks no terms. Throws AppError `payment_invalid`. */
  identify(given: unknown, address: string): Promise<PaymentIdentity>
  /**
   * Proves the payer; nothing may be looked up by payer before it returns. Throws AppError `payment_invalid` for a payment
   * that will not settle, `provider_unavailable` if it cannot tell.
   */
  verify(offer: OfferedPayment, address: string): Promise<void>
  /**
   * How many verifications of one claim the payer's balance pays for; call it after `verify`. The balance is cached for at most 30 s. 0 if
   * the chain does not answer within 5 s; null if no money moves, so that the balance limits nothing.
   */
  cover(offer: OfferedPayment): Promise<number | null>
  /** The intent, to be stored before `settle`. */
  prepare(offer: OfferedPayment): Promise<SettlementIntent>
  /**
   * Settles the payment. May be called again for the same payment, by another process too, and never charges twice. An error
   * that it throws means `unknown`.
   */
  settle(offer: OfferedPayment, intent: SettlementIntent): Promise<SettlementOutcome>
  /**
   * Reads the chain and changes nothing; answers `paid` only if the chain shows it. `open`: not used so far and still valid,
   * so `settle` may be called again.
   */
  resolve(offer: OfferedPayment, intent: SettlementIntent): Promise<SettlementOutcome | { kind: 'open' }>
}

/** Terms with the amount of a price. */
export function pricedAt(terms: PaymentRequirements, { atomic }: Price): PaymentRequirements {
  return terms.amount === atomic ? terms : { ...terms, amount: atomic }
}

/** The content of a 402, for header and body. @param through the protocol of the answer */
export function paymentRequired(
  accepts: readonly PaymentRequirements[],
  resource: Resource,
  error: string,
  through: Through = 'http',
): PaymentRequired {
  return {
    x402Version: 2,
    error,
    resource: describeListing(resource),
    accepts: [...accepts],
    extensions: extensions[resource.assessment][through],
  }
}

export const encodeTerms = encodePaymentRequiredHeader
export const encodeSettlement = encodePaymentResponseHeader

export function samePayment(a: PaymentIdentity, b: PaymentIdentity): boolean {
  return a.network === b.network && a.asset === b.asset && a.payer === b.payer && a.nonce === b.nonce
}
