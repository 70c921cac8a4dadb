// How rates are measured on a machine with other load: the subjects run in turns, each round gives one ratio, and the
// result is the median.

export interface Contestant {
  what: string
  /** Runs once and answers a rate per second. */
  run: () => Promise<number>
  /** The required ratio of the first one's rate to this one's. */
  aim?: number
}

export interface Standing {
  what: string
  /** Median of the rounds. */
  rate: number
  /**
   * The first one's rate divided by this one's: median of the rounds, because both runs of a round had the same other
   * load on the machine.
   */
  ratio: number
  aim: number | undefined
}

/** The service's own subject comes first. Odd rounds run in the opposite order, so that a drift favours no subject. */
export async function compete(rounds: number, contestants: Contestant[]): Promise<Standing[]> {
  const rates = new Map(contestants.map((contestant) => [contestant, [] as number[]]))
  for (let round = 0; round < rounds; round++) {
    for (const contestant of round % 2 === 0 ? contestants : contestants.toReversed())
      rates.get(contestant)!.push(await contestant.run())
  }
  const ours = rates.get(contestants[0]!)!
  return [...rates].map(([{ what, aim }, theirs]) => ({
    what,
    aim,
    rate: median(theirs),
    ratio: median(ours.map((rate, round) => rate / theirs[round]!)),
  }))
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/**
 * Calls with so many callers at once, each starting its next call when its last is answered, until time is up or `next`
 * has nothing more. Answers calls per second.
 */
export async function closedLoop<T>(
  options: { callers: number; milliseconds?: number },
  next: () => T | undefined,
  call: (item: T) => Promise<unknown>,
): Promise<number> {
  const started = performance.now()
  const deadline = started + (options.milliseconds ?? Number.POSITIVE_INFINITY)
  let done = 0
  const caller = async () => {
    while (performance.now() < deadline) {
      const item = next()
      if (item === undefined) return
      await call(item)
      done++
    }
  }
  await Promise.all(Array.from({ length: options.callers }, caller))
  return (done * 1000) / (performance.now() - started)
}
