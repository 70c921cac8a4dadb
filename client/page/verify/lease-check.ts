// Checks a lease and the revocation of one, and says how long a lease is in force: what a reader of it asks first.
import { hexToBytes } from '@noble/hashes/utils.js'
import { decodeBase64 } from '../../bytes.ts'
import { readPublicKey } from '../../chain/keys.ts'
import { isSigned } from '../../chain/signature.ts'
import type { Check, Verification } from '../../checks.ts'
import { canonicalJson, jsonFaults, parseJson } from '../../json.ts'
import { type Lease, verifyLease } from '../../lease.ts'
import type { RevokedLease } from '../../operations/lease-operations.ts'
import { closed, integer, literal, object, text } from '../../shape.ts'
import type { PublishedKey } from './trust.ts'

/**
 * Of a genuine lease, all in milliseconds.
 * - `in_force`: until `at`, and renewed until `ends`.
 * - `to_renew`: not since `at`, unless it is renewed, and then until `ends`.
 * - `ended`: since `at`.
 * - `revoked`: `at` is null where the file does not say when; `isSigned`: the service signed that it was.
 */
export type Term =
  | { state: 'in_force' | 'to_renew'; at: number; ends: number }
  | { state: 'ended'; at: number }
  | { state: 'revoked'; at: number | null; isSigned: boolean }

export type LeaseVerification = Verification & { lapsed?: boolean; term?: Term }

/** The lease in an answer of the service, read from the signed bytes; null for anything else. */
export function leaseIn(value: unknown): Lease | null {
  const { canonical_lease_base64 } = (value ?? {}) as { canonical_lease_base64?: unknown }
  const lease = signedJson(canonical_lease_base64)
  return typeof lease === 'object' && lease !== null && 'lease_id' in lease ? (lease as Lease) : null
}

/** The report says for whom and for what it was granted; only its gateway can decide whether that is right. */
export function checkLease(value: unknown, keys: readonly PublishedKey[], now: number): LeaseVerification {
  const lease = leaseIn(value)
  const { account = '', agent = '', action = '' } = lease ?? {}
  const judge = (answer: unknown) => verifyLease(answer, { keys, account, agent, action, now })
  const said = judge(value)
  const isEnded = !said.ok && said.reason === 'ended'
  // What says that it ended is not signed. Whether the lease itself is genuine is another question.
  const verdict = isEnded ? judge(withoutState(value)) : said
  const term = lease && termOf(lease, verdict.ok ? 'in_force' : verdict.reason)
  if (!term) return failed(verdict)
  if (isEnded) {
    const { revoked_ms } = value as { revoked_ms?: unknown }
    const at = typeof revoked_ms === 'number' && Number.isSafeInteger(revoked_ms) ? revoked_ms : null
    return { ...failed(said), lapsed: true, term: { state: 'revoked', at, isSigned: false } }
  }
  return verdict.ok ? { ...PASSED, term } : { ...failed(verdict), lapsed: true, term }
}

const PASSED = { ok: true, checks: [{ name: 'lease', ok: true }] }

function failed(verdict: ReturnType<typeof verifyLease>): Verification {
  if (verdict.ok) return PASSED
  const name = verdict.reason === 'untrusted_key' ? 'trusted_key' : 'lease'
  return { ok: false, checks: [{ name, ok: false, detail: `${verdict.reason}: ${verdict.detail}` }] }
}

function withoutState(answer: unknown): unknown {
  const { state: _, error: __, ...lease } = answer as Record<string, unknown>
  return lease
}

/** Null where it is not known to be genuine. */
function termOf({ recheck_by_ms, expires_ms }: Lease, reason: string): Term | null {
  if (reason === 'expired') return { state: 'ended', at: expires_ms }
  if (reason === 'in_force') return { state: 'in_force', at: recheck_by_ms, ends: expires_ms }
  return reason === 'recheck_passed' ? { state: 'to_renew', at: recheck_by_ms, ends: expires_ms } : null
}

export type Revocation = RevokedLease['revocation']

const words = text(/./s)
const revocationShape = closed({
  v: literal(1),
  typ: literal('lease_revocation'),
  lease_id: words,
  account: words,
  agent: words,
  action: words,
  revoked_ms: integer(0),
  key_id: integer(0),
})
const envelopeShape = object({ canonical_revocation_base64: words, sig_ed25519_hex: text(/^[0-9a-f]{128}$/) })

/** The revocation in an answer of the service, read from the signed bytes; null for anything else. */
export function revocationIn(value: unknown): Revocation | null {
  if (envelopeShape(value, '') !== null) return null
  const found = signedJson((value as Record<string, unknown>).canonical_revocation_base64)
  return revocationShape(found, '') === null ? (found as Revocation) : null
}

/** A revocation counts for ever, so a key that was retired may have signed it. */
export function checkRevocation(value: unknown, keys: readonly PublishedKey[]): LeaseVerification {
  const revocation = revocationIn(value)
  const { canonical_revocation_base64, sig_ed25519_hex, revocation: readable } = value as Record<string, unknown>
  const key = keys.filter(isForRevocations).find(({ key_id }) => key_id === revocation?.key_id)
  if (!revocation || !key)
    return one({ name: 'trusted_key', ok: false, detail: `key_id ${revocation?.key_id} is not pinned as a lease key` })
  const bytes = decodeBase64(String(canonical_revocation_base64)) ?? new Uint8Array()
  if (!isSigned(bytes, hexToBytes(String(sig_ed25519_hex)), readPublicKey(key)))
    return one({ name: 'revocation', ok: false, detail: 'not signed with the pinned key' })
  const isSame = jsonFaults(readable).length === 0 && canonicalJson(readable) === canonicalJson(revocation)
  if (readable !== undefined && !isSame)
    return one({ name: 'revocation', ok: false, detail: '`revocation` is not what was signed' })
  const term: Term = { state: 'revoked', at: revocation.revoked_ms, isSigned: true }
  return { ...one({ name: 'revocation', ok: true }), term }
}

const one = (check: Check): Verification => ({ ok: check.ok, checks: [check] })
const isForRevocations = ({ use, status }: PublishedKey) =>
  (use ?? 'lease') === 'lease' && ['active', 'retired'].includes(status ?? 'active')

function signedJson(base64: unknown): unknown {
  if (typeof base64 !== 'string') return null
  try {
    return parseJson(new TextDecoder().decode(decodeBase64(base64) ?? new Uint8Array()))
  } catch {
    return null
  }
}
