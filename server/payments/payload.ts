// Reading of payments: a payload is checked member by member and built again from the checked members. Nothing else of what
// a caller sent is stored or passed to a facilitator.
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { decodePaymentSignatureHeader } from '@x402/core/http'
import { parsePaymentPayload } from '@x402/core/schemas'
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { describeListing, extensions, nameExtensions, type Resource, readEcho, type Through } from './discovery.ts'
import type { BoundPayment, OfferedPayment, PaymentPayload, PaymentRequirements } from './x402.ts'

/** Contract wallets sign at greater length than keys, but no wallet signs at greater length than this. */
const MAX_SIGNATURE_BYTES = 4096

/** Text that begins with `0x`, as viem types addresses, hashes and bytes. */
export const hexText = z.templateLiteral(['0x', z.string()])

const hexOf = (pattern: RegExp) => hexText.refine((text) => pattern.test(text))

/**
 * EIP-3009, the only EVM payload that is accepted: Permit2 and others move money by rules that this service cannot
 * reconcile. A payload with further members is refused: a facilitator might follow those instead.
 */
export const evmAuthorization = z.strictObject({
  signature: hexOf(new RegExp(`^0x(?:[0-9a-fA-F]{2}){65,${MAX_SIGNATURE_BYTES}}$`)),
  authorization: z.strictObject({
    from: hexOf(/^0x[0-9a-fA-F]{40}$/),
    to: hexOf(/^0x[0-9a-fA-F]{40}$/),
    value: z.string().regex(/^\d{1,30}$/),
    validAfter: z.string().regex(/^\d{1,15}$/),
    validBefore: z.string().regex(/^\d{1,15}$/),
    nonce: hexOf(/^0x[0-9a-fA-F]{64}$/),
  }),
})
export type EvmAuthorization = z.output<typeof evmAuthorization>

/** What was read from a payload. `payload`: the checked members and no others. */
export type ReadPayment = Pick<BoundPayment, 'identity' | 'valid_before' | 'signature_sha256'> & {
  payload: Record<string, unknown>
}

/** Reads a payload by the rules of its network. Throws AppError `payment_invalid`. */
export type PaymentReader = (payload: PaymentPayload, requirements: PaymentRequirements) => ReadPayment

/**
 * Reads PAYMENT-SIGNATURE (base64 JSON) or the object that MCP carries, and builds the payload again from what was read, with
 * this service's own terms, resource and extensions. No error repeats a secret. Throws AppError `payment_invalid`.
 */
export function readPayment(
  given: unknown,
  { accepts, resourceOf }: { accepts: readonly PaymentRequirements[]; resourceOf: (through: Through) => Resource },
  read: PaymentReader = readEvmPayment,
): OfferedPayment {
  const sent = readPayload(given)
  const requirements = accepts.find((terms) => accepted(sent.accepted, terms))
  if (!requirements) throw new AppError('payment_invalid', 'The payment does not accept any of the terms offered.')
  const { through, identifier } = readEcho(sent)
  const { payload, ...said } = read(sent, requirements)
  const resource = resourceOf(through)
  return {
    payload: {
      x402Version: 2,
      resource: describeListing(resource),
      accepted: requirements,
      payload,
      extensions: nameExtensions(extensions[resource.assessment][through], identifier),
    },
    bound: { ...said, requirements, ...(identifier && { identifier }) },
  }
}

/** Token, payer and nonce together identify an EIP-3009 payment. */
export const readEvmPayment: PaymentReader = (sent, { network, asset }) => {
  const parsed = evmAuthorization.safeParse(sent.payload)
  if (!parsed.success) throw new AppError('payment_invalid', 'The payment is not an EIP-3009 authorization.')
  const { from, nonce, validBefore } = parsed.data.authorization
  return {
    payload: parsed.data,
    identity: { network, asset: asset.toLowerCase(), payer: from.toLowerCase(), nonce: nonce.toLowerCase() },
    valid_before: Number(validBefore),
    signature_sha256: digestOf(parsed.data.signature.toLowerCase()),
  }
}

/** SHA-256 in hex. @param signature in its one normal form: two forms of a signature would have two digests */
export function digestOf(signature: string): string {
  return createHash('sha256').update(signature).digest('hex')
}

/** Far more than terms and extensions need. JSON that is nested thousands deep cannot be serialised again. */
const MAX_LEVELS = 64

/** The payload as the client made it; only its form is checked. Throws AppError `payment_invalid`. */
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
  // The cast is safe: the schema has just accepted the value. The raw value keeps the members that the schema does not know, so that
  // later checks can refuse them.
  return raw as PaymentPayload
}

function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((member) => isDeeperThan(levels - 1, member))
}

/** A client must repeat the terms; it may add to `extra`, and on EVM networks addresses may differ in case. */
function accepted(theirs: PaymentRequirements, ours: PaymentRequirements): boolean {
  const fold = (value: string) => (ours.network.startsWith('eip155:') ? value.toLowerCase() : value)
  return (
    theirs.scheme === ours.scheme &&
    theirs.network === ours.network &&
    theirs.amount === ours.amount &&
    fold(theirs.asset) === fold(ours.asset) &&
    fold(theirs.payTo) === fold(ours.payTo) &&
    theirs.maxTimeoutSeconds === ours.maxTimeoutSeconds &&
    Object.entries(ours.extra).every(([name, value]) => isDeepStrictEqual(theirs.extra?.[name], value))
  )
}
