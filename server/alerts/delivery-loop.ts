// Delivers alerts. A send holds no slot of the queue and no connection of the database while it waits for an answer: a
// receiver that hangs holds a socket here and nothing else.
//
// Jobs of the queue only wake a courier, and so does a timer; what is due is read from the outbox. So a job may be lost,
// doubled or late without harm.
import { setInterval as every } from 'node:timers/promises'
import type { Work } from '../../workers/context.ts'
import type { Logger } from '../telemetry.ts'
import { type ClaimedAlert, takeAlert } from './claims.ts'
import { deliver } from './delivery.ts'
import type { Lane } from './lanes.ts'

export interface Courier extends AsyncDisposable {
  /** Looks for what is due and sends it. Returns at once. */
  wake(): void
  /** Resolves when nothing is being looked for or sent. */
  idle(): Promise<void>
}

/**
 * Sends under way in one process. A receiver is proved when its last attempt was answered well and in time. Proved ones have
 * half of everything to themselves; those that were never tried and those that were slow share the other half. Bounds of an
 * account and a domain may be exceeded by one, because the two halves are searched side by side.
 */
export const BOUNDS = {
  proved: 32,
  unproved: 32,
  /** Of the unproved: what is left of those is for receivers that were never tried. */
  slow: 16,
  account: { all: 8, unproved: 2 },
  /** Of one registrable domain: many watchdogs lead to one, and all fall silent together. */
  domain: { all: 4, unproved: 2 },
  /**
   * A send that takes longer counts as slow from then on, whatever was known of its receiver. Otherwise receivers that
   * answer once and then hang could hold the places of the proved ones. Milliseconds.
   */
  slowMs: 2000,
}
export type Bounds = typeof BOUNDS

/** For so long an account that was served in the unproved half lets others go first. */
const BEHIND_MS = 60_000

interface Send {
  taken: ClaimedAlert
  /** Under way for longer than `slowMs`. */
  overdue: boolean
  done: Promise<void>
}

/** Disposing takes nothing more and waits for what is under way, which takes an attempt's time at most. */
export function openCourier(work: Work, bounds: Bounds = BOUNDS): Courier {
  const sends = new Map<string, Send>()
  /** When an account stops to let others go first, by its id. */
  const behind = new Map<string, number>()
  let closing = false
  // Side by side: a search among the unproved reads past the alerts of full accounts and domains, however many there are,
  // and alerts to proved receivers must not wait for that.
  const searches = [
    openSearch(() => takeAll(['proved']), work.log),
    openSearch(() => takeAll(['untried', 'slow']), work.log),
  ]

  function hasRoom(lane: Lane): boolean {
    const lanes = [...sends.values()].map(laneOf)
    const proved = lanes.filter((one) => one === 'proved').length
    if (lane === 'proved') return proved < bounds.proved
    const slow = lanes.filter((one) => one === 'slow').length
    return lanes.length - proved < bounds.unproved && (lane === 'untried' || slow < bounds.slow)
  }

  /** Accounts, or domains, that have as many sends under way as they may. */
  function full(lane: Lane, key: 'account_id' | 'domain', most: Bounds['account']): string[] {
    const all = [...sends.values()]
    const unproved = all.filter((send) => laneOf(send) !== 'proved')
    return [...keysAt(all, key, most.all), ...(lane === 'proved' ? [] : keysAt(unproved, key, most.unproved))]
  }

  /** Accounts with nothing under way that were not served among the unproved lately go before the others. */
  async function takeOf(lane: Lane): Promise<ClaimedAlert | null> {
    const accounts = full(lane, 'account_id', bounds.account)
    const domains = full(lane, 'domain', bounds.domain)
    const others = [...behind.keys(), ...[...sends.values()].map(({ taken }) => taken.webhook.account_id)]
    const wanted = { lane, accounts, domains, moved: wake }
    return (
      (await takeAlert(work, { ...wanted, accounts: [...accounts, ...others] })) ??
      (others.length > 0 ? await takeAlert(work, wanted) : null)
    )
  }

  async function takeAll(lanes: readonly Lane[]) {
    forgetPast(behind)
    let found = true
    while (found) {
      found = false
      for (const lane of lanes) {
        const taken = !closing && hasRoom(lane) && (await takeOf(lane))
        if (taken) start(taken)
        found ||= Boolean(taken)
      }
    }
  }

  function start(taken: ClaimedAlert) {
    const send: Send = { taken, overdue: false, done: Promise.resolve() }
    const timer = setTimeout(() => {
      send.overdue = true
      wake()
    }, bounds.slowMs)
    sends.set(taken.sender, send)
    send.done = deliver(taken, work, () => send.overdue).then(() => {
      clearTimeout(timer)
      sends.delete(taken.sender)
      if (laneOf(send) !== 'proved') behind.set(taken.webhook.account_id, Date.now() + BEHIND_MS)
      // There is room now, for another webhook or for the next alert of this one.
      wake()
    })
  }

  function wake() {
    if (!closing) for (const search of searches) search.ask()
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
  /** Starts a search, or has the one under way followed by another. */
  ask(): void
  readonly running: boolean
  readonly done: Promise<void>
}

/** Runs `search` again as long as it was asked for meanwhile. What it throws is logged. */
function openSearch(search: () => Promise<void>, log: Logger): Search {
  let asked = false
  let running = false
  let done = Promise.resolve()
  /** Checks for requests and stops in the same tick, so none is lost. */
  async function run() {
    running = true
    try {
      while (asked) {
        asked = false
        await search()
      }
    } catch (error) {
      log.warn({ event: 'courier_failed', err: error })
    } finally {
      running = false
    }
  }
  return {
    ask() {
      asked = true
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

function laneOf({ taken: { webhook }, overdue }: Send): Lane {
  return overdue ? 'slow' : webhook.lane
}

/** The accounts, or domains, with at least so many of these sends. */
function keysAt(sends: readonly Send[], key: 'account_id' | 'domain', most: number): string[] {
  const groups = Map.groupBy(sends, ({ taken }) => taken.webhook[key])
  return [...groups].flatMap(([value, group]) => (group.length >= most ? [value] : []))
}

function forgetPast(times: Map<string, number>) {
  for (const [key, until] of times) if (until <= Date.now()) times.delete(key)
}

/** No job wakes a courier for retries, nor for what a killed courier left behind. */
const ROUND_MS = 1000

/** Wakes the courier every ROUND_MS until disposed. */
export function openRounds(courier: Courier): AsyncDisposable {
  const stopping = new AbortController()
  const rounds = (async () => {
    try {
      for await (const _ of every(ROUND_MS, undefined, { signal: stopping.signal })) courier.wake()
    } catch (error) {
      if (!stopping.signal.aborted) throw error
    }
  })()
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort()
      await rounds
    },
  }
}
