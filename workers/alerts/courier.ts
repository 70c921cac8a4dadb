// Carries alerts out. Sends hold no slot of the queue and no connection of the database while they wait for an answer: a
// receiver that hangs keeps a socket here and nothing else, however many verifications there are to do.
//
// The queue's job only wakes a courier, and so does each round; what is due is what the outbox says. So it does not matter
// whether a job is lost, doubled or late.
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

/** Sends under way in one process. */
const MOST = {
  all: 64,
  /** To webhooks whose last attempt failed or took long: what is left is for those that answer. */
  slow: 32,
  /** To one host: many watchdogs lead to one, and all fall silent together. */
  host: 4,
}

/** Disposing takes nothing more and waits for what is under way, which takes an attempt's time at most. */
export function openCourier(work: Work): Courier {
  const sends = new Map<string, { taken: Taken; done: Promise<void> }>()
  let closing = false
  let woken = false
  let looking = false
  let look = Promise.resolve()

  function room(): Room {
    const webhooks = [...sends.values()].map(({ taken }) => taken.webhook)
    const byHost = Map.groupBy(webhooks, ({ host }) => host)
    return {
      fullHosts: [...byHost].filter(([, group]) => group.length >= MOST.host).map(([host]) => host),
      slow: webhooks.filter(({ slow }) => slow).length < MOST.slow,
    }
  }

  /** Ends in the same turn in which it found itself not woken again: nobody wakes it in vain. */
  async function lookAround() {
    looking = true
    try {
      while (woken && !closing) {
        woken = false
        await takeAll()
      }
    } catch (error) {
      work.log.warn({ event: 'courier_failed', err: error })
    } finally {
      looking = false
    }
  }

  async function takeAll() {
    while (!closing && sends.size < MOST.all) {
      const taken = await takeAlert(work, room())
      if (!taken) return
      // One that ends makes room, for another or for the next of its own webhook.
      const done = deliver(taken, work).then(() => {
        sends.delete(taken.sender)
        wake()
      })
      sends.set(taken.sender, { taken, done })
    }
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

/** Retries have no job of their own, and neither has what a killed courier left behind. */
const ROUND_MS = 1000

/** Wakes the courier again and again until disposed. */
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
