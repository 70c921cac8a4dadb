// A bound on calls that are held until work is done. Each holds a socket and looks at the database again and again. A call
// that gets no seat is answered at once.

export interface Seats {
  /** A seat, until it is disposed of; null when this holder, or all holders together, have all of theirs. */
  take(holder: string): Disposable | null
}

/** @param limits `each`: seats of one holder; `all`: seats there are */
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
