// Receipts per second over HTTP, beside a transaction for each on the same Postgres and beside the signature alone, both over HTTP
// too and in process; and what auditors read, beside a static route with the same bytes.
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { request } from 'undici'
import { attest, GENESIS, type SigningKey, sha256 } from '../server/receipts/format.ts'
import { deriveKey } from '../server/receipts/keys.ts'
import { type BenchAccount, openAccounts } from './accounts.ts'
import { type Child, openChild } from './child.ts'
import { type Generator, openGenerator } from './generator.ts'
import { type Lab, openClient } from './lab.ts'
import { CONNECTIONS, openOneByOne } from './receipt-one-by-one.ts'
import { closedLoop, compete } from './rounds.ts'
import { figure, printHeading, printNote, printRows, printStandings } from './table.ts'
import { openWatch, type Watch } from './watch.ts'

const CALLERS = 64
const READERS = 32
const AIM_ONE_BY_ONE = 7
const AIM_SIGNATURES = 1 / 3
/** Of pages, which are kept in memory, and of what is asked of the database at each call. */
const AIM_KEPT = 0.5
const AIM_READ = 0.4

export async function benchReceipts(lab: Lab): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const url = await lab.makeDatabase()
  const api = opened.use(await openChild(lab, 'server/main.ts', { event: 'listening', env: { DATABASE_URL: url } }))
  const origin = String(api.ready.address)
  const accounts = await openAccounts(await openClient(url, opened), 'bench')
  const generator = opened.use(await openGenerator(lab))
  const watch = opened.use(await openWatch(url, { API: api.pid, load: generator.pid }))
  const openPeer = async (env: Record<string, string>) =>
    opened.use(await openChild(lab, 'bench/receipt-peer.ts', { event: 'peer_ready', env }))
  const singleOverHttp = await openPeer({ DATABASE_URL: await lab.makeDatabase() })
  const signingOverHttp = await openPeer({})
  const single = opened.use(await openOneByOne(await lab.makeDatabase()))
  const key = { ...deriveKey(randomBytes(32), 'receipt', 1), keyId: 1 }
  const milliseconds = lab.quick ? 1500 : 3000
  const post = () => append(generator, origin, accounts, milliseconds)
  const postTo = (peer: Child) => append(generator, String(peer.ready.address), accounts, milliseconds)
  const entry = { subjectSha256: sha256('bench'), label: 'bench', requestedBy: 'bench' }

  printHeading('receipts', `durable, proved and answered over HTTP, ${CALLERS} callers`)
  await post()
  await postTo(singleOverHttp)
  await postTo(signingOverHttp)
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
        what: `one transaction each, over HTTP, ${CONNECTIONS} connections`,
        run: () => postTo(singleOverHttp),
        aim: AIM_ONE_BY_ONE,
      },
      { what: 'signed and answered over HTTP, not stored', run: () => postTo(signingOverHttp), aim: AIM_SIGNATURES },
      {
        what: 'one transaction each, in process',
        run: () =>
          closedLoop(
            { callers: CALLERS, milliseconds },
            () => key,
            (one) => single.append(one, entry),
          ),
      },
      { what: 'Ed25519 signatures of one core', run: async () => signatures(key, milliseconds / 3) },
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
  const full = Array.from(
    { length: Math.floor(serial / 1000) },
    (_, n) => `/v1/chain?from=${n * 1000 + 1}&to=${n * 1000 + 1000}`,
  )
  await timeFirst(origin, full)
  const reads: Read[] = [
    { what: 'GET /v1/chain, full pages in turn', paths: full, aim: AIM_KEPT },
    { what: 'GET /v1/chain, 1000 receipts from anywhere', paths: many((n) => `/v1/chain?from=${n}&to=${n + 999}`) },
    { what: 'GET /v1/receipt, an old one, with its proof', paths: many((n) => `/v1/receipt/${n}`), aim: AIM_READ },
    { what: 'GET /v1/consistency, from an old head', paths: many((n) => `/v1/consistency?from=${n}`), aim: AIM_READ },
    { what: 'GET /v1/journal, 4 kB', paths: ['/v1/journal/bench'], aim: AIM_READ },
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

/** Each page once, one after the other, before any is kept. */
async function timeFirst(origin: string, paths: string[]) {
  const started = performance.now()
  for (const path of paths) await (await fetch(`${origin}${path}`)).arrayBuffer()
  const each = (performance.now() - started) / paths.length
  printHeading('receipts', `GET /v1/chain, each of ${paths.length} full pages for the first time`)
  printRows([['one page, wall', `${figure(each)} ms`]])
}

async function benchRead(lab: Lab, { origin, url, api, generator, accounts }: Service, { what, paths, aim }: Read) {
  await using opened = new AsyncDisposableStack()
  const requests = accounts.map(({ headers }) => ({ headers }))
  const bytes = Buffer.from(await (await request(`${origin}${paths[0]}`, requests[0])).body.arrayBuffer())
  const file = join(lab.folder, 'read')
  await writeFile(file, bytes)
  const plain = opened.use(await openChild(lab, 'bench/static.ts', { event: 'static_ready', args: [file] }))
  const watch = opened.use(await openWatch(url, { API: api, load: generator.pid }))
  const plainWatch = opened.use(await openWatch(url, { static: plain.pid }))
  const milliseconds = lab.quick ? 700 : 1500
  const answered = { API: 0, static: 0 }
  const count = (name: keyof typeof answered, run: () => Promise<number>, by: Watch) => async () => {
    const rate = await by.during(run)
    answered[name] += (rate * milliseconds) / 1000
    return rate
  }
  const load = { method: 'GET', connections: READERS, milliseconds, status: 200 } as const
  const ask = () => generator.run({ ...load, origin, path: '/', paths, requests })
  const askPlain = () => generator.run({ ...load, origin: String(plain.ready.address), path: '/', requests })
  printHeading('receipts', `${what}, ${(bytes.length / 1000).toFixed(1)} kB, ${READERS} connections`)
  await ask()
  await askPlain()
  printStandings(
    await compete(lab.rounds, [
      { what, run: count('API', ask, watch) },
      { what: 'static Fastify route, the same bytes', run: count('static', askPlain, plainWatch), aim },
    ]),
  )
  const cpu = (name: keyof typeof answered, by: Watch) =>
    `${name} ${figure((1000 * by.cpuMs(name)) / answered[name])} us`
  printRows([['CPU of one answer', cpu('API', watch), cpu('static', plainWatch)]])
  printNote(watch.heldBack())
}
