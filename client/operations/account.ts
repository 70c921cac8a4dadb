// Operations of accounts: registration, API keys, usage and billing.
import type { CallOptions } from './call-options.ts'

export type Tier = 'free' | 'dev' | 'pro'
/** What a key may do: everything, read, or send heartbeats. */
export type ApiKeyKind = 'full' | 'read_only' | 'heartbeat'

export interface TierLimits {
  active_leases: number
  lease_acts_per_day: number
  receipts_per_day: number
  watchdogs: number
  watchdog_alerts_per_day: number
  citation_watches: number
  quote_check_pages_per_day: number
  quote_checks_in_flight: number
  journal_slots: number
  journal_bytes: number
  api_keys: number
  heartbeats_per_minute: number
  receipts_per_minute: number
  calls_per_minute: number
  checkouts_per_hour: number
}

export interface Registration {
  handle: string
  /** A secret, shown once. */
  api_key: string
  tier: Tier
  limits: TierLimits
}

export interface ApiKeyRow {
  id: string
  kind: ApiKeyKind
  label: string | null
  created_at: string
  expires_at: string | null
  last_used_at: string | null
}

export interface Usage {
  handle: string
  tier: Tier
  limits: TierLimits
  used: {
    active_leases: number
    lease_acts_today: number
    receipts_today: number
    watchdogs: number
    watchdog_alerts_today: number
    citation_watches: number
    quote_check_pages_today: number
    quote_checks_in_flight: number
    journal_slots: number
    journal_bytes: number
    api_keys: number
  }
  /** The next UTC midnight. */
  resets_at: string
  /** The subscription that has not ended, if there is one. */
  subscription: {
    status: string
    tier: Tier
    payment: 'kept' | 'refunded' | 'disputed'
    current_period_end: string | null
    cancel_at_period_end: boolean
    provider: 'stripe' | 'simulation'
  } | null
}

export interface Checkout {
  /** Where a person pays. */
  checkout_url: string
  tier: 'dev' | 'pro'
  /** Per month. */
  price_usd: string
  mode: 'stripe' | 'simulated'
  kind: 'subscribe' | 'change'
  expires_at: string | null
}

export interface BillingPortal {
  portal_url: string
  mode: 'stripe' | 'simulated'
  expires_at: string | null
}

export interface AccountOperations {
  /** Registers an account. The API key is shown once, and a lost key cannot be recovered. */
  register(input: { handle: string }, options?: CallOptions): Promise<Registration>
  listApiKeys(input?: Record<never, never>, options?: CallOptions): Promise<{ api_keys: ApiKeyRow[] }>
  createApiKey(
    input: { kind: ApiKeyKind; label?: string },
    options?: CallOptions,
  ): Promise<{ id: string; kind: ApiKeyKind; api_key: string }>
  /** Ends a key, at once or `after_s` seconds, at most seven days. */
  revokeApiKey(input: { id: string; after_s?: number }, options?: CallOptions): Promise<{ id: string; ends_at: string }>
  getUsage(input?: Record<never, never>, options?: CallOptions): Promise<Usage>
  /** The page on which a person buys a tier. Charges nothing by itself. */
  createCheckout(input: { tier: 'dev' | 'pro' }, options?: CallOptions): Promise<Checkout>
  openBillingPortal(input?: Record<never, never>, options?: CallOptions): Promise<BillingPortal>
}
