// Gives a number of jobs to stopped workers, starts the workers, and measures the time until no job is left.
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import { openDatabase, transact } from '../server/db/pool.ts'
import type { VerificationInput } from '../server/interface/result.ts'
import { deriveSecret } from '../server/receipts/keys.ts'
import { admitBatch } from '../server/verification/admission/admission.ts'
import { type Child, openChild } from './child.ts'
import { type Lab, openClient } from './lab.ts'
import { bodyFor, buildAdmission } from './orders.ts'

/** The process that serves pages, and its address. */
export interface Source extends AsyncDisposable {
  page: Child
  /** The environment variables with which a worker reaches it. */
  env: { FIXTURE_HOSTS: string; FIXTURE_CA_FILE: string }
  bytes: { short: number; long: number }
  hosts: readonly string[]
  /**
   * A new host and a new path below `path`, so that neither request limits per host nor a shared observation affects
   * the measurement.
   */
  nextUrl(path: string): string
}

export async function openSource(lab: Lab): Promise<Source> {
  const page = await openChild(lab, 'bench/page.ts', { event: 'page_ready', args: [lab.folder] })
  const { hosts, fixtures, caFile, bytes } = page.ready as {
    hosts: string[]
    fixtures: string
    caFile: string
    bytes: Source['bytes']
  }
  let taken = 0
  return {
    page,
    env: { FIXTURE_HOSTS: fixtures, FIXTURE_CA_FILE: caFile },
    bytes,
    hosts,
    nextUrl: (path) => `https://${hosts[taken++ % hosts.length]}${path}${randomUUID()}`,
    [Symbol.asyncDispose]: () => page[Symbol.asyncDispose](),
  }
}

/** Called around the timed part. */
type Around = <T>(work: () => Promise<T>) => Promise<T>

export interface WorkerHarness extends AsyncDisposable {
  url: string
  /** The first of them. */
  worker: Child
  workers: readonly Child[]
  /** Verifications under way at once in one worker. */
  concurrency: number
  /** Admits this number of requests, starts the workers, and answers completions per second. */
  measureRate(path: string, count: number, around?: Around): Promise<number>
}

export interface WorkerHarnessOptions {
  /** A migrated database; default: a new one. */
  url?: string
  env?: Record<string, string>
  /** Worker processes, default 1. */
  count?: number
  /** The request for a page; default: the same claim for all. */
  body?: (url: string) => VerificationInput
}

/** Worker processes of the service, all on one database. */
export async function openWorkerHarness(
  lab: Lab,
  source: Source,
  options: WorkerHarnessOptions = {},
): Promise<WorkerHarness> {
  await using opened = new AsyncDisposableStack()
  const url = options.url ?? (await lab.makeDatabase())
  const env = { DATABASE_URL: url, ...source.env, ...options.env }
  const openWorker = () => openChild(lab, 'workers/main.ts', { event: 'worker_started', env })
  const worker = opened.use(await openWorker())
  const workers = [worker]
  while (workers.length < (options.count ?? 1)) workers.push(opened.use(await openWorker()))
  const body = options.body ?? bodyFor
  const db = await openDatabase(url, { maxConnections: 2 })
  opened.defer(() => db.end())
  const client = await openClient(url, opened)
  const secret = deriveSecret(Buffer.from(lab.env.SIGNING_SEED!, 'hex'), 'payment payload')
  const closing = opened.move()
  return {
    url,
    worker,
    workers,
    concurrency: Number(worker.ready.concurrency),
    async measureRate(path, count, around = (work) => work()) {
      for (const { process } of workers) process.kill('SIGSTOP')
      const orders = Array.from({ length: count }, () => buildAdmission(secret, body(source.nextUrl(path))))
      for (let from = 0; from < count; from += ADMITTED_AT_ONCE)
        await transact(db, (tx) => admitBatch(tx, orders.slice(from, from + ADMITTED_AT_ONCE), NO_LIMIT))
      const rate = await around(() => timeUntilNone(client, count, workers, WORKING))
      const { rows } = await client.query(FAILED)
      if (rows[0].failed > 0) throw new Error(`${rows[0].failed} verifications of the bench failed`)
      return rate
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

const ADMITTED_AT_ONCE = 50
/** Each request has its own payer. */
const NO_LIMIT = 0
const WORKING = `select from verification_requests
  where state in ('accepted', 'observed', 'assessed', 'settling', 'settled') limit 1`
/** By the index of what is to be pruned. */
const FAILED = `select count(*)::int failed from verification_requests
  where state in ('completed', 'failed') and state = 'failed' and body is not null`

/** The bare worker (see bare-worker.ts); a path makes its jobs fetch. */
export async function openBareHarness(lab: Lab, source: Source) {
  await using opened = new AsyncDisposableStack()
  const url = await lab.makeDatabase()
  const client = await openClient(url, opened)
  await client.query(BARE_TABLE)
  const env = { DATABASE_URL: url, ...source.env }
  const worker = opened.use(await openChild(lab, 'bench/peers/bare-worker.ts', { event: 'bare_ready', env }))
  const closing = opened.move()
  return {
    url,
    worker,
    async measureRate(path: string | null, count: number, around: Around = (work) => work()): Promise<number> {
      worker.process.kill('SIGSTOP')
      const urls = Array.from({ length: count }, () => path && source.nextUrl(path))
      await client.query(ADD_BARE, [urls, randomBytes(200).toString('hex')])
      return around(() => timeUntilNone(client, count, [worker], BARE_WORKING))
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

const BARE_TABLE = `create table bare_rows (id uuid primary key, state text not null, note text not null);
  create index bare_rows_working on bare_rows (id) where state <> 'done'`
const BARE_WORKING = "select from bare_rows where state <> 'done' limit 1"
const ADD_BARE = `with made as (
    select gen_random_uuid() id, url from unnest($1::text[]) url
  ), stored as (
    insert into bare_rows select id, 'accepted', $2 from made
  )
  select count(*) from graphile_worker.add_jobs(array(
    select row('bare_job', json_build_object('id', id, 'url', url), null, null, 5, id::text, null, null)::graphile_worker.job_spec
    from made))`

/** Starts the workers and waits until the query finds no row; answers `count` per second. */
async function timeUntilNone(
  client: pg.Client,
  count: number,
  workers: readonly Child[],
  query: string,
): Promise<number> {
  const started = performance.now()
  for (const { process } of workers) process.kill('SIGCONT')
  while ((await client.query(query)).rowCount) await pause(POLL_MS)
  return (count * 1000) / (performance.now() - started)
}

const POLL_MS = 10
