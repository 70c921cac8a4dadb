// The observation cache in PostgreSQL, for a service without Redis.
import { z } from 'zod'
import { type Database, nothing, relaxed, sql } from '../../server/db/pool.ts'
import type { ObservationStore } from './cache.ts'

/**
 * Observations in the service's own database: what is used when there is no Redis. An entry or a turn that a crash of the
 * database loses costs one fetch, so no statement waits for the disk.
 */
export function postgresObservations(db: Database): ObservationStore {
  const hex = (key: string) => sql.fragment`decode(${key}, 'hex')`
  return {
    async find(key) {
      return db.maybeOneFirst(sql.prepared('find_observation', z.object({ value: z.instanceof(Buffer) }))`
        select value from observations where key = ${hex(key)} and value is not null`)
    },
    async put(key, value, fetcher) {
      await db.query(sql.prepared('put_observation', nothing)`
        with ${relaxed}
        insert into observations (key, value, checked_at) select ${hex(key)}, ${sql.binary(value)}, now() from relaxed
        on conflict (key) do update set value = excluded.value, checked_at = excluded.checked_at,
          fetcher = null, fetching_until = null
        where observations.fetcher is null or observations.fetcher = ${fetcher}`)
    },
    async begin(key, fetcher, seconds) {
      // The value is that of the latest version of the row, committed after this statement began.
      return db.maybeOne(sql.prepared('begin_observation', turnRow)`
        with ${relaxed}
        insert into observations (key, fetcher, fetching_until, checked_at)
        select ${hex(key)}, ${fetcher}, now() + ${seconds} * interval '1 second', now() from relaxed
        on conflict (key) do update set fetcher = excluded.fetcher, fetching_until = excluded.fetching_until
        where observations.fetching_until is null or observations.fetching_until < now()
        returning value`)
    },
    async end(key, fetcher) {
      await db.query(sql.prepared('end_observation', nothing)`
        with ${relaxed}
        update observations set fetcher = null, fetching_until = null
        from relaxed where key = ${hex(key)} and fetcher = ${fetcher}`)
    },
    async release({ from, to }) {
      await db.query(sql.type(nothing)`
        update observations set fetcher = null, fetching_until = null where fetcher between ${from} and ${to}`)
    },
  }
}

const turnRow = z.object({ value: z.instanceof(Buffer).nullable() })

/** Deletes observations that are too old to be served. */
export async function forgetObservations(db: Database, keepSeconds: number): Promise<void> {
  await db.query(sql.type(nothing)`
    delete from observations where checked_at < now() - ${keepSeconds} * interval '1 second'`)
}
