// How many verifications a payer's balance pays for: asked of the chain, and kept for a while, because admission asks at
// every purchase.
import { LRUCache } from 'lru-cache'
import { within } from './timeout.ts'

/** Milliseconds for which a balance counts as known. */
const KEPT_MS = 30_000
/** Milliseconds for which a chain that did not answer is not asked about the same account again. */
const SILENT_MS = 5_000
const PATIENCE_MS = 5_000
const MAX_ACCOUNTS = 10_000

export interface Covers {
  /**
   * @param account what holds the balance; unique over all networks
   * @param read the balance in atomic units, asked of the chain
   * @returns whole prices in the balance; 0 when the chain does not answer in time
   */
  coverOf(account: string, price: bigint, read: () => Promise<bigint>): Promise<number>
}

export function buildCovers(patienceMs = PATIENCE_MS): Covers {
  const kept = new LRUCache<string, Promise<bigint | null>>({ max: MAX_ACCOUNTS, ttl: KEPT_MS })
  return {
    async coverOf(account, price, read) {
      let asked = kept.get(account)
      if (!asked) {
        asked = within(patienceMs, read()).catch(() => null)
        kept.set(account, asked)
      }
      const balance = await asked
      if (balance !== null) return Number(balance / price)
      if (kept.peek(account) === asked) kept.set(account, asked, { ttl: SILENT_MS })
      return 0
    },
  }
}
