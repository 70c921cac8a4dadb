// Operations on leases, for the account that grants them. A gateway checks leases offline, with lease.ts.
import type { Attestation } from '../chain/attestation.ts'
import type { Lease } from '../lease.ts'
import type { CallOptions } from './call-options.ts'

export type LeaseState = 'active' | 'expired' | 'revoked'

/** What `verifyLease` of lease.ts takes, and where the lease is in its life. */
export interface LeaseAnswer {
  lease: Lease
  canonical_lease_base64: string
  sig_ed25519_hex: string
  state: LeaseState
  revoked_ms: number | null
  /** Serials in the chain. */
  receipts: { granted: number; renewed: number | null; revoked: number | null }
  server_now_ms: number
}

export interface GrantedLease extends LeaseAnswer {
  /** The receipt of this act. */
  attestation: Attestation
}

export interface RevokedLease {
  lease_id: string
  state: 'revoked'
  revoked_ms: number
  revocation: {
    v: 1
    typ: 'lease_revocation'
    lease_id: string
    account: string
    agent: string
    action: string
    revoked_ms: number
    key_id: number
  }
  canonical_revocation_base64: string
  sig_ed25519_hex: string
  attestation: Attestation
}

export interface LeaseVerdict {
  lease_id: string
  valid: boolean
  reason: 'wrong_agent' | 'wrong_action' | 'revoked' | 'expired' | 'recheck_passed' | null
  state: LeaseState
  agent: string
  action: string
  lim: string
  recheck_by_ms: number
  expires_ms: number
  server_now_ms: number
}

export interface LeaseOperations {
  /** Grants a lease for `ttl_s` seconds, 1 to 86,400. `lim` is policy, which the gateway enforces. */
  grantLease(
    input: { agent: string; action: string; lim: string; ttl_s: number },
    options?: CallOptions,
  ): Promise<GrantedLease>
  /** The same lease with a later `recheck_by_ms`. Fails with 409 once it is revoked or expired. */
  renewLease(input: { lease_id: string }, options?: CallOptions): Promise<GrantedLease>
  /** Takes effect within 30 seconds everywhere. The same answer when repeated. */
  revokeLease(input: { lease_id: string }, options?: CallOptions): Promise<RevokedLease>
  getLease(input: { lease_id: string }, options?: CallOptions): Promise<LeaseAnswer>
  /** Newest first; give `next` as `before` for the next page. */
  listLeases(
    input?: { state?: 'active' | 'all'; limit?: number; before?: string },
    options?: CallOptions,
  ): Promise<{ leases: LeaseAnswer[]; next: string | null }>
  /** Asks the service about a lease. The function of the same name in lease.ts needs no service. */
  verifyLease(
    input: { lease_id: string; agent?: string; action?: string },
    options?: CallOptions,
  ): Promise<LeaseVerdict>
}
