// Controls how many rows run in parallel. A refusal for lack of capacity lowers the number and makes all rows wait as long
// as the service asked; each success raises it again, up to the caller's limit.
import type { Clock } from '../clock.ts'

export class Pace {
  readonly #most: number
  readonly #clock: Clock
  #limit: number
  #running = 0
  #paused = 0
  #waiting: (() => void)[] = []

  constructor(most: number, clock: Clock) {
    this.#most = most
    this.#limit = most
    this.#clock = clock
  }

  get running(): number {
    return this.#running
  }

  /** How many rows may run now. */
  get limit(): number {
    return Math.floor(this.#limit)
  }

  /** Resolves when one more row may run, which then counts until `leave`. Rejects when the signal aborts. */
  async enter(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.clear(signal)
      if (this.#running < this.limit) break
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const stop = () => reject(signal.reason)
      signal.addEventListener('abort', stop, { once: true })
      this.#waiting.push(resolve)
      await promise.finally(() => signal.removeEventListener('abort', stop))
    }
    this.#running++
  }

  leave(): void {
    this.#running--
    this.#waiting.shift()?.()
  }

  /** Resolves when no pause is asked for. */
  async clear(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    for (let left = this.#paused - this.#clock.now(); left > 0; left = this.#paused - this.#clock.now())
      // In several timers, because a timer of more than 24 days ends at once.
      await this.#clock.sleep(Math.min(left, LONGEST_SLEEP_MS), signal)
  }

  /** The service had no capacity. Rows that are refused together count once, because they were sent at the same limit. */
  slow(retryAfterMs: number): void {
    const now = this.#clock.now()
    if (this.#paused <= now) this.#limit = Math.max(1, this.#limit * SLOWER)
    // So that rows do not all start at the same moment.
    this.#paused = Math.max(this.#paused, now + retryAfterMs * (1 + Math.random() * SPREAD))
  }

  succeed(): void {
    this.#limit = Math.min(this.#most, this.#limit + 1 / this.#limit)
    this.#waiting.shift()?.()
  }
}

const SLOWER = 0.7
const SPREAD = 0.1
const LONGEST_SLEEP_MS = 3_600_000
