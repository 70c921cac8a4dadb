// The credentials for Coinbase: one token per call, for its method and path.
import { generateKeyPairSync, type KeyObject, verify } from 'node:crypto'
import t from 'tap'
import { isCdpSecret, readCdpSecret } from '../../server/config/cdp-key.ts'
import { cdpHeaders, signCdpToken } from '../../server/payments/facilitators/cdp.ts'

const ed25519 = generateKeyPairSync('ed25519')
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const { d = '', x = '' } = ed25519.privateKey.export({ format: 'jwk' })
const ed25519Secret = Buffer.concat([Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]).toString('base64')
const pem = ec.privateKey.export({ format: 'pem', type: 'sec1' }).toString()

const secrets: Record<string, { secret: string; key: KeyObject; alg: string }> = {
  'Ed25519, base64 of seed and public key': { secret: ed25519Secret, key: ed25519.publicKey, alg: 'EdDSA' },
  'P-256 in PEM': { secret: pem, key: ec.publicKey, alg: 'ES256' },
  'P-256 in PEM on one line': { secret: pem.trim().replaceAll('\n', '\\n'), key: ec.publicKey, alg: 'ES256' },
}

function readToken(token: string) {
  const [header = '', claims = '', signature = ''] = token.split('.')
  const parse = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())
  return { header: parse(header), claims: parse(claims), input: `${header}.${claims}`, signature }
}

for (const [form, { secret, key, alg }] of Object.entries(secrets)) {
  t.test(form, async (t) => {
    t.equal(isCdpSecret(secret), true)
    const url = new URL('https://api.cdp.coinbase.com/platform/v2/x402/settle')
    const token = readToken(
      signCdpToken({ id: 'key-1', privateKey: readCdpSecret(secret) }, 'POST', url, 1_800_000_000),
    )
    t.match(token.header, { alg, kid: 'key-1', typ: 'JWT', nonce: /^[0-9a-f]{32}$/ })
    t.same(token.claims, {
      sub: 'key-1',
      iss: 'cdp',
      uris: ['POST api.cdp.coinbase.com/platform/v2/x402/settle'],
      iat: 1_800_000_000,
      nbf: 1_800_000_000,
      exp: 1_800_000_120,
    })
    const given = { key, dsaEncoding: 'ieee-p1363' as const }
    const signature = Buffer.from(token.signature, 'base64url')
    t.equal(verify(alg === 'EdDSA' ? null : 'sha256', Buffer.from(token.input), given, signature), true)
    t.equal(verify(alg === 'EdDSA' ? null : 'sha256', Buffer.from(`${token.input}x`), given, signature), false)
  })
}

t.test('each of the three calls has a token of its own', async (t) => {
  const key = { id: 'key-1', privateKey: readCdpSecret(ed25519Secret) }
  const headers = await cdpHeaders(key, 'https://api.cdp.coinbase.com/platform/v2/x402')()
  const uris = Object.values(headers).map(
    ({ Authorization }) => readToken(Authorization.replace('Bearer ', '')).claims.uris,
  )
  t.same(uris, [
    ['POST api.cdp.coinbase.com/platform/v2/x402/verify'],
    ['POST api.cdp.coinbase.com/platform/v2/x402/settle'],
    ['GET api.cdp.coinbase.com/platform/v2/x402/supported'],
  ])
  const again = await cdpHeaders(key, 'https://api.cdp.coinbase.com/platform/v2/x402')()
  t.not(headers.settle.Authorization, again.settle.Authorization)
})

t.test('secrets that are not keys', async (t) => {
  const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey.export({ format: 'pem', type: 'pkcs8' })
  for (const secret of [
    'secret',
    Buffer.alloc(32).toString('base64'),
    p384.toString(),
    '-----BEGIN EC PRIVATE KEY-----',
  ])
    t.equal(isCdpSecret(secret), false)
})
