import { readFileSync } from 'node:fs'
import t from 'tap'
import { type LeaseOptions, verifyLease } from '../../client/lease.ts'
import { issueLease, LEASE, LEASE_OPTIONS, type LeaseCase, leaseCases, leaseKeys } from './lease-issuer.ts'

const vectors = JSON.parse(readFileSync(new URL('../vectors/lease.json', import.meta.url), 'utf8')) as {
  keys: LeaseOptions['keys']
  options: typeof LEASE_OPTIONS
  cases: LeaseCase[]
}

t.test('the vectors are what the second implementation issues', async (t) => {
  const issued = { keys: leaseKeys, options: LEASE_OPTIONS, cases: leaseCases() }
  t.same(vectors, JSON.parse(JSON.stringify(issued)))
})

for (const { name, answer, options, expect, remaining_ms } of vectors.cases)
  t.test(name, async (t) => {
    const verdict = verifyLease(answer, { ...vectors.options, keys: vectors.keys, ...options })
    t.equal(verdict.ok ? 'ok' : verdict.reason, expect, JSON.stringify(verdict))
    if (verdict.ok) t.equal(verdict.remainingMs, remaining_ms)
    if (verdict.ok) t.same(verdict.lease, LEASE)
  })

t.test('with an invalid time no lease is valid', async (t) => {
  const options = { ...LEASE_OPTIONS, keys: leaseKeys }
  const answer = issueLease()
  t.match(verifyLease(answer, { ...options, now: Number.NaN }), { ok: false })
  t.match(verifyLease(answer, { ...options, fetched: { askedAt: Number.NaN, now: 1 } }), { ok: false })
  t.throws(() => verifyLease(answer, { ...options, skewMs: -1 }), TypeError)
  t.throws(() => verifyLease(answer, { ...options, skewMs: Number.NaN }), TypeError)
})

t.test('a pin that is no key throws', async (t) => {
  const keys = [{ key_id: 3, pubkey_hex: '00'.repeat(32) }]
  t.throws(() => verifyLease(issueLease(), { ...LEASE_OPTIONS, keys }), TypeError)
})

t.test('without account, agent or action no lease is valid', async (t) => {
  for (const name of ['account', 'agent', 'action']) {
    const options = { ...LEASE_OPTIONS, keys: leaseKeys, [name]: undefined } as unknown as LeaseOptions
    t.match(verifyLease(issueLease(), options), { ok: false, reason: `wrong_${name}` })
  }
})

t.test('no bit of the signed bytes or the signature can change', async (t) => {
  const answer = issueLease()
  const options = { ...LEASE_OPTIONS, keys: leaseKeys }
  const bytes = Buffer.from(answer.canonical_lease_base64, 'base64')
  const passed: number[] = []
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    const { lease: _lease, ...bare } = { ...answer, canonical_lease_base64: changed.toString('base64') }
    if (verifyLease(bare, options).ok) passed.push(at)
  }
  t.same(passed, [])
})

t.test('the gateway of the README is the one that is tested', async (t) => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')
  const shown = read('../../docs/guide/sdk.md').match(/```ts\n(\/\/ A gateway.*?)```/s)?.[1]
  const tested = read('gateway.ts').replace('../../client/lease.ts', 'countersign-sdk/lease')
  t.equal(shown, tested)
})
