// The rules for an EIP-3009 authorization, checked before any work is done for it, by every facilitator.
import { AppError } from '../../errors.ts'
import { type EvmAuthorization, evmAuthorization } from '../payload.ts'
import { MAX_TIMEOUT_SECONDS, type OfferedPayment } from '../x402.ts'

/** Work and settlement must fit before the authorization expires: a source may take this long. */
const MIN_REMAINING_SECONDS = 60
/** A payer's clock may be ahead of ours by this. */
const CLOCK_SKEW_SECONDS = 60

/**
 * Checks recipient, amount and validity. An authorization that is valid for much longer than the terms say is refused too:
 * until it expires, a lost settlement could not be proved unpaid.
 * @param nowSeconds Unix time. Throws AppError `payment_invalid`.
 */
export function checkAuthorization(offer: OfferedPayment, nowSeconds: number): EvmAuthorization {
  const { signature, authorization } = evmAuthorization.parse(offer.payload.payload)
  const { payTo, amount } = offer.bound.requirements
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
