// Purchases under repeated kills: buyers buy one page after another through a web process and two workers, by the client library
// and its recovery, while every ten seconds one of them is killed, frozen or loses its connections to Postgres. Afterwards
// the results of the buyers are compared with the tables, and the audit recomputes chain, ledger and charges.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import type pg from 'pg'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { Countersign, type CountersignError } from '../client/client.ts'
import { openDatabase } from '../server/db/pool.ts'
import { auditAll } from '../server/operate/audit.ts'
import { type Child, findPort, openChild } from './child.ts'
import { seeded } from './eval/random.ts'
import { type Lab, openClient } from './lab.ts'
import { figure, printHeading, printNote } from './table.ts'
import { openSource, type Source } from './worker-harness.ts'

export interface KillsOptions {
  buyers: number
  seconds: number
  everySeconds: number
  /** The same seed gives the same sequence of faults. */
  seed: number
}

export interface KillsReport {
  purchases: { seconds: number; problem: string | undefined }[]
  /** The counted faults, by name. */
  faults: Record<string, number>
  /** From a kill of a worker until another has begun with what it held, for each of its requests; by the database's clock. */
  restarts: number[]
  violations: string[]
}

/** Seconds for which a worker is frozen: until its beat is too old and other workers have its jobs. */
const FROZEN_SECONDS = 20
/** Longest time of a purchase, from its first request to its result. */
const MAX_SECONDS = 20
const MAX_RESTART_SECONDS = 3
/** Pause of a buyer between two purchases. */
const PACE_MS = 100

export async function runKills(lab: Lab, options: KillsOptions): Promise<KillsReport> {
  await using opened = new AsyncDisposableStack()
  const house = await openHouse(lab, opened)
  const over = new AbortController()
  const shopping = Promise.all(Array.from({ length: options.buyers }, () => shop(house, over.signal)))
  const faults = await breakHouse(house, options)
  over.abort()
  const purchases = (await shopping).flat()
  const { rows: restarts } = await house.admin.query<{ seconds: number }>(
    `select extract(epoch from min(s.at) - k.at)::float8 seconds
     from kills k join starts s on s.key = k.key and s.at > k.at and s.worker <> k.worker group by k.id, k.at`,
  )
  return {
    purchases,
    faults,
    restarts: restarts.map(({ seconds }) => seconds),
    violations: await examine(house, purchases),
  }
}

interface House {
  databaseUrl: string
  admin: pg.Client
  origin: string
  source: Source
  workers: Worker[]
  /** Each ends when a frozen worker goes on. */
  thawing: Promise<void>[]
  killWeb(): Promise<void>
  startWorker(): Promise<Worker>
}

interface Worker extends Child {
  /** By which the queue names the holder of a job. */
  pool: string
}

async function openHouse(lab: Lab, opened: AsyncDisposableStack): Promise<House> {
  const source = opened.use(await openSource(lab))
  const databaseUrl = await lab.makeDatabase()
  const env = { DATABASE_URL: databaseUrl, ...source.env, PORT: String(await findPort()), RATE_LIMIT_PER_MINUTE: '0' }
  const admin = await openClient(databaseUrl, opened)
  await admin.query(RECORD_STARTS)
  const startWeb = () => openChild(lab, 'server/main.ts', { event: 'listening', env, quiet: true })
  const startWorker = async (): Promise<Worker> => {
    const { rows: before } = await admin.query('select pool_id from worker_beats')
    const child = opened.use(await openChild(lab, 'workers/main.ts', { event: 'worker_started', env, quiet: true }))
    const known = before.map(({ pool_id }) => pool_id)
    const { rows } = await admin.query('select pool_id from worker_beats where pool_id <> all ($1)', [known])
    return Object.assign(child, { pool: String(rows[0]?.pool_id) })
  }
  let web = opened.use(await startWeb())
  return {
    databaseUrl,
    admin,
    origin: String(web.ready.address),
    source,
    workers: [await startWorker(), await startWorker()],
    thawing: [],
    startWorker,
    async killWeb() {
      await kill(web)
      web = opened.use(await startWeb())
    },
  }
}

/** Which worker takes which request, and when. */
export const RECORD_STARTS = `
  create table starts (at timestamptz, worker text, key text);
  create table kills (id serial, at timestamptz, worker text, key text, kind text not null default 'killed');
  create function record_start() returns trigger language plpgsql as $$ begin
    if new.locked_by is not null and new.locked_by is distinct from old.locked_by and new.key like 'verify:%' then
      insert into starts values (clock_timestamp(), new.locked_by, new.key);
    end if;
    return new;
  end $$;
  create trigger record_start after update on graphile_worker._private_jobs for each row execute function record_start()`

/** Buys until the signal, and finishes purchases that have begun. */
async function shop({ origin, source }: House, over: AbortSignal): Promise<KillsReport['purchases']> {
  const wallet = new x402Client().register('eip155:*', new ExactEvmScheme(privateKeyToAccount(generatePrivateKey())))
  const client = new Countersign({ baseUrl: origin, fetch: wrapFetchWithPayment(fetch, wallet) as typeof fetch })
  const purchases: KillsReport['purchases'] = []
  while (!over.aborted) {
    const began = performance.now()
    const input = { source_url: source.nextUrl('/'), claim: 'The harbour was opened in 1874.' }
    const problem = await buy(client, input, randomUUID())
    purchases.push({ seconds: (performance.now() - began) / 1000, problem })
    await pause(PACE_MS)
  }
  return purchases
}

/** By one key, again after each error that may pass, as the client's documentation says. */
async function buy(client: Countersign, input: { source_url: string; claim: string }, idempotencyKey: string) {
  for (let attempt = 1; ; attempt++) {
    try {
      await client.verifySource(input, { idempotencyKey, timeoutMs: 60_000 })
      return undefined
    } catch (error) {
      const { code, retryable } = error as CountersignError
      if (!retryable || attempt === 5) return `${code} after ${attempt} attempts`
    }
  }
}

/** One fault every few seconds, each kind as often as the others. */
async function breakHouse(
  house: House,
  { seconds, everySeconds, seed }: KillsOptions,
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  const started = performance.now()
  const random = seeded(seed)
  for (let n = 0; (n + 1) * everySeconds < seconds; n++) {
    await pause(started + (n + 1) * everySeconds * 1000 - performance.now())
    // Every other fault kills a worker, since its restart is what is measured.
    const name = n % 2 === 0 ? 'worker killed' : OTHERS[random(OTHERS.length)]!
    counts[name] = (counts[name] ?? 0) + 1
    await FAULTS[name](house, random(house.workers.length))
  }
  await Promise.all(house.thawing)
  await pause(everySeconds * 1000)
  return counts
}

const FAULTS = {
  'worker killed': async (house: House, place: number) => {
    const victim = house.workers[place]!
    // It must not finish a request between the question and the kill.
    victim.process.kill('SIGSTOP')
    await house.admin.query(
      `insert into kills (at, worker, key) select clock_timestamp(), locked_by, key
       from graphile_worker._private_jobs where locked_by = $1 and key like 'verify:%'`,
      [victim.pool],
    )
    await kill(victim)
    house.workers[place] = await house.startWorker()
  },
  'web killed': (house: House) => house.killWeb(),
  'worker frozen': async ({ workers, thawing }: House, place: number) => {
    const { process: child } = workers[place]!
    child.kill('SIGSTOP')
    thawing.push(pause(FROZEN_SECONDS * 1000).then(() => void child.kill('SIGCONT')))
  },
  'connections dropped': async ({ admin }: House) => {
    await admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
    )
  },
}
type FaultName = keyof typeof FAULTS
const OTHERS = (Object.keys(FAULTS) as FaultName[]).filter((name) => name !== 'worker killed')

async function kill({ process: child }: Child) {
  if (child.exitCode !== null || child.signalCode !== null) throw new Error('a process died by itself')
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

/** Checks the invariants afterwards; each violation in words. */
async function examine({ databaseUrl, admin }: House, purchases: KillsReport['purchases']): Promise<string[]> {
  const { rows } = await admin.query(
    `select count(*) filter (where state = 'completed')::int completed, count(*) filter (where state <> 'completed')::int other
     from verification_requests`,
  )
  const done = purchases.filter(({ problem }) => problem === undefined)
  const db = await openDatabase(databaseUrl, { maxConnections: 1 })
  const { faults } = await auditAll(db, { signatures: 'every' })
  await db.end()
  return [
    ...purchases.flatMap(({ problem }) => (problem === undefined ? [] : [`a purchase ended with ${problem}`])),
    ...(rows[0].completed === done.length ? [] : [`${rows[0].completed} completed for ${done.length} bought`]),
    ...(rows[0].other === 0 ? [] : [`${rows[0].other} requests are not completed`]),
    ...faults.map(({ check, subject, detail }) => `audit: ${check}: ${subject}: ${detail}`),
  ]
}

/** @param minutes how long; default 3, or 1 with --quick */
export async function chaosKills(lab: Lab, { seed, minutes }: { seed: number; minutes?: number }): Promise<void> {
  const seconds = 60 * (minutes ?? (lab.quick ? 1 : 3))
  const options = { buyers: 24, seconds, everySeconds: 10, seed }
  printHeading(
    'kills',
    `${options.buyers} buyers through a web process and two workers, a fault every ${options.everySeconds} s for ${options.seconds} s, seed ${options.seed}`,
  )
  const { purchases, faults, restarts, violations } = await runKills(lab, options)
  const times = purchases.map((purchase) => purchase.seconds)
  printNote(
    `faults: ${Object.entries(faults)
      .map(([name, n]) => `${name} ${n}`)
      .join(', ')}`,
  )
  printNote(`${purchases.length} purchases, in seconds: ${describe(times)}, aim at most ${MAX_SECONDS}`)
  printNote(
    `${restarts.length} requests of killed workers began again after: ${describe(restarts)}, aim p99 at most ${MAX_RESTART_SECONDS}`,
  )
  printNote(`violations: ${violations.join('; ') || 'none'}`)
  const misses = [
    ...(Math.max(...times) > MAX_SECONDS ? ['a purchase took too long'] : []),
    ...(restarts.length > 0 && quantile(restarts, 0.99) > MAX_RESTART_SECONDS ? ['restarts took too long'] : []),
  ]
  printNote(misses.length === 0 ? 'both aims met' : `MISSED: ${misses.join(', ')}`)
  if (violations.length > 0) throw new Error('what must hold did not')
}

/** Three figures of a list of times, in words. */
export function describe(values: number[]): string {
  if (values.length === 0) return 'none'
  return `p50 ${figure(quantile(values, 0.5))}, p99 ${figure(quantile(values, 0.99))}, longest ${figure(Math.max(...values))}`
}

function quantile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN
}
