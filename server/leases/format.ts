// What a lease is, byte by byte: permission for one agent to do one action, signed, good until a deadline that only the
// service can move. A gateway that holds the key needs nothing else of this service until that deadline.
import { randomBytes, sign } from 'node:crypto'
import { z } from 'zod'
import { codePoints } from '../interface/scalars.ts'
import { canonicalJson, type SigningKey, sha256 } from '../receipts/format.ts'

/** A revocation is felt this much later at most, by gateways that never ask. */
export const RECHECK_MS = 30_000
export const MAX_TTL_S = 86_400

const characters = (min: number, max: number) =>
  z
    .string()
    .refine((text) => text.isWellFormed(), 'must be well-formed Unicode')
    .refine((text) => codePoints(text) >= min && codePoints(text) <= max, `must have ${min} to ${max} characters`)
    .meta({ minLength: min, maxLength: max })

export const leaseTerms = z.strictObject({
  agent: characters(1, 200).describe('Who may act. The gateway compares it with who asks.'),
  action: characters(1, 200).describe('What may be done. The gateway compares it with what is asked.'),
  lim: characters(0, 1000).describe(
    'Policy, signed as it is. The gateway has to read and enforce it; nobody else does.',
  ),
  ttl_s: z.int().min(1).max(MAX_TTL_S).describe('Seconds until the lease ends, however often it is renewed.'),
})
export type LeaseTerms = z.output<typeof leaseTerms>

const ms = z.int().min(0)
export const leaseId = z.string().regex(/^ls_[0-9a-f]{32}$/)

export const lease = z.strictObject({
  v: z.literal(1),
  typ: z.literal('lease'),
  lease_id: leaseId,
  account: z.string().describe('Handle of the account that granted it. Any account may grant a lease for any agent.'),
  ...leaseTerms.shape,
  granted_ms: ms,
  issued_ms: ms.describe('When these bytes were signed: at the grant or at the latest renewal.'),
  expires_ms: ms,
  recheck_by_ms: ms.describe('These bytes authorize nothing from here on. At most 30,000 ms after issued_ms.'),
  key_id: z.int().describe('A key of use lease in GET /v1/keys.'),
})
export type Lease = z.output<typeof lease>

export const revocation = z.strictObject({
  v: z.literal(1),
  typ: z.literal('lease_revocation'),
  lease_id: leaseId,
  account: z.string(),
  agent: z.string(),
  action: z.string(),
  revoked_ms: ms,
  key_id: z.int(),
})
export type Revocation = z.output<typeof revocation>

/** A document with the bytes that were signed of it. */
export interface Sealed<Document> {
  document: Document
  /** RFC 8785. */
  text: string
  signature: Buffer
}

export function grantLease(account: string, terms: LeaseTerms, nowMs: number, key: SigningKey): Sealed<Lease> {
  const expiresMs = nowMs + terms.ttl_s * 1000
  const made = { v: 1, typ: 'lease', lease_id: `ls_${randomBytes(16).toString('hex')}`, account, ...terms } as const
  return seal({ ...made, granted_ms: nowMs, expires_ms: expiresMs, ...issue(nowMs, expiresMs, key) }, key)
}

/** The same lease with a later deadline. Null when there is no time left in it. */
export function renewLease(old: Lease, nowMs: number, key: SigningKey): Sealed<Lease> | null {
  // Another process, with a clock ahead of ours, may have signed last; its deadline is never taken back.
  const issuedMs = Math.max(nowMs, old.issued_ms)
  return issuedMs < old.expires_ms ? seal({ ...old, ...issue(issuedMs, old.expires_ms, key) }, key) : null
}

function issue(issuedMs: number, expiresMs: number, key: SigningKey) {
  return { issued_ms: issuedMs, recheck_by_ms: Math.min(issuedMs + RECHECK_MS, expiresMs), key_id: key.keyId }
}

export function revokeLease(ended: Lease, nowMs: number, key: SigningKey): Sealed<Revocation> {
  const { v, lease_id, account, agent, action } = ended
  const revokedMs = Math.max(nowMs, ended.issued_ms)
  return seal(
    { v, typ: 'lease_revocation', lease_id, account, agent, action, revoked_ms: revokedMs, key_id: key.keyId },
    key,
  )
}

function seal<Document>(document: Document, key: SigningKey): Sealed<Document> {
  const text = canonicalJson(document)
  return { document, text, signature: sign(null, Buffer.from(text), key.privateKey) }
}

/** What the receipt of a grant, a renewal or a revocation attests. */
export function subjectOf(sealed: Sealed<unknown>): string {
  return sha256(sealed.text)
}
