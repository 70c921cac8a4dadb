// Credentials for the Coinbase Developer Platform: one token per request, valid for its method and path for two minutes.
import { createPrivateKey, type KeyObject, randomBytes, sign } from 'node:crypto'

export interface CdpKey {
  id: string
  /** Base64 of an Ed25519 key (seed and public key, 64 bytes), or an EC P-256 key in PEM. */
  secret: string
}

const LIFETIME_SECONDS = 120
/** The PKCS#8 prefix of the 32 bytes of an Ed25519 seed. */
const PKCS8_ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex')

/** Throws if the secret has neither form. A PEM may contain `\n` as two characters, as environment files do. */
function readCdpSecret(secret: string): KeyObject {
  if (secret.includes('-----BEGIN')) {
    const key = createPrivateKey(secret.replaceAll('\\n', '\n'))
    if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') throw new Error('not a P-256 key')
    return key
  }
  const bytes = Buffer.from(secret, 'base64')
  if (bytes.length !== 64) throw new Error('not the base64 of 64 bytes')
  return createPrivateKey({ key: Buffer.concat([PKCS8_ED25519, bytes.subarray(0, 32)]), format: 'der', type: 'pkcs8' })
}

export function isCdpSecret(secret: string): boolean {
  try {
    readCdpSecret(secret)
    return true
  } catch {
    return false
  }
}

/** A JWT for one request. @param nowSeconds Unix time */
export function signCdpToken(key: CdpKey, method: 'GET' | 'POST', url: URL, nowSeconds: number): string {
  const privateKey = readCdpSecret(key.secret)
  const alg = privateKey.asymmetricKeyType === 'ed25519' ? 'EdDSA' : 'ES256'
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
    key: privateKey,
    dsaEncoding: 'ieee-p1363',
  })
  return `${input}.${signature.toString('base64url')}`
}

/** For `createAuthHeaders` of @x402/core's HTTPFacilitatorClient. */
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
