// Checks Ed25519 signatures, many at a time (see verifier.ts).
import { createPublicKey, type KeyObject, verify } from 'node:crypto'

export interface SignedText {
  text: string
  pubkey_hex: string
  signature_hex: string
}

export default function areSigned(texts: SignedText[]): boolean[] {
  const keys = new Map<string, KeyObject>()
  return texts.map(({ text, pubkey_hex, signature_hex }) => {
    const key = keys.get(pubkey_hex) ?? readKey(pubkey_hex)
    keys.set(pubkey_hex, key)
    return verify(null, Buffer.from(text), key, Buffer.from(signature_hex, 'hex'))
  })
}

function readKey(hex: string): KeyObject {
  const x = Buffer.from(hex, 'hex').toString('base64url')
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
}
