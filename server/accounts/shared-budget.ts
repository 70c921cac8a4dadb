// A budget that all callers share, such as registrations by everyone together. A part of it is kept for networks that have used
// nothing lately, so a caller with many addresses cannot close the service to newcomers.
import type { CallCount } from './call-counts.ts'

/** A limiter of calls, as rate-limit.ts builds it. */
export interface Counter {
  readonly points: number
  add(key: string): Promise<CallCount>
  takeBack(key: string): Promise<void>
}

export interface SharedBudget {
  /**
   * Counts one use. @param network of the caller
   * @returns null and how to uncount it; or the count that is used up
   */
  spend(
    network: string,
  ): Promise<{ refusal: CallCount; giveBack?: never } | { refusal: null; giveBack(): Promise<void> }>
}

/** Share of a budget that is kept for networks without recent use. */
export const RESERVED_SHARE = 0.25
/** Uses of one network, within the window of `recent`, after which it is no newcomer any more. */
export const NEWCOMER_USES = 2

/** `common` and `reserve` are the parts of the budget; `recent` counts the uses of each network over a longer time. */
export function buildSharedBudget(parts: { common: Counter; reserve: Counter; recent: Counter }): SharedBudget {
  const { common, reserve, recent } = parts
  return {
    async spend(network) {
      const { calls } = await recent.add(network)
      const counters = calls <= NEWCOMER_USES ? [common, reserve] : [common]
      let refusal: CallCount | undefined
      for (const counter of counters) {
        const count = await counter.add('all')
        if (count.calls <= counter.points)
          return {
            refusal: null,
            async giveBack() {
              await counter.takeBack('all')
              await recent.takeBack(network)
            },
          }
        refusal = count
      }
      await recent.takeBack(network)
      return { refusal: refusal! }
    },
  }
}

/** The parts of a budget. */
export function partsOf(points: number): { common: number; reserve: number } {
  const reserve = Math.max(1, Math.floor(points * RESERVED_SHARE))
  return { common: points - reserve, reserve }
}

/** How much of a budget may be used up before a network with so many uses is refused. */
export function shareOf(points: number, ofNetwork: number): number {
  return ofNetwork <= NEWCOMER_USES ? points : partsOf(points).common
}
