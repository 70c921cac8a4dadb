// Encryption at rest, with keys that are not in the database. A payment payload waits there from acceptance to settlement, and its holder
// could settle it; a capture holds the page. What is sealed is bound to the row that it belongs to.
import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from 'node:crypto'
import type { PaymentPayload } from './x402.ts'

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Answers nonce, tag and ciphertext, in this order. @param key 32 bytes @param rowId of the row to which the bytes belong */
export function sealBytes(key: KeyObject | Buffer, rowId: string, plain: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(rowId))
  const sealed = [cipher.update(plain), cipher.final()]
  return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed])
}

/** Throws if the bytes were changed or belong to another row. */
export function openBytes(key: KeyObject | Buffer, rowId: string, sealed: Buffer): Buffer {
  const nonce = sealed.subarray(0, NONCE_BYTES)
  const tag = sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)
  // Without the length, a shorter tag would do for bytes that were cut off.
  const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(rowId))
    .setAuthTag(tag)
  return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()])
}

/** As sealBytes, for the payload of a request. */
export function sealPayload(key: KeyObject | Buffer, requestId: string, payload: PaymentPayload): Buffer {
  return sealBytes(key, requestId, Buffer.from(JSON.stringify(payload)))
}

/** As openBytes. */
export function openPayload(key: KeyObject | Buffer, requestId: string, sealed: Buffer): PaymentPayload {
  return JSON.parse(openBytes(key, requestId, sealed).toString('utf8'))
}
