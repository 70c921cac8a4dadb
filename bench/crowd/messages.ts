// The messages between the processes of the run with hostile load.

/** Printed by the hosts on stdout when they are ready. */
export interface HostsReady {
  event: 'hosts_ready'
  /** For FIXTURE_HOSTS. */
  fixtures: string
  caFile: string
  pages: string[]
  drips: string[]
  /** Hosts of pages that are costly to read. */
  costly: string[]
  hanging: string[]
  receiver: string
}

/** Printed by the hosts for each alert that arrives at the receiver that answers. */
export interface AlertArrived {
  kind: 'alert'
  path: string
  /** Of the alert. */
  id: string
  /** Milliseconds since the epoch. */
  at: number
}

/** Sent to the hosts: from now on slow pages and hanging receivers close their connections at once. */
export const CUT = 'cut'

export interface AttackOrder {
  origin: string
  /** Hosts of pages that never end; the payer asks for one page of each. */
  drips: string[]
  /** Hosts of pages that are costly to read. */
  costly: string[]
  /** Hosts of honest pages, whose other pages never end. */
  pages: string[]
  /** One for each free account. */
  authorizations: string[]
}

/** Sent by the attack when its payments are signed. */
export interface AttackReady {
  kind: 'ready'
  payer: string
}

/** The number of answers of each kind. */
export type Tally = Record<string, number>

export interface AttackReport {
  kind: 'report'
  payments: { requests: number; accepted: number; answers: Tally }
  heartbeats: Tally
  quotes: { ipv4: Tally; ipv6: Tally }
  /** Purchases of costly pages, each by a wallet of its own. */
  costly: { answers: Tally; payers: string[] }
  quoteChecks: Tally
}

/** Sent to the attack, in this order. */
export const GO = 'go'
export const STOP = 'stop'

/** The watchdog of every account. */
export const WATCHDOG = 'nightly'
