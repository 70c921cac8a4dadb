// The rules an EIP-3009 authorization must meet before any work is done for it, whoever settles it later.
import { AppError } from '../errors.ts'
import { type EvmAuthorization, evmAuthorization } from './payload.ts'
import { MAX_TIMEOUT_SECONDS, type OfferedPayment } from './x402.ts'

/** Work and settlement must fit before the authorization runs out: a source may take this long. */
const MIN_REMAINING_SECONDS = 60
/** A payer's clock may be this far ahead of ours. */
const CLOCK_SKEW_SECONDS = 60

/**
 * Recipient, amount and window. A validity far beyond the one asked for is refused as well: while it lasts, a lost
 * settlement could not be proved unpaid.
 * @param nowSeconds Unix time. Throws AppError `payment_invalid`.
 */
export function checkAuthorization(offer: OfferedPayment, nowSeconds: number): EvmAuthorization {
  const { signature, authorization } = evmAuthorization.parse(offer.payload.payload)
  const { payTo, amount } = offer.bound.requirements as { payTo: string; amount: string }
  const refuse = (reason: string): never => {
    throw new AppError('payment_invalid', `The payment authorization was not accepted: ${reason}.`)
  }
  if (authorization.to.toLowerCase() !== payTo.toLowerCase()) refuse('it pays another recipient')
  if (BigInt(authorization.value) !== BigInt(amount)) refuse(`its value is not ${amount}`)
  if (Number(authorization.validAfter) > nowSeconds) refuse('it is not valid yet')
  const remaining = Number(authorization.validBefore) - nowSeconds
  if (remaining < MIN_REMAINING_SECONDS) refuse(`it expires in less than ${MIN_REMAINING_SECONDS} seconds`)
  if (remaining > MAX_TIMEOUT_SECONDS + CLOCK_SKEW_SECONDS)
    refuse(`it is valid for more than the ${MAX_TIMEOUT_SECONDS} seconds asked for`)
  return { signature, authorization }
}
