// Sealed payloads and recovery tokens: each opens one request and no other.
import { randomBytes, randomUUID } from 'node:crypto'
import t from 'tap'
import { openPayload, sealPayload } from '../../server/payments/seal.ts'
import type { PaymentPayload } from '../../server/payments/x402.ts'
import { isRecoveryToken, recoveryToken, requestNamedBy } from '../../server/verification/recovery-token.ts'

const payload = {
  x402Version: 2,
  payload: { signature: '0xabcdef', authorization: { nonce: '0x01', note: 'é漢😀' } },
} as unknown as PaymentPayload

t.test('a sealed payload opens with its key, for its request, unchanged', (t) => {
  const [key, id] = [randomBytes(32), randomUUID()]
  const sealed = sealPayload(key, id, payload)
  t.same(openPayload(key, id, sealed), payload)
  t.throws(() => openPayload(key, randomUUID(), sealed), 'for another request')
  t.throws(() => openPayload(randomBytes(32), id, sealed), 'with another key')
  for (let at = 0; at < sealed.length; at++) {
    const changed = Buffer.from(sealed)
    changed[at]! ^= 1
    if (!throws(() => openPayload(key, id, changed))) t.fail(`byte ${at} is not protected`)
  }
  for (const length of [0, 11, 12, 27, 28, sealed.length - 1])
    t.throws(() => openPayload(key, id, sealed.subarray(0, length)), `cut to ${length} bytes`)
  t.end()
})

t.test('sealing twice gives different bytes, which do not contain the payload', (t) => {
  const [key, id] = [randomBytes(32), randomUUID()]
  const [one, two] = [sealPayload(key, id, payload), sealPayload(key, id, payload)]
  t.notSame(one, two)
  t.notOk(one.includes('signature'))
  t.notOk(one.includes('0xabcdef'))
  t.end()
})

t.test('a recovery token is the same each time, and good for one request of one service', (t) => {
  const [secret, id] = [randomBytes(32), randomUUID()]
  const token = recoveryToken(secret, id)
  t.equal(recoveryToken(secret, id), token)
  t.match(token, /^crt_[A-Za-z0-9_-]{65}$/)
  t.equal(requestNamedBy(token), id)
  for (const other of ['', 'crt_', token.slice(1), `${token}A`, token.slice(0, -1)])
    t.equal(requestNamedBy(other), null)
  t.ok(isRecoveryToken(secret, id, token))
  t.ok(isRecoveryToken(secret, id, `crt_${token.slice(-43)}`), 'the short form')
  t.notOk(isRecoveryToken(secret, randomUUID(), `crt_${token.slice(-43)}`), 'the short form of another request')
  t.notOk(isRecoveryToken(secret, randomUUID(), token), 'another request')
  t.notOk(isRecoveryToken(randomBytes(32), id, token), 'another service')
  for (const wrong of ['', 'crt_', token.slice(0, -1), `${token}A`, token.toLowerCase(), `${token.slice(0, -1)}é`])
    t.notOk(isRecoveryToken(secret, id, wrong), JSON.stringify(wrong))
  t.end()
})

function throws(work: () => unknown): boolean {
  try {
    work()
    return false
  } catch {
    return true
  }
}
