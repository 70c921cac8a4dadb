// The delivery loop of a worker process. A send holds neither a slot of the queue nor a database connection while it waits for
// an answer: a receiver that hangs holds one socket and nothing else.
//
// Jobs of the queue and a timer only wake the loop; what is due is read from the outbox. So a job may be lost, doubled or late
// without harm.
import { every } from '../db/interval.ts'
import type { Logger } from '../telemetry.ts'
import { type ClaimedAlert, claimAlert } from './claims.ts'
import { type DeliveryTools, deliver } from './delivery.ts'
import type { Lane } from './lanes.ts'

export interface DeliveryLoop extends AsyncDisposable {
  /** Looks for due alerts and sends them. Returns at once. */
  wake(): void
  /** Resolves when no search and no send is under way. */
  idle(): Promise<void>
}

/**
 * Most sends under way in one process. A receiver is proved when its last attempt was answered well and in time. Half of the
 * sends are for proved receivers; untried and slow ones share the other half. The two halves are searched in parallel, so
 * the bounds of an account and a domain may be exceeded by one.
 */
export const BOUNDS = {
  proved: 32,
  unproved: 32,
  /** Of the unproved half. The other places of that half are for untried receivers. */
  slow: 16,
  account: { all: 8, unproved: 2 },
  /** Of one registrable domain: many watchdogs may alert one receiver, and often all at once. */
  domain: { all: 4, unproved: 2 },
  /**
   * Milliseconds after which a send counts as slow, in any lane. Otherwise receivers that answer once
   * and then hang could hold the places of the proved ones.
   */
  slowMs: 2000,
}
export type Bounds = typeof BOUNDS

/** Milliseconds after a send in the unproved half in which an account is served after all others. */
const BEHIND_MS = 60_000

interface Send {
  claimed: ClaimedAlert
  /** Under way for longer than `slowMs`. */
  overdue: boolean
  done: Promise<void>
}

/** Disposing claims nothing more and waits for the sends under way, which take an attempt's time at most. */
export function openDeliveryLoop(tools: DeliveryTools, bounds: Bounds = BOUNDS): DeliveryLoop {
  const sends = new Map<string, Send>()
  /** By account id: until when (milliseconds since the epoch) the account is served after all others. */
  const behind = new Map<string, number>()
  let closing = false
  // In parallel: a search in the unproved half skips the alerts of all accounts and domains at their bound, which may be
  // many, and alerts to proved receivers must not wait for that.
  const searches = [
    openSearch(() => sendDue(['proved']), tools.log),
    openSearch(() => sendDue(['untried', 'slow']), tools.log),
  ]

  function hasRoom(lane: Lane): boolean {
    const lanes = [...sends.values()].map(laneOf)
    const proved = lanes.filter((one) => one === 'proved').length
    if (lane === 'proved') return proved < bounds.proved
    const slow = lanes.filter((one) => one === 'slow').length
    return lanes.length - proved < bounds.unproved && (lane === 'untried' || slow < bounds.slow)
  }

  /** Accounts, or domains, with as many sends under way as their bound. */
  function full(lane: Lane, key: 'account_id' | 'domain', most: Bounds['account']): string[] {
    const all = [...sends.values()]
    const unproved = all.filter((send) => laneOf(send) !== 'proved')
    return [...keysAt(all, key, most.all), ...(lane === 'proved' ? [] : keysAt(unproved, key, most.unproved))]
  }

  /** Accounts without a current send, and without a recent send in the unproved half, go first. */
  async function claimOf(lane: Lane): Promise<ClaimedAlert | null> {
    const exceptAccounts = full(lane, 'account_id', bounds.account)
    const exceptDomains = full(lane, 'domain', bounds.domain)
    const later = [...behind.keys(), ...[...sends.values()].map(({ claimed }) => claimed.webhook.account_id)]
    const filter = { lane, exceptAccounts, exceptDomains, onLaneChange: wake }
    return (
      (await claimAlert(tools, { ...filter, exceptAccounts: [...exceptAccounts, ...later] })) ??
      (later.length > 0 ? await claimAlert(tools, filter) : null)
    )
  }

  async function sendDue(lanes: readonly Lane[]) {
    forgetPast(behind)
    let found = true
    while (found) {
      found = false
      for (const lane of lanes) {
        const claimed = !closing && hasRoom(lane) && (await claimOf(lane))
        if (claimed) start(claimed)
        found ||= Boolean(claimed)
      }
    }
  }

  function start(claimed: ClaimedAlert) {
    const send: Send = { claimed, overdue: false, done: Promise.resolve() }
    const timer = setTimeout(() => {
      send.overdue = true
      wake()
    }, bounds.slowMs)
    sends.set(claimed.sender, send)
    send.done = deliver(claimed, tools, () => send.overdue).then(() => {
      clearTimeout(timer)
      sends.delete(claimed.sender)
      if (laneOf(send) !== 'proved') behind.set(claimed.webhook.account_id, Date.now() + BEHIND_MS)
      // A place is free for another webhook, or for the next alert of this one.
      wake()
    })
  }

  function wake() {
    if (!closing) for (const search of searches) search.start()
  }

  async function idle() {
    while (searches.some(({ running }) => running) || sends.size > 0)
      await Promise.all([...searches.map(({ done }) => done), ...[...sends.values()].map(({ done }) => done)])
  }

  return {
    wake,
    idle,
    async [Symbol.asyncDispose]() {
      closing = true
      await idle()
    },
  }
}

interface Search {
  /** Starts a search. While one is under way, another follows it. */
  start(): void
  readonly running: boolean
  readonly done: Promise<void>
}

/** Runs `search` again as long as it was started meanwhile. Logs the error when it throws. */
function openSearch(search: () => Promise<void>, log: Logger): Search {
  let wanted = false
  let running = false
  let done = Promise.resolve()
  /** Checks for requests and stops in the same tick, so none is lost. */
  async function run() {
    running = true
    try {
      while (wanted) {
        wanted = false
        await search()
      }
    } catch (error) {
      log.warn({ event: 'delivery_failed', err: error })
    } finally {
      running = false
    }
  }
  return {
    start() {
      wanted = true
      if (!running) done = run()
    },
    get running() {
      return running
    },
    get done() {
      return done
    },
  }
}

function laneOf({ claimed: { webhook }, overdue }: Send): Lane {
  return overdue ? 'slow' : webhook.lane
}

/** The accounts, or domains, with at least `least` of these sends. */
function keysAt(sends: readonly Send[], key: 'account_id' | 'domain', least: number): string[] {
  const groups = Map.groupBy(sends, ({ claimed }) => claimed.webhook[key])
  return [...groups].flatMap(([value, group]) => (group.length >= least ? [value] : []))
}

function forgetPast(times: Map<string, number>) {
  for (const [key, until] of times) if (until <= Date.now()) times.delete(key)
}

/** No job wakes a loop for a retry, or for an alert whose lease has expired. */
const ROUND_MS = 1000

/** Wakes the loop every ROUND_MS until disposed. */
export function openRounds(loop: DeliveryLoop, log: Logger): AsyncDisposable {
  return every(ROUND_MS, loop.wake, (error) => log.warn({ event: 'delivery_failed', err: error }))
}
