// `cli sign-offline`: signs the payment for a quote of offline mode, for purchases with curl.

import { x402Client } from '@x402/core/client'
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from '@x402/core/http'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { AppError } from '../errors.ts'

/**
 * Signs terms with a new wallet that owns nothing. Such a signature pays in offline mode, where every key pays, and is worthless
 * on a chain.
 * @param terms the header PAYMENT-REQUIRED
 * @returns the header PAYMENT-SIGNATURE. Throws AppError `invalid_request` for any other text.
 */
export async function signOffline(terms: string): Promise<string> {
  const client = new x402Client().register('eip155:*', new ExactEvmScheme(privateKeyToAccount(generatePrivateKey())))
  return encodePaymentSignatureHeader(await client.createPaymentPayload(readTerms(terms)))
}

function readTerms(text: string) {
  try {
    return decodePaymentRequiredHeader(text.trim())
  } catch (error) {
    const message = 'Give the value of the header PAYMENT-REQUIRED of a 402, which is base64.'
    throw new AppError('invalid_request', message, { cause: error })
  }
}
