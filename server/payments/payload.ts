// A payment as it is read: checked member by member, and made anew from what was checked. Nothing else of what a caller
// sent is stored or reaches a facilitator.
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { decodePaymentSignatureHeader } from '@x402/core/http'
import { parsePaymentPayload } from '@x402/core/schemas'
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { describeListing, extensions, nameExtensions, type Resource, readEcho, type Through } from './discovery.ts'
import type { BoundPayment, OfferedPayment, PaymentPayload, PaymentRequirements } from './x402.ts'

/** Contract wallets sign at greater length than keys; more than this is no signature that a wallet makes. */
const MAX_SIGNATURE_BYTES = 4096

/**
 * EIP-3009, the only EVM payload taken: Permit2 and others move money by rules this service cannot reconcile. A payload
 * that has further members is refused: a facilitator might go by them instead.
 */
export const evmAuthorization = z.strictObject({
  signature: z.string().regex(new RegExp(`^0x(?:[0-9a-fA-F]{2}){65,${MAX_SIGNATURE_BYTES}}$`)),
  authorization: z.strictObject({
    from: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
    to: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
    value: z.string().regex(/^\d{1,30}$/),
    validAfter: z.string().regex(/^\d{1,15}$/),
    validBefore: z.string().regex(/^\d{1,15}$/),
    nonce: z.string().regex(/^0x[0-9a-fA-F]{64}$/),
  }),
})
export type EvmAuthorization = z.output<typeof evmAuthorization>

/** What a payload says for itself. `payload`: the members that were read, and no others. */
export type ReadPayment = Pick<BoundPayment, 'identity' | 'valid_before' | 'signature_sha256'> & {
  payload: Record<string, unknown>
}

/** Reads a payload by the rules of the network it is for. Throws AppError `payment_invalid`. */
export type PaymentReader = (payload: PaymentPayload, requirements: PaymentRequirements) => ReadPayment

/**
 * Reads PAYMENT-SIGNATURE (base64 JSON) or the object MCP carries, and makes the payload anew from what was read: the
 * terms, resource and extensions are ours. No secret is repeated in an error. Throws AppError `payment_invalid`.
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

/** @param signature in one form only: two forms of one signature would have two digests */
export function digestOf(signature: string): string {
  return createHash('sha256').update(signature).digest('hex')
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
  // With the members that the schema does not know, so that later checks can refuse them.
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
