// Operations for everyone, before and after a purchase: what is sold, the meaning of a result's terms, the status of a
// payment.
import type { CallOptions, ProofCallOptions, RecoveryCallOptions } from './call-options.ts'

export interface Capabilities {
  schema_version: '1.0.0'
  service: string
  description: string
  verification_type: 'source'
  endpoint: string
  payment_protocol: 'x402-v2'
  payment_mode: 'offline' | 'testnet' | 'mainnet'
  /** CAIP-2. */
  networks: string[]
  /** Of one verification. */
  price: { amount_atomic: '30000'; currency: 'USDC'; decimals: 6; usd: '0.03' }
  idempotency: { required_header: 'Idempotency-Key'; minimum_length: 16; result_retention_seconds: number }
  limits: {
    source_count: 1
    claim_characters: 2000
    formats: ['text/html', 'text/plain']
    cache_max_age_seconds: 60
  }
  methodology_version: string
  scope: string
  public_discovery: true
  mcp_tool?: 'service_verify_source'
  input_schema: Record<string, unknown>
  output_schema: Record<string, unknown>
}

export interface RiskFlag {
  name: string
  raised_by: 'retrieval' | 'text' | 'page' | 'claim' | 'literal_assessment' | 'local_assessment' | 'semantic_assessment'
  meaning: string
  /** What to do about it. */
  advice: string
}

export interface Methodology {
  methodology_version: string
  in_force: boolean
  parts: { part: string; meaning: string }[]
}

export interface EvidencePackage {
  /** The exact bytes of the file. */
  data: Uint8Array
}

export interface PaymentStatus {
  schema_version: '1.0.0'
  request_id: string
  payments: {
    fate: 'verified' | 'settling' | 'settled' | 'delivered' | 'unpaid' | 'failed'
    /** Null while this is not known. */
    charged: boolean | null
    message: string
    network: string
    asset: string
    payer: string
    nonce: string
    pay_to: string
    amount_atomic: string
    transaction: string | null
    valid_before: string
    changed_at: string
  }[]
}

export interface DiscoveryOperations {
  /** What the service sells, at which price, on which networks. */
  getCapabilities(input?: Record<never, never>, options?: CallOptions): Promise<Capabilities>
  /** What each of a result's `risk_flags` means. */
  getRiskFlags(input?: Record<never, never>, options?: CallOptions): Promise<{ risk_flags: RiskFlag[] }>
  getMethodologies(input?: Record<never, never>, options?: CallOptions): Promise<{ methodologies: Methodology[] }>
  /** What a result's `methodology_version` means. */
  getMethodology(input: { version: string }, options?: CallOptions): Promise<Methodology>
  /** The evidence package of a result: a WACZ file. Throws `not_found` where the service kept none. */
  getEvidence(input: { request_id: string }, options: RecoveryCallOptions): Promise<EvidencePackage>
  /** The same of a result of several claims. */
  getClaimsEvidence(input: { request_id: string }, options: RecoveryCallOptions): Promise<EvidencePackage>
  /** The status of the payments of a request. */
  getPayment(input: { request_id: string }, options: RecoveryCallOptions): Promise<PaymentStatus>
  /** The same, for a payer who has only the payment that was signed. */
  findPayment(input: Record<never, never>, options: ProofCallOptions): Promise<PaymentStatus>
}
