// The order in which waiting work is served where many callers share few places, such as threads. Work waits in lanes. The
// lane whose payer and domain have used the least time lately comes first; within a lane, the order is that of arrival. Work
// that no purchase pays for comes after paid work, except that it always keeps a small share of the time.

/** For whom work is done. */
export interface Lane {
  /** The payer of a purchase, or the account. */
  payer: string
  /** The registrable domain of the page. */
  domain: string
  /** Whether no purchase pays for the work. */
  isFree: boolean
}

/** Work of the service itself, which no caller asked for. */
export const OWN_LANE: Lane = { payer: '', domain: '', isFree: false }

export interface Lanes<T> {
  add(item: T, lane: Lane): void
  remove(item: T, lane: Lane): void
  /** Takes the item that comes next among those that may be taken now; undefined if there is none. */
  take(mayTake: (item: T, lane: Lane) => boolean): T | undefined
  /** Whether an item waits that may be taken now. */
  holds(mayTake: (item: T, lane: Lane) => boolean): boolean
  /** Notes that work of this lane begins; the function returned notes that it has ended. */
  begin(lane: Lane): () => void
  readonly size: number
}

/** Time that was used this long ago counts half. */
const HALF_LIFE_MS = 10_000
/** While paid work waits, free work comes first only if it has had less than this share of the time, and a little less still. */
const FREE_SHARE = 0.1
const FREE_ALLOWANCE_MS = 500
/** Times below this are forgotten. */
const LEAST_MS = 1
/** Payers and domains that are remembered before forgotten times are looked for. */
const REMEMBERED = 2048

/** @param now milliseconds, of any clock that only goes forward */
export function buildLanes<T>(now: () => number = () => performance.now()): Lanes<T> {
  const waiting = new Map<string, { lane: Lane; items: T[] }>()
  const used = buildUses(now)
  let size = 0

  const isBefore = (one: Rank, other: Rank) => (one.isLast === other.isLast ? one.usedMs < other.usedMs : other.isLast)

  const rank = (lane: Lane, freeIsFirst: boolean): Rank => ({
    isLast: lane.isFree !== freeIsFirst,
    usedMs: Math.max(used.of(payerName(lane)), used.of(domainName(lane))),
  })

  function remove(item: T, lane: Lane) {
    const name = laneName(lane)
    const group = waiting.get(name)
    const place = group?.items.indexOf(item) ?? -1
    if (!group || place < 0) return
    group.items.splice(place, 1)
    if (group.items.length === 0) waiting.delete(name)
    size--
  }

  return {
    remove,
    add(item, lane) {
      const name = laneName(lane)
      const group = waiting.get(name)
      if (group) group.items.push(item)
      else waiting.set(name, { lane, items: [item] })
      size++
    },
    take(mayTake) {
      const freeIsFirst = used.of(FREE) + FREE_ALLOWANCE_MS < FREE_SHARE * used.of(ALL)
      let best: { rank: Rank; item: T; lane: Lane } | undefined
      for (const { lane, items } of waiting.values()) {
        const item = items.find((one) => mayTake(one, lane))
        if (item === undefined) continue
        const own = rank(lane, freeIsFirst)
        if (!best || isBefore(own, best.rank)) best = { rank: own, item, lane }
      }
      if (!best) return undefined
      remove(best.item, best.lane)
      return best.item
    },
    holds(mayTake) {
      for (const { lane, items } of waiting.values()) if (items.some((one) => mayTake(one, lane))) return true
      return false
    },
    begin(lane) {
      const names = [payerName(lane), domainName(lane), ALL, ...(lane.isFree ? [FREE] : [])]
      const ends = names.map((name) => used.begin(name))
      return () => {
        for (const end of ends) end()
      }
    },
    get size() {
      return size
    },
  }
}

interface Rank {
  isLast: boolean
  usedMs: number
}

// A caller chooses its payer and its domain, but never these first words.
const payerName = ({ payer, isFree }: Lane) => `${isFree ? 'free' : 'paid'}:${payer}`
const domainName = ({ domain, isFree }: Lane) => `${isFree ? 'free' : 'paid'}@${domain}`
const laneName = (lane: Lane) => `${payerName(lane)} ${domainName(lane)}`
const FREE = 'free'
const ALL = 'all'

/** The time that each name has used lately, work under way included. */
function buildUses(now: () => number) {
  const uses = new Map<string, { ms: number; at: number; running: Set<{ since: number }> }>()

  const decayed = (ms: number, at: number) => ms * 0.5 ** ((now() - at) / HALF_LIFE_MS)

  function forget() {
    for (const [name, { ms, at, running }] of uses)
      if (running.size === 0 && decayed(ms, at) < LEAST_MS) uses.delete(name)
  }

  return {
    of(name: string): number {
      const use = uses.get(name)
      if (!use) return 0
      let ms = decayed(use.ms, use.at)
      for (const { since } of use.running) ms += now() - since
      return ms < LEAST_MS && use.running.size === 0 ? 0 : ms + use.running.size
    },
    begin(name: string): () => void {
      if (uses.size >= REMEMBERED) forget()
      const use = uses.get(name) ?? { ms: 0, at: now(), running: new Set() }
      uses.set(name, use)
      const run = { since: now() }
      use.running.add(run)
      return () => {
        if (!use.running.delete(run)) return
        use.ms = decayed(use.ms, use.at) + now() - run.since
        use.at = now()
      }
    },
  }
}
