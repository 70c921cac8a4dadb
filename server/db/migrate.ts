// Applies sql/NNNN_*.sql in order, each in its own transaction, then graphile-worker's migrations. A migration that was edited
// after it was applied is refused: the database does not hold what its file says.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Logger, runMigrations } from 'graphile-worker'
import pg from 'pg'
import { z } from 'zod'
import { type Database, sql } from './pool.ts'
import { openQueuePool } from './queue.ts'

const FOLDER = join(import.meta.dirname, '../../sql')
/** Any number that no other lock uses. It orders releases that migrate at once. */
const MIGRATION_LOCK = 8_402_001

export interface Migration {
  name: string
  sha256: string
  text: string
}

/** The migrations of this release, in order. */
export function listMigrations(): Migration[] {
  return readdirSync(FOLDER)
    .filter((name) => /^\d{4}_\w+\.sql$/.test(name))
    .sort()
    .map((name) => {
      const text = readFileSync(join(FOLDER, name), 'utf8')
      return { name, text, sha256: createHash('sha256').update(text).digest('hex') }
    })
}

/** Longest wait for a connection: a release must not hang at an address that does not answer. */
const CONNECT_MS = 10_000

/**
 * Brings the database to this release's schema. Several may run at once, and wait for each other without limit. Answers the names of the
 * migrations it applied.
 */
export async function migrate(url: string, { connectMs = CONNECT_MS } = {}): Promise<string[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: connectMs })
  // A lost connection rejects the query under way; without a listener it would also end the process.
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query('select pg_advisory_lock($1)', [MIGRATION_LOCK])
    const applied = await applyOwn(client)
    await migrateQueue(url)
    await tuneQueue(client)
    return applied
  } finally {
    await client.end()
  }
}

/** Uses its own pool, so that no connection is left at the end: the queue does not wait for its pool to close. */
async function migrateQueue(url: string) {
  const pool = openQueuePool(url, 2, () => {})
  try {
    await runMigrations({ pgPool: pool, logger: new Logger(() => () => {}) })
  } finally {
    await pool.end()
  }
}

async function applyOwn(client: pg.Client): Promise<string[]> {
  await client.query(`create table if not exists schema_migrations (
    name text primary key, sha256 text not null, applied_at timestamptz not null default now())`)
  const { rows } = await client.query<{ name: string; sha256: string }>('select name, sha256 from schema_migrations')
  const known = new Map(rows.map((row) => [row.name, row.sha256]))
  const applied: string[] = []
  for (const migration of listMigrations()) {
    const before = known.get(migration.name)
    if (before === migration.sha256) continue
    if (before)
      throw new Error(`sql/${migration.name} was applied to this database in another form; write a new migration`)
    await applyOne(client, migration)
    applied.push(migration.name)
  }
  return applied
}

async function applyOne(client: pg.Client, migration: Migration) {
  await client.query('begin')
  try {
    await client.query(migration.text)
    await client.query('insert into schema_migrations (name, sha256) values ($1, $2)', [
      migration.name,
      migration.sha256,
    ])
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw new Error(`sql/${migration.name} failed: ${error instanceof Error ? error.message : error}`, { cause: error })
  }
}

/**
 * Settings that graphile-worker's migrations reset, so they are applied after them. A plan of add_jobs that was cached while the
 * queue was empty scans the whole table in a backlog, 30 times slower. A table whose rows are all replaced every minute needs
 * vacuum by number of dead rows, not by share.
 */
async function tuneQueue(client: pg.Client) {
  await client.query(`
    alter function graphile_worker.add_jobs(graphile_worker.job_spec[], boolean) set plan_cache_mode = force_custom_plan;
    alter table graphile_worker._private_jobs
      set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)`)
}

/** Migrations of this release that the database has not seen; empty when it is up to date. */
export function findPendingMigrations(db: Pick<Database, 'any'>): Promise<string[]> {
  return pendingMigrations(async () => [
    ...(await db.any(sql.type(z.object({ name: z.string() }))`select name from schema_migrations`)),
  ])
}

/** As findPendingMigrations, for any client. */
export async function pendingMigrations(query: (text: string) => Promise<{ name: string }[]>): Promise<string[]> {
  const done = new Set((await query('select name from schema_migrations')).map((row) => row.name))
  return listMigrations()
    .map((migration) => migration.name)
    .filter((name) => !done.has(name))
}
