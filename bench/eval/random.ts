// Numbers by chance that are the same on every run, and intervals by resampling.

/** A whole number from 0 to before `bound`. */
export type Random = (bound: number) => number

/** Mulberry32. */
export function seeded(seed: number): Random {
  let state = seed >>> 0
  return (bound) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * bound)
  }
}

/** A share with the bounds in which 95 of 100 resamples lie. */
export interface Share {
  /** 0 to 1; null where there is no case. */
  share: number | null
  low: number
  high: number
  n: number
}

/** Whole clusters are drawn: claims on one page stand or fall together. */
export function shareOf<T>(cases: readonly T[], holds: (one: T) => boolean, clusterOf: (one: T) => string): Share {
  const clusters = new Map<string, { n: number; held: number }>()
  for (const one of cases) {
    const cluster = clusters.get(clusterOf(one)) ?? { n: 0, held: 0 }
    cluster.n++
    if (holds(one)) cluster.held++
    clusters.set(clusterOf(one), cluster)
  }
  const list = [...clusters.values()]
  if (cases.length === 0) return { share: null, low: Number.NaN, high: Number.NaN, n: 0 }
  const random = seeded(SEED)
  const shares = Array.from({ length: RESAMPLES }, () => {
    let [n, held] = [0, 0]
    for (let i = 0; i < list.length; i++) {
      const drawn = list[random(list.length)]!
      n += drawn.n
      held += drawn.held
    }
    return held / n
  }).sort((a, b) => a - b)
  const at = (part: number) => shares[Math.min(RESAMPLES - 1, Math.floor(part * RESAMPLES))]!
  return { share: cases.filter(holds).length / cases.length, low: at(0.025), high: at(0.975), n: cases.length }
}

const RESAMPLES = 1000
export const SEED = 17
