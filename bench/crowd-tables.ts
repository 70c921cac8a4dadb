// What the crowd run reads from the database: how many rows each table has, while it fills and after it was pruned. Time is
// moved by making rows older, because a run cannot wait an hour.
import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'

/** Rows by table. */
export type Rows = ReadonlyMap<string, number>

const QUEUE = 'graphile_worker._private_jobs'
/**
 * Nothing of these is ever deleted for its age: the chain, its keys, and the migrations. Watchdogs, the beats of workers and the
 * turns of couriers are left alone too: made older, they would mean outages and dead processes that there are not.
 */
const TIMELESS = [
  ...[
    'chain_head',
    'receipts',
    'tree_nodes',
    'tile_middles',
    'signing_keys',
    'witnessed_checkpoint',
    'schema_migrations',
  ],
  ...['watchdogs', 'watchdog_scans', 'worker_beats', 'webhooks'],
]
/** Longer than anything is kept that is kept for a time: alerts, for 90 days. */
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

/** Counts again and again until stopped; answers the most that was seen of each table. */
export async function followPeak(client: pg.Client, over: AbortSignal): Promise<Rows> {
  const peak = new Map<string, number>()
  for (;;) {
    for (const [name, rows] of await countRows(client)) peak.set(name, Math.max(rows, peak.get(name) ?? 0))
    if (over.aborted) return peak
    await pause(1000, undefined, { signal: over }).catch(() => {})
  }
}

/** Ages all rows and has the worker prune, until that changes nothing any more or it has been tried for so long. */
export async function pruneAll(client: pg.Client, seconds: number): Promise<Rows> {
  const deadline = performance.now() + seconds * 1000
  let rows = await countRows(client)
  for (let unchanged = 0; unchanged < 3 && performance.now() < deadline; ) {
    await age(client)
    await prune(client, deadline)
    // Couriers look around every second: what they give up now can be deleted in the next turn.
    await pause(1200)
    const now = await countRows(client)
    const isSame = [...now].every(([name, count]) => rows.get(name) === count)
    unchanged = isSame && !(await isAtWork(client)) ? unchanged + 1 : 0
    rows = now
  }
  return rows
}

/**
 * Whether the couriers have alerts left to deliver or to give up, or a job waits for its time, as that of a slow fetch that was broken off
 * does for seconds: how fast they are is the machine's to say.
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

/** The processes write to the same rows in their own order: the one that Postgres ends in a deadlock tries again. */
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
