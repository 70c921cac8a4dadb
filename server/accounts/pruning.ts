// Rows of accounts whose time is over: days that were counted, keys that have ended, pages of checkout, accounts that were
// never used. They are deleted in batches until none is left, so that deleting keeps up with whatever the limits let in; a
// crash in between leaves the rest for the next run.
import { z } from 'zod'
import { type Database, nothing, sql, type Tx, transact } from '../db/pool.ts'
import { UNUSED_ACCOUNT_DAYS } from './tiers.ts'

const BATCH = 1000
/** Stripe repeats an event for three days; the rest of the time is for operators who look into what happened. */
const EVENT_DAYS = 90

/** A table whose rows go when a column of theirs is so many days behind its clock. Each such column has an index. */
interface Expiring {
  table: string
  column: string
  keptDays: number
  /** What the column is compared with: the moment, or, for UTC days, the time of the day in UTC. */
  clock: ReturnType<typeof sql.fragment>
}

const MOMENT = sql.fragment`now()`
const UTC = sql.fragment`(now() at time zone 'utc')`

const EXPIRING: readonly Expiring[] = [
  // A day counts from its midnight: it is kept until it is over, and one more because clocks differ.
  { table: 'receipt_days', column: 'day', keptDays: 2, clock: UTC },
  { table: 'registration_days', column: 'day', keptDays: 2, clock: UTC },
  { table: 'api_keys', column: 'expires_at', keptDays: 0, clock: MOMENT },
  { table: 'simulated_checkouts', column: 'expires_at', keptDays: 1, clock: MOMENT },
  { table: 'billing_events', column: 'received_at', keptDays: EVENT_DAYS, clock: MOMENT },
]

const limitOf = ({ keptDays, clock }: Expiring) => sql.fragment`${clock} - ${keptDays} * interval '1 day'`

/** Deletes what is over, table by table; answers how many rows that were. @param signal ends it between two batches */
export async function pruneAccounts(db: Database, signal?: AbortSignal, batch = BATCH): Promise<number> {
  let pruned = 0
  const untilDone = async (prune: () => Promise<number>) => {
    for (let rows = batch; rows === batch; pruned += rows) {
      signal?.throwIfAborted()
      rows = await prune()
    }
  }
  for (const expiring of EXPIRING) await untilDone(() => pruneExpired(db, expiring, batch))
  await untilDone(() => transact(db, (tx) => pruneUnused(tx, batch)))
  return pruned
}

/** Processes that prune at once do not wait for each other. */
async function pruneExpired(db: Database, expiring: Expiring, batch: number): Promise<number> {
  const [table, column] = [sql.identifier([expiring.table]), sql.identifier([expiring.column])]
  const { rowCount } = await db.query(sql.type(nothing)`
    delete from ${table} where ctid = any(array(
      select ctid from ${table} where ${column} < ${limitOf(expiring)} limit ${batch} for update skip locked))`)
  return rowCount
}

/**
 * Accounts whose first key was never used: nothing can have been made with any other, so nothing refers to them, and no
 * receipt carries their handle. The first key is the one that is as old as its account.
 */
const unused = sql.fragment`
  from api_keys k join accounts a on a.id = k.account_id and a.created_at = k.created_at
  where k.last_used_at is null and k.created_at < now() - ${UNUSED_ACCOUNT_DAYS} * interval '1 day'
    and a.tier = 'free' and a.granted_tier = 'free'`

async function pruneUnused(tx: Tx, batch: number): Promise<number> {
  const ids = await tx.anyFirst(sql.type(z.object({ id: z.string() }))`
    select a.id ${unused} limit ${batch} for update of k, a skip locked`)
  if (ids.length === 0) return 0
  const doomed = sql.array([...ids], 'uuid')
  await tx.query(sql.type(nothing)`delete from api_keys where account_id = any(${doomed})`)
  await tx.query(sql.type(nothing)`delete from accounts where id = any(${doomed})`)
  return ids.length
}

const lag = z.object({ table: z.string(), seconds: z.number() })

/** For how long the oldest row that is over has been so, in seconds; 0 where none is. */
export async function measurePruneLag(db: Database): Promise<readonly z.output<typeof lag>[]> {
  const oldest = EXPIRING.map((expiring) => {
    const column = sql.identifier([expiring.column])
    return sql.fragment`
      select ${expiring.table} as table, extract(epoch from ${limitOf(expiring)} - min(${column})) late
      from ${sql.identifier([expiring.table])}`
  })
  const accounts = sql.fragment`
    select 'accounts', extract(epoch from now() - ${UNUSED_ACCOUNT_DAYS} * interval '1 day' - min(k.created_at)) ${unused}`
  return db.any(sql.type(lag)`
    select t.table, greatest(coalesce(late, 0), 0)::float8 seconds
    from (${sql.join([...oldest, accounts], sql.fragment` union all `)}) t`)
}
