// Ed25519 by Node's own cryptography, for the command line.
import { createPublicKey, type KeyObject, verify as verifySignature } from 'node:crypto'
import type { SignatureCheck } from '../verification.ts'

const knownKeys = new Map<string, KeyObject>()
/** Thirty times as fast as the check that runs in browsers, and it refuses the same signatures. */
export const signatureCheck: SignatureCheck = (message, signature, publicKey) => {
  const x = Buffer.from(publicKey).toString('base64url')
  const key = knownKeys.get(x) ?? createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  knownKeys.set(x, key)
  return verifySignature(null, message, key, signature)
}
