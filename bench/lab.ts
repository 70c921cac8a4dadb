// The resources of a bench run: one Postgres, a folder, and a database for each part.
import type { ChildProcess } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { readConfig } from '../server/config.ts'
import { migrate } from '../server/db/migrate.ts'
import { openEmbeddedPostgres } from '../server/embedded/postgres.ts'

export interface Lab extends AsyncDisposable {
  /** Short runs with rough figures. */
  quick: boolean
  rounds: number
  folder: string
  /** Children write their CPU profiles here. */
  profile: string | undefined
  /** Of the largest database of `growth`. */
  results: number
  /** The environment of every child: the same seed, so that tokens made by one are valid in another. */
  env: Record<string, string>
  /** Running processes; all are ended with the bench. */
  children: Set<ChildProcess>
  /** A migrated database of its own, dropped with the lab. */
  makeDatabase(): Promise<string>
}

export interface LabOptions {
  quick: boolean
  profile: string | undefined
  results?: number
  /** In place of what is configured: a server on which databases can be made. */
  databaseUrl?: string
  /** Settings of the embedded Postgres. */
  postgres?: Record<string, string>
}

/** On DATABASE_URL, or on an embedded Postgres that commits as durably as one in production. */
export async function openLab(options: LabOptions): Promise<Lab> {
  await using opened = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'countersign-bench-'))
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  // Under root, Postgres runs as another user, who must get into the folder.
  await chmod(folder, 0o711)
  const url =
    options.databaseUrl ?? readConfig().databaseUrl ?? (await openOwnPostgres(folder, options.postgres, opened))
  const admin = await openClient(url, opened)
  const children = new Set<ChildProcess>()
  const killChildren = () => {
    for (const child of children) child.kill('SIGKILL')
  }
  process.once('exit', killChildren)
  const closing = opened.move()
  return {
    ...options,
    results: options.results ?? 0,
    children,
    rounds: options.quick ? 1 : ROUNDS,
    folder,
    env: {
      HOST: '127.0.0.1',
      PORT: '0',
      RATE_LIMIT_PER_MINUTE: '0',
      DATA_DIR: folder,
      SIGNING_SEED: randomBytes(32).toString('hex'),
      LOG_LEVEL: 'info',
      // Benches that are about verdicts say so: a verdict takes a second of a core.
      ASSESSMENT: 'literal',
      // As in live modes; benches that are about captures say so.
      SOURCE_CAPTURE: 'off',
    },
    async makeDatabase() {
      const name = `bench_${randomUUID().replaceAll('-', '')}`
      await admin.query(`create database ${name}`)
      closing.defer(async () => {
        await admin.query(`drop database ${name} with (force)`)
      })
      const made = new URL(url)
      made.pathname = `/${name}`
      await migrate(made.href)
      return made.href
    },
    async [Symbol.asyncDispose]() {
      // Before their databases are dropped, which would cause errors in them.
      killChildren()
      process.off('exit', killChildren)
      await closing.disposeAsync()
    },
  }
}

/** A connection for queries of the bench. It is closed if the bench is stopped early. */
export async function openClient(url: string, opened: AsyncDisposableStack): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: 'bench' })
  client.on('error', () => {})
  await client.connect()
  opened.defer(() => client.end())
  return client
}

async function openOwnPostgres(folder: string, settings: LabOptions['postgres'], opened: AsyncDisposableStack) {
  const dataDir = join(folder, 'db')
  const postgres = await openEmbeddedPostgres({ dataDir, durable: true, settings: settings ?? {}, log: () => {} })
  return opened.use(postgres).adminUrl
}

const ROUNDS = 3
