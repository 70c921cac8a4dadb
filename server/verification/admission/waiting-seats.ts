// Limits the calls of a holder that wait: for an outcome, because each holds a socket and polls the database, and for a thread. A call
// without a seat is answered at once.

export interface Seats {
  /** Takes a seat, which is freed by disposing it; null if the limit of this holder or of all holders is reached. */
  take(holder: string): Disposable | null
}

/** @param limits `each`: seats per holder; `all`: seats of all holders */
export function openSeats(limits: { each: number; all: number }): Seats {
  const held = new Map<string, number>()
  let all = 0
  return {
    take(holder) {
      const own = held.get(holder) ?? 0
      if (own >= limits.each || all >= limits.all) return null
      held.set(holder, own + 1)
      all++
      let taken = true
      return {
        [Symbol.dispose]() {
          if (!taken) return
          taken = false
          all--
          const left = (held.get(holder) ?? 1) - 1
          if (left === 0) held.delete(holder)
          else held.set(holder, left)
        },
      }
    },
  }
}
