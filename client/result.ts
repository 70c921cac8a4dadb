// The completed result of a verification, as the interface 1.0.0 describes it.
import type { Attestation } from './chain/attestation.ts'
import type { NetworkName } from './networks.ts'

export type Stance = 'supports' | 'contradicts' | 'mentions'
export type ClaimSupport = 'supports' | 'contradicts' | 'mixed' | 'insufficient_evidence' | 'not_assessed'

/** CAIP-2; the Solana ones are mainnet and devnet. `none` where no funds moved. */
export type Network = NetworkName | 'none'

export interface VerificationInput {
  /** One public page: https, port 443, an ASCII URI of at most 2048 characters. */
  source_url: string
  /** One claim, 1 to 2000 Unicode code points. */
  claim: string
  options?: {
    /** Oldest acceptable cached observation in seconds, 0 to 300; 60 when left out. */
    max_age_seconds?: number
    /** A higher price fails with 422 instead of asking for payment, e.g. `0.03`. */
    max_price_usd?: string
  }
}

export interface ClaimsInput {
  source_url: string
  /** 1 to 10 claims, no two alike. */
  claims: string[]
  /** What the claims refer to, at most 1000 code points. */
  context?: string
  options?: VerificationInput['options']
}

export interface Evidence {
  evidence_id: string
  /** Exact substring of `source.normalized_text`. */
  quote: string
  /** Offsets in Unicode code points; `end` is exclusive. */
  start: number
  end: number
  stance: Stance
  source_sha256: string
  text_sha256: string
}

export interface Source {
  requested_url: string
  final_url: string
  http_status: 200
  content_type: string
  content_sha256: string
  text_sha256: string
  normalized_text: string
  offset_unit: 'unicode_codepoint'
  redirects: { url: string; status: 301 | 302 | 303 | 307 | 308 }[]
  wire_bytes: number
  decoded_bytes: number
}

export interface Payment {
  status: 'settled'
  provider: string
  mode: 'offline' | 'testnet' | 'mainnet'
  /** True where no funds moved. */
  simulated: boolean
  network: Network
  asset: string
  currency: 'USDC'
  amount_atomic: string
  price_usd: string
  transaction: string | null
  /** Null means unknown, not zero. */
  facilitator_fee_usd: string | null
  network_fee_usd: string | null
}

export interface Envelope {
  type: 'service.source-verification.purchase'
  version: 1
  request_id: string
  result_sha256: string
  checked_at: string
  methodology_version: string
  payment: Payment
  issued_at: string
}

export interface Receipt {
  envelope: Envelope
  canonical_envelope_base64: string
  attestation: Attestation
  /** A note for people. It has no signature: never act on it. */
  verification: string
}

export interface VerificationResult {
  schema_version: '1.0.0'
  request_id: string
  status: 'completed'
  verification_type: 'source'
  source: Source
  reachable: true
  source_identity: { hostname: string; tls_verified: boolean; publisher_identity: 'unknown' }
  claim: string
  claim_support: ClaimSupport
  assessment_scope: 'source_local_semantic_support' | 'literal_quotation_only'
  explanation: string
  evidence: Evidence[]
  confidence: null
  risk_flags: string[]
  checked_at: string
  served_at: string
  methodology_version: string
  limits: {
    fixture?: true
    max_decoded_bytes?: number
    max_header_bytes?: number
    max_redirects?: number
    max_text_chars: number
    max_wire_bytes?: number
    socket_timeout_seconds?: number | string
    timeout_seconds?: number | string
  }
  cache: { hit: boolean; age_seconds: number; original_checked_at: string }
  payment: Payment
  receipt: Receipt
}

/** What was found about one of several claims. */
export interface ClaimResult {
  /** As it was sent. */
  claim: string
  /** As it was assessed, where that differs: words of the context were added. */
  claim_as_read?: string
  claim_support: ClaimSupport
  assessment_scope: VerificationResult['assessment_scope']
  explanation: string
  /** `evidence_id` is unique in the whole result. */
  evidence: Evidence[]
  risk_flags: string[]
}

/** The result of verify-claims. */
export interface ClaimsResult
  extends Omit<
    VerificationResult,
    'verification_type' | 'claim' | 'claim_support' | 'assessment_scope' | 'explanation' | 'evidence' | 'risk_flags'
  > {
  verification_type: 'source_claims'
  context?: string
  /** In the order of the request. */
  claims: ClaimResult[]
}

/** The result of any purchase. */
export type PurchaseResult = VerificationResult | ClaimsResult
