// Signatures that some verifiers accept and others refuse: made with the secret key, but not as RFC 8032 signs.
import { createHash } from 'node:crypto'
import { Point } from '@noble/ed25519'

const L = 2n ** 252n + 27742317777372353535851937790883648493n

/** A point of order 8. */
const TORSION = Point.fromHex('c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a')

/** The identity as a public key: a signature for one message under it is one for every message. */
export const smallOrderKey = `01${'00'.repeat(31)}`

/** R is the identity, spelt with y = p + 1 instead of 1. */
export function zip215Signature(message: Buffer, seed: Buffer): Buffer {
  return complete(Buffer.from(`ee${'ff'.repeat(30)}7f`, 'hex'), 0n, message, seed)
}

/** R has a part of order 8 that the cofactored equation does not see; every encoding is canonical. */
export function torsionSignature(message: Buffer, seed: Buffer): Buffer {
  const r = 123_456_789n
  return complete(Buffer.from(Point.BASE.multiply(r).add(TORSION).toBytes()), r, message, seed)
}

/** The honest R and S, S a multiple of L too high. */
export function unreducedSignature(message: Buffer, seed: Buffer): Buffer {
  const r = 123_456_789n
  const signature = complete(Buffer.from(Point.BASE.multiply(r).toBytes()), r, message, seed)
  const s = readLittleEndian(signature.subarray(32)) + L
  return Buffer.concat([signature.subarray(0, 32), littleEndian(s)])
}

function complete(R: Buffer, r: bigint, message: Buffer, seed: Buffer): Buffer {
  const expanded = createHash('sha512').update(seed).digest()
  expanded[0]! &= 248
  expanded[31]! = (expanded[31]! & 127) | 64
  const a = readLittleEndian(expanded.subarray(0, 32)) % L
  const A = Point.BASE.multiply(a).toBytes()
  const k = readLittleEndian(createHash('sha512').update(R).update(A).update(message).digest())
  return Buffer.concat([R, littleEndian((r + k * a) % L)])
}

function readLittleEndian(bytes: Buffer): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`)
}

function littleEndian(value: bigint): Buffer {
  return Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse()
}
