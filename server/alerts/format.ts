// The format of alerts: the document, its digest in the receipt, the body with both, and the signatures. The body is stored and
// sent byte for byte at every attempt.
import { createHmac, randomUUID, sign } from 'node:crypto'
import type { Attestation } from '../interface/attestation.ts'
import { canonicalJson, type SigningKey, sha256 } from '../receipts/format.ts'

export const ALERT_TYPES = [
  'watchdog.missed',
  'watchdog.recovered',
  'watchdog.reminder',
  'watchdog.test',
  'citation.changed',
  'citation.vanished',
  'citation.restored',
  'citation.test',
] as const
export type AlertType = (typeof ALERT_TYPES)[number]

/** The document that is receipted and sent. `data.event_seq` is the alert's number at its webhook. */
export interface Alert {
  type: AlertType
  /** When the reported change happened, in ISO 8601. */
  timestamp: string
  data: { event_seq: number } & Record<string, unknown>
}

/** The form of a `webhook-id`. */
export const ALERT_ID = /^wh_[0-9a-f]{32}$/

/** A new `webhook-id`. It has no dot, because the signed text separates its parts by dots. */
export function makeAlertId(): string {
  return `wh_${randomUUID().replaceAll('-', '')}`
}

/** `subject_sha256` of the alert's receipt: the SHA-256 of its RFC 8785 JSON. */
export function subjectOf(alert: Alert): string {
  return sha256(canonicalJson(alert))
}

/** The body that is sent: the alert with its receipt. */
export function sealAlert(alert: Alert, attestation: Attestation): string {
  return JSON.stringify({ ...alert, receipt: { attestation } })
}

/** The keys that sign an attempt: every secret in force, and the webhook key. */
export interface AlertSigners {
  /** `whsec_...`, the newest first. */
  secrets: readonly string[]
  key: SigningKey
}

/**
 * Standard Webhooks 1.0.0: the three headers of one attempt, signed over the bytes that are sent. `webhook-signature` has a
 * `v1` (HMAC-SHA256) for each secret and one `v1a` (Ed25519). A stock library checks a `v1` and skips the `v1a`; a receiver
 * without a shared secret checks the `v1a`.
 *
 * @param seconds when the attempt began, since the epoch
 */
export function signedHeaders(id: string, body: Uint8Array, seconds: number, { secrets, key }: AlertSigners) {
  const signed = Buffer.concat([Buffer.from(`${id}.${seconds}.`), body])
  const hmac = (secret: string) =>
    createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
      .update(signed)
      .digest('base64')
  const signatures = [
    ...secrets.map((secret) => `v1,${hmac(secret)}`),
    `v1a,${sign(null, signed, key.privateKey).toString('base64')}`,
  ]
  return {
    'webhook-id': id,
    'webhook-timestamp': String(seconds),
    'webhook-signature': signatures.join(' '),
  }
}
