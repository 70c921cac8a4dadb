// x402 v2 as this service speaks it: the terms it asks, the authorization it reads, and the Facilitator that checks and
// settles one. Codecs and schemas are the protocol's own package; its HTTP middleware is not used, because that turns an
// unknown settlement into a 402, and a stock client signs a new payment at every 402.
import { isDeepStrictEqual } from 'node:util'
import { decodePaymentSignatureHeader, encodePaymentRequiredHeader, encodePaymentResponseHeader } from '@x402/core/http'
import { parsePaymentPayload } from '@x402/core/schemas'
import type { PaymentPayload, PaymentRequired, PaymentRequirements, SettleResponse } from '@x402/core/types'
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { type Payment, PRICE, payment as paymentShape } from '../verification/result.ts'
import type { AssessmentKind } from '../verification/settings.ts'
import { extensions, readIdentifier, SERVICE, type Through } from './discovery.ts'

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

/** The payment bound to a request; holds nothing that could be used to pay with. */
export const boundPayment = z.object({
  identity: paymentIdentity,
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
  /** The transaction the facilitator sent and did not see confirmed. A hint: the chain decides. */
  transaction: z.string().nullable(),
})
export type SettlementIntent = z.output<typeof settlementIntent>

/** How a settlement ended; `response` is what PAYMENT-RESPONSE says. */
export const settlement = z.object({ payment: paymentShape, response: z.looseObject({}) })
export type Settlement = z.output<typeof settlement>

export type SettlementOutcome =
  | { kind: 'paid'; payment: Payment; response: SettleResponse }
  /** Provably not charged, now and for ever, under this authorization. */
  | { kind: 'unpaid'; reason: string }
  /** May have been charged. Ask again, never for another payment. `transaction`: see SettlementIntent. */
  | { kind: 'unknown'; reason: string; retryAfterSeconds: number; transaction?: string }

/** A payment that was read from its header: the payload as it came, and which terms it accepts. */
export interface OfferedPayment {
  payload: PaymentPayload
  bound: BoundPayment
}

/**
 * Checks and settles payments. Implementations: offline.ts, live.ts.
 *
 * A settlement is three steps, with a commit between each: `prepare` what is recorded, `settle`, record the outcome.
 * Whoever finds the record without an outcome asks `resolve` first.
 */
export interface Facilitator extends AsyncDisposable {
  /** Named in every result's `payment.provider`. */
  readonly provider: string
  /** What is asked, in order of preference. One request's own terms may say more: see `termsFor`. */
  readonly accepts: readonly PaymentRequirements[]
  /** The terms of one request. The same every time, for as long as the request can be paid. */
  termsFor(requestId: string): readonly PaymentRequirements[]
  /** Reads PAYMENT-SIGNATURE, or the object MCP carries, as a payment of this request. Throws AppError `payment_invalid`. */
  read(given: unknown, requestId: string): OfferedPayment
  /** Whose authorization this is, proved by its signature, whatever it was meant for. Throws AppError `payment_invalid`. */
  identify(given: unknown): Promise<PaymentIdentity>
  /** Throws AppError `payment_invalid` for what will not settle, `provider_unavailable` when it cannot tell. */
  verify(offer: OfferedPayment): Promise<void>
  /** How many verifications the payer's balance pays for right now; null where it is not limited. After `verify` only. */
  cover(offer: OfferedPayment): Promise<number | null>
  prepare(offer: OfferedPayment): Promise<SettlementIntent>
  /**
   * May be called again for the same payment, by another process too, and never charges twice. Answers whatever becomes
   * of it; what it throws means no more than `unknown`.
   */
  settle(offer: OfferedPayment, intent: SettlementIntent): Promise<SettlementOutcome>
  /** Looks and changes nothing. `open`: not used so far and still valid, so the same settlement may be asked for again. */
  resolve(offer: OfferedPayment, intent: SettlementIntent): Promise<SettlementOutcome | { kind: 'open' }>
}

/** What is paid for, as its buyer is told. */
export interface Resource {
  url: string
  description: string
  assessment: AssessmentKind
}

/** The 402's terms, for header and body alike. @param through the protocol it leaves by */
export function paymentRequired(
  accepts: readonly PaymentRequirements[],
  { url, description, assessment }: Resource,
  error: string,
  through: Through = 'http',
): PaymentRequired {
  const { mimeType, serviceName, tags } = SERVICE
  return {
    x402Version: 2,
    error,
    resource: { url, description, mimeType, serviceName, tags: [...tags] },
    accepts: [...accepts],
    extensions: extensions[assessment][through],
  }
}

export const encodeTerms = encodePaymentRequiredHeader
export const encodeSettlement = encodePaymentResponseHeader

/** EIP-3009, the only EVM payload taken: Permit2 and others move money by rules this service cannot reconcile. */
export const evmAuthorization = z.object({
  signature: z.string().regex(/^0x[0-9a-fA-F]+$/),
  authorization: z.object({
    from: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
    to: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
    value: z.string().regex(/^\d{1,30}$/),
    validAfter: z.string().regex(/^\d{1,15}$/),
    validBefore: z.string().regex(/^\d{1,15}$/),
    nonce: z.string().regex(/^0x[0-9a-fA-F]{64}$/),
  }),
})
export type EvmAuthorization = z.output<typeof evmAuthorization>

/** What a payload says for itself, read by the rules of the network it is for. */
export type PaymentReader = (
  payload: PaymentPayload,
  requirements: PaymentRequirements,
) => Pick<BoundPayment, 'identity' | 'valid_before'>

/**
 * Reads PAYMENT-SIGNATURE (base64 JSON) or the object MCP carries. No secret is repeated in an error.
 * Throws AppError `payment_invalid`.
 */
export function readPayment(
  given: unknown,
  accepts: readonly PaymentRequirements[],
  read: PaymentReader = readEvmPayment,
): OfferedPayment {
  const payload = readPayload(given)
  const requirements = accepts.find((terms) => accepted(payload.accepted, terms))
  if (!requirements) throw new AppError('payment_invalid', 'The payment does not accept any of the terms offered.')
  const identifier = readIdentifier(payload)
  return { payload, bound: { ...read(payload, requirements), requirements, ...(identifier && { identifier }) } }
}

/** EIP-3009 payments are told apart by token, payer and nonce. */
export const readEvmPayment: PaymentReader = (payload, { network, asset }) => {
  const parsed = evmAuthorization.safeParse(payload.payload)
  if (!parsed.success) throw new AppError('payment_invalid', 'The payment is not an EIP-3009 authorization.')
  const { from, nonce, validBefore } = parsed.data.authorization
  return {
    identity: { network, asset: asset.toLowerCase(), payer: from.toLowerCase(), nonce: nonce.toLowerCase() },
    valid_before: Number(validBefore),
  }
}

/** Far more than terms and extensions have; what is nested some thousands deep cannot be written down again. */
const MAX_LEVELS = 64

/** The payload as the client made it; nothing of it is checked but its form. Throws AppError `payment_invalid`. */
export function readPayload(given: unknown): PaymentPayload {
  let raw = given
  if (typeof given === 'string') {
    try {
      raw = decodePaymentSignatureHeader(given)
    } catch {
      throw new AppError('payment_invalid', 'PAYMENT-SIGNATURE is not base64 of an x402 v2 payment payload.')
    }
  }
  const parsed = parsePaymentPayload(raw)
  if (!parsed.success || parsed.data.x402Version !== 2 || isDeeperThan(MAX_LEVELS, raw))
    throw new AppError('payment_invalid', 'The payment is not an x402 v2 payment payload.')
  // The schema drops what it does not know; the facilitator is given what the client signed.
  return raw as PaymentPayload
}

function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((member) => isDeeperThan(levels - 1, member))
}

/** The client must repeat our terms; it may add to `extra`, and addresses may differ in case on EVM networks. */
function accepted(theirs: PaymentRequirements, ours: PaymentRequirements): boolean {
  const fold = (value: string) => (ours.network.startsWith('eip155:') ? value.toLowerCase() : value)
  return (
    theirs.scheme === ours.scheme &&
    theirs.network === ours.network &&
    theirs.amount === ours.amount &&
    fold(theirs.asset) === fold(ours.asset) &&
    fold(theirs.payTo) === fold(ours.payTo) &&
    theirs.maxTimeoutSeconds === ours.maxTimeoutSeconds &&
    Object.entries(ours.extra ?? {}).every(([name, value]) => isDeepStrictEqual(theirs.extra?.[name], value))
  )
}

export function samePayment(a: PaymentIdentity, b: PaymentIdentity): boolean {
  return a.network === b.network && a.asset === b.asset && a.payer === b.payer && a.nonce === b.nonce
}
