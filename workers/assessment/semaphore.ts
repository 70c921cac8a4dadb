// A semaphore: limits how many calls run at the same time; the others wait in order of arrival.

export interface Semaphore {
  /**
   * Runs `work` when a place is free. Rejects with the signal's reason if the signal aborts first; `work` then does not
   * start.
   */
  pass<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>
  readonly waiting: number
}

export function buildSemaphore(places: number): Semaphore {
  let free = places
  const queue: (() => void)[] = []

  const enter = (signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      signal.throwIfAborted()
      if (free > 0) {
        free--
        resolve()
        return
      }
      const leave = () => {
        queue.splice(queue.indexOf(admit), 1)
        reject(signal.reason)
      }
      const admit = () => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      signal.addEventListener('abort', leave, { once: true })
      queue.push(admit)
    })
  const leave = () => {
    const next = queue.shift()
    if (next) next()
    else free++
  }

  return {
    async pass(work, signal) {
      await enter(signal)
      try {
        return await work()
      } finally {
        leave()
      }
    },
    get waiting() {
      return queue.length
    },
  }
}
