// The operations of the growth bench, each run by the code of the service on one database: rates per second.
import { randomBytes, randomInt } from 'node:crypto'
import { pruneAccounts } from '../server/accounts/pruning.ts'
import { PUBLIC_LIMITS } from '../server/accounts/tiers.ts'
import { openDatabase } from '../server/db/pool.ts'
import { readStatus } from '../server/operate/status.ts'
import { auditChain } from '../server/receipts/audit.ts'
import { sha256 } from '../server/receipts/format.ts'
import { deriveSecret } from '../server/receipts/keys.ts'
import { openAdmissions } from '../server/verification/admission.ts'
import { measureBacklog } from '../server/verification/lookup.ts'
import { measurePruneLag, pruneRequests } from '../server/verification/pruning.ts'
import { recoveryToken } from '../server/verification/recovery-token.ts'
import { openAccounts } from './accounts.ts'
import { openChild } from './child.ts'
import type { Generator } from './generator.ts'
import { type Lab, openClient } from './lab.ts'
import type { Load } from './load.ts'
import { bodyFor, buildAdmission } from './orders.ts'
import { closedLoop } from './rounds.ts'
import { openWorkerHarness, type Source } from './worker-harness.ts'

export interface House {
  url: string
  receipts: number
  operations: Record<Operation, () => Promise<number>>
}

export const OPERATIONS = {
  admission: 'admissions, durable, 64 callers',
  completion: 'completed verifications, one worker process',
  append: 'receipts made, POST, 64 callers',
  receipt: 'old receipts with proof, from 200 tiles, read once',
  anywhere: 'the same from the whole chain, read once',
  again: 'the same, read again',
  page: 'pages of 1000 receipts, each read once',
  list: 'pages of the receipts of an account',
  recovery: 'results recovered, each once',
  pruning: 'requests pruned',
  accounts: 'unused accounts pruned',
  minute: 'queries of each minute: backlog and due work',
  status: "the operator's status",
  exported: 'receipts exported, page by page',
  audit: 'receipts audited',
} as const
export type Operation = keyof typeof OPERATIONS

const CALLERS = 64
const READERS = 32
const CONNECTIONS = 10
const READ_ONCE = 2000
const PAGES = 40
const DUE = 4000
const PAGE = 1000
const TILES = 200

export interface Tools {
  lab: Lab
  generator: Generator
  source: Source
}

/** @param url of a filled database with so many receipts; the operations add only few rows to it */
export async function openHouse(
  tools: Tools,
  url: string,
  receipts: number,
  opened: AsyncDisposableStack,
): Promise<House> {
  const { lab, generator, source } = tools
  const client = await openClient(url, opened)
  const db = await openDatabase(url, { maxConnections: CONNECTIONS })
  opened.defer(() => db.end())
  const accounts = (await openAccounts(client, 'bench')).map(({ headers }) => ({ headers }))
  const milliseconds = lab.quick ? 1000 : 2000
  const retention = 86_400
  const { rows: stored } = await client.query<{ id: string }>(
    `select id from verification_requests where state = 'completed' and result is not null`,
  )

  /** Each path once, by a process that keeps nothing yet; again with `twice`, and then the second time counts. */
  async function read(paths: string[], { requests = accounts, twice = false, connections = READERS } = {}) {
    await using api = await openChild(lab, 'server/main.ts', {
      event: 'listening',
      env: { DATABASE_URL: url, RATE_LIMIT_PER_MINUTE: '1000000' },
    })
    const load: Load = {
      origin: String(api.ready.address),
      path: '/',
      method: 'GET',
      status: 200,
      connections,
      paths: [],
      requests: [],
    }
    const run = (some: string[]) =>
      generator.run({ ...load, paths: some, requests: some.map((_, n) => requests[n % requests.length]!) })
    // Connections and code are warm, and nothing of what is measured is kept.
    for (let n = 0; n < WARM_UPS; n++) await run(Array(100).fill('/v1/chain-head'))
    const first = await run(paths)
    return twice ? await run([...paths, ...paths, ...paths]) : first
  }
  const oldReceipts = () => Array.from({ length: READ_ONCE }, () => `/v1/receipt/${1 + randomInt(receipts)}`)
  /** The same number of tiles on a small chain and on a long one, so that caches help both alike. */
  function ofFewTiles() {
    const tiles = distinct(TILES, Math.floor(receipts / 256))
    return Array.from({ length: READ_ONCE }, (_, n) => `/v1/receipt/${tiles[n % TILES]! * 256 + 1 + randomInt(256)}`)
  }

  async function append() {
    await using api = await openChild(lab, 'server/main.ts', { event: 'listening', env: { DATABASE_URL: url } })
    const headers = { 'content-type': 'application/json' }
    const requests = Array.from({ length: 5000 }, (_, n) => ({
      headers: { ...accounts[n % accounts.length]!.headers, ...headers },
      body: JSON.stringify({ subject_sha256: sha256(randomBytes(8)), label: 'bench' }),
    }))
    const load = { origin: String(api.ready.address), path: '/v1/receipt', method: 'POST', status: 201 } as const
    const run = () => generator.run({ ...load, requests, connections: CALLERS, milliseconds })
    await run()
    return await run()
  }

  async function admission() {
    await using admissions = openAdmissions(db, PUBLIC_LIMITS.first_in_flight_per_payer)
    const secret = randomBytes(32)
    const run = (ms: number) =>
      closedLoop(
        { callers: CALLERS, milliseconds: ms },
        () => buildAdmission(secret, bodyFor('https://page.test/harbour')),
        (order) => admissions.add(order),
      )
    await run(milliseconds / 2)
    const rate = await run(milliseconds)
    // No worker is to see them.
    await client.query(`delete from graphile_worker._private_jobs;
      delete from payment_claims c using verification_requests r where r.id = c.request_id and r.state = 'accepted';
      delete from verification_requests where state = 'accepted'`)
    await client.query('vacuum (analyze) verification_requests, payment_claims')
    return rate
  }

  async function completion() {
    await using harness = await openWorkerHarness(lab, source, url)
    await harness.measureRate('/', lab.quick ? 100 : 200)
    return await harness.measureRate('/', lab.quick ? 150 : 300)
  }

  async function recovery() {
    const rows = distinct(READ_ONCE, stored.length).map((n) => stored[n]!)
    const secret = deriveSecret(Buffer.from(lab.env.SIGNING_SEED!, 'hex'), 'recovery token')
    return read(
      rows.map(({ id }) => `/api/agent/v1/requests/${id}`),
      { requests: rows.map(({ id }) => ({ headers: { authorization: `Bearer ${recoveryToken(secret, id)}` } })) },
    )
  }

  const operations: House['operations'] = {
    admission,
    completion,
    append,
    receipt: () => read(ofFewTiles()),
    anywhere: () => read(oldReceipts()),
    again: () => read(ofFewTiles(), { twice: true }),
    page: () =>
      read(
        distinct(PAGES, Math.floor(receipts / PAGE)).map((n) => `/v1/chain?from=${n * PAGE + 1}&to=${(n + 1) * PAGE}`),
      ),
    list: () => read(Array.from({ length: READ_ONCE }, () => '/v1/receipt?limit=50')),
    recovery,
    async pruning() {
      await client.query(MAKE_DUE, [DUE])
      return timed(() => pruneRequests(db, retention))
    },
    async accounts() {
      await client.query(MAKE_UNUSED, [DUE / 2, randomBytes(8).toString('hex')])
      return timed(() => pruneAccounts(db))
    },
    minute: () =>
      closedLoop(
        { callers: 1, milliseconds },
        () => 1,
        async () => {
          await measureBacklog(db)
          await measurePruneLag(db, retention)
        },
      ),
    status: () =>
      closedLoop(
        { callers: 1, milliseconds },
        () => 1,
        () => readStatus(db, { resultRetentionSeconds: retention }),
      ),
    async exported() {
      const from = PAGE * Math.floor((receipts - PAGES * PAGE) / 2 / PAGE)
      const pages = Array.from({ length: PAGES }, (_, n) => from + n * PAGE)
      const rate = await read(
        pages.map((at) => `/v1/chain?from=${at + 1}&to=${at + PAGE}`),
        { connections: 1 },
      )
      return rate * PAGE
    },
    async audit() {
      const started = performance.now()
      let seen = 0
      await auditChain(db, {
        signatures: 'ends',
        onProgress(serial) {
          seen = serial
          if (serial >= AUDITED) throw new EnoughError()
        },
      }).catch((error) => {
        if (!(error instanceof EnoughError)) throw error
      })
      return (seen * 1000) / (performance.now() - started)
    },
  }
  return { url, receipts, operations }
}

/** So many whole numbers from 0 to before `bound`. */
function distinct(count: number, bound: number): number[] {
  const found = new Set<number>()
  while (found.size < count) found.add(randomInt(bound))
  return [...found]
}

class EnoughError extends Error {}

/** Of the audit, where both chains are as long. */
const AUDITED = 40_000
const WARM_UPS = 10

/** Rows per second of work that answers their number. */
async function timed(work: () => Promise<number>): Promise<number> {
  const started = performance.now()
  const rows = await work()
  if (rows === 0) throw new Error('nothing was due')
  return (rows * 1000) / (performance.now() - started)
}

/** Half of them are results past their retention, half are unpaid quotes. */
const MAKE_DUE = `with one as (
    select * from verification_requests where state = 'completed' and result is not null limit 1
  ), quoted as (
    insert into verification_requests (id, key_hash, body_hash, state, body, quote_expires_at, address_key)
    select uuidv7(interval '-1 hour'), sha256(uuid_send(gen_random_uuid())), body_hash, 'quoted', body, now() - interval '1 hour', substr(body_hash, 1, 16)
    from one, generate_series(1, $1::int / 2)
  )
  insert into verification_requests (id, key_hash, body_hash, state, body, quote_expires_at, created_at, changed_at, payment,
    settlement, result, settlement_header, history, payer)
  select uuidv7(interval '-2 days'), sha256(uuid_send(gen_random_uuid())), body_hash, state, body, quote_expires_at,
    now() - interval '2 days', now() - interval '2 days', payment, settlement, result, settlement_header, history, payer
  from one, generate_series(1, $1::int / 2)`

const MAKE_UNUSED = `with made as (
    insert into accounts (id, handle, created_at)
    select gen_random_uuid(), 'unused-' || $2::text || '-' || n, now() - interval '300 days' from generate_series(1, $1::int) n
    returning id, created_at
  )
  insert into api_keys (id, account_id, key_hash, kind, created_at)
  select gen_random_uuid(), id, sha256(uuid_send(id)), 'full', created_at from made`
