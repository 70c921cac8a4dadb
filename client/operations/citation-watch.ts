// Operations on citation watches: whether a quote that was bought is still on its page.
import type { CallOptions } from './call-options.ts'
import type { AlertHistory, AlertRecord, NewSecret, TestAlert, WebhookState } from './webhook.ts'

interface Observation {
  checked_at: string
  content_sha256: string
  text_sha256: string
}

/** Offsets in Unicode code points; `end` is exclusive. */
interface Place {
  start: number
  end: number
}

export type CitationCheck =
  | (Observation & Place & { outcome: 'present' })
  | (Observation & {
      outcome: 'changed'
      /** The passage that is nearest to the quote. */
      nearest: Place & { quote: string; quote_sha256: string; similarity: number }
    })
  | (Observation & { outcome: 'vanished' })
  | { outcome: 'unreadable'; checked_at: string; code: string; message: string }

export interface CitationWatch {
  name: string
  source_url: string
  quote: string
  quote_sha256: string
  request_id: string
  evidence_id: string
  every_hours: number
  webhook_url: string
  webhook_state: WebhookState
  state: 'present' | 'changed' | 'vanished'
  failures: number
  last_seen: Observation & Place
  last_check: CitationCheck | null
  next_check_at: string
  event_seq: number
  created_at: string
}

export interface CitationWatchTerms {
  name: string
  webhook_url: string
  every_hours?: number
  /** The next three say which quote; all are needed to make a watch, none to change its terms. */
  request_id?: string
  recovery_token?: string
  evidence_id?: string
}

export interface CitationWatchOperations {
  /** Makes or changes it. `webhook_secret` is there once, when it was made. */
  putCitationWatch(
    input: CitationWatchTerms,
    options?: CallOptions,
  ): Promise<CitationWatch & { webhook_secret?: string }>
  getCitationWatch(input: { name: string }, options?: CallOptions): Promise<CitationWatch>
  listCitationWatches(
    input?: Record<never, never>,
    options?: CallOptions,
  ): Promise<{ citation_watches: CitationWatch[] }>
  deleteCitationWatch(input: { name: string }, options?: CallOptions): Promise<void>
  /** Asks for a check before the next one is due. */
  checkCitationWatch(input: { name: string }, options?: CallOptions): Promise<CitationWatch>
  /** Sends a `citation.test` alert. */
  testCitationWatch(input: { name: string }, options?: CallOptions): Promise<TestAlert>
  listCitationAlerts(
    input: { name: string; limit?: number; before?: number },
    options?: CallOptions,
  ): Promise<AlertHistory>
  redeliverCitationAlert(input: { name: string; id: string }, options?: CallOptions): Promise<AlertRecord>
  rotateCitationWebhookSecret(input: { name: string }, options?: CallOptions): Promise<NewSecret>
}
