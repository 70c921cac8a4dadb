// What an alert is, byte by byte: a document, its receipt in the chain, and the body that both make. The body is stored
// and sent as it is, at every attempt.
import { randomUUID } from 'node:crypto'
import { canonicalJson, sha256 } from '../receipts/format.ts'
import type { Attestation } from '../verification/result.ts'

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

/** What is told. `data.event_seq` is the alert's number at its webhook. */
export interface Alert {
  type: AlertType
  /** When it came about, by the clock of whoever found it. */
  timestamp: string
  data: { event_seq: number } & Record<string, unknown>
}

/** A new `webhook-id`. Chosen here and without a dot: it is part of what is signed. */
export function makeAlertId(): string {
  return `wh_${randomUUID().replaceAll('-', '')}`
}

/** `subject_sha256` of the alert's receipt: the SHA-256 of its RFC 8785 JSON. */
export function subjectOf(alert: Alert): string {
  return sha256(canonicalJson(alert))
}

/** The body that is sent: the alert, and beside it its receipt. */
export function sealAlert(alert: Alert, attestation: Attestation): string {
  return JSON.stringify({ ...alert, receipt: { attestation } })
}
