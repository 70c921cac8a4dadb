// What operations cost as stored results grow: the same code on databases with few and with many of them, in turns. The cost of each is
// fitted as n^exponent, so a full table scan has the exponent 1 and an index about 0.
import { randomBytes, randomInt } from 'node:crypto'
import type pg from 'pg'
import { PUBLIC_LIMITS } from '../../server/accounts/tiers.ts'
import { openDatabase } from '../../server/db/pool.ts'
import { deriveSecret } from '../../server/receipts/keys.ts'
import { openAdmissions } from '../../server/verification/admission/admission.ts'
import { pruneRequests } from '../../server/verification/pruning.ts'
import { recoveryToken } from '../../server/verification/recovery-token.ts'
import { openChild } from '../child.ts'
import { type Generator, openGenerator } from '../generator.ts'
import { type Lab, openClient } from '../lab.ts'
import { bodyFor, buildAdmission } from '../orders.ts'
import { closedLoop, median } from '../rounds.ts'
import { figure, printHeading, printNote, printRows } from '../table.ts'
import { openSource, openWorkerHarness, type Source } from '../worker-harness.ts'

const AIM = 0.1
const CALLERS = 64
const CONNECTIONS = 10
/** Results that are recovered, each once. */
const RECOVERED = 2000
/** Rows that are due for pruning, half of them with a result. */
const DUE = 4000
const RETENTION_SECONDS = 86_400

/** Each answers its rate per second. */
type Operations = Record<'admissions' | 'completions' | 'recoveries' | 'rows pruned', () => Promise<number>>

export async function benchGrowth(lab: Lab): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const source = opened.use(await openSource(lab))
  const generator = opened.use(await openGenerator(lab))
  const sizes = [...new Set([10_000, Math.min(lab.results, 1_000_000), lab.results])]
  printHeading('growth', `rates per second with ${sizes.map(inFigures).join(', ')} stored results, medians`)
  const stores: Operations[] = []
  for (const size of sizes) {
    const began = performance.now()
    const { url, bytes } = await fill(lab, source, size)
    printNote(`${inFigures(size)} results: ${figure(bytes / 1e9)} GB, made in ${seconds(performance.now() - began)}`)
    stores.push(await openOperations({ lab, source, generator, opened }, url))
  }
  printRows([['', ...sizes.map(inFigures), 'cost']])
  for (const name of Object.keys(stores[0] ?? {}) as (keyof Operations)[]) {
    const rates = stores.map((): number[] => [])
    for (let round = 0; round < lab.rounds; round++)
      for (const [n, store] of stores.entries()) rates[n]!.push(await store[name]())
    const medians = rates.map(median)
    const exponent = fitExponent(sizes, medians)
    printRows([[name, ...medians.map(figure), `n^${exponent.toFixed(3)}`]])
    printNote(`  aim n^${AIM} at most: ${exponent <= AIM ? 'met' : 'MISSED'}`)
  }
}

const inFigures = (count: number) => count.toLocaleString('en')
const seconds = (milliseconds: number) => `${figure(milliseconds / 1000)} s`

/** The exponent of the cost, which is one over the rate: the slope of the straight line through the logarithms. */
function fitExponent(sizes: readonly number[], rates: readonly number[]): number {
  const points = sizes.map((size, n) => ({ x: Math.log(size), y: -Math.log(rates[n] ?? Number.NaN) }))
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const [x, y] = [mean(points.map((point) => point.x)), mean(points.map((point) => point.y))]
  const rise = points.reduce((sum, point) => sum + (point.x - x) * (point.y - y), 0)
  return rise / points.reduce((sum, point) => sum + (point.x - x) ** 2, 0)
}

interface Tools {
  lab: Lab
  source: Source
  generator: Generator
  opened: AsyncDisposableStack
}

async function openOperations({ lab, source, generator, opened }: Tools, url: string): Promise<Operations> {
  const client = await openClient(url, opened)
  const db = await openDatabase(url, { maxConnections: CONNECTIONS })
  opened.defer(() => db.end())
  const milliseconds = lab.quick ? 1000 : 3000
  return {
    async admissions() {
      await using admissions = openAdmissions(db, PUBLIC_LIMITS.first_in_flight_per_payer)
      const secret = randomBytes(32)
      const order = () => buildAdmission(secret, bodyFor('https://page.test/harbour'))
      const run = (time: number) =>
        closedLoop({ callers: CALLERS, milliseconds: time }, order, (admission) => admissions.add(admission))
      await run(milliseconds / 2)
      const rate = await run(milliseconds)
      // No worker is to see them, and the next round finds what this one found.
      await client.query(DROP_ADMITTED)
      await client.query('vacuum (analyze) verification_requests, payment_claims')
      return rate
    },
    async completions() {
      await using harness = await openWorkerHarness(lab, source, { url })
      const count = lab.quick ? 300 : 1000
      await harness.measureRate('/', count)
      return await harness.measureRate('/', count)
    },
    async recoveries() {
      await using api = await openChild(lab, 'server/main.ts', { event: 'listening', env: { DATABASE_URL: url } })
      const secret = deriveSecret(Buffer.from(lab.env.SIGNING_SEED!, 'hex'), 'recovery token')
      const recover = async (count: number) => {
        const { rows } = await client.query<{ id: string }>(SOME_RESULTS, [count, randomInt(2 ** 31) / 2 ** 31])
        return generator.run({
          origin: String(api.ready.address),
          path: '/',
          paths: rows.map(({ id }) => `/api/agent/v1/requests/${id}`),
          method: 'GET',
          status: 200,
          connections: CALLERS / 2,
          requests: rows.map(({ id }) => ({ headers: { authorization: `Bearer ${recoveryToken(secret, id)}` } })),
        })
      }
      await recover(RECOVERED / 2)
      return await recover(RECOVERED)
    },
    async 'rows pruned'() {
      await client.query(MAKE_DUE, [DUE])
      const began = performance.now()
      const rows = await pruneRequests(db, RETENTION_SECONDS)
      if (rows < DUE) throw new Error(`${rows} of ${DUE} rows were pruned`)
      return (rows * 1000) / (performance.now() - began)
    },
  }
}

/**
 * A new database with so many results: one that a worker completed, and copies of it. Foreign keys are right by the way the rows are
 * made, so they are not checked.
 * @returns `bytes` of the database
 */
async function fill(lab: Lab, source: Source, results: number): Promise<{ url: string; bytes: number }> {
  await using opened = new AsyncDisposableStack()
  const harness = opened.use(await openWorkerHarness(lab, source))
  await harness.measureRate('/', 1)
  const client = await openClient(harness.url, opened)
  await client.query(`set session_replication_role = replica; set synchronous_commit = off; set timezone = 'UTC'`)
  await client.query(MAKE_ROWS, [results])
  const own = { request_id: 'm.id', payer: 'm.payer', nonce: 'm.nonce' }
  await copyRows(client, 'verification_requests', {
    id: 'm.id',
    key_hash: 'm.key_hash',
    address_key: 'null',
    domain: `encode(m.key_hash, 'hex') || '.test'`,
    payer: 'm.payer',
    quote_expires_at: 'm.at',
    created_at: 'm.at',
    accepted_at: 'm.at',
    changed_at: 'm.at',
  })
  await copyRows(client, 'payment_claims', { ...own, claimed_at: 'm.at' })
  await copyRows(client, 'payment_ledger', { ...own, entered_at: 'm.at' })
  await client.query(`insert into payers (payer, settled, max_in_flight)
    select payer, count(*), 32 from made group by payer on conflict do nothing`)
  await client.query('drop table made')
  await client.query('vacuum (analyze)')
  await client.query('checkpoint')
  const { rows } = await client.query<{ bytes: number }>('select pg_database_size(current_database())::float8 bytes')
  return { url: harness.url, bytes: rows[0]?.bytes ?? Number.NaN }
}

/** Ten results of a payer, one each millisecond before two hours ago. */
const MAKE_ROWS = `create temp table made as
  select uuidv7(at - now()) id, sha256(int8send(n) || '\\xf111'::bytea) key_hash, at,
    '0x' || lpad(to_hex(n / 10), 40, '0') payer, '0x' || encode(sha256(int8send(n)), 'hex') nonce
  from (select n, now() - interval '2 hours' - n * interval '1 millisecond' as at
        from generate_series(1, $1::int) n) one`

/** A copy of the table's one row for each row of `made`, with these columns changed. */
async function copyRows(client: pg.Client, table: string, changed: Record<string, string>) {
  const { rows } = await client.query<{ name: string }>(
    `select attname as name from pg_attribute
     where attrelid = $1::regclass and attnum > 0 and not attisdropped and attidentity = '' order by attnum`,
    [table],
  )
  const columns = rows.map(({ name }) => name)
  await client.query(`insert into ${table} (${columns.join(', ')})
    select ${columns.map((column) => changed[column] ?? `o.${column}`).join(', ')}
    from made m, (select * from ${table} limit 1) o`)
}

/** From everywhere in the table: request ids begin with the time, and the results are of a span of time. */
const SOME_RESULTS = `with span as (
    select min(changed_at) first, max(changed_at) - min(changed_at) length
    from verification_requests where state in ('completed', 'failed') and body is not null
  )
  select r.id from span, generate_series(1, $1::int) n,
    lateral (select id from verification_requests
      where state in ('completed', 'failed') and body is not null
        and changed_at >= span.first + span.length * mod((n + $2::float8)::numeric * 0.618034, 1)::float8
      order by changed_at limit 1) r`

const DROP_ADMITTED = `delete from graphile_worker._private_jobs;
  delete from payment_claims c using verification_requests r where r.id = c.request_id and r.state = 'accepted';
  delete from verification_requests where state = 'accepted'`

/** Half of them are results past their retention, half are unpaid quotes. */
const MAKE_DUE = `with one as (
    select * from verification_requests where state = 'completed' limit 1
  ), quoted as (
    insert into verification_requests (id, key_hash, body_hash, state, body, quote_expires_at, address_key)
    select uuidv7(interval '-1 hour'), sha256(uuid_send(gen_random_uuid())), body_hash, 'quoted', body,
      now() - interval '1 hour', substr(body_hash, 1, 16)
    from one, generate_series(1, $1::int / 2)
  )
  insert into verification_requests (id, key_hash, body_hash, state, body, quote_expires_at, created_at, changed_at, payment,
    settlement, result, settlement_header, history, payer)
  select uuidv7(interval '-2 days'), sha256(uuid_send(gen_random_uuid())), body_hash, state, body, quote_expires_at,
    now() - interval '2 days', now() - interval '2 days', payment, settlement, result, settlement_header, history, payer
  from one, generate_series(1, $1::int / 2)`
