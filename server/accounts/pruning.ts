// Deletes rows of accounts that have expired: counts of past days, ended keys, quote checks, free looks, simulated checkouts, billing events,
// and accounts that were never used. Each run deletes in batches until none is left, so it keeps up with the rates that the limits allow. A
// crash between batches leaves the rest for the next run.
import { z } from 'zod'
import { type Database, nothing, sql, type Tx, transact } from '../db/pool.ts'
import { UNUSED_ACCOUNT_DAYS } from './tiers.ts'

const BATCH = 1000
/** Stripe repeats an event for three days. The rest of the time is for operators who investigate. */
const EVENT_DAYS = 90

/** A table whose rows expire when `column` is `keptDays` behind `clock`. Each such column has an index. */
interface ExpiringTable {
  table: string
  column: string
  keptDays: number
  /** The present time in the type of the column: a timestamp with time zone, or for UTC days one without. */
  clock: ReturnType<typeof sql.fragment>
}

const NOW = sql.fragment`now()`
const NOW_UTC = sql.fragment`(now() at time zone 'utc')`

const EXPIRING: readonly ExpiringTable[] = [
  // A day is dated by its first midnight: it is kept until its end, and one day more because clocks differ.
  { table: 'receipt_days', column: 'day', keptDays: 2, clock: NOW_UTC },
  { table: 'registration_days', column: 'day', keptDays: 2, clock: NOW_UTC },
  { table: 'api_keys', column: 'expires_at', keptDays: 0, clock: NOW },
  { table: 'simulated_checkouts', column: 'expires_at', keptDays: 1, clock: NOW },
  { table: 'quote_check_days', column: 'day', keptDays: 2, clock: NOW_UTC },
  { table: 'quote_checks', column: 'expires_at', keptDays: 0, clock: NOW },
  { table: 'looks', column: 'day', keptDays: 2, clock: NOW_UTC },
  { table: 'operator_refusals', column: 'day', keptDays: 400, clock: NOW_UTC },
  { table: 'report_checks', column: 'expires_at', keptDays: 0, clock: NOW },
  { table: 'billing_events', column: 'received_at', keptDays: EVENT_DAYS, clock: NOW },
]

const limitOf = ({ keptDays, clock }: ExpiringTable) => sql.fragment`${clock} - ${keptDays} * interval '1 day'`

/** Deletes expired rows, table by table, and returns their number. @param signal stops between two batches */
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

/** Skips locked rows, so that processes which prune at the same time do not wait for each other. */
async function pruneExpired(db: Database, expiring: ExpiringTable, batch: number): Promise<number> {
  const [table, column] = [sql.identifier([expiring.table]), sql.identifier([expiring.column])]
  const { rowCount } = await db.query(sql.type(nothing)`
    delete from ${table} where ctid = any(array(
      select ctid from ${table} where ${column} < ${limitOf(expiring)} limit ${batch} for update skip locked))`)
  return rowCount
}

/**
 * Accounts whose first key was never used. Every other key is made with the first one, so nothing refers to such an account and
 * no receipt carries its handle. The first key is the one that is as old as its account.
 */
const unused = sql.fragment`
  from api_keys k join accounts a on a.id = k.account_id and a.created_at = k.created_at
  where k.last_used_at is null and k.created_at < now() - ${UNUSED_ACCOUNT_DAYS} * interval '1 day'
    and a.tier = 'free' and a.granted_tier = 'free'`

async function pruneUnused(tx: Tx, batch: number): Promise<number> {
  const ids = await tx.anyFirst(sql.type(z.object({ id: z.string() }))`
    select a.id ${unused} limit ${batch} for update of k, a skip locked`)
  if (ids.length === 0) return 0
  const unusedIds = sql.array([...ids], 'uuid')
  await tx.query(sql.type(nothing)`delete from api_keys where account_id = any(${unusedIds})`)
  await tx.query(sql.type(nothing)`delete from accounts where id = any(${unusedIds})`)
  return ids.length
}

const lag = z.object({ table: z.string(), seconds: z.number() })

/** Seconds since the oldest expired row of each table expired; 0 for a table without one. */
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
