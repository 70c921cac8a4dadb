// The facilitator without a network: every check of an EIP-3009 payment is real (terms, recipient, amount, window,
// EIP-712 signature, nonce used once), and nothing moves. Any private key pays it.
import { Piscina } from 'piscina'
import { AppError } from '../errors.ts'
import { PRICE } from '../verification/result.ts'
import { checkAuthorization } from './authorization.ts'
import type { SignedTransfer } from './signature-thread.ts'
import { EVM_USDC, evmTerms, type Facilitator, type OfferedPayment } from './x402.ts'

const NETWORK = 'eip155:84532'
const CHAIN_ID = 84_532
/** Receives nothing; a fixed address, so that terms are the same in every process. */
export const OFFLINE_PAY_TO = '0x0000000000000000000000000000000000008402'
/** 65 bytes in hex. Longer signatures are contract wallets', which only a chain can check. */
const EOA_SIGNATURE_LENGTH = 132

/**
 * Whether a nonce was used before is not asked here: the unique row in `payment_claims`, written when the request is
 * accepted, is the ledger of this chain that does not exist.
 * @param now Unix time in seconds
 */
export function openOfflineFacilitator(options: { payTo?: string; now?: () => number } = {}): Facilitator {
  const now = options.now ?? (() => Math.floor(Date.now() / 1000))
  const threads = new Piscina<SignedTransfer, string | null>({
    filename: new URL('./signature-thread.ts', import.meta.url).href,
    name: 'recoverSigner',
    minThreads: 0,
    maxThreads: 2,
    idleTimeout: 60_000,
  })
  return {
    provider: 'offline',
    accepts: [evmTerms(NETWORK, options.payTo ?? OFFLINE_PAY_TO)],
    async verify(offer: OfferedPayment) {
      const { signature, authorization } = checkAuthorization(offer, now())
      const { asset, name, version } = EVM_USDC[NETWORK]
      const signer =
        signature.length === EOA_SIGNATURE_LENGTH
          ? await threads.run({ chainId: CHAIN_ID, asset, name, version, signature, authorization })
          : null
      if (signer !== authorization.from.toLowerCase())
        throw new AppError('payment_invalid', 'The payment authorization is not signed by its payer.')
    },
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
      }
    },
    async [Symbol.asyncDispose]() {
      await threads.close()
    },
  }
}
