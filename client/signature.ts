// Ed25519 exactly as RFC 8032 and OpenSSL have it, so that no crafted signature divides two verifiers.
import { hashes, Point, verify } from '@noble/ed25519'
import { sha512 } from '@noble/hashes/sha2.js'

// The library ships without a hash function; this is its way to be given one.
hashes.sha512 = sha512

/** Whether the signature is good. A replacement for `isSigned` must refuse whatever that one refuses, as OpenSSL does. */
export type SignatureCheck = (message: Uint8Array, signature: Uint8Array, publicKey: Uint8Array) => boolean

/** Whether 64 signature bytes are the signature of `message`. About 2 ms: the price of pure JavaScript. */
export function isSigned(message: Uint8Array, signature: Uint8Array, publicKey: Uint8Array): boolean {
  // Left to its default, the library accepts encodings (ZIP-215) that others refuse.
  if (!verify(signature, message, publicKey, { zip215: false })) return false
  // Its equation is multiplied by the cofactor, which hides a small-order part of R; the equation of others is not.
  return Point.fromBytes(signature.subarray(0, 32)).isTorsionFree()
}
