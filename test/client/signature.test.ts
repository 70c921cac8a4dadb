import { generateKeyPairSync, randomBytes, sign, verify } from 'node:crypto'
import { verify as nobleVerify } from '@noble/ed25519'
import t from 'tap'
import { isSigned } from '../../client/chain/signature.ts'
import { pubkeyHex, publicKey, SEED } from './issuer.ts'
import { torsionSignature, unreducedSignature, zip215Signature } from './signatures.ts'

const message = Buffer.from('a message')
const pubkey = Buffer.from(pubkeyHex, 'hex')

t.test('agrees with RFC 8032, section 7.1, test 3', async (t) => {
  const key = Buffer.from('fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025', 'hex')
  const signature = Buffer.from(
    '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac' +
      '18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
    'hex',
  )
  t.ok(isSigned(Buffer.from('af82', 'hex'), signature, key))
  t.notOk(isSigned(Buffer.from('af83', 'hex'), signature, key))
})

t.test('agrees with OpenSSL on honest signatures of any length of message', async (t) => {
  for (const length of [0, 1, 63, 64, 65, 300]) {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
    const data = randomBytes(length)
    const signature = sign(null, data, privateKey)
    t.ok(isSigned(data, signature, raw), `${length} bytes`)
    signature[40]! ^= 1
    t.notOk(isSigned(data, signature, raw))
  }
})

t.test('refuses what OpenSSL refuses, though the library in its default would not', async (t) => {
  const zip215 = zip215Signature(message, SEED)
  t.ok(nobleVerify(zip215, message, pubkey), 'ZIP-215 accepts it')
  t.notOk(verify(null, message, publicKey, zip215))
  t.notOk(isSigned(message, zip215, pubkey))
})

t.test('refuses what OpenSSL refuses, though the library at its strictest would not', async (t) => {
  const torsion = torsionSignature(message, SEED)
  t.ok(nobleVerify(torsion, message, pubkey, { zip215: false }), 'the cofactored equation accepts it')
  t.notOk(verify(null, message, publicKey, torsion))
  t.notOk(isSigned(message, torsion, pubkey))
})

t.test('refuses an S that is not reduced', async (t) => {
  const unreduced = unreducedSignature(message, SEED)
  t.notOk(verify(null, message, publicKey, unreduced))
  t.notOk(isSigned(message, unreduced, pubkey))
})
