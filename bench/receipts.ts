// Receipts per second over HTTP, beside a transaction for each on the same Postgres and beside the signature alone; and what
// auditors read, beside a static route with the same bytes.
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { attest, GENESIS, type SigningKey, sha256 } from '../server/receipts/format.ts'
import { deriveKey } from '../server/receipts/keys.ts'
import { type BenchAccount, openAccounts } from './accounts.ts'
import { openChild } from './child.ts'
import { type Generator, openGenerator } from './generator.ts'
import { type Lab, openClient } from './lab.ts'
import { closedLoop, compete } from './rounds.ts'
import { figure, printHeading, printNote, printRows, printStandings } from './table.ts'
import { openWatch } from './watch.ts'

const CALLERS = 64
const READERS = 32
const CONNECTIONS = 10
const AIM_ONE_BY_ONE = 7
const AIM_SIGNATURES = 1 / 3
/** Of pages that are kept in memory; what is read from the database each time is held against no aim. */
const AIM_KEPT = 0.5

export async function benchReceipts(lab: Lab): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const url = await lab.makeDatabase()
  const api = opened.use(await openChild(lab, 'server/main.ts', { event: 'listening', env: { DATABASE_URL: url } }))
  const origin = String(api.ready.address)
  const accounts = await openAccounts(await openClient(url, opened), 'bench')
  const generator = opened.use(await openGenerator(lab))
  const watch = opened.use(await openWatch(url, { API: api.pid, load: generator.pid }))
  const single = opened.use(await openOneByOne(await lab.makeDatabase()))
  const key = { ...deriveKey(randomBytes(32), 'receipt', 1), keyId: 1 }
  const milliseconds = lab.quick ? 1500 : 3000
  const post = () => append(generator, origin, accounts, milliseconds)

  printHeading('receipts', `durable, proved and answered over HTTP, ${CALLERS} callers`)
  await post()
  let answered = 0
  const timed = async () => {
    const rate = await watch.during(post)
    answered += (rate * milliseconds) / 1000
    return rate
  }
  printStandings(
    await compete(lab.rounds, [
      { what: 'POST /v1/receipt, one API process', run: timed },
      {
        what: `one transaction each, pg, in process, ${CONNECTIONS} connections`,
        run: () => closedLoop({ callers: CALLERS, milliseconds }, () => key, single.append),
        aim: AIM_ONE_BY_ONE,
      },
      {
        what: 'Ed25519 signatures of one core',
        run: async () => signatures(key, milliseconds / 3),
        aim: AIM_SIGNATURES,
      },
    ]),
  )
  printRows([['CPU of one receipt, API process', `${figure((1000 * watch.cpuMs('API')) / answered)} us`]])
  printNote(watch.heldBack())
  await benchReads(lab, { origin, url, api: api.pid, generator, accounts })
}

async function append(generator: Generator, origin: string, accounts: BenchAccount[], milliseconds: number) {
  const body = JSON.stringify({ subject_sha256: sha256('bench'), label: 'bench' })
  const requests = accounts.map(({ headers }) => ({
    headers: { ...headers, 'content-type': 'application/json' },
    body,
  }))
  const target = { origin, path: '/v1/receipt', method: 'POST', status: 201 } as const
  return generator.run({ ...target, requests, connections: CALLERS, milliseconds })
}

/**
 * The chain as it is usually written: lock the head, sign, insert, move the head, commit; prepared statements, as many
 * connections as the service has. All that it leaves out speaks for it: HTTP, the caller's key, the daily count, the tree.
 */
async function openOneByOne(databaseUrl: string) {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: CONNECTIONS })
  pool.on('error', () => {})
  await pool.query(`create table one_by_one (serial bigint primary key, ts_ms bigint not null, subject bytea not null,
    label text, requested_by text not null, key_id integer not null, prev_hash bytea not null unique,
    receipt_hash bytea not null unique, sig bytea not null)`)
  await pool.query('create table one_head (serial bigint not null, receipt_hash bytea not null)')
  await pool.query(`insert into one_head values (0, decode('${GENESIS}', 'hex'))`)
  return {
    async append(key: SigningKey) {
      const client = await pool.connect()
      try {
        await client.query('begin')
        await appendOne(client, key)
        await client.query('commit')
      } finally {
        client.release()
      }
    },
    [Symbol.asyncDispose]: () => pool.end(),
  }
}

async function appendOne(client: pg.PoolClient, key: SigningKey) {
  const { rows } = await client.query<{ serial: string; hash: string }>({
    name: 'head',
    text: `select serial, encode(receipt_hash, 'hex') hash from one_head for update`,
  })
  const entry = { subjectSha256: sha256('bench'), label: 'bench', requestedBy: 'bench' }
  const a = attest({ ...entry, serial: Number(rows[0]!.serial) + 1, prevHash: rows[0]!.hash, tsMs: Date.now() }, key)
  const hashes = [a.subject_sha256, a.prev_hash, a.receipt_hash, a.sig_ed25519_hex]
  await client.query({
    name: 'insert',
    text: `insert into one_by_one values
      ($1, $2, decode($6, 'hex'), $3, $4, $5, decode($7, 'hex'), decode($8, 'hex'), decode($9, 'hex'))`,
    values: [a.serial, a.ts_ms, a.label, a.requested_by, a.key_id, ...hashes],
  })
  await client.query({
    name: 'move',
    text: `update one_head set serial = $1, receipt_hash = decode($2, 'hex')`,
    values: [a.serial, a.receipt_hash],
  })
}

function signatures(key: SigningKey, milliseconds: number): number {
  const started = performance.now()
  let made = 0
  while (performance.now() < started + milliseconds)
    for (let n = 0; n < 100; n++)
      attest(
        { subjectSha256: GENESIS, label: null, requestedBy: 'bench', serial: ++made, prevHash: GENESIS, tsMs: 1 },
        key,
      )
  return (made * 1000) / (performance.now() - started)
}

interface Service {
  origin: string
  url: string
  api: number
  generator: Generator
  accounts: BenchAccount[]
}

async function benchReads(lab: Lab, service: Service) {
  const { origin, accounts } = service
  const body = randomBytes(4096)
  for (const { headers } of accounts) {
    const put = { method: 'PUT', headers: { ...headers, 'content-type': 'application/octet-stream' }, body }
    const stored = await fetch(`${origin}/v1/journal/bench`, put)
    if (!stored.ok) throw new Error(`the journal answered ${stored.status}`)
  }
  const serial = await growTo(MIN_RECEIPTS, service)
  const old = (n: number) => 1 + ((n * 7919) % (serial - 1000))
  const many = (path: (from: number) => string) => Array.from({ length: 1000 }, (_, n) => path(old(n)))
  const reads: Read[] = [
    { what: 'GET /v1/chain, a page of 1000, the same again', paths: ['/v1/chain?from=1001&to=2000'], aim: AIM_KEPT },
    { what: 'GET /v1/chain, 1000 receipts, others each time', paths: many((n) => `/v1/chain?from=${n}&to=${n + 999}`) },
    { what: 'GET /v1/receipt, an old one, with its proof', paths: many((n) => `/v1/receipt/${n}`) },
    { what: 'GET /v1/consistency, from an old head', paths: many((n) => `/v1/consistency?from=${n}`) },
    { what: 'GET /v1/journal, 4 kB', paths: ['/v1/journal/bench'] },
  ]
  for (const read of reads) await benchRead(lab, service, read)
}

/** Appends until there are enough to have old ones among them, and answers how many there are. */
async function growTo(least: number, { origin, generator, accounts }: Service): Promise<number> {
  for (;;) {
    const { serial } = (await (await fetch(`${origin}/v1/chain-head`)).json()) as { serial: number }
    if (serial >= least) return serial
    await append(generator, origin, accounts, 1000)
  }
}

const MIN_RECEIPTS = 5000

interface Read {
  what: string
  /** Asked for in turn. */
  paths: string[]
  aim?: number
}

async function benchRead(lab: Lab, { origin, url, api, generator, accounts }: Service, { what, paths, aim }: Read) {
  await using opened = new AsyncDisposableStack()
  const bytes = Buffer.from(await (await fetch(`${origin}${paths[0]}`, accounts[0])).arrayBuffer())
  const file = join(lab.folder, 'read')
  await writeFile(file, bytes)
  const plain = opened.use(await openChild(lab, 'bench/static.ts', { event: 'static_ready', args: [file] }))
  const watch = opened.use(await openWatch(url, { API: api, load: generator.pid }))
  const milliseconds = lab.quick ? 700 : 1500
  const requests = accounts.map(({ headers }) => ({ headers }))
  const load = { method: 'GET', connections: READERS, milliseconds, status: 200 } as const
  const ask = () => generator.run({ ...load, origin, path: '/', paths, requests })
  const askPlain = () => generator.run({ ...load, origin: String(plain.ready.address), path: '/', requests })
  printHeading('receipts', `${what}, ${(bytes.length / 1000).toFixed(1)} kB, ${READERS} connections`)
  await ask()
  await askPlain()
  printStandings(
    await compete(lab.rounds, [
      { what, run: () => watch.during(ask) },
      { what: 'static Fastify route, the same bytes', run: askPlain, aim },
    ]),
  )
  printNote(watch.heldBack())
}
