// Delivers alerts. A send holds no slot of the queue and no connection of the database while it waits for an answer: a
// receiver that hangs holds a socket here and nothing else.
//
// Jobs of the queue only wake a courier, and so does a timer; what is due is read from the outbox. So a job may be lost,
// doubled or late without harm.
import { setInterval as every } from 'node:timers/promises'
import { type Room, type Taken, takeAlert } from '../../server/alerts/dispatch.ts'
import type { Work } from '../context.ts'
import { deliver } from './deliver.ts'

export interface Courier extends AsyncDisposable {
  /** Looks for what is due and sends it. Returns at once. */
  wake(): void
  /** Resolves when nothing is being looked for or sent. */
  idle(): Promise<void>
}

/**
 * Sends under way in one process. A receiver is proved when its last attempt was answered well and in time. Proved ones have
 * half of everything to themselves; those that were never tried and those that were slow share the other half.
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
  taken: Taken
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
  let woken = false
  let looking = false
  let look = Promise.resolve()

  function room(): Room {
    const all = [...sends.values()]
    const unproved = all.filter((send) => !isProved(send))
    const slow = unproved.filter(({ taken, overdue }) => taken.webhook.slow || overdue)
    const reached = (key: 'account_id' | 'domain', { all: most, unproved: some }: Bounds['account']) => ({
      all: keysAt(all, key, most),
      unproved: keysAt(unproved, key, some),
    })
    return {
      proved: all.length - unproved.length < bounds.proved,
      untried: unproved.length < bounds.unproved,
      slow: unproved.length < bounds.unproved && slow.length < bounds.slow,
      accounts: reached('account_id', bounds.account),
      domains: reached('domain', bounds.domain),
      behind: [...new Set([...behind.keys(), ...all.map(({ taken }) => taken.webhook.account_id)])],
    }
  }

  /** Checks for wake-ups and stops in the same tick, so none is lost. */
  async function lookAround() {
    looking = true
    try {
      while (woken && !closing) {
        woken = false
        forgetPast(behind)
        await takeAll()
      }
    } catch (error) {
      work.log.warn({ event: 'courier_failed', err: error })
    } finally {
      looking = false
    }
  }

  async function takeAll() {
    while (!closing) {
      const taken = await takeAlert(work, room())
      if (!taken) return
      start(taken)
    }
  }

  function start(taken: Taken) {
    const send: Send = { taken, overdue: false, done: Promise.resolve() }
    const timer = setTimeout(() => {
      send.overdue = true
      wake()
    }, bounds.slowMs)
    sends.set(taken.sender, send)
    send.done = deliver(taken, work, () => send.overdue).then(() => {
      clearTimeout(timer)
      sends.delete(taken.sender)
      if (!isProved(send)) behind.set(taken.webhook.account_id, Date.now() + BEHIND_MS)
      // There is room now, for another webhook or for the next alert of this one.
      wake()
    })
  }

  function wake() {
    woken = true
    if (!looking && !closing) look = lookAround()
  }

  async function idle() {
    while (looking || sends.size > 0) await Promise.all([look, ...[...sends.values()].map(({ done }) => done)])
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

function isProved({ taken: { webhook }, overdue }: Send): boolean {
  return webhook.tried && !webhook.slow && !overdue
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
