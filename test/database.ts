// Test databases on a real Postgres, each cloned from a migrated template in tens of milliseconds.
import { createHash, randomUUID } from 'node:crypto'
import pg from 'pg'
import { listMigrations, migrate } from '../server/db/migrate.ts'

/** Any constant. Its lock makes test files that start together make the template only once. */
const TEMPLATE_LOCK = 8_402_900

function adminUrl(): string {
  const url = process.env.TEST_DATABASE_URL
  if (url) return url
  throw new Error('TEST_DATABASE_URL is not set: run tests by `npm run test:only -- test/that.test.ts`')
}

function urlOf(database: string): string {
  const url = new URL(adminUrl())
  url.pathname = `/${database}`
  return url.href
}

export interface TestDatabase extends AsyncDisposable {
  url: string
}

/** @param template false for an empty database without migrations */
export async function openTestDatabase({ template = true } = {}): Promise<TestDatabase> {
  const admin = new pg.Client({ connectionString: adminUrl() })
  await admin.connect()
  const name = `t_${randomUUID().replaceAll('-', '')}`
  const source = template ? await findTemplate(admin) : 'template0'
  // The other strategy, which writes each page to the log, takes three times as long.
  await admin.query(`create database ${name} template ${source} strategy file_copy`)
  return {
    url: urlOf(name),
    async [Symbol.asyncDispose]() {
      await admin.query(`drop database ${name} with (force)`)
      await admin.end()
    },
  }
}

/** The name of the template contains a digest of its migrations, so changed migrations make a new template. */
async function findTemplate(admin: pg.Client): Promise<string> {
  const digest = createHash('sha256')
  for (const migration of listMigrations()) digest.update(migration.sha256)
  const name = `template_${digest.digest('hex').slice(0, 16)}`
  await admin.query('select pg_advisory_lock($1)', [TEMPLATE_LOCK])
  try {
    const { rowCount } = await admin.query('select 1 from pg_database where datname = $1', [name])
    if (rowCount) return name
    await admin.query(`create database ${name}_making template template0`)
    await migrate(urlOf(`${name}_making`))
    await admin.query(`alter database ${name}_making rename to ${name}`)
    return name
  } finally {
    await admin.query('select pg_advisory_unlock($1)', [TEMPLATE_LOCK])
  }
}
