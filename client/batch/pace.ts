// Controls how many rows run in parallel. A refusal for lack of capacity lowers the number and makes all rows wait as long
// as the service asked; each success raises it again, up to the caller's limit.
import type { Clock } from '../clock.ts'

/** The service asks for a longer wait than a run should last. */
export class CapacityError extends Error {
  override name = 'CapacityError'
}

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

  /**
   * Resolves when one more row may run, which then counts until `leave`. Rejects when the signal aborts, and with a
   * CapacityError.
   */
  async enter(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.clear(signal)
      if (this.#running < this.limit) break
      await new Promise<void>((resolve, reject) => {
        const stop = () => {
          // A place that becomes free must go to someone who still waits for it.
          this.#waiting = this.#waiting.filter((one) => one !== free)
          reject(signal.reason)
        }
        const free = () => {
          signal.removeEventListener('abort', stop)
          resolve()
        }
        signal.addEventListener('abort', stop, { once: true })
        this.#waiting.push(free)
      })
    }
    this.#running++
  }

  leave(): void {
    this.#running--
    this.#waiting.shift()?.()
  }

  /** Resolves when no pause is asked for. Rejects when the signal aborts, and with a CapacityError at once. */
  async clear(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    for (let left = this.#left(); left > 0; left = this.#left()) {
      if (left > MAX_PAUSE_MS * (1 + SPREAD)) {
        const end = new Date(this.#paused).toISOString()
        throw new CapacityError(`The service has no capacity, and asks to come back at ${end}.`)
      }
      await this.#clock.sleep(left, signal)
    }
  }

  /** The service had no capacity. Rows that are refused together count once, because they were sent at the same limit. */
  slow(retryAfterMs: number): void {
    const now = this.#clock.now()
    if (this.#paused <= now) this.#limit = Math.max(1, this.#limit * SLOWER)
    // So that rows do not all start at the same moment.
    this.#paused = Math.max(this.#paused, now + Math.min(retryAfterMs, LONGEST_MS) * (1 + Math.random() * SPREAD))
  }

  succeed(): void {
    this.#limit = Math.min(this.#most, this.#limit + 1 / this.#limit)
    this.#waiting.shift()?.()
  }

  #left(): number {
    return this.#paused - this.#clock.now()
  }
}

const SLOWER = 0.7
const SPREAD = 0.1
/** A run waits that long for capacity; for more it ends, and another one goes on. */
const MAX_PAUSE_MS = 3_600_000
/** A century: what is longer has no date. */
const LONGEST_MS = 100 * 365 * 86_400_000
