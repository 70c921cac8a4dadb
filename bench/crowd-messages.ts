// What the processes of the crowd run say to each other.

/** What the hosts say on stdout when they are ready. */
export interface HostsReady {
  event: 'hosts_ready'
  /** For FIXTURE_HOSTS. */
  fixtures: string
  caFile: string
  pages: string[]
  drips: string[]
  hanging: string[]
  receiver: string
}

/** What the hosts say of each alert that arrived at the receiver that answers. */
export interface AlertArrived {
  kind: 'alert'
  path: string
  /** Of the alert. */
  id: string
  /** Milliseconds since the epoch. */
  at: number
}

/** Sent to the hosts: from here on dripping pages and hanging receivers break off at once. */
export const CUT = 'cut'

export interface AttackOrder {
  origin: string
  /** Hosts of pages that never end; the payer asks for one page of each. */
  drips: string[]
  /** One for each free account. */
  authorizations: string[]
}

/** What the attack says when its payments are signed. */
export interface AttackReady {
  kind: 'ready'
  payer: string
}

/** Answers by what they mean, counted. */
export type Tally = Record<string, number>

export interface AttackReport {
  kind: 'report'
  payments: { requests: number; accepted: number; answers: Tally }
  heartbeats: Tally
  quotes: { ipv4: Tally; ipv6: Tally }
}

/** Sent to the attack, in this order. */
export const GO = 'go'
export const STOP = 'stop'

/** The watchdog of every account. */
export const WATCHDOG = 'nightly'
