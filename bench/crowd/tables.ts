// What the run with hostile load reads from the database: the number of rows of each table, while it fills and after
// pruning. Rows are made older in the database, because a run cannot wait an hour.
import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'

/** Rows by table. */
export type Rows = ReadonlyMap<string, number>

const QUEUE = 'graphile_worker._private_jobs'
/**
 * Tables from which no row is deleted for its age: the chain, its keys, and the migrations. The times of watchdogs, worker
 * heartbeats, processes and delivery leases are not changed either: older times would mean outages and dead processes.
 */
const TIMELESS = [
  ...[
    'chain_head',
    'receipts',
    'tree_nodes',
    'tile_middles',
    'signing_keys',
    'witnessed_checkpoint',
    'timestamps',
    'timestamp_authorities',
    'schema_migrations',
  ],
  ...['watchdogs', 'watchdog_scans', 'worker_beats', 'processes', 'webhooks'],
]
/** Longer than the longest retention: alerts are kept for 90 days. */
const AGE_DAYS = 91
const AGE = `interval '${AGE_DAYS} days'`

/** SQLSTATE. */
const DEADLOCK = '40P01'

export async function countRows(client: pg.Client): Promise<Rows> {
  const { rows: tables } = await client.query<{ name: string }>(
    `select relname name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace order by relname`,
  )
  const counts = [...tables.map(({ name }) => name), QUEUE].map(
    (name) => `select '${name}' name, count(*)::float8 rows from ${name}`,
  )
  const { rows } = await client.query<{ name: string; rows: number }>(counts.join(' union all '))
  return new Map(rows.map((row) => [row.name, row.rows]))
}

/** Counts repeatedly until stopped; answers the largest count of each table. */
export async function followPeak(client: pg.Client, over: AbortSignal): Promise<Rows> {
  const peak = new Map<string, number>()
  for (;;) {
    for (const [name, rows] of await countRows(client)) peak.set(name, Math.max(rows, peak.get(name) ?? 0))
    if (over.aborted) return peak
    await pause(1000, undefined, { signal: over }).catch(() => {})
  }
}

/** Makes all rows older and lets the worker prune, until that deletes nothing more or the time is over. */
export async function pruneAll(client: pg.Client, seconds: number): Promise<Rows> {
  const deadline = performance.now() + seconds * 1000
  let rows = await countRows(client)
  for (let unchanged = 0; unchanged < 3 && performance.now() < deadline; ) {
    await age(client)
    await prune(client, deadline)
    // Delivery loops run every second: alerts that they give up now can be deleted in the next pass.
    await pause(1200)
    const now = await countRows(client)
    const isSame = [...now].every(([name, count]) => rows.get(name) === count)
    unchanged = isSame && !(await isAtWork(client)) ? unchanged + 1 : 0
    rows = now
  }
  return rows
}

/**
 * Whether alerts are left to deliver or to give up, or a job is not due yet, such as that of an interrupted slow fetch. How
 * long this takes depends on the machine.
 */
async function isAtWork(client: pg.Client): Promise<boolean> {
  const { rowCount } = await client.query(`
    select from alerts where next_attempt_at is not null
    union all select from ${QUEUE} limit 1`)
  return rowCount === 1
}

async function age(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ table: string; columns: string[] }>(
    `select c.table_name "table", array_agg(c.column_name::text) columns
     from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
     where table_schema = 'public' and t.table_type = 'BASE TABLE' and c.is_generated = 'NEVER'
       and c.data_type in ('timestamp with time zone', 'date') and c.table_name <> all ($1)
     group by c.table_name order by c.table_name`,
    [TIMELESS],
  )
  for (const { table, columns } of rows) {
    const back = columns.map((column) => `${column} = ${column} - ${AGE}`)
    await persist(() => client.query(`update ${table} set ${back.join(', ')}`))
  }
  // The end of an authorization, in Unix seconds.
  await persist(() => client.query(`update payment_ledger set valid_before = valid_before - ${AGE_DAYS * 86_400}`))
}

/**
 * The processes write to the same rows in different orders. A transaction that Postgres ends because of a deadlock is
 * repeated.
 */
async function persist(write: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await write()
      return
    } catch (error) {
      if ((error as { code?: string }).code !== DEADLOCK || attempt === 10) throw error
    }
  }
}

/** The worker's own job, put into its queue as its crontab does it every minute. */
async function prune(client: pg.Client, deadline: number): Promise<void> {
  const { rows } = await client.query<{ id: string }>(`select id from graphile_worker.add_job('prune_requests', '{}')`)
  for (;;) {
    const { rowCount } = await client.query(`select 1 from ${QUEUE} where id = $1`, [rows[0]!.id])
    if (!rowCount || performance.now() > deadline) return
    await pause(50)
  }
}
