// The facilitator of offline mode: every check of an EIP-3009 payment is real (terms, recipient, amount, validity, EIP-712
// signature, nonce used once), but no money moves. Any private key can pay.
import { AppError } from '../../errors.ts'
import { PRICE, usdOf } from '../../interface/price.ts'
import type { Threads } from '../../threads/pool.ts'
import { checkAuthorization } from '../chains/evm-authorization.ts'
import { openSignatureChecks } from '../chains/signature-checks.ts'
import { OFFLINE_NETWORK } from '../networks.ts'
import { evmAuthorization, readEvmPayment, readPayload, readPayment } from '../payload.ts'
import { evmTerms, type Facilitator, type OfferedPayment, pricedAt } from '../x402.ts'

const NETWORK = OFFLINE_NETWORK
/** A fixed address that receives nothing, so that terms are the same in every process. */
export const OFFLINE_PAY_TO = '0x0000000000000000000000000000000000008402'

interface OfflineOptions {
  payTo?: string | undefined
  now?: () => number
  threads?: Threads | undefined
}

/**
 * A nonce is used once because its row in `payment_claims` is unique. No chain is asked, so every settlement of a payment has
 * the same answer.
 * @param options `now`: Unix time in seconds; `threads`: check the signatures; by default the facilitator opens its own
 */
export function openOfflineFacilitator(options: OfflineOptions = {}): Facilitator {
  const now = options.now ?? (() => Math.floor(Date.now() / 1000))
  const signatures = openSignatureChecks(options.threads)
  const terms = evmTerms(NETWORK, options.payTo ?? OFFLINE_PAY_TO)
  const accepts = [terms]
  const termsFor: Facilitator['termsFor'] = (_requestId, price = PRICE) => accepts.map((one) => pricedAt(one, price))
  return {
    provider: 'offline',
    accepts,
    termsFor,
    read: (given, requestId, resourceOf, price) =>
      readPayment(given, { accepts: termsFor(requestId, price), resourceOf }),
    readClaim(given) {
      const { identity, signature_sha256 } = readEvmPayment(readPayload(given), terms)
      return { identity, signature_sha256 }
    },
    async identify(given) {
      const payload = readPayload(given)
      const { identity } = readEvmPayment(payload, terms)
      if (!(await signatures.isSignedByPayer(NETWORK, evmAuthorization.parse(payload.payload)))) throw notSigned()
      return identity
    },
    async verify(offer: OfferedPayment) {
      if (!(await signatures.isSignedByPayer(NETWORK, checkAuthorization(offer, now())))) throw notSigned()
    },
    cover: async () => null,
    prepare: async () => ({ at: now(), block: null, transaction: null }),
    async settle(offer: OfferedPayment) {
      const { payer } = offer.bound.identity
      const { amount } = offer.bound.requirements
      return {
        kind: 'paid',
        payment: {
          status: 'settled',
          provider: 'offline',
          mode: 'offline',
          simulated: true,
          network: 'none',
          asset: terms.asset,
          currency: 'USDC',
          amount_atomic: amount,
          price_usd: usdOf(amount),
          transaction: null,
          facilitator_fee_usd: null,
          network_fee_usd: null,
        },
        response: { success: true, transaction: '', network: NETWORK, payer },
        proof: null,
        logIndex: null,
      }
    },
    resolve: async () => ({ kind: 'open' }),
    [Symbol.asyncDispose]: () => signatures[Symbol.asyncDispose](),
  }
}

function notSigned() {
  return new AppError('payment_invalid', 'The payment authorization is not signed by its payer.')
}
