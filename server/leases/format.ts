// The signed documents of leases. A lease is permission for one agent to do one action until a deadline. A gateway that holds
// the service's public key verifies it without the service.
import { randomBytes, sign } from 'node:crypto'
import { z } from 'zod'
import { canonicalJson, type SigningKey, sha256 } from '../receipts/format.ts'
import { type LeaseTerms, leaseTerms, RECHECK_MS } from './terms.ts'

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

/** A document with the bytes that were signed. */
export interface Signed<Document> {
  document: Document
  /** RFC 8785. */
  text: string
  signature: Buffer
}

export function signGrant(account: string, terms: LeaseTerms, nowMs: number, key: SigningKey): Signed<Lease> {
  const expiresMs = nowMs + terms.ttl_s * 1000
  const made = { v: 1, typ: 'lease', lease_id: `ls_${randomBytes(16).toString('hex')}`, account, ...terms } as const
  return signDocument({ ...made, granted_ms: nowMs, expires_ms: expiresMs, ...issue(nowMs, expiresMs, key) }, key)
}

/** The same lease with a later `recheck_by_ms`. Null when it has expired. */
export function signRenewal(old: Lease, nowMs: number, key: SigningKey): Signed<Lease> | null {
  // A process with a faster clock may have signed last. Its deadline is never made earlier.
  const issuedMs = Math.max(nowMs, old.issued_ms)
  return issuedMs < old.expires_ms ? signDocument({ ...old, ...issue(issuedMs, old.expires_ms, key) }, key) : null
}

function issue(issuedMs: number, expiresMs: number, key: SigningKey) {
  return { issued_ms: issuedMs, recheck_by_ms: Math.min(issuedMs + RECHECK_MS, expiresMs), key_id: key.keyId }
}

export function signRevocation(ended: Lease, nowMs: number, key: SigningKey): Signed<Revocation> {
  const { v, lease_id, account, agent, action } = ended
  const revokedMs = Math.max(nowMs, ended.issued_ms)
  return signDocument(
    { v, typ: 'lease_revocation', lease_id, account, agent, action, revoked_ms: revokedMs, key_id: key.keyId },
    key,
  )
}

function signDocument<Document>(document: Document, key: SigningKey): Signed<Document> {
  const text = canonicalJson(document)
  return { document, text, signature: sign(null, Buffer.from(text), key.privateKey) }
}

/** Parses the text of a lease that this service signed. */
export function readLease(text: string): Lease {
  return lease.parse(JSON.parse(text))
}

export function readRevocation(text: string): Revocation {
  return revocation.parse(JSON.parse(text))
}

/** The `subject_sha256` of the receipt of a grant, a renewal or a revocation. */
export function subjectOf(signed: Signed<unknown>): string {
  return sha256(signed.text)
}
