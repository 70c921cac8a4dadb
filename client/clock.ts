// The clock of the client: time and waiting. A caller or a test can pass its own.

export interface Clock {
  /** Milliseconds; only differences count, except against the HTTP date of a Retry-After. */
  now(): number
  /** Resolves after `ms`; rejects when the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
  /** Aborts after `ms`. */
  deadline(ms: number): AbortSignal
}

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const stop = () => {
        clearTimeout(timer)
        reject(signal.reason)
      }
      const timer = setTimeout(
        () => {
          signal.removeEventListener('abort', stop)
          resolve()
        },
        Math.min(ms, LONGEST_MS),
      )
      signal.addEventListener('abort', stop, { once: true })
    }),
  deadline: (ms) => AbortSignal.timeout(ms),
}

/** A longer timer would end at once. */
const LONGEST_MS = 2 ** 31 - 1
