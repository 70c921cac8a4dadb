// The shapes of receipts: the attestation, which is a receipt of the chain, and the receipt of a purchase, which holds one.
import { z } from 'zod'
import { payment } from './payment.ts'
import { sha256Hex, text, timestamp } from './scalars.ts'

export const attestation = z.strictObject({
  v: z.literal(1),
  serial: z.int().min(1),
  subject_sha256: sha256Hex,
  label: text(0, 200).nullable(),
  requested_by: z.string().min(1).max(128),
  key_id: z.int().min(0),
  ts_ms: z.int().min(0),
  ts_utc: timestamp,
  prev_hash: sha256Hex,
  pubkey_hex: sha256Hex,
  receipt_hash: sha256Hex,
  sig_ed25519_hex: z.string().regex(/^[0-9a-f]{128}$/),
})
export type Attestation = z.output<typeof attestation>

export const RECEIPT_TYPE = 'service.source-verification.purchase'

export const envelope = z.strictObject({
  type: z.literal(RECEIPT_TYPE),
  version: z.literal(1),
  request_id: z.uuid(),
  result_sha256: sha256Hex,
  checked_at: timestamp,
  methodology_version: z.string().min(1).max(256),
  payment,
  issued_at: timestamp,
})
export type Envelope = z.output<typeof envelope>

export const receipt = z.strictObject({
  envelope,
  canonical_envelope_base64: z
    .string()
    .min(4)
    .max(16_384)
    .regex(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/),
  attestation,
  verification: z.string().min(1).max(1000),
})
