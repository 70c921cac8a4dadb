// Crash harness: worker processes that are made to crash, the worker that survives them, and the purchases they work on.
import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import type { PurchaseResult } from '../server/interface/claims.ts'
import type { CompletedResult } from '../server/interface/result.ts'
import { rescue } from '../workers/beat.ts'
import { openWork } from '../workers/context.ts'
import { openRunner } from '../workers/runner.ts'
import { type ApiHarness, audit, outcomeOf, readAnyResult, readResult } from './api-harness.ts'
import { type Child, startChild } from './children.ts'
import type { Aim, Order } from './crash-worker.ts'
import { type Ledger, openLedger, openLedgerFacilitator } from './ledger.ts'
import type { Page } from './site.ts'
import { PAGE, payingFetch, VERIFY, VERIFY_CLAIMS } from './system.ts'
import { until } from './until.ts'

export interface CrashHarness extends AsyncDisposable {
  /** A new worker, ready, which takes no jobs yet. */
  next(): Promise<Child>
}

/**
 * Each worker is started while the one before it is in use, so that tests do not wait for a process to load.
 * @param count the workers that the test needs: no more are started
 */
export function openCrashHarness(harness: ApiHarness, count: number): CrashHarness {
  const workers: Child[] = []
  const hire = () => {
    const child = startChild('test/crash-worker.ts', harness.env, { ipc: true })
    workers.push(child)
    return child
  }
  let waiting: Child | undefined = hire()
  return {
    async next() {
      const child = waiting
      if (!child) throw new Error(`The test asked for ${count} workers.`)
      waiting = workers.length < count ? hire() : undefined
      await child.reports('ready')
      return child
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(workers.map((child) => child[Symbol.asyncDispose]()))
    },
  }
}

/** The next worker where nothing is left to kill: it runs in the process of the test, and rescues at once what the killed ones held. */
export async function openSurvivor(harness: ApiHarness): Promise<AsyncDisposable> {
  await using opened = new AsyncDisposableStack()
  const ledger = opened.use(await openLedger(harness.databaseUrl))
  const core = { ...harness.core, facilitator: opened.use(openLedgerFacilitator(ledger)) }
  const work = opened.use(await openWork(core))
  await rescue(work)
  const runner = opened.use(await openRunner(work))
  runner.died.catch(() => {})
  return opened.move()
}

/** Lets a worker take jobs, and sets the place where it stops. Some places exist only where assessments cost money. */
export async function run(child: Child, aim?: Aim) {
  const order = randomUUID()
  const costly = aim !== undefined && /observed|assess/.test(aim.at)
  child.send({ do: 'run', order, costly, ...(aim && { aim }) } satisfies Order)
  await child.hears((heard) => heard.type === 'running' && heard.order === order)
}

/** Makes silent workers count as dead: moves their last beats and locks an hour into the past. */
export async function declareDead({ tables }: ApiHarness) {
  await tables.query(`update worker_beats set beat_at = beat_at - interval '1 hour'`)
  await tables.query(`
    update graphile_worker._private_jobs set locked_at = locked_at - interval '1 hour' where locked_by is not null`)
}

export interface Purchase<R extends PurchaseResult = CompletedResult> {
  key: string
  path: string
  /** The only claim, or the first. */
  claim: string
  result: Promise<R>
}

/**
 * A purchase by a stock client, with its own page and claim, which no cache answers.
 * @param address the API process that is called; by default the one of the test
 */
export function buy(
  harness: ApiHarness,
  page: Page | (() => Page | Promise<Page>) = { body: PAGE },
  address: string = harness.url('/'),
): Purchase {
  const key = randomUUID()
  const path = `/${key}`
  const claim = `The harbour was opened in 1874. (${key})`
  harness.site.pages.set(path, page)
  const asked = payingFetch()(new URL(VERIFY, address), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key, prefer: 'wait=25' },
    body: JSON.stringify(bodyOf(harness, { path, claim })),
  })
  return { key, path, claim, result: asked.then(outcomeOf).then(readResult) }
}

/** The same of two claims on one page, by verify-claims. */
export function buyClaims(harness: ApiHarness): Purchase<PurchaseResult> {
  const key = randomUUID()
  const path = `/${key}`
  const claim = `The harbour was opened in 1874. (${key})`
  harness.site.pages.set(path, { body: PAGE })
  const { claim: _, ...rest } = bodyOf(harness, { path, claim })
  const asked = payingFetch()(harness.url(VERIFY_CLAIMS), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key, prefer: 'wait=25' },
    body: JSON.stringify({ ...rest, claims: [claim, 'Fishing ended in 1962.'] }),
  })
  return { key, path, claim, result: asked.then(outcomeOf).then(readAnyResult) }
}

export function bodyOf({ site }: ApiHarness, { path, claim }: Pick<Purchase, 'path' | 'claim'>) {
  return { source_url: site.url(path), claim, options: { max_age_seconds: 0 } }
}

/** How often a purchase caused work that must not be done twice. */
export interface Spent {
  fetches: number
  assessments: number
  settles: number
}

export const ONCE: Spent = { fetches: 1, assessments: 1, settles: 1 }

export async function spentOn(
  purchase: Purchase<PurchaseResult>,
  { site, tables }: ApiHarness,
  ledger: Ledger,
): Promise<Spent> {
  const { request_id } = await purchase.result
  const { rows } = await tables.query(
    `select payment -> 'identity' ->> 'nonce' nonce from verification_requests where id = $1`,
    [request_id],
  )
  return {
    fetches: site.requests.filter((asked) => asked === purchase.path).length,
    assessments: await ledger.count('assess', purchase.claim),
    settles: await ledger.count('settle', rows[0].nonce),
  }
}

/** Waits until a living worker has ended every job: the job of a result may be ended after the result is there, by the next worker. */
export async function allJobsEnded({ tables }: ApiHarness): Promise<void> {
  await until(async () => (await tables.query(JOBS)).rowCount === 0)
}

const JOBS = `
  select j.id, key, attempts, locked_by, locked_at, run_at, last_error, state, history, now() as asked_at
  from graphile_worker.jobs j left join verification_requests r on j.key = 'verify:' || r.id
  where task_identifier = 'verify_request'`

/** Asserts that results, receipts and chain are right and, once all workers have ended, that no job is left. */
export async function checkBooks(t: Test, harness: ApiHarness, results: PurchaseResult[], { jobs = true } = {}) {
  t.same(await audit(harness, results), { badResults: {}, badLinks: [], receipts: results.length })
  if (!jobs) return
  const { rows } = await harness.tables.query(JOBS)
  t.same(rows, [], 'no job is left')
}
