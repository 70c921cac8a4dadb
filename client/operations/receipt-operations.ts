// Operations on receipts and on the chain they form.
import type { Attestation } from '../chain/attestation.ts'
import type { Inclusion } from '../chain/merkle.ts'
import type { CallOptions, KeyedCallOptions } from './call-options.ts'

/** What `verifyReceipt` of the verification takes. */
export interface ProvedReceipt {
  attestation: Attestation
  inclusion: Inclusion
  /** C2SP signed note. */
  checkpoint: string
}

export interface KeyRecord {
  key_id: number
  use: 'receipt' | 'lease' | 'webhook' | 'checkpoint'
  alg: 'Ed25519'
  pubkey_hex: string
  status: 'active' | 'retired' | 'compromised'
  first_serial: number | null
  last_serial: number | null
  introduced_by: number | null
  created_at: string
  /** Verifier key, of a checkpoint key. */
  vkey: string | null
  /** The receipt that introduced this key. */
  introduction: Attestation | null
}

export interface ChainHeadAnswer {
  /** 0 before the first receipt. */
  serial: number
  receipt_hash: string
  key_id: number | null
  ts_ms: number | null
  tree_size: number
  root_hash: string
  /** Empty before the first receipt. */
  checkpoint: string
  vkey: string
}

export interface ReceiptVerdict {
  valid: boolean
  checks: { name: string; ok: boolean; detail?: string }[]
}

export interface ChainVerdict {
  from: number
  to: number
  head_serial: number
  valid: boolean
  receipts: number
  signatures_checked: number
  first_fault: { serial: number; check: string; detail: string } | null
}

export interface ReceiptOperations {
  /** Every public key the service has signed with. Pin them through a channel you trust. */
  getKeys(input?: Record<never, never>, options?: CallOptions): Promise<{ keys: KeyRecord[] }>
  /** A receipt for a digest, 64 lowercase hex characters. The chain is public: the label and your handle too. */
  createReceipt(
    input: { subject_sha256: string; label?: string | null },
    options?: KeyedCallOptions,
  ): Promise<ProvedReceipt>
  /** With the proof that it is in the tree of `tree_size` receipts; default: the present tree. */
  getReceipt(input: { serial: number; tree_size?: number }, options?: CallOptions): Promise<ProvedReceipt>
  /** The account's own, newest first; give `next` as `before` for the next page. */
  listReceipts(
    input?: { limit?: number; before?: number },
    options?: CallOptions,
  ): Promise<{ receipts: Attestation[]; next: number | null }>
  /** Asks the service about a receipt, which proves less than the offline function of the same name. */
  verifyReceipt(
    input: {
      attestation: object
      inclusion?: object
      checkpoint?: string
      envelope?: object
      canonical_envelope_base64?: string
      verification?: string
    },
    options?: CallOptions,
  ): Promise<ReceiptVerdict>
  getChainHead(input?: Record<never, never>, options?: CallOptions): Promise<ChainHeadAnswer>
  /** At most 1000 receipts; without `to` as many as there are up to that. */
  getChain(
    input?: { from?: number; to?: number },
    options?: CallOptions,
  ): Promise<{ from: number; to: number; head_serial: number; attestations: Attestation[] }>
  /** Proof that the tree of `to` receipts continues the one of `from`. */
  getConsistency(
    input: { from: number; to?: number },
    options?: CallOptions,
  ): Promise<{ from: number; to: number; hashes: string[]; checkpoint: string }>
  /** Asks the service about its own chain, which proves less than the offline function of the same name. */
  verifyChain(input?: { from?: number; to?: number }, options?: CallOptions): Promise<ChainVerdict>
}
