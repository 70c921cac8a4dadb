// A semaphore: limits how many calls run at the same time; the others wait in the order of lanes.ts.
import { buildLanes, type Lane, OWN_LANE } from './lanes.ts'

export interface Semaphore {
  /**
   * Runs `work` when a place is free. Rejects with the signal's reason if the signal aborts first; `work` then does not
   * start.
   * @param lane for whom; by default, for the service itself
   */
  pass<T>(work: () => Promise<T>, signal: AbortSignal, lane?: Lane): Promise<T>
  readonly waiting: number
}

export function buildSemaphore(places: number): Semaphore {
  let free = places
  const lanes = buildLanes<() => void>()

  const enter = (signal: AbortSignal, lane: Lane) =>
    new Promise<void>((resolve, reject) => {
      signal.throwIfAborted()
      if (free > 0) {
        free--
        resolve()
        return
      }
      const leave = () => {
        lanes.remove(admit, lane)
        reject(signal.reason)
      }
      const admit = () => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      signal.addEventListener('abort', leave, { once: true })
      lanes.add(admit, lane)
    })
  const leave = () => {
    const next = lanes.take(() => true)
    if (next) next()
    else free++
  }

  return {
    async pass(work, signal, lane = OWN_LANE) {
      await enter(signal, lane)
      const end = lanes.begin(lane)
      try {
        return await work()
      } finally {
        end()
        leave()
      }
    },
    get waiting() {
      return lanes.size
    },
  }
}
