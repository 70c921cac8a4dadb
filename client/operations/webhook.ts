// What watchdogs and citation watches share: the state of a webhook and the history of its alerts.
import type { Attestation } from '../chain/attestation.ts'

export type WebhookState = 'active' | 'failing' | 'disabled'

export type AlertType =
  | 'watchdog.missed'
  | 'watchdog.recovered'
  | 'watchdog.reminder'
  | 'watchdog.test'
  | 'citation.changed'
  | 'citation.vanished'
  | 'citation.restored'
  | 'citation.test'

export interface AlertRecord {
  id: string
  type: AlertType
  event_seq: number
  /** Serial of its receipt. */
  serial: number
  state: 'pending' | 'delivered' | 'failed' | 'discarded'
  created_at: string
  next_attempt_at: string | null
  settled_at: string | null
  /** The JSON text that is sent. */
  body: string
  attempts: { attempt: number; at: string; ms: number; status: number | null; error: string | null }[]
}

export interface AlertHistory {
  webhook_state: WebhookState
  /** Newest first. */
  alerts: AlertRecord[]
  /** Give it as `before` for the next page. */
  next: number | null
}

export interface TestAlert {
  name: string
  alert: { id: string; type: AlertType; event_seq: number; created_at: string }
  attestation: Attestation
}

export interface NewSecret {
  name: string
  webhook_secret: string
  /** Until then alerts are signed with the old ones as well. */
  old_secrets_until: string
}
