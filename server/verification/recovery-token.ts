// Recovery tokens: the bearer credential for one request's result. Derived from the request id by a secret of the
// service, so nothing that would open a result is stored anywhere; and it names its request, so that whoever holds
// nothing else can still come back.
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'

const PREFIX = 'crt_'
const FORM = /^crt_([A-Za-z0-9_-]{22})[A-Za-z0-9_-]{43}$/

/**
 * Behind its prefix: the 16 bytes of the id, then its HMAC, both in base64url.
 * @param secret 32 bytes, as a KeyObject where it is used often
 * @param requestId a UUID in lower case
 */
export function recoveryToken(secret: Buffer | KeyObject, requestId: string): string {
  const id = Buffer.from(requestId.replaceAll('-', ''), 'hex').toString('base64url')
  return PREFIX + id + macOf(secret, requestId)
}

function macOf(secret: Buffer | KeyObject, requestId: string): string {
  return createHmac('sha256', secret).update(requestId).digest('base64url')
}

/** The request that a token says it is for; proves nothing (see isRecoveryToken). Null for what is no token. */
export function requestNamedBy(token: string): string | null {
  const [, id] = FORM.exec(token) ?? []
  if (id === undefined) return null
  return Buffer.from(id, 'base64url')
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/** The short form, without the id, is out there too: processes of an earlier release hand it out. */
export function isRecoveryToken(secret: Buffer | KeyObject, requestId: string, given: string): boolean {
  return isSameToken(recoveryToken(secret, requestId), given) || isSameToken(PREFIX + macOf(secret, requestId), given)
}

/** In a time that tells nothing of where they differ. */
export function isSameToken(token: string, given: string): boolean {
  const expected = Buffer.from(token)
  const actual = Buffer.from(given)
  return actual.length === expected.length && timingSafeEqual(actual, expected)
}
