// The client of Redis, and counts of calls in it. Loaded only where REDIS_URL is set.
import { Redis } from 'ioredis'
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import type { SharedCounts } from './accounts/rate-limit.ts'
import { type Logger, openOutage } from './telemetry.ts'

/** Connects in the background. A call must not wait for a Redis that does not answer, so commands fail at once. */
export function openRedis(url: string, log: Logger): Redis {
  const redis = new Redis(url, { enableOfflineQueue: false, maxRetriesPerRequest: 1, connectTimeout: 5000 })
  const outage = openOutage(log, 'redis')
  redis.on('error', (error) => outage.failed(error))
  redis.on('ready', () => outage.worked())
  return redis
}

/** Rejects if no Redis answers at this URL. */
export async function pingRedis(url: string): Promise<void> {
  const redis = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null })
  redis.on('error', () => {})
  try {
    await redis.connect()
    await redis.ping()
  } finally {
    redis.disconnect()
  }
}

/** Counts that all processes with this Redis share. */
export function redisCounts(redis: Redis): SharedCounts {
  return ({ name, points, seconds }) => {
    const keyPrefix = `countersign:${name}`
    const limiter = new RateLimiterRedis({ storeClient: redis, points, duration: seconds, keyPrefix })
    return {
      async add(key) {
        // It rejects with the count where no call is left, and with an error where Redis does not answer.
        const counted = await limiter.consume(key).catch((refusal) => refusal)
        if (!(counted instanceof RateLimiterRes)) return null
        return { calls: counted.consumedPoints, msLeft: counted.msBeforeNext }
      },
      async takeBack(key) {
        await limiter.reward(key)
      },
    }
  }
}
