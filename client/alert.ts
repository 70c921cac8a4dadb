// Verifies an alert that a receiver got by POST: that the service sent exactly these bytes, and recently. Works
// offline, with the webhook's secret, with pinned keys, or with both (Standard Webhooks 1.0.0, `v1` and `v1a`).
import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { decodeBase64, sha256Hex } from './bytes.ts'
import { type Attestation, verifyAttestation } from './chain/attestation.ts'
import { type PinnedKey, readPublicKey } from './chain/keys.ts'
import { isSigned } from './chain/signature.ts'
import { canonicalJson, jsonFaults, parseJson } from './json.ts'
import { integer, object, text } from './shape.ts'

export type { PinnedKey } from './chain/keys.ts'

export interface Alert {
  /** `webhook-id`. Delivery is at least once: ignore an id that was seen before. */
  id: string
  /** E.g. `watchdog.missed`. */
  type: string
  timestamp: string
  /** `event_seq` ascends by one at each webhook. A gap is an alert whose delivery ended without success. */
  data: { event_seq: number } & Record<string, unknown>
  receipt?: { attestation: Attestation }
}

/**
 * - `missing_header`, `repeated_header`, `malformed_header`: one of `webhook-id`, `webhook-timestamp`,
 *   `webhook-signature`. Two of a kind are refused, because readers differ in which of them they take.
 * - `too_old`, `too_new`: `webhook-timestamp` differs from the local clock by more than the tolerance.
 * - `unsigned`: no signature is of a kind that the given secrets and keys can check.
 * - `bad_signature`: no signature of a checkable kind is valid.
 * - `malformed_body`: the signature is valid, but the body is not an alert.
 * - `bad_receipt`: the receipt belongs to another alert, or is invalid.
 */
export type AlertRefusal =
  | 'missing_header'
  | 'repeated_header'
  | 'malformed_header'
  | 'too_old'
  | 'too_new'
  | 'unsigned'
  | 'bad_signature'
  | 'malformed_body'
  | 'bad_receipt'

export type SignatureKind = 'v1' | 'v1a'

export type AlertVerdict =
  | {
      ok: true
      alert: Alert
      /** The kinds that were checked. */
      signedBy: SignatureKind[]
      /** Whether the receipt was checked, which takes a pinned key of use `receipt`. */
      receipted: boolean
    }
  | { ok: false; reason: AlertRefusal; detail: string }

export interface AlertMessage {
  /** As a server has them: `Headers`, or an object of names in any case. */
  headers: Iterable<readonly [string, string]> | Readonly<Record<string, string | readonly string[] | undefined>>
  /** The bytes as received. A body that was parsed and serialised again has other bytes. */
  body: string | Uint8Array
}

export interface AlertOptions {
  /** `whsec_...`; several during a rotation. */
  secret?: string | readonly string[]
  /** Pinned: those of use `webhook` check `v1a`, those of use `receipt` the receipt in the body. */
  keys?: readonly PinnedKey[]
  /** Seconds; default 300. */
  toleranceSeconds?: number
  /** Wall clock in milliseconds; default: now. */
  now?: number
}

/**
 * Verifies a message. At least one kind of signature must be checkable, and every checkable kind must be valid. Throws
 * a TypeError for a malformed secret or pin, and when both are missing; never for a bad message.
 */
export function verifyAlert(message: AlertMessage & AlertOptions): AlertVerdict {
  const { headers, body, toleranceSeconds = 300, now = Date.now(), keys = [] } = message
  if (!(toleranceSeconds >= 0)) throw new TypeError('toleranceSeconds must be a number of seconds, 0 or more')
  const checks = readChecks(message)
  const head = readHead(headers)
  if ('reason' in head) return head
  const age = now / 1000 - head.seconds
  // NaN fails both comparisons, so no message is fresh while the time is unknown.
  if (!(age <= toleranceSeconds)) return refuse('too_old', `sent ${Math.floor(age)} s ago`)
  if (!(age >= -toleranceSeconds)) return refuse('too_new', `sent ${Math.ceil(-age)} s from now`)
  const bytes = typeof body === 'string' ? utf8ToBytes(body) : body
  const signed = concatBytes(utf8ToBytes(`${head.id}.${head.timestamp}.`), bytes)
  const signedBy = judgeSignatures(head.signatures, signed, checks)
  if ('reason' in signedBy) return signedBy
  // From here on the service has signed the message.
  const content = readBody(bytes)
  if ('reason' in content) return content
  const receiptKeys = keys.filter(({ use }) => use === 'receipt')
  const fault = receiptKeys.length > 0 ? receiptFault(content.body, receiptKeys) : null
  if (fault) return refuse('bad_receipt', fault)
  const alert = { ...content.body, id: head.id }
  return { ok: true, alert, signedBy: signedBy.kinds, receipted: receiptKeys.length > 0 }
}

function refuse(reason: AlertRefusal, detail: string) {
  return { ok: false, reason, detail } as const
}

/** Checks a signature over a text, by kind of signature. */
type Checks = Partial<Record<SignatureKind, (signature: Uint8Array, signed: Uint8Array) => boolean>>

function readChecks({ secret = [], keys = [] }: AlertOptions): Checks {
  const secrets = (typeof secret === 'string' ? [secret] : secret).map(readSecret)
  const publicKeys = keys
    .filter(({ use, status }) => (use ?? 'webhook') === 'webhook' && (status ?? 'active') === 'active')
    .map(readPublicKey)
  if (secrets.length === 0 && publicKeys.length === 0)
    throw new TypeError('A secret or an active webhook key is needed to check an alert with')
  return {
    ...(secrets.length > 0 && {
      // Checks all secrets, even after a match, so that the time reveals nothing.
      v1: (signature, signed) => secrets.map((key) => isSame(signature, hmac(sha256, key, signed))).includes(true),
    }),
    ...(publicKeys.length > 0 && {
      v1a: (signature, signed) => publicKeys.some((key) => isSigned(signed, signature, key)),
    }),
  }
}

function readSecret(secret: string): Uint8Array {
  const bytes = secret.startsWith('whsec_') ? decodeBase64(secret.slice('whsec_'.length)) : null
  if (!bytes || bytes.length < 24) throw new TypeError('A secret is whsec_ and at least 24 bytes in base64')
  return bytes
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length
  for (const [index, byte] of b.entries()) difference |= byte ^ (a[index] ?? 0)
  return difference === 0
}

const NAMES = ['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const
/** A dot would make the signed text ambiguous. A comma shows that a server joined two headers. */
const FORMS = [/^[A-Za-z0-9_-]{1,100}$/, /^[1-9]\d{0,11}$/, /^[a-z0-9]+,[^\s,]+( [a-z0-9]+,[^\s,]+)*$/] as const
/** Each check takes some milliseconds, and any sender can add many signatures. */
const MAX_SIGNATURES = 16

interface Signature {
  kind: string
  bytes: Uint8Array
}

function readHead(headers: AlertMessage['headers']) {
  const given = Symbol.iterator in headers ? [...headers] : Object.entries(headers)
  const values: string[] = []
  for (const [index, name] of NAMES.entries()) {
    const found = given.flatMap(([key, value]) => (key.toLowerCase() === name ? (value ?? []) : []))
    const [value] = found
    if (value === undefined) return refuse('missing_header', name)
    if (found.length > 1) return refuse('repeated_header', name)
    if (!FORMS[index]?.test(value)) return refuse('malformed_header', name)
    values.push(value)
  }
  const [id = '', timestamp = '', list = ''] = values
  const signatures = readSignatures(list)
  if (!signatures) return refuse('malformed_header', 'webhook-signature')
  return { id, timestamp, seconds: Number(timestamp), signatures }
}

/** Null for a malformed signature. Unknown kinds are skipped. */
function readSignatures(list: string): Signature[] | null {
  const parts = list.split(' ').map((part) => part.split(',') as [string, string])
  const known = parts.filter(([kind]) => Object.hasOwn(SIGNATURE_BYTES, kind))
  const signatures = known.map(([kind, base64]) => ({ kind, bytes: decodeBase64(base64) }))
  const good = signatures.filter(
    (one): one is Signature => one.bytes?.length === SIGNATURE_BYTES[one.kind as SignatureKind],
  )
  return good.length === signatures.length && good.length <= MAX_SIGNATURES ? good : null
}

const SIGNATURE_BYTES: Record<SignatureKind, number> = { v1: 32, v1a: 64 }

function judgeSignatures(signatures: readonly Signature[], signed: Uint8Array, checks: Checks) {
  const kinds: SignatureKind[] = []
  for (const kind of ['v1', 'v1a'] as const) {
    const check = checks[kind]
    const given = signatures.filter((one) => one.kind === kind)
    if (!check || given.length === 0) continue
    const verdicts = given.map(({ bytes }) => check(bytes, signed))
    if (!verdicts.includes(true)) return refuse('bad_signature', `${kind} is not by what was given to check it with`)
    kinds.push(kind)
  }
  return kinds.length > 0 ? { kinds } : refuse('unsigned', 'no signature can be checked with what was given')
}

const alertShape = object({
  type: text(/^[a-z]+\.[a-z_]+$/),
  timestamp: text(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z$/),
  data: object({ event_seq: integer(1) }),
})

type Body = Omit<Alert, 'id'>

function readBody(bytes: Uint8Array) {
  try {
    const value = parseJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
    const fault = jsonFaults(value).length > 0 ? 'not well-formed Unicode' : alertShape(value, '')
    return fault ? refuse('malformed_body', fault) : { body: value as Body }
  } catch {
    return refuse('malformed_body', 'not JSON in UTF-8, or a member twice')
  }
}

/** Handles that no account can have. A receipt that an account requested for a digest is not a receipt of an alert. */
export const REQUESTERS: readonly string[] = ['watchdog', 'citation-watch']

function receiptFault({ receipt, ...subject }: Body, keys: readonly PinnedKey[]): string | null {
  const attestation = receipt?.attestation
  const failed = verifyAttestation(attestation, { keys }).checks.find(({ ok }) => !ok)
  if (!attestation || failed) return `${failed?.name}: ${failed?.detail}`
  if (!REQUESTERS.includes(attestation.requested_by))
    return `it was made for ${JSON.stringify(attestation.requested_by)}`
  return attestation.subject_sha256 === sha256Hex(canonicalJson(subject)) ? null : 'it is the receipt of something else'
}
