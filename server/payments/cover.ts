// The cover of a payer: how many verifications its balance pays for. The chain is asked for the balance, and the answer is
// cached for a while, because admission needs it at every purchase.
import { LRUCache } from 'lru-cache'
import { atMost } from '../db/cache-bound.ts'
import { within } from './timeout.ts'

/** Milliseconds for which a balance is cached. */
const CACHED_MS = 30_000
/** Milliseconds for which a chain that did not answer is not asked about the same account again. */
const FAILED_MS = 5_000
const TIMEOUT_MS = 5_000
const MAX_ACCOUNTS = 10_000

export interface Covers {
  /**
   * @param account the account with the balance; unique over all networks
   * @param read reads the balance from the chain, in atomic units
   * @returns how often the balance holds the price; 0 when the chain does not answer in time
   */
  coverOf(account: string, price: bigint, read: () => Promise<bigint>): Promise<number>
}

export function buildCovers(timeoutMs = TIMEOUT_MS): Covers {
  const cached = new LRUCache<string, Promise<bigint | null>>({ ...atMost(MAX_ACCOUNTS), ttl: CACHED_MS })
  return {
    async coverOf(account, price, read) {
      let reading = cached.get(account)
      if (!reading) {
        reading = within(timeoutMs, read()).catch(() => null)
        cached.set(account, reading)
      }
      const balance = await reading
      if (balance !== null) return Number(balance / price)
      if (cached.peek(account) === reading) cached.set(account, reading, { ttl: FAILED_MS })
      return 0
    },
  }
}
