// Requests as the bench sends or stores them: admissions whose payment counts as verified, and payments with real
// signatures.
import { createHash, type KeyObject, randomBytes, randomUUID } from 'node:crypto'
import { x402Client } from '@x402/core/client'
import { decodePaymentSignatureHeader, encodePaymentSignatureHeader } from '@x402/core/http'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { claimCount, type PurchaseBody } from '../server/interface/claims.ts'
import { EVM_NETWORKS } from '../server/interface/networks.ts'
import { priceOf } from '../server/interface/price.ts'
import type { VerificationInput } from '../server/interface/result.ts'
import type { SignedTransfer } from '../server/payments/chains/signed-transfer.ts'
import { OFFLINE_PAY_TO } from '../server/payments/facilitators/offline-facilitator.ts'
import { evmAuthorization } from '../server/payments/payload.ts'
import { sealPayload } from '../server/payments/seal.ts'
import { type BoundPayment, evmTerms, type PaymentPayload, paymentRequired } from '../server/payments/x402.ts'
import { canonicalJson, sha256 } from '../server/receipts/format.ts'
import type { Admission } from '../server/verification/admission/admission.ts'
import { makeRequestId } from '../server/verification/request-id.ts'

const NETWORK = 'eip155:84532'
const terms = evmTerms(NETWORK, OFFLINE_PAY_TO)

/** The request that all parts send, for a page of their choice. */
export function bodyFor(url: string): VerificationInput {
  return { source_url: url, claim: 'The harbour was opened in 1874.' }
}

export function bodyHashOf(body: PurchaseBody): string {
  return sha256(canonicalJson(body))
}

/** A payment without a signature, of the size of a real one, for code behind the signature check. */
function buildPayment(amount: string): { bound: BoundPayment; payload: PaymentPayload } {
  const nonce = `0x${randomBytes(32).toString('hex')}`
  const payer = `0x${randomBytes(20).toString('hex')}`
  const validBefore = Math.floor(Date.now() / 1000) + 300
  return {
    bound: {
      identity: { network: NETWORK, asset: terms.asset.toLowerCase(), payer, nonce },
      valid_before: validBefore,
      requirements: { ...terms, amount },
    },
    payload: {
      x402Version: 2,
      accepted: { ...terms, amount },
      payload: {
        signature: `0x${'00'.repeat(65)}`,
        authorization: {
          from: payer,
          to: terms.payTo,
          value: amount,
          validAfter: '0',
          validBefore: String(validBefore),
          nonce,
        },
      },
    },
  }
}

/**
 * From a payer and an address of its own, for a domain of its own: no limit on what is in flight is met.
 * @param keyHash of a row quoted before; a fresh key without
 */
export function buildAdmission(secret: Buffer | KeyObject, body: PurchaseBody, keyHash?: Buffer): Admission {
  const { bound, payload } = buildPayment(priceOf(claimCount(body)).atomic)
  const known = keyHash !== undefined
  const key = keyHash ?? createHash('sha256').update(randomUUID()).digest()
  return {
    id: makeRequestId(),
    known,
    keyHash: key,
    bodyHash: bodyHashOf(body),
    body,
    quoteTtlSeconds: 900,
    // Derived from the key, which is as random, because this runs while admissions are timed.
    addressKey: key.subarray(0, 16),
    domain: `${key.toString('hex', 0, 8)}.test`,
    payment: { bound, sealFor: (id) => sealPayload(secret, id, payload) },
  }
}

/**
 * Signed payments as a stock client makes them, each of its own wallet, valid for 300 seconds; values of PAYMENT-SIGNATURE.
 */
export async function signPayments(count: number): Promise<string[]> {
  const resource = { url: 'http://127.0.0.1/', description: 'bench', assessment: 'literal' } as const
  const asked = paymentRequired([terms], resource, 'bench')
  const headers: string[] = []
  for (let made = 0; made < count; made++) {
    const account = privateKeyToAccount(generatePrivateKey())
    const client = new x402Client().register(NETWORK, new ExactEvmScheme(account))
    headers.push(encodePaymentSignatureHeader(await client.createPaymentPayload(asked)))
  }
  return headers
}

/** The input of the service's signature thread for such a header. */
export function transferOf(header: string): SignedTransfer {
  const { signature, authorization } = evmAuthorization.parse(decodePaymentSignatureHeader(header).payload)
  return { chainId: 84_532, ...EVM_NETWORKS[NETWORK].usdc, signature, authorization }
}
