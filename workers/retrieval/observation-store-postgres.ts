// The observation cache in PostgreSQL, for a service without Redis.
import { z } from 'zod'
import { openBatcher } from '../../server/db/batch.ts'
import { packed } from '../../server/db/packed.ts'
import { column, type Database, nothing, relaxed, sql } from '../../server/db/pool.ts'
import type { Begun, ObservationStore, TurnTerms } from './cache.ts'

/**
 * Observations in the service's own database, used if there is no Redis. An entry or a turn that a crash of the database
 * loses costs one fetch, so no statement waits for the disk. Calls of `begin` at the same time share one statement.
 */
export function postgresObservations(db: Database): ObservationStore {
  const hex = (key: string) => sql.fragment`decode(${key}, 'hex')`
  const beginnings = openBatcher((asked: Beginning[]) => beginAll(db, asked), { batch: 64, queue: 4096 })
  // Few at a time: the pages of one statement are in memory until it has been sent.
  const puts = openBatcher((entries: Entry[]) => putAll(db, entries), { batch: 16, queue: 4096 })
  return {
    put: (key, value, fetcher) => puts.add({ key, value, fetcher }),
    begin: (key, fetcher, terms) => beginnings.add({ key, fetcher, ...terms }),
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

interface Beginning extends TurnTerms {
  key: string
  fetcher: string
}

const begunRow = z.object({ key: z.string(), is_turn: z.boolean(), value: z.instanceof(Buffer).nullable() })

/** Of several that ask for one key in the same batch, the first may get the turn; the others see what it saw. */
async function beginAll(db: Database, asked: Beginning[]): Promise<Begun[]> {
  const firsts = new Map<string, Beginning>()
  for (const one of asked) if (!firsts.has(one.key)) firsts.set(one.key, one)
  const rows = [...firsts.values()]
  // A value of a turn is that of the latest version of the row, committed after this statement began. All batches lock
  // their rows in the same order, so that they cannot deadlock.
  const begun = await db.any(sql.prepared('begin_observations', begunRow)`
    with ${relaxed}, asked as (
      select decode(key, 'hex') key, fetcher, seconds, fresh_seconds
      from unnest(${column(rows, 'text', (row) => row.key)}, ${column(rows, 'uuid', (row) => row.fetcher)},
                  ${column(rows, 'float8', (row) => row.seconds)}, ${column(rows, 'float8', (row) => row.freshSeconds)})
        as t (key, fetcher, seconds, fresh_seconds)
    ), fresh as (
      select key, value from asked join observations using (key)
      where value is not null and observations.checked_at > now() - fresh_seconds * interval '1 second'
    ), taken as (
      insert into observations (key, fetcher, fetching_until, checked_at)
      select key, asked.fetcher, now() + seconds * interval '1 second', now() from asked, relaxed
      where not exists (select from fresh where fresh.key = asked.key)
      order by key
      on conflict (key) do update set fetcher = excluded.fetcher, fetching_until = excluded.fetching_until
      where observations.fetching_until is null or observations.fetching_until < now()
      returning key, value
    )
    select encode(key, 'hex') key, false is_turn, value from fresh
    union all
    select encode(key, 'hex') key, true is_turn, value from taken`)
  const found = new Map(begun.map((row) => [row.key, row]))
  return asked.map((one) => {
    const row = found.get(one.key)
    const isTurn = row?.is_turn === true && firsts.get(one.key) === one
    return { isTurn, value: row && (isTurn || !row.is_turn) ? row.value : null }
  })
}

interface Entry {
  key: string
  value: Buffer
  fetcher: string
}

/** Of several for one key in the same batch, each is stored by a statement after those before it. */
async function putAll(db: Database, entries: Entry[]): Promise<undefined[]> {
  for (let left = entries; left.length > 0; ) {
    const firsts = new Map<string, Entry>()
    for (const entry of left) if (!firsts.has(entry.key)) firsts.set(entry.key, entry)
    await putDistinct(db, [...firsts.values()])
    left = left.filter((entry) => firsts.get(entry.key) !== entry)
  }
  return entries.map(() => undefined)
}

/** All batches take their rows in the same order, so that none waits for another in a circle. */
async function putDistinct(db: Database, entries: Entry[]): Promise<void> {
  const values = packed(entries.map(({ value }) => value))
  await db.query(sql.prepared('put_observations', nothing)`
    with ${relaxed}, given as (
      select decode(key, 'hex') key, fetcher, substr(${values.bytes}, start, length) value
      from unnest(${column(entries, 'text', ({ key }) => key)}, ${column(entries, 'uuid', ({ fetcher }) => fetcher)},
                  ${values.starts}, ${values.lengths}) as t (key, fetcher, start, length)
    )
    insert into observations (key, value, checked_at) select key, value, now() from given, relaxed order by key
    on conflict (key) do update set value = excluded.value, checked_at = excluded.checked_at,
      fetcher = null, fetching_until = null
    where observations.fetcher is null
      or observations.fetcher = (select given.fetcher from given where given.key = excluded.key)`)
}

/** Deletes observations that are too old to be served. */
export async function forgetObservations(db: Database, keepSeconds: number): Promise<void> {
  await db.query(sql.type(nothing)`
    delete from observations where checked_at < now() - ${keepSeconds} * interval '1 second'`)
}
