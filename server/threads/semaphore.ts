// A semaphore: limits how many calls run at the same time; the others wait in the order of lanes.ts. Where some work may be much
// slower than the rest, slow work may hold half of the places, and so may work that no purchase pays for.
import { buildLanes, type Lane, OWN_LANE } from './lanes.ts'

export interface Semaphore {
  /**
   * Runs `work` when a place is free. Rejects with the signal's reason if the signal aborts first; `work` then does not
   * start.
   * @param lane for whom; by default, for the service itself
   * @param isSlow whether it was slow before. It begins at once, within the half of slow work, or rejects with `tooSlow`
   */
  pass<T>(work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal, lane?: Lane, isSlow?: boolean): Promise<T>
  /** Runs such work apart from all places, and learns from it how long work usually takes. */
  timed<T>(work: () => Promise<T>): Promise<T>
  readonly waiting: number
}

export interface SemaphoreOptions {
  /**
   * Where it is given, work that takes much longer than usual is slow. While other work waits and half of the places have slow
   * work, more of it is aborted with this reason.
   */
  tooSlow?: () => Error
  /** The least time after which work is slow. */
  slowMs?: number
}

/** Nearly all answers of a quick server come sooner. */
const SLOW_MS = 2000
/** Work is slow when it takes so many times as long as the quickest quarter of the latest work. */
const TIMES = 4
const LATEST = 16

interface Entry {
  lane: Lane
  isSlow: boolean
  /** Whether it runs for longer than usual. */
  isOverdue: boolean
  stop: AbortController
  admit: () => void
}

export function buildSemaphore(places: number, { tooSlow, slowMs = SLOW_MS }: SemaphoreOptions = {}): Semaphore {
  const half = Math.max(1, Math.floor(places / 2))
  const lanes = buildLanes<Entry>()
  const running = new Set<Entry>()
  const latest: number[] = []

  const hasRoom = (share: (entry: Entry) => boolean) => [...running].filter(share).length < half
  const isSlow = (entry: Entry) => entry.isSlow
  const isFree = ({ lane }: Entry) => lane.isFree
  const mayRun = (entry: Entry) =>
    !tooSlow || ((!entry.isSlow || hasRoom(isSlow)) && (!entry.lane.isFree || hasRoom(isFree)))

  /** Gives free places to waiting work, and takes places from slow work while others wait. */
  function advance() {
    while (running.size < places) {
      const next = lanes.take(mayRun)
      if (!next) return
      running.add(next)
      next.admit()
    }
    for (const entry of running) {
      if (!entry.isOverdue || entry.isSlow || entry.stop.signal.aborted) continue
      if (hasRoom(isSlow)) entry.isSlow = true
      else if (lanes.holds((other) => !other.isSlow && (!other.lane.isFree || entry.lane.isFree)))
        entry.stop.abort(tooSlow?.())
    }
  }

  const enter = (entry: Entry, signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      signal.throwIfAborted()
      const leave = () => {
        lanes.remove(entry, entry.lane)
        reject(signal.reason)
      }
      entry.admit = () => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      signal.addEventListener('abort', leave, { once: true })
      lanes.add(entry, entry.lane)
      advance()
      if (!entry.isSlow || running.has(entry)) return
      signal.removeEventListener('abort', leave)
      lanes.remove(entry, entry.lane)
      reject(tooSlow?.())
    })

  /** Until it is known how long work takes, none is slow. */
  function watch(entry: Entry): Disposable {
    const usual = latest.toSorted((one, other) => one - other)[Math.floor(latest.length / 4)]
    if (!tooSlow || usual === undefined) return { [Symbol.dispose]: () => {} }
    const overdue = () => {
      entry.isOverdue = true
      advance()
    }
    const timer = setTimeout(overdue, Math.max(slowMs, TIMES * usual)).unref()
    return { [Symbol.dispose]: () => clearTimeout(timer) }
  }

  async function timed<T>(work: () => Promise<T>): Promise<T> {
    const begun = performance.now()
    const done = await work()
    latest.push(performance.now() - begun)
    if (latest.length > LATEST) latest.shift()
    return done
  }

  return {
    timed,
    async pass(work, signal, lane = OWN_LANE, isSlow = false) {
      const entry: Entry = { lane, isSlow, isOverdue: false, stop: new AbortController(), admit: () => {} }
      await enter(entry, signal)
      const end = lanes.begin(lane)
      try {
        using _ = watch(entry)
        const stop = tooSlow ? AbortSignal.any([signal, entry.stop.signal]) : signal
        return await timed(() => work(stop))
      } finally {
        end()
        running.delete(entry)
        advance()
      }
    },
    get waiting() {
      return lanes.size
    },
  }
}
