// The payment that comes with a call: read from the header, verified, and compared with the payments of other requests.
import type { Api } from '../../context.ts'
import { AppError } from '../../errors.ts'
import { priceOf } from '../../interface/price.ts'
import type { Call } from '../../operation.ts'
import { askTraced } from '../../payments/facilitators/facilitator-span.ts'
import { type OfferedPayment, samePayment } from '../../payments/x402.ts'
import { findByIdentifier, keyHashOf } from '../lookup.ts'
import { describeResource } from '../offer/offer.ts'
import type { RequestView } from '../request.ts'

/** What a payment is for: the request, and its number of claims as in `RequestView`. */
export type Payable = Pick<RequestView, 'id' | 'claims'>

/** Throws AppError `payment_invalid`, also for a payment of another price. */
function readOfferedPayment({ id, claims }: Payable, given: unknown, api: Api): OfferedPayment {
  return api.facilitator.read(given, id, (through) => describeResource(api, through), priceOf(claims))
}

/**
 * The verified payment of the call; or, as `refusal`, why its payment is not accepted; or neither if the call has none.
 * Throws AppError `payment_conflict`, and what `Facilitator.verify` throws besides `payment_invalid`.
 * @param payable whose terms the payment must meet
 */
export async function takePayment(
  { api, credentials, options }: Call,
  payable: Payable,
): Promise<{ offer: OfferedPayment | null; refusal: AppError | null }> {
  if (credentials.payment === undefined) return { offer: null, refusal: null }
  const keyHash = keyHashOf(options)
  let offer: OfferedPayment | undefined
  try {
    offer = readOfferedPayment(payable, credentials.payment, api)
    // A signature that equals the stored signature of a bound payment proves as much as a new check, and needs no call to
    // another service.
    if (await api.bindingReads.add({ claim: offer.bound, keyHash })) throw paymentTaken()
    const { facilitator } = api
    const read = offer
    await askTraced(facilitator, 'verify', read, () => facilitator.verify(read, credentials.address))
    return { offer, refusal: null }
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'payment_invalid')) throw error
    // Another call may have bound the payment meanwhile. A chain refuses a payment that it has seen, without saying why.
    if (offer && (await api.bindingReads.add({ claim: offer.bound, keyHash }))) throw paymentTaken()
    return { offer: null, refusal: error }
  }
}

/** Another request for which this payer used the same payment identifier, under any key; its payment is then not used. */
export async function findTwin(
  { bound }: OfferedPayment,
  requestId: string,
  { api }: Call,
): Promise<RequestView | null> {
  if (!bound.identifier) return null
  const twin = await findByIdentifier(api.db, bound.identity.payer, bound.identifier)
  return twin?.id === requestId ? null : twin
}

/** Whether the call has a payment other than the bound one. A payment that cannot be read does not count. */
export function hasOtherPayment(row: RequestView, { api, credentials }: Call): boolean {
  if (credentials.payment === undefined || !row.payment) return false
  try {
    return !samePayment(readOfferedPayment(row, credentials.payment, api).bound.identity, row.payment.identity)
  } catch {
    return false
  }
}

export function withoutPayment(call: Call): Call {
  return { ...call, credentials: { ...call.credentials, payment: undefined } }
}

export function paymentTaken() {
  return new AppError('payment_conflict', 'This payment authorization is bound to another request.')
}
