// One attestation by itself: what is hashed and signed, and everything that must be refused.
import type { Attestation, PinnedKey } from '../../client/verification.ts'
import { jcs } from '../client/issuer.ts'
import { issueReceipt, issuerKey } from '../client/log-issuer.ts'
import { torsionSignature, unreducedSignature, zip215Signature } from '../client/signatures.ts'

const key = issuerKey(1)
const PIN = { key_id: key.key_id, pubkey_hex: key.pubkey_hex }
const stranger = issuerKey(99)

interface Case {
  name: string
  attestation: unknown
  /** What is hashed and signed; of good attestations. */
  canonical?: string
  /** Other keys than those at the top. */
  pins?: PinnedKey[]
  /** Every check that fails, in order; none for a good one. */
  fails: string[]
}

function canonical({ receipt_hash: _hash, sig_ed25519_hex: _signature, ...signed }: Attestation): string {
  return jcs(signed)
}

function good(name: string, fields: Partial<Attestation>, pins?: PinnedKey[]): Case {
  const attestation = issueReceipt({ requested_by: 'kelby', ts_ms: 1_795_000_000_123, ...fields }, key)
  return { name, attestation, canonical: canonical(attestation), ...(pins && { pins }), fails: [] }
}

const BASE = issueReceipt({ serial: 42, label: 'invoice 7', requested_by: 'kelby' }, key)
const message = Buffer.from(canonical(BASE))

function bad(name: string, fails: string[], change: Record<string, unknown>, pins?: PinnedKey[]): Case {
  return { name, attestation: { ...BASE, ...change }, ...(pins && { pins }), fails }
}

const hex = (signature: Buffer) => ({ sig_ed25519_hex: signature.toString('hex') })
const SHAPELESS = ['shape', 'trusted_key', 'signature', 'receipt_hash', 'attested_time']
const CHANGED = ['signature', 'receipt_hash']
const UNTRUSTED = ['trusted_key', 'signature']
const { sig_ed25519_hex: _signature, ...unsigned } = BASE
const flipped = BASE.sig_ed25519_hex.replace(/^./, (digit) => (Number.parseInt(digit, 16) ^ 1).toString(16))

export const attestationVectors = {
  seed_hex: key.seed.toString('hex'),
  pins: [PIN],
  cases: [
    good('of a source verification: no label', { label: null, requested_by: 'source-verification' }),
    good('with a label', { label: 'invoice 7' }),
    good('an empty label is not no label', { label: '' }),
    good('text that JSON writes with care', { label: 'caf\u00e9 "quoted" \\ / \u{1f600} \u2028 \u007f' }),
    good('a label that is not normalised', { label: 'cafe\u0301' }),
    good('far along the chain', { serial: Number.MAX_SAFE_INTEGER, prev_hash: 'f'.repeat(64) }),
    good('a time written to the second', { ts_utc: new Date(1_795_000_000_000).toISOString().replace('.000', '') }),
    good('at the end of what a key may sign', { serial: 5 }, [{ ...PIN, status: 'retired', last_serial: 5 }]),
    bad('another label', CHANGED, { label: 'invoice 8' }),
    bad('no label', CHANGED, { label: null }),
    bad('another subject', CHANGED, { subject_sha256: '0'.repeat(64) }),
    bad('another requester', CHANGED, { requested_by: 'mallory' }),
    bad('another serial', CHANGED, { serial: 43 }),
    bad('another link', CHANGED, { prev_hash: 'f'.repeat(64) }),
    bad('another time', [...CHANGED, 'attested_time'], { ts_ms: BASE.ts_ms - 60_000 }),
    bad('another hash', ['receipt_hash'], { receipt_hash: '0'.repeat(64) }),
    bad('a signature with a bit changed', ['signature'], { sig_ed25519_hex: flipped }),
    bad(
      'over the hash, not over the canonical bytes',
      ['signature'],
      hex(key.sign(Buffer.from(BASE.receipt_hash, 'hex'))),
    ),
    bad(
      'over other JSON of the same value',
      ['signature'],
      hex(key.sign(JSON.stringify(JSON.parse(`${message}`), null, 1))),
    ),
    bad('S that is not reduced', ['signature'], hex(unreducedSignature(message, key.seed))),
    bad(
      'R in an encoding that ZIP-215 takes and RFC 8032 does not',
      ['signature'],
      hex(zip215Signature(message, key.seed)),
    ),
    bad('R with a part of small order', ['signature'], hex(torsionSignature(message, key.seed))),
    bad('a key that is not pinned', UNTRUSTED, {}, [{ key_id: 9, pubkey_hex: key.pubkey_hex }]),
    bad('another key pinned under its id', UNTRUSTED, {}, [{ key_id: PIN.key_id, pubkey_hex: stranger.pubkey_hex }]),
    bad('a key for something else', UNTRUSTED, {}, [{ ...PIN, use: 'lease' }]),
    bad('before the key was in force', UNTRUSTED, {}, [{ ...PIN, first_serial: 43 }]),
    bad('after the key was retired', UNTRUSTED, {}, [{ ...PIN, status: 'retired', last_serial: 41 }]),
    bad('a key that ended who knows when', UNTRUSTED, {}, [{ ...PIN, status: 'retired', last_serial: null }]),
    bad('a key that is compromised', UNTRUSTED, {}, [{ ...PIN, status: 'compromised', last_serial: 50 }]),
    bad('a key in the message alone', [...UNTRUSTED, 'receipt_hash'], {
      pubkey_hex: stranger.pubkey_hex,
      ...hex(stranger.sign(message)),
    }),
    {
      name: 'two times, properly signed',
      attestation: issueReceipt({ ts_utc: '2026-01-01T00:00:00Z' }, key),
      fails: ['attested_time'],
    },
    bad('a member more', SHAPELESS, { proof: [] }),
    { name: 'a member less', attestation: unsigned, fails: SHAPELESS },
    bad('another version', SHAPELESS, { v: 2 }),
    bad('a serial in quotes', SHAPELESS, { serial: '42' }),
    bad('a serial that is not whole', SHAPELESS, { serial: 42.5 }),
    bad('hex in upper case', SHAPELESS, { receipt_hash: BASE.receipt_hash.toUpperCase() }),
    bad('a time without its zone', SHAPELESS, { ts_utc: '2026-11-18T11:06:40' }),
    bad('a label that is no text', SHAPELESS, { label: 7 }),
    bad('a label that is not Unicode', ['well_formed_unicode', ...SHAPELESS], { label: '\ud83d' }),
  ] satisfies Case[],
}
