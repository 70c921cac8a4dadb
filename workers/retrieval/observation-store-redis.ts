// The observation cache in Redis.
import type { Redis } from 'ioredis'
import type { ObservationStore } from './cache.ts'

/** Deletes the turn only if it is still this fetcher's. */
const END_TURN = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`

/** Observations in Redis, which deletes them after their time. */
export function redisObservations(redis: Redis): ObservationStore {
  const entry = (key: string) => `countersign:observation:${key}`
  const turn = (key: string) => `countersign:observing:${key}`
  return {
    async put(key, value, fetcher, seconds) {
      await redis.set(entry(key), value, 'EX', seconds)
      await redis.eval(END_TURN, 1, turn(key), fetcher)
    },
    async begin(key, fetcher, { seconds, freshSeconds }) {
      // Redis keeps no age; an entry that the caller finds too old costs a second call.
      const value = freshSeconds > 0 ? await redis.getBuffer(entry(key)) : null
      if (value) return { isTurn: false, value }
      const isTurn = (await redis.set(turn(key), fetcher, 'EX', seconds, 'NX')) === 'OK'
      return { isTurn, value: isTurn ? await redis.getBuffer(entry(key)) : null }
    },
    async end(key, fetcher) {
      await redis.eval(END_TURN, 1, turn(key), fetcher)
    },
    async release({ from, to }) {
      // Turns have no index by fetcher, so all are scanned. A worker dies rarely.
      for await (const keys of redis.scanStream({ match: turn('*'), count: 1000 }) as AsyncIterable<string[]>)
        for (const key of keys) {
          const fetcher = await redis.get(key)
          if (fetcher !== null && fetcher >= from && fetcher <= to) await redis.eval(END_TURN, 1, key, fetcher)
        }
    },
  }
}
