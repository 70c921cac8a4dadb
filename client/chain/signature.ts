// Ed25519 exactly as RFC 8032 and OpenSSL verify it, so that no crafted signature passes in one of them alone.
import { hashes, Point, verify } from '@noble/ed25519'
import { sha512 } from '@noble/hashes/sha2.js'

// The library has no hash function of its own.
hashes.sha512 = sha512

/** Whether the signature is valid. A replacement for `isSigned` must refuse every signature that `isSigned` refuses. */
export type SignatureCheck = (message: Uint8Array, signature: Uint8Array, publicKey: Uint8Array) => boolean

/** Whether 64 signature bytes are the signature of `message`. About 2 ms: the price of pure JavaScript. */
export function isSigned(message: Uint8Array, signature: Uint8Array, publicKey: Uint8Array): boolean {
  // Left to its default, the library accepts encodings (ZIP-215) that others refuse.
  if (!verify(signature, message, publicKey, { zip215: false })) return false
  // Its equation has the cofactor, which hides a small-order part of R. The equation of other verifiers has none.
  return Point.fromBytes(signature.subarray(0, 32)).isTorsionFree()
}
