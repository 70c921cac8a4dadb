// Encryption of payment payloads at rest. A payload waits in the database from acceptance to settlement, and its holder could
// settle it, so it is encrypted with a key that is not in the database, and bound to its request.
import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from 'node:crypto'
import type { PaymentPayload } from './x402.ts'

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Answers nonce, tag and ciphertext, in this order. @param key 32 bytes */
export function sealPayload(key: KeyObject | Buffer, requestId: string, payload: PaymentPayload): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(requestId))
  const sealed = Buffer.concat([cipher.update(JSON.stringify(payload), 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed])
}

/** Throws if the bytes were changed or belong to another request. */
export function openPayload(key: KeyObject | Buffer, requestId: string, sealed: Buffer): PaymentPayload {
  const nonce = sealed.subarray(0, NONCE_BYTES)
  const tag = sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)
  // Without the length, a shorter tag would do for a payload that was cut off.
  const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(requestId))
    .setAuthTag(tag)
  const text = Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()])
  return JSON.parse(text.toString('utf8'))
}
