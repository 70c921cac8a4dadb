// The facilitator without a network: every check of an EIP-3009 payment is real (terms, recipient, amount, window,
// EIP-712 signature, nonce used once), and nothing moves. Any private key pays it.
import { AppError } from '../errors.ts'
import { PRICE } from '../interface/payment.ts'
import { checkAuthorization } from './authorization.ts'
import { evmAuthorization, readEvmPayment, readPayload, readPayment } from './payload.ts'
import { openSigners } from './signers.ts'
import { EVM_USDC, evmTerms, type Facilitator, type OfferedPayment } from './x402.ts'

const NETWORK = 'eip155:84532'
/** Receives nothing; a fixed address, so that terms are the same in every process. */
export const OFFLINE_PAY_TO = '0x0000000000000000000000000000000000008402'

/**
 * Whether a nonce was used before is not asked here: the unique row in `payment_claims`, written when the request is
 * accepted, is the ledger of this chain that does not exist. So there is nothing to look at either, and settling again
 * gives the same answer again.
 * @param now Unix time in seconds
 */
export function openOfflineFacilitator(options: { payTo?: string; now?: () => number } = {}): Facilitator {
  const now = options.now ?? (() => Math.floor(Date.now() / 1000))
  const signers = openSigners()
  const terms = evmTerms(NETWORK, options.payTo ?? OFFLINE_PAY_TO)
  const accepts = [terms]
  return {
    provider: 'offline',
    accepts,
    termsFor: () => accepts,
    read: (given, _requestId, resourceOf) => readPayment(given, { accepts, resourceOf }),
    readClaim(given) {
      const { identity, signature_sha256 } = readEvmPayment(readPayload(given), terms)
      return { identity, signature_sha256 }
    },
    async identify(given) {
      const payload = readPayload(given)
      const { identity } = readEvmPayment(payload, terms)
      if (!(await signers.isSignedByPayer(NETWORK, evmAuthorization.parse(payload.payload)))) throw notSigned()
      return identity
    },
    async verify(offer: OfferedPayment) {
      if (!(await signers.isSignedByPayer(NETWORK, checkAuthorization(offer, now())))) throw notSigned()
    },
    cover: async () => null,
    prepare: async () => ({ at: now(), block: null, transaction: null }),
    async settle(offer: OfferedPayment) {
      const { payer } = offer.bound.identity
      return {
        kind: 'paid',
        payment: {
          status: 'settled',
          provider: 'offline',
          mode: 'offline',
          simulated: true,
          network: 'none',
          asset: EVM_USDC[NETWORK].asset,
          currency: 'USDC',
          amount_atomic: PRICE.atomic,
          price_usd: PRICE.usd,
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
    [Symbol.asyncDispose]: () => signers[Symbol.asyncDispose](),
  }
}

function notSigned() {
  return new AppError('payment_invalid', 'The payment authorization is not signed by its payer.')
}
