// What the OpenAPI document says of the price of an operation, in the form that catalogues of x402 read.
import { HIGHEST_PRICE, PRICE } from '../interface/price.ts'
import type { Operation } from '../operation.ts'

/** `x-payment-info`: one amount, or between which amounts the price is. */
export function paymentInfoOf({ input, otherwise }: Operation) {
  const [least, most] = [PRICE.usd, HIGHEST_PRICE.usd]
  const hasOnePrice = !('claims' in input.shape) && otherwise === undefined
  const price = hasOnePrice ? { mode: 'fixed', amount: least } : { mode: 'dynamic', min: least, max: most }
  return { price: { currency: 'USD', ...price }, protocols: [{ x402: {} }] }
}
