// Completed verifications per second: one worker process, a page over TLS, requests admitted beforehand; beside a bare
// job of three checkpoint commits under the same queue settings.
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { openDatabase, transact } from '../server/db/pool.ts'
import { deriveSecret } from '../server/receipts/keys.ts'
import { admitBatch } from '../server/verification/admission.ts'
import { type Child, openChild } from './child.ts'
import type { Lab } from './lab.ts'
import { bodyFor, buildAdmission } from './orders.ts'
import { compete } from './rounds.ts'
import { figure, printHeading, printNote, printRows, printStandings } from './table.ts'
import { openWatch } from './watch.ts'

const AIM = 0.5

export async function benchCompletion(lab: Lab): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const mill = opened.use(await openMill(lab))
  const bare = opened.use(await openBareMill(lab))
  const watch = opened.use(await openWatch(mill.url, { worker: mill.worker.pid, page: mill.page.pid }))
  const bareWatch = opened.use(await openWatch(mill.url, { bare: bare.worker.pid }))
  const counts = lab.quick ? { ours: 150, bare: 1000 } : { ours: 400, bare: 3000 }
  let completed = 0
  const grind = (path: string, count: number) => async () => {
    completed += count
    return mill.grind(path, count, (work) => watch.during(work))
  }

  printHeading('completion', 'verifications completed by one worker process, each of an origin of its own, over TLS')
  await mill.grind('/', 150)
  await bare.grind(500)
  const standings = await compete(lab.rounds, [
    { what: `page of ${kilobytes(mill, 'short')}, work under way: ${mill.concurrency}`, run: grind('/', counts.ours) },
    {
      what: 'bare job of three commits',
      run: () => bare.grind(counts.bare, (work) => bareWatch.during(work)),
      aim: AIM,
    },
  ])
  printStandings(standings)
  printRows([
    [
      'CPU of one verification',
      ...(['worker', 'page'] as const).map((name) => `${name} ${figure(watch.cpuMs(name) / completed)} ms`),
    ],
  ])
  printNote(watch.heldBack())
  printNote(`bare job ${bareWatch.heldBack()}`)
  const long = await compete(1, [
    { what: `page of ${kilobytes(mill, 'long')}`, run: () => mill.grind('/long/', counts.ours / 2) },
  ])
  printStandings(long)
}

function kilobytes(mill: Mill, size: 'short' | 'long') {
  return `${((mill.page.ready.bytes as Record<string, number>)[size]! / 1000).toFixed(1)} kB`
}

type Around = <T>(work: () => Promise<T>) => Promise<T>

export interface Mill extends AsyncDisposable {
  url: string
  /** What every process that works on this database needs in its environment. */
  env: Record<string, string>
  worker: Child
  page: Child
  concurrency: number
  /** Admits so many requests while the worker stands still, lets it go, and answers completions per second. */
  grind(path: string, count: number, around?: Around): Promise<number>
}

/** A worker process on a database of its own, and the page it reads. */
export async function openMill(lab: Lab): Promise<Mill> {
  await using opened = new AsyncDisposableStack()
  const url = await lab.makeDatabase()
  const page = opened.use(await openChild(lab, 'bench/page.ts', { event: 'page_ready', args: [lab.folder] }))
  const env = {
    DATABASE_URL: url,
    FIXTURE_HOSTS: String(page.ready.fixtures),
    FIXTURE_CA_FILE: String(page.ready.caFile),
  }
  const worker = opened.use(await openChild(lab, 'workers/main.ts', { event: 'worker_started', env }))
  const db = await openDatabase(url, { maxConnections: 2 })
  opened.defer(() => db.end())
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  opened.defer(() => client.end())
  const secret = deriveSecret(Buffer.from(lab.env.SIGNING_SEED!, 'hex'), 'payment payload')
  const hosts = page.ready.hosts as string[]
  let taken = 0
  // Another host and path each time: neither manners nor an observation made for another request may decide the rate.
  const nextUrl = (path: string) => `https://${hosts[taken++ % hosts.length]}${path}${randomUUID()}`
  const closing = opened.move()
  return {
    url,
    env,
    worker,
    page,
    concurrency: Number(worker.ready.concurrency),
    async grind(path, count, around = (work) => work()) {
      worker.process.kill('SIGSTOP')
      const admissions = Array.from({ length: count }, () => buildAdmission(secret, bodyFor(nextUrl(path))))
      for (let from = 0; from < count; from += 50)
        await transact(db, (tx) => admitBatch(tx, admissions.slice(from, from + 50)))
      const rate = await around(() =>
        timeUntilNone(
          client,
          count,
          worker,
          `select from verification_requests
          where state in ('accepted', 'observed', 'assessed', 'settling', 'settled')`,
        ),
      )
      const { rows } = await client.query(
        "select count(*)::int failed from verification_requests where state = 'failed'",
      )
      if (rows[0].failed > 0) throw new Error(`${rows[0].failed} verifications of the bench failed`)
      return rate
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

async function openBareMill(lab: Lab) {
  await using opened = new AsyncDisposableStack()
  const url = await lab.makeDatabase()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  opened.defer(() => client.end())
  await client.query(`create table bare_rows (id uuid primary key, state text not null, note text not null);
    create index bare_rows_working on bare_rows (id) where state <> 'done'`)
  const worker = opened.use(
    await openChild(lab, 'bench/bare-worker.ts', { event: 'bare_ready', env: { DATABASE_URL: url } }),
  )
  const closing = opened.move()
  return {
    worker,
    async grind(count: number, around: Around = (work) => work()) {
      worker.process.kill('SIGSTOP')
      await client.query(
        `with made as (
           insert into bare_rows select gen_random_uuid(), 'accepted', $2 from generate_series(1, $1) returning id)
         select count(*) from graphile_worker.add_jobs(array(
           select row('bare_job', json_build_object('id', id), null, null, 5, id::text, null, null)::graphile_worker.job_spec
           from made))`,
        [count, randomBytes(200).toString('hex')],
      )
      return around(() => timeUntilNone(client, count, worker, `select from bare_rows where state <> 'done'`))
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

/** Lets the worker go and waits until the query finds no row; answers `count` per second. */
async function timeUntilNone(client: pg.Client, count: number, worker: Child, query: string): Promise<number> {
  const started = performance.now()
  worker.process.kill('SIGCONT')
  while ((await client.query(`${query} limit 1`)).rowCount) await pause(POLL_MS)
  return (count * 1000) / (performance.now() - started)
}

const POLL_MS = 10
