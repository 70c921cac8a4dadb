// Counts of calls by key (an address, an account, a request) in the memory of this process. However many keys there are, the memory
// is bounded, and no caller can use the bound to reset a count.

/** The calls of one key in its present window. */
export interface CallCount {
  /** With the one that was just counted. */
  calls: number
  /** Milliseconds to the end of the window, above 0. */
  msLeft: number
}

interface Entry {
  readonly key: string
  calls: number
  /** The end of the window, by the clock. */
  readonly until: number
}

/** Some 10 MB. Even if a process answered 300,000 calls in a minute, newcomers among them would start at seven calls at most. */
export const MAX_KEYS = 50_000

/**
 * The window of a key begins with its first call. While every place is taken, a new key takes that of a key with the fewest calls
 * and goes on from that count to the end of that window (the algorithm Space-Saving). So
 *
 * - the count of a key with n calls is safe until seven eighths of all places are held by keys with n calls or more. A caller with so
 *   many addresses and calls gains nothing by a reset count;
 * - a new key starts no higher than the calls of a window divided by those places, so honest newcomers are far below a limit.
 */
export class CallCounts {
  readonly #ms: number
  readonly #most: number
  readonly #now: () => number
  readonly #entries = new Map<string, Entry>()
  #sweepAt = 0
  /** The keys that had the fewest calls at the last sweep, if there was little room. Some have more by now. */
  #displaceable: Entry[] = []
  #fewestCalls = 0

  /** @param now a clock in milliseconds */
  constructor(window: { seconds: number; most?: number; now?: () => number }) {
    this.#ms = window.seconds * 1000
    this.#most = window.most ?? MAX_KEYS
    this.#now = window.now ?? (() => performance.now())
  }

  /** The number of keys in memory. */
  get size(): number {
    return this.#entries.size
  }

  /** Counts one call. */
  add(key: string): CallCount {
    const now = this.#now()
    const entry = this.#find(key, now) ?? this.#insert(key, now)
    entry.calls++
    return { calls: entry.calls, msLeft: entry.until - now }
  }

  /** Uncounts one call. Does nothing where the window of the call has ended. */
  takeBack(key: string): void {
    const entry = this.#find(key, this.#now())
    if (entry && entry.calls > 0) entry.calls--
  }

  #find(key: string, now: number): Entry | undefined {
    const entry = this.#entries.get(key)
    if (!entry || entry.until > now) return entry
    this.#entries.delete(key)
    return undefined
  }

  #insert(key: string, now: number): Entry {
    if (now >= this.#sweepAt) this.#sweep(now)
    const displaced = this.#makeRoom(now)
    const goesOn = displaced !== undefined && displaced.until > now
    const entry = { key, calls: goesOn ? displaced.calls : 0, until: goesOn ? displaced.until : now + this.#ms }
    this.#entries.set(key, entry)
    return entry
  }

  /** Returns the key that had to go, if one had to. */
  #makeRoom(now: number): Entry | undefined {
    while (this.#entries.size >= this.#most) {
      const entry = this.#displaceable.pop()
      if (!entry) this.#sweep(now)
      else if (entry.calls === this.#fewestCalls && this.#entries.get(entry.key) === entry) {
        this.#entries.delete(entry.key)
        return entry
      }
    }
    return undefined
  }

  /** Deletes the keys whose window has ended. It takes a millisecond or two, so what it finds serves the next new keys as well. */
  #sweep(now: number) {
    this.#sweepAt = now + this.#ms
    this.#displaceable = []
    for (const entry of this.#entries.values()) if (entry.until <= now) this.#entries.delete(entry.key)
    if (this.#entries.size <= this.#most * (7 / 8)) return
    this.#fewestCalls = Number.POSITIVE_INFINITY
    for (const entry of this.#entries.values()) {
      if (entry.calls < this.#fewestCalls) {
        this.#fewestCalls = entry.calls
        this.#displaceable = []
      }
      if (entry.calls === this.#fewestCalls) this.#displaceable.push(entry)
    }
  }
}
