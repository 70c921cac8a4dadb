// Recovery tokens: the bearer credential for one request's result. Derived from the request id by a secret of the
// service, so nothing that would open a result is stored anywhere.
import { createHmac, timingSafeEqual } from 'node:crypto'

const PREFIX = 'crt_'

/** @param secret 32 bytes; the token is 43 base64url characters behind its prefix */
export function recoveryToken(secret: Buffer, requestId: string): string {
  return PREFIX + createHmac('sha256', secret).update(requestId).digest('base64url')
}

export function isRecoveryToken(secret: Buffer, requestId: string, given: string): boolean {
  const expected = Buffer.from(recoveryToken(secret, requestId))
  const actual = Buffer.from(given)
  return actual.length === expected.length && timingSafeEqual(actual, expected)
}
