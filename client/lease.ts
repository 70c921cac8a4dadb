// What a gateway asks of a lease before it lets an agent act: did the service sign it, for this account, agent and
// action, and is it still good? Answered offline, with pinned keys. The policy in `lim` remains for the gateway to enforce.
import { hexToBytes } from '@noble/hashes/utils.js'
import { decodeBase64 } from './bytes.ts'
import { canonicalJson, jsonFaults, parseJson } from './json.ts'
import { type PinnedKey, readPublicKey } from './keys.ts'
import { closed, integer, literal, object, text } from './shape.ts'
import { isSigned } from './signature.ts'

export type { PinnedKey } from './keys.ts'

export interface Lease {
  v: 1
  typ: 'lease'
  lease_id: string
  /** Handle of the account that granted it. */
  account: string
  agent: string
  action: string
  /** Policy. The gateway has to read and enforce it, and to refuse what it does not understand. */
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
 * - `untrusted_key`: signed, it says, with a key that is not pinned for leases or is no longer active. After a rotation
 *   of keys a renewal brings a signature by the new one.
 * - `bad_signature`: the signature is not that key's over these bytes.
 * - `altered`: `lease` does not say what the signed bytes say.
 * - `wrong_account`, `wrong_agent`, `wrong_action`: a good lease, but not for this.
 * - `ended`: the service says that it is revoked, or that it is not renewed any more.
 * - `clock_skewed`: signed in what is the future here. With a clock that is behind, a lease would seem good too long.
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
  /** Pinned through a channel that is trusted independently of the one the lease came by. */
  keys: readonly PinnedKey[]
  /** Handle of the account whose leases count. Anybody may register one and grant a lease for any agent. */
  account: string
  agent: string
  action: string
  /** Wall clock in milliseconds; default: now. */
  now?: number
  /** By how much the wall clock may be wrong; default 2000. It only ever shortens a lease. */
  skewMs?: number
  /**
   * For an answer that this very program got from the service: milliseconds of a monotonic clock (`performance.now()`),
   * `askedAt` just before the request was sent, `now` by default now. The wall clock then does not matter.
   */
  fetched?: { askedAt: number; now?: number }
}

/**
 * Judges what the service answered to a grant, a renewal or a GET of a lease, or as much of it as an agent hands over:
 * `canonical_lease_base64` and `sig_ed25519_hex` are needed. A refused renewal (409) may be given as it came.
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
  // From here on the lease is what the service said.
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

/** It is signed by nobody, but whoever invents it only takes a lease away. */
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

/** Undefined for what is not JSON, or not unambiguous. */
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
 * The latest that the service's clock may show by now; NaN when that cannot be told. Either by the wall clock here, or,
 * for an answer fetched by ourselves, by what that clock showed then and all the time since the question was sent. An
 * answer to a GET was signed some time before it was given: `server_now_ms` says so; unsigned, it may only shorten.
 */
function latestServerTime(lease: Lease, servedMs: unknown, { fetched, now = Date.now(), skewMs = 2000 }: LeaseOptions) {
  if (!(skewMs >= 0)) throw new TypeError('skewMs must be a number of milliseconds, 0 or more')
  if (!fetched) return now + skewMs
  const { askedAt, now: tick = performance.now() } = fetched
  const answeredMs = typeof servedMs === 'number' ? Math.max(lease.issued_ms, servedMs) : lease.issued_ms
  return tick >= askedAt ? answeredMs + (tick - askedAt) : Number.NaN
}

/** Every comparison is one that NaN fails: in a time that is not known, no lease is good. */
function judgeTime(lease: Lease, serverMs: number): LeaseVerdict {
  if (!(lease.issued_ms <= serverMs)) return refuse('clock_skewed', 'it was signed in what is the future here')
  if (!(serverMs < lease.expires_ms)) return refuse('expired', 'it is past expires_ms')
  if (!(serverMs < lease.recheck_by_ms)) return refuse('recheck_passed', 'it is past recheck_by_ms')
  return { ok: true, lease, remainingMs: lease.recheck_by_ms - serverMs }
}
