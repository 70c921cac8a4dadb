// The observation cache in PostgreSQL, for a service without Redis.
import { z } from 'zod'
import { type Database, nothing, sql } from '../../server/db/pool.ts'
import type { ObservationStore } from './cache.ts'

/** Observations in the service's own database: what is used when there is no Redis. */
export function postgresObservations(db: Database): ObservationStore {
  const hex = (key: string) => sql.fragment`decode(${key}, 'hex')`
  return {
    async find(key) {
      return db.maybeOneFirst(sql.prepared('find_observation', z.object({ value: z.instanceof(Buffer) }))`
        select value from observations where key = ${hex(key)} and value is not null`)
    },
    async put(key, value, fetcher) {
      await db.query(sql.prepared('put_observation', nothing)`
        insert into observations (key, value, checked_at) values (${hex(key)}, ${sql.binary(value)}, now())
        on conflict (key) do update set value = excluded.value, checked_at = excluded.checked_at,
          fetcher = null, fetching_until = null
        where observations.fetcher is null or observations.fetcher = ${fetcher}`)
    },
    async begin(key, fetcher, seconds) {
      const turn = await db.query(sql.prepared('begin_observation', nothing)`
        insert into observations (key, fetcher, fetching_until, checked_at)
        values (${hex(key)}, ${fetcher}, now() + ${seconds} * interval '1 second', now())
        on conflict (key) do update set fetcher = excluded.fetcher, fetching_until = excluded.fetching_until
        where observations.fetching_until is null or observations.fetching_until < now()`)
      return turn.rowCount === 1
    },
    async end(key, fetcher) {
      await db.query(sql.prepared('end_observation', nothing)`
        update observations set fetcher = null, fetching_until = null
        where key = ${hex(key)} and fetcher = ${fetcher}`)
    },
  }
}

/** Deletes observations that are too old to be served. */
export async function forgetObservations(db: Database, keepSeconds: number): Promise<void> {
  await db.query(sql.type(nothing)`
    delete from observations where checked_at < now() - ${keepSeconds} * interval '1 second'`)
}
