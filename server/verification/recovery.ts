// Recovery tokens: the bearer credential for one request's result. Derived from the request id by a secret of the
// service, so nothing that would open a result is stored anywhere.
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'

const PREFIX = 'crt_'

/** @param secret 32 bytes, as a KeyObject where it is used often; the token is 43 base64url characters behind its prefix */
export function recoveryToken(secret: Buffer | KeyObject, requestId: string): string {
  return PREFIX + createHmac('sha256', secret).update(requestId).digest('base64url')
}

export function isRecoveryToken(secret: Buffer | KeyObject, requestId: string, given: string): boolean {
  return isSameToken(recoveryToken(secret, requestId), given)
}

/** In a time that tells nothing of where they differ. */
export function isSameToken(token: string, given: string): boolean {
  const expected = Buffer.from(token)
  const actual = Buffer.from(given)
  return actual.length === expected.length && timingSafeEqual(actual, expected)
}
