// Many concurrent purchases on the processes of a production setup: two API processes, two workers, one database.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { CompletedResult } from '../server/interface/result.ts'
import { audit, openApiHarness, outcomeOf, readResult } from './api-harness.ts'
import { type Child, startChild } from './children.ts'
import { LONG } from './long.ts'
import { PAGE, payingFetch, VERIFY } from './system.ts'

const PURCHASES = LONG ? 500 : 150
const AT_ONCE = 8
/** Ten claims on each page, because requests to one site are limited per second. */
const PAGES = PURCHASES / 10

t.test(`${PURCHASES} purchases, ${AT_ONCE} at a time, on two API processes and two workers`, async (t) => {
  await using harness = await openApiHarness()
  await using opened = new AsyncDisposableStack()
  const start = (file: string) => opened.use(startChild(file, { ...harness.env, LOG_LEVEL: 'info' }))
  const apis = [start('server/main.ts'), start('server/main.ts')]
  const workers = [start('workers/main.ts'), start('workers/main.ts')]
  const addresses = await Promise.all(apis.map(async (api) => String((await api.logs('listening')).address)))
  await Promise.all(workers.map((worker) => worker.logs('worker_started')))
  for (let page = 0; page < PAGES; page++) harness.site.pages.set(`/${page}`, { body: `${PAGE}<p>Page ${page}.</p>` })

  const fetches = Array.from({ length: AT_ONCE }, () => payingFetch())
  const buy = async (n: number): Promise<CompletedResult> => {
    const answer = await fetches[n % AT_ONCE]!(new URL(VERIFY, addresses[n % 2]), {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID(), prefer: 'wait=25' },
      body: JSON.stringify({ source_url: harness.site.url(`/${n % PAGES}`), claim: `The harbour was opened in ${n}.` }),
    })
    return readResult(await outcomeOf(answer))
  }
  const began = performance.now()
  const results = await inParallel(PURCHASES, AT_ONCE, buy)
  const seconds = (performance.now() - began) / 1000
  t.comment(`${PURCHASES} purchases in ${seconds.toFixed(1)} s, ${(PURCHASES / seconds).toFixed(0)} a second`)

  t.equal(new Set(results.map((result) => result.request_id)).size, PURCHASES)
  t.same(await audit(harness, results), { badResults: {}, badLinks: [], receipts: PURCHASES })
  const { rows: states } = await harness.tables.query(`
    select state, count(*)::int, count(settlement)::int settled from verification_requests group by state`)
  t.same(states, [{ state: 'completed', count: PURCHASES, settled: PURCHASES }])
  const { rows: claims } = await harness.tables.query(`
    select count(*)::int, count(distinct request_id)::int requests from payment_claims`)
  t.same(claims, [{ count: PURCHASES, requests: PURCHASES }], 'one authorization each')

  for (const child of [...apis, ...workers]) child.kill('SIGTERM')
  const endings = await Promise.all([...apis, ...workers].map(({ ended }) => ended))
  t.same(new Set(endings.map(({ code }) => code)), new Set([0]))
  const { rows: jobs } = await harness.tables.query(`
    select count(*)::int from graphile_worker.jobs where task_identifier = 'verify_request'`)
  t.equal(jobs[0].count, 0, 'no job is left')
  t.same(troubles([...apis, ...workers]), [], 'no process logged a warning')
})

/** Runs `work(0)` to `work(count - 1)`, `width` at a time, and returns the results in order. */
async function inParallel<T>(count: number, width: number, work: (n: number) => Promise<T>): Promise<T[]> {
  const results: T[] = []
  let next = 0
  const lane = async () => {
    for (let n = next++; n < count; n = next++) results[n] = await work(n)
  }
  await Promise.all(Array.from({ length: width }, lane))
  return results
}

/** The log lines that are warnings or worse. The warnings of the status are left out: those that can begin here say that the machine is slow. */
function troubles(children: Child[]) {
  return children.flatMap(({ heard }) =>
    heard.filter(
      ({ level, event }) => /^(warn|error|fatal)$/.test(String(level)) && !String(event).startsWith('warning'),
    ),
  )
}
