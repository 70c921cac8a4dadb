// Recovery tokens: bearer credentials for the result of one request. A token is derived from the request id with a secret of
// the service, so no stored data opens a result. It contains the id, so that a caller who has only the token can come back.
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'

const PREFIX = 'crt_'
const FORM = /^crt_([A-Za-z0-9_-]{22})[A-Za-z0-9_-]{43}$/

/**
 * The prefix, the 16 bytes of the id, and the HMAC of the id, both in base64url.
 * @param secret 32 bytes; a KeyObject is faster if it is used often
 * @param requestId a UUID in lower case
 */
export function recoveryToken(secret: Buffer | KeyObject, requestId: string): string {
  const id = Buffer.from(requestId.replaceAll('-', ''), 'hex').toString('base64url')
  return PREFIX + id + macOf(secret, requestId)
}

function macOf(secret: Buffer | KeyObject, requestId: string): string {
  return createHmac('sha256', secret).update(requestId).digest('base64url')
}

/** The request id in a token; proves nothing (see `isRecoveryToken`). Null for text that is no token. */
export function requestNamedBy(token: string): string | null {
  const [, id] = FORM.exec(token) ?? []
  if (id === undefined) return null
  return Buffer.from(id, 'base64url')
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/** Accepts the short form without the id too: processes of an earlier release hand it out. */
export function isRecoveryToken(secret: Buffer | KeyObject, requestId: string, given: string): boolean {
  return isSameToken(recoveryToken(secret, requestId), given) || isSameToken(PREFIX + macOf(secret, requestId), given)
}

/** Compares in constant time for tokens of one length. */
export function isSameToken(token: string, given: string): boolean {
  const expected = Buffer.from(token)
  const actual = Buffer.from(given)
  return actual.length === expected.length && timingSafeEqual(actual, expected)
}
