// x402 v2 as this service speaks it: the terms it asks, and the Facilitator that checks and settles a payment. Codecs and
// schemas are the protocol's own package; its HTTP middleware is not used, because that turns an unknown settlement into a
// 402, and a stock client signs a new payment at every 402.
import { encodePaymentRequiredHeader, encodePaymentResponseHeader } from '@x402/core/http'
import type { PaymentPayload, PaymentRequired, PaymentRequirements, SettleResponse } from '@x402/core/types'
import { z } from 'zod'
import { type Payment, PRICE, payment as paymentShape } from '../interface/payment.ts'
import { describeListing, extensions, type Resource, type Through } from './discovery.ts'

export type { PaymentPayload, PaymentRequired, PaymentRequirements, SettleResponse }

/** Seconds a client makes its authorization valid for: enough for the slowest source and its settlement. */
export const MAX_TIMEOUT_SECONDS = 300

/** USDC on the EVM networks, with the EIP-712 domain of each contract (the names differ, and signatures with them). */
export const EVM_USDC = {
  'eip155:8453': { asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', name: 'USD Coin', version: '2' },
  'eip155:84532': { asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', name: 'USDC', version: '2' },
} as const
export type EvmNetwork = keyof typeof EVM_USDC

/** What one verification costs on an EVM network. */
export function evmTerms(network: EvmNetwork, payTo: string): PaymentRequirements {
  const { asset, name, version } = EVM_USDC[network]
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

/** What makes an authorization the same one again: it can be used once, for one request. */
export const paymentIdentity = z.object({
  network: z.string(),
  asset: z.string(),
  payer: z.string(),
  nonce: z.string(),
})
export type PaymentIdentity = z.output<typeof paymentIdentity>

/** What a payment says of itself. Proves nothing before its signature is checked. */
export const paymentClaim = z.object({
  identity: paymentIdentity,
  /** SHA-256 of the payer's signature, in hex: a caller who shows the same signature again is known by it. */
  signature_sha256: z.string().nullish(),
})
export type PaymentClaim = z.output<typeof paymentClaim>

/** The payment bound to a request; holds nothing that could be used to pay with. */
export const boundPayment = paymentClaim.extend({
  /** Unix seconds after which the chain refuses the authorization. */
  valid_before: z.number(),
  requirements: z.looseObject({}),
  /** The client's own name for this payment (extension payment-identifier). */
  identifier: z.string().nullish(),
})
export type BoundPayment = z.output<typeof boundPayment>

/**
 * Recorded before a settlement is asked for, so that whoever finds it knows that the authorization may be out of our
 * hands, and where on the chain to look for it.
 */
export const settlementIntent = z.object({
  /** Unix seconds by our clock. */
  at: z.number(),
  /** Height of the chain then; null where it could not be read, or there is no chain. */
  block: z.number().nullable(),
  /** The transaction that the facilitator named. A hint: the chain decides. */
  transaction: z.string().nullable(),
  /**
   * Unix seconds when the chain, or our ledger, first contradicted a success that the facilitator named. From then on
   * only the chain is believed.
   */
  denied_at: z.number().nullish(),
})
export type SettlementIntent = z.output<typeof settlementIntent>

/**
 * What a settlement is counted on. `chain`: the chain shows that this transaction used this authorization. `facilitator`:
 * the facilitator says so, and no node is configured to ask. `unconfirmed`: the facilitator says so, and the node that is
 * configured did not answer.
 */
export const settlementProofs = ['chain', 'facilitator', 'unconfirmed'] as const
export type SettlementProof = (typeof settlementProofs)[number]

/** How a settlement ended; `response` is what PAYMENT-RESPONSE says. */
export const settlement = z.object({
  payment: paymentShape,
  response: z.looseObject({}),
  /** Null in offline mode. */
  proof: z.enum(settlementProofs).nullish(),
  /** Which log of the transaction used the authorization; null where the chain was not read. */
  log_index: z.number().nullish(),
})
export type Settlement = z.output<typeof settlement>

export type SettlementOutcome =
  | { kind: 'paid'; payment: Payment; response: SettleResponse; proof: SettlementProof | null; logIndex: number | null }
  /** Provably not charged, now and for ever, under this authorization. */
  | { kind: 'unpaid'; reason: string }
  /** May have been charged. Ask again, never for another payment. `intent`: the intent with what was learned, to be kept. */
  | { kind: 'unknown'; reason: string; retryAfterSeconds: number; intent?: SettlementIntent }

/** A payment that was read from its header. The payload is made anew from what was checked; the caller adds nothing. */
export interface OfferedPayment {
  payload: PaymentPayload
  bound: BoundPayment
}

/**
 * Checks and settles payments. Implementations: offline.ts, live.ts.
 *
 * A settlement is three steps, with a commit between each: `prepare` what is recorded, `settle`, record the outcome. A
 * worker that finds the record without an outcome asks `resolve` first.
 *
 * `address` is the caller's: calls to facilitators and nodes are limited by it. Beyond the limit both methods that take
 * it throw AppError `rate_limited` with Retry-After.
 */
export interface Facilitator extends AsyncDisposable {
  /** Named in every result's `payment.provider`. */
  readonly provider: string
  /** What is asked, in order of preference. One request's own terms may say more: see `termsFor`. */
  readonly accepts: readonly PaymentRequirements[]
  /** The terms of one request. The same every time, for as long as the request can be paid. */
  termsFor(requestId: string): readonly PaymentRequirements[]
  /**
   * Reads PAYMENT-SIGNATURE, or the object MCP carries, as a payment of this request. Throws AppError `payment_invalid`.
   * @param resourceOf what is paid for, by the protocol whose terms the payment repeats
   */
  read(given: unknown, requestId: string, resourceOf: (through: Through) => Resource): OfferedPayment
  /** Whose payment it claims to be, whatever it was meant for; checks no signature. Throws AppError `payment_invalid`. */
  readClaim(given: unknown): PaymentClaim
  /** Whose authorization this is, proved by its signature, whatever it was meant for. Throws AppError `payment_invalid`. */
  identify(given: unknown, address: string): Promise<PaymentIdentity>
  /**
   * When this returns, the payer is proved: no lookup by payer comes before. Throws AppError `payment_invalid` for what
   * will not settle, `provider_unavailable` when it cannot tell.
   */
  verify(offer: OfferedPayment, address: string): Promise<void>
  /**
   * How many verifications the payer's balance pays for right now, as known for at most 30 s; asked after `verify`. 0 when
   * the chain does not answer within 5 s; null where nothing moves, so that nothing is limited.
   */
  cover(offer: OfferedPayment): Promise<number | null>
  prepare(offer: OfferedPayment): Promise<SettlementIntent>
  /**
   * May be called again for the same payment, by another process too, and never charges twice. Answers whatever becomes
   * of it; what it throws means no more than `unknown`.
   */
  settle(offer: OfferedPayment, intent: SettlementIntent): Promise<SettlementOutcome>
  /**
   * Looks and changes nothing; answers `paid` on the chain's word only. `open`: not used so far and still valid, so the
   * same settlement may be asked for again.
   */
  resolve(offer: OfferedPayment, intent: SettlementIntent): Promise<SettlementOutcome | { kind: 'open' }>
}

/** The 402's terms, for header and body alike. @param through the protocol it leaves by */
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
