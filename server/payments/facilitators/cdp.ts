// Credentials for the Coinbase Developer Platform: a token per request, valid for its method and path for two minutes.
import { randomBytes, sign } from 'node:crypto'
import type { CdpKey } from '../../config.ts'

const LIFETIME_SECONDS = 120

/** A JWT for one request. @param nowSeconds Unix time */
export function signCdpToken(key: CdpKey, method: 'GET' | 'POST', url: URL, nowSeconds: number): string {
  const alg = key.privateKey.asymmetricKeyType === 'ed25519' ? 'EdDSA' : 'ES256'
  const header = { alg, kid: key.id, typ: 'JWT', nonce: randomBytes(16).toString('hex') }
  const claims = {
    sub: key.id,
    iss: 'cdp',
    uris: [`${method} ${url.host}${url.pathname}`],
    iat: nowSeconds,
    nbf: nowSeconds,
    exp: nowSeconds + LIFETIME_SECONDS,
  }
  const input = `${encode(header)}.${encode(claims)}`
  const signature = sign(alg === 'EdDSA' ? null : 'sha256', Buffer.from(input), {
    key: key.privateKey,
    dsaEncoding: 'ieee-p1363',
  })
  return `${input}.${signature.toString('base64url')}`
}

/** For `authorize` of the facilitator's client. */
export function cdpHeaders(key: CdpKey, baseUrl: string, now = () => Math.floor(Date.now() / 1000)) {
  const headers = (method: 'GET' | 'POST', path: string) => ({
    Authorization: `Bearer ${signCdpToken(key, method, new URL(`${baseUrl}/${path}`), now())}`,
  })
  return async () => ({
    verify: headers('POST', 'verify'),
    settle: headers('POST', 'settle'),
    supported: headers('GET', 'supported'),
  })
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
