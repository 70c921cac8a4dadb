// Makes and checks Ed25519 signatures, many at a time (see signatures.ts).
import { createPublicKey, type KeyObject, sign, verify } from 'node:crypto'

export interface SigningTask {
  texts: readonly string[]
  key: KeyObject
}

/** Each signature in hex, in the order of the texts. */
export function signTexts({ texts, key }: SigningTask): string[] {
  return texts.map((text) => sign(null, Buffer.from(text), key).toString('hex'))
}

export interface SignedText {
  text: string
  pubkey_hex: string
  signature_hex: string
}

export function areSigned(texts: readonly SignedText[]): boolean[] {
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
