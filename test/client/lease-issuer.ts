// A second, independent implementation of the lease format, and the cases that every gateway's verifier must agree on.
// `node test/client/lease-issuer.ts` prints test/vectors/lease.json.
import { createPrivateKey, createPublicKey, sign } from 'node:crypto'
import type { Lease, LeaseOptions, LeaseRefusal } from '../../client/lease.ts'
import { jcs } from './issuer.ts'

function keyPair(fill: number) {
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.alloc(32, fill)])
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' })
  return { privateKey, pubkey_hex: spki.subarray(-32).toString('hex') }
}

const ours = keyPair(0x2b)
const stranger = keyPair(0x2c)
const retired = keyPair(0x2d)

export const leaseKeys = [
  { key_id: 3, use: 'lease', pubkey_hex: ours.pubkey_hex, status: 'active' },
  { key_id: 2, use: 'lease', pubkey_hex: retired.pubkey_hex, status: 'retired' },
  { key_id: 1, use: 'receipt', pubkey_hex: stranger.pubkey_hex, status: 'active' },
]

const T0 = 1_795_000_000_000

export const LEASE: Lease = {
  v: 1,
  typ: 'lease',
  lease_id: 'ls_00112233445566778899aabbccddeeff',
  account: 'kelby',
  agent: 'agent-7',
  action: 'pay \u{1F4B6}',
  lim: 'usd<=20',
  ttl_s: 600,
  granted_ms: T0,
  issued_ms: T0 + 60_000,
  expires_ms: T0 + 600_000,
  recheck_by_ms: T0 + 90_000,
  key_id: 3,
}

/** An answer as the service gives it. `text` replaces the bytes that are signed. */
export function issueLease(changes: Partial<Lease> = {}, { key = ours, text = '' } = {}) {
  const lease = { ...LEASE, ...changes }
  const bytes = Buffer.from(text || jcs(lease))
  return {
    lease: lease as Record<string, unknown>,
    canonical_lease_base64: bytes.toString('base64'),
    sig_ed25519_hex: sign(null, bytes, key.privateKey).toString('hex'),
  }
}

export interface LeaseCase {
  name: string
  answer: unknown
  options: Partial<LeaseOptions>
  expect: 'ok' | LeaseRefusal
  remaining_ms?: number
}

/** A case states the options that differ from these; `skewMs` is 2000 by default. */
export const LEASE_OPTIONS = { account: 'kelby', agent: 'agent-7', action: 'pay \u{1F4B6}', now: T0 + 70_000 }

type Forged = Parameters<typeof issueLease>[1]
const changed = (changes: Partial<Lease>, forged?: Forged) => issueLease(changes, forged)
const signed = (text: string) => issueLease({}, { text })

function good(name: string, remaining_ms: number, options: LeaseCase['options'] = {}, answer: unknown = issueLease()) {
  return { name, answer, options, expect: 'ok' as const, remaining_ms }
}

function bad(name: string, expect: LeaseRefusal, answer: unknown, options: LeaseCase['options'] = {}): LeaseCase {
  return { name, answer, options, expect }
}

function flipped(answer: ReturnType<typeof issueLease>) {
  const hex = answer.sig_ed25519_hex
  return { ...answer, sig_ed25519_hex: `${hex.slice(0, -1)}${(Number.parseInt(hex.slice(-1), 16) ^ 1).toString(16)}` }
}

export function leaseCases(): LeaseCase[] {
  const answer = issueLease()
  const { lease: _lease, ...bare } = answer
  const tampered = Buffer.from(jcs({ ...LEASE, lim: 'usd<=2000' })).toString('base64')
  const refusal = { error: { code: 'lease_ended', message: 'The lease is revoked or expired.', retryable: false } }
  const last = { issued_ms: T0 + 580_000, recheck_by_ms: T0 + 600_000 }
  const fetched = (ms: number) => ({ now: 0, fetched: { askedAt: 5000, now: 5000 + ms } })
  return [
    good('valid', 18_000),
    good('valid, without the readable copy', 18_000, {}, bare),
    good('valid, on a clock that is taken to be exact', 20_000, { skewMs: 0 }),
    good('valid at the last millisecond', 1, { now: T0 + 87_999 }),
    good('valid, signed on a clock ahead of ours by no more than the skew', 30_000, { now: T0 + 58_000 }),
    good('valid, fetched a moment ago, whatever the wall clock says', 29_900, fetched(100)),
    good('valid, fetched by GET ten seconds after it was signed', 19_900, fetched(100), {
      ...answer,
      server_now_ms: T0 + 70_000,
    }),
    bad('expired', 'expired', issueLease(last), { now: T0 + 598_000 }),
    bad('expired long ago', 'expired', answer, { now: T0 + 900_000 }),
    bad('recheck passed', 'recheck_passed', answer, { now: T0 + 90_000 }),
    bad('recheck passed, with the skew', 'recheck_passed', answer, { now: T0 + 88_000 }),
    bad('recheck passed since it was fetched', 'recheck_passed', answer, fetched(30_000)),
    bad(
      'recheck passed since it was fetched by GET',
      'recheck_passed',
      { ...answer, server_now_ms: T0 + 89_000 },
      fetched(1000),
    ),
    good('revoked, but rechecked before that: good until the recheck is due', 18_000),
    bad('revoked: the renewal is refused', 'ended', refusal),
    bad('revoked: the service says so', 'ended', { ...answer, state: 'revoked' }),
    bad('wrong account', 'wrong_account', changed({ account: 'mallory' })),
    bad('wrong agent', 'wrong_agent', changed({ agent: 'agent-8' })),
    bad('wrong agent, by case', 'wrong_agent', changed({ agent: 'Agent-7' })),
    bad('wrong action', 'wrong_action', changed({ action: 'pay' })),
    bad('tampered lim, in the signed bytes', 'bad_signature', { ...answer, canonical_lease_base64: tampered }),
    bad('tampered lim, in the readable copy', 'altered', { ...answer, lease: { ...LEASE, lim: 'usd<=2000' } }),
    bad('a lim that is missing from the readable copy', 'altered', { ...answer, lease: { ...LEASE, lim: undefined } }),
    bad('wrong key under the right id', 'bad_signature', changed({}, { key: stranger })),
    bad('a key that is not pinned', 'untrusted_key', changed({ key_id: 9 }, { key: stranger })),
    bad('a key of another use', 'untrusted_key', changed({ key_id: 1 }, { key: stranger })),
    bad('a key that is retired', 'untrusted_key', changed({ key_id: 2 }, { key: retired })),
    bad('a signature with one bit changed', 'bad_signature', flipped(answer)),
    bad('our clock is behind', 'clock_skewed', answer, { now: T0 + 57_999 }),
    bad('our clock is ahead', 'recheck_passed', answer, { now: T0 + 95_000 }),
    bad('a monotonic clock that went back', 'clock_skewed', answer, fetched(-1)),
    bad('no lease at all', 'malformed', null),
    bad('another failure', 'malformed', { error: { code: 'not_found', message: '', retryable: false } }),
    bad('a revocation in the place of a lease', 'malformed', signed(jcs({ ...LEASE, typ: 'lease_revocation' }))),
    bad('another version', 'malformed', signed(jcs({ ...LEASE, v: 2 }))),
    bad('a member nobody knows', 'malformed', signed(jcs({ ...LEASE, aud: 'gateway-1' }))),
    bad('a member twice', 'malformed', signed(jcs(LEASE).replace('"lim":', '"lim":"usd<=2000","lim":'))),
    bad('a recheck that is too late', 'malformed', changed({ recheck_by_ms: T0 + 90_001 })),
    bad('a recheck after the end', 'malformed', changed({ ...last, recheck_by_ms: T0 + 600_001 })),
    bad('an end that ttl_s does not give', 'malformed', changed({ expires_ms: T0 + 600_001 })),
    bad('base64 of another spelling', 'malformed', {
      ...answer,
      canonical_lease_base64: `${answer.canonical_lease_base64}\n`,
    }),
    bad('bytes that are not UTF-8', 'malformed', { ...answer, canonical_lease_base64: '/////w==' }),
  ]
}

if (import.meta.main)
  console.log(JSON.stringify({ keys: leaseKeys, options: LEASE_OPTIONS, cases: leaseCases() }, null, 2))
