// Verifies a lease before a gateway lets an agent act: that the service signed it for this account, agent and action,
// and that it is still valid. Works offline, with pinned keys. The gateway itself enforces the policy in `lim`.
import { hexToBytes } from '@noble/hashes/utils.js'
import { decodeBase64 } from './bytes.ts'
import { type PinnedKey, readPublicKey } from './chain/keys.ts'
import { isSigned } from './chain/signature.ts'
import { canonicalJson, jsonFaults, parseJson } from './json.ts'
import { closed, integer, literal, object, text } from './shape.ts'

export type { PinnedKey } from './chain/keys.ts'

export interface Lease {
  v: 1
  typ: 'lease'
  lease_id: string
  /** Handle of the account that granted it. */
  account: string
  agent: string
  action: string
  /** Policy. The gateway must read and enforce it, and refuse a policy that it does not understand. */
  lim: string
  ttl_s: number
  granted_ms: number
  /** When it was signed: at the grant or at the latest renewal. */
  issued_ms: number
  expires_ms: number
  recheck_by_ms: number
  key_id: number
}

/**
 * - `malformed`: not a lease of this version, or one that contradicts itself.
 * - `untrusted_key`: it names a key that is not pinned for leases or is no longer active. After a rotation of keys a
 *   renewal brings a signature by the new key.
 * - `bad_signature`: the signature is not that key's signature over these bytes.
 * - `altered`: `lease` differs from the signed bytes.
 * - `wrong_account`, `wrong_agent`, `wrong_action`: a valid lease, but for another account, agent or action.
 * - `ended`: the service states that it is revoked, or that it cannot be renewed.
 * - `clock_skewed`: signed in the future by the local clock. With a slow clock a lease would seem valid for too long.
 * - `expired`: past `expires_ms`. It cannot be renewed.
 * - `recheck_passed`: past `recheck_by_ms`. Renew it.
 */
export type LeaseRefusal =
  | 'malformed'
  | 'untrusted_key'
  | 'bad_signature'
  | 'altered'
  | 'wrong_account'
  | 'wrong_agent'
  | 'wrong_action'
  | 'ended'
  | 'clock_skewed'
  | 'expired'
  | 'recheck_passed'

export type LeaseVerdict =
  | {
      ok: true
      lease: Lease
      /** Milliseconds for which the verdict holds. */
      remainingMs: number
    }
  | { ok: false; reason: LeaseRefusal; detail: string }

export interface LeaseOptions {
  /** Pinned through a trusted channel, independent of the one that brought the lease. */
  keys: readonly PinnedKey[]
  /** Handle of the account whose leases count. Any caller may register an account and grant a lease for any agent. */
  account: string
  agent: string
  action: string
  /** Wall clock in milliseconds; default: now. */
  now?: number
  /** The possible error of the wall clock in milliseconds; default 2000. It only shortens a lease. */
  skewMs?: number
  /**
   * For an answer that this program itself got from the service: milliseconds of a monotonic clock
   * (`performance.now()`), `askedAt` just before the request was sent, `now` by default now. The wall clock is then not
   * used.
   */
  fetched?: { askedAt: number; now?: number }
}

/**
 * Verifies the service's answer to a grant, a renewal or a GET of a lease, or the part of it that an agent shows:
 * `canonical_lease_base64` and `sig_ed25519_hex` are required. A refused renewal (409) may be passed unchanged.
 * Throws a TypeError for a malformed pin or skew, never for a bad lease.
 */
export function verifyLease(answer: unknown, options: LeaseOptions): LeaseVerdict {
  const keys = readLeaseKeys(options.keys)
  if (saysEnded(answer)) return refuse('ended', 'the service says that it is revoked, or that it is not renewed')
  const envelope = readEnvelope(answer)
  if ('reason' in envelope) return envelope
  const { lease, bytes, signature, claimed, servedMs } = envelope
  const key = keys.find(({ key_id }) => key_id === lease.key_id)
  if (!key) return refuse('untrusted_key', `key_id ${lease.key_id} is not pinned as an active lease key`)
  if (!isSigned(bytes, signature, key.publicKey)) return refuse('bad_signature', 'not signed with the pinned key')
  // From here on the service has signed the lease.
  if (claimed !== undefined && !isSame(claimed, lease)) return refuse('altered', '`lease` is not what was signed')
  const misfit = (['account', 'agent', 'action'] as const).find((name) => lease[name] !== options[name])
  if (misfit) return refuse(`wrong_${misfit}`, `the lease is for ${misfit} ${JSON.stringify(lease[misfit])}`)
  return judgeTime(lease, latestServerTime(lease, servedMs, options))
}

function refuse(reason: LeaseRefusal, detail: string) {
  return { ok: false, reason, detail } as const
}

function readLeaseKeys(pinned: readonly PinnedKey[]) {
  return pinned
    .filter(({ use, status }) => (use ?? 'lease') === 'lease' && (status ?? 'active') === 'active')
    .map((key) => ({ key_id: key.key_id, publicKey: readPublicKey(key) }))
}

/** It has no signature. A forged one can only end a lease. */
function saysEnded(answer: unknown): boolean {
  const { state, error } = (answer ?? {}) as { state?: unknown; error?: { code?: unknown } | null }
  return state === 'revoked' || error?.code === 'lease_ended'
}

const envelopeShape = object({ canonical_lease_base64: text(/./), sig_ed25519_hex: text(/^[0-9a-f]{128}$/) })

const leaseShape = closed({
  v: literal(1),
  typ: literal('lease'),
  lease_id: text(/^ls_[0-9a-f]{32}$/),
  account: text(/./),
  agent: text(/./s),
  action: text(/./s),
  lim: text(),
  ttl_s: integer(1),
  granted_ms: integer(0),
  issued_ms: integer(0),
  expires_ms: integer(0),
  recheck_by_ms: integer(0),
  key_id: integer(0),
})

function readEnvelope(answer: unknown) {
  const fault = jsonFaults(answer).length > 0 ? 'not plain JSON data' : envelopeShape(answer, '')
  if (fault) return refuse('malformed', fault)
  const given = answer as Record<string, unknown> & { canonical_lease_base64: string; sig_ed25519_hex: string }
  const bytes = decodeBase64(given.canonical_lease_base64)
  if (!bytes) return refuse('malformed', 'canonical_lease_base64 is not standard base64')
  const signed = parse(bytes)
  const wrong = leaseShape(signed, '') ?? contradictionIn(signed as Lease)
  if (wrong) return refuse('malformed', `the signed bytes: ${wrong}`)
  const signature = hexToBytes(given.sig_ed25519_hex)
  return { lease: signed as Lease, bytes, signature, claimed: given.lease, servedMs: given.server_now_ms }
}

/** Undefined for text that is not JSON, or ambiguous. */
function parse(bytes: Uint8Array): unknown {
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch {
    return undefined
  }
}

const RECHECK_MS = 30_000

function contradictionIn({ granted_ms, issued_ms, expires_ms, recheck_by_ms, ttl_s }: Lease): string | null {
  if (expires_ms !== granted_ms + ttl_s * 1000) return 'expires_ms is not ttl_s after granted_ms'
  if (issued_ms < granted_ms) return 'it was signed before it was granted'
  return recheck_by_ms > Math.min(issued_ms + RECHECK_MS, expires_ms) ? 'recheck_by_ms is too late' : null
}

function isSame(claimed: unknown, lease: Lease): boolean {
  return jsonFaults(claimed).length === 0 && canonicalJson(claimed) === canonicalJson(lease)
}

/**
 * The latest time that the service's clock may show now; NaN when it is unknown. It comes from the local wall clock,
 * or, for an answer that this program fetched, from the service's time then plus the time since the request was sent.
 * An answer to a GET was signed earlier: `server_now_ms` gives its time. That is unsigned, so it may only shorten a
 * lease.
 */
function latestServerTime(lease: Lease, servedMs: unknown, { fetched, now = Date.now(), skewMs = 2000 }: LeaseOptions) {
  if (!(skewMs >= 0)) throw new TypeError('skewMs must be a number of milliseconds, 0 or more')
  if (!fetched) return now + skewMs
  const { askedAt, now: tick = performance.now() } = fetched
  const answeredMs = typeof servedMs === 'number' ? Math.max(lease.issued_ms, servedMs) : lease.issued_ms
  return tick >= askedAt ? answeredMs + (tick - askedAt) : Number.NaN
}

/** NaN fails every comparison, so no lease is valid while the time is unknown. */
function judgeTime(lease: Lease, serverMs: number): LeaseVerdict {
  if (!(lease.issued_ms <= serverMs)) return refuse('clock_skewed', 'it was signed in what is the future here')
  if (!(serverMs < lease.expires_ms)) return refuse('expired', 'it is past expires_ms')
  if (!(serverMs < lease.recheck_by_ms)) return refuse('recheck_passed', 'it is past recheck_by_ms')
  return { ok: true, lease, remainingMs: lease.recheck_by_ms - serverMs }
}
