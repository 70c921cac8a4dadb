// Operations on watchdogs and their heartbeats.
import type { CallOptions } from './call-options.ts'
import type { AlertHistory, AlertRecord, NewSecret, TestAlert, WebhookState } from './webhook.ts'

export type WatchdogState = 'new' | 'up' | 'late' | 'down' | 'paused'

/** `late`: before an outage was due. `missed`: after that. */
export type HeartbeatArrival = 'in_time' | 'late' | 'missed' | 'failed'

export interface Watchdog {
  name: string
  interval_s: number
  grace_s: number
  alert_after: number
  remind_every_s: number | null
  state: WatchdogState
  due_at: string | null
  last_heartbeat_at: string | null
  beats: number
  /** The arrivals of the last heartbeats, at most 20, the oldest first. */
  recent_beats: HeartbeatArrival[]
  note: string | null
  down_since: string | null
  paused_until: string | null
  event_seq: number
  created_at: string
  webhook_url: string
  webhook_state: WebhookState
  server_now: string
}

export interface WatchdogTerms {
  name: string
  /** 10 to 2,592,000 seconds between two heartbeats. */
  interval_s: number
  webhook_url: string
  /** Default: the larger of 5 and a tenth of the interval. */
  grace_s?: number
  /** Number of intervals that must be missed; default 1. */
  alert_after?: number
  remind_every_s?: number | null
}

export interface WatchdogOperations {
  /** Makes or changes it. `webhook_secret` is there once, when it was made. */
  putWatchdog(input: WatchdogTerms, options?: CallOptions): Promise<Watchdog & { webhook_secret?: string }>
  sendHeartbeat(
    input: { name: string; status?: 'ok' | 'fail'; note?: string },
    options?: CallOptions,
  ): Promise<{ name: string; state: WatchdogState; due_at: string | null; server_now: string }>
  getWatchdog(input: { name: string }, options?: CallOptions): Promise<Watchdog>
  listWatchdogs(input?: Record<never, never>, options?: CallOptions): Promise<{ watchdogs: Watchdog[] }>
  /** `until`: an ISO time; null or left out: until it is unpaused. */
  pauseWatchdog(
    input: { name: string; paused: boolean; until?: string | null },
    options?: CallOptions,
  ): Promise<Watchdog>
  /** Sends a `watchdog.test` alert. */
  testWatchdog(input: { name: string }, options?: CallOptions): Promise<TestAlert>
  deleteWatchdog(input: { name: string }, options?: CallOptions): Promise<void>
  listAlerts(input: { name: string; limit?: number; before?: number }, options?: CallOptions): Promise<AlertHistory>
  redeliverAlert(input: { name: string; id: string }, options?: CallOptions): Promise<AlertRecord>
  rotateWebhookSecret(input: { name: string }, options?: CallOptions): Promise<NewSecret>
}
