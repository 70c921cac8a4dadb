// `node bench/growth.ts`: compares a database with 10 million receipts with a small one. Each operation runs on both in turns, with
// the code of the service. `--help` lists the options.
import { nothing, openDatabase, sql } from '../server/db/pool.ts'
import { countersOf, paymentsOf } from '../server/operate/minutes.ts'
import { auditChain } from '../server/receipts/audit.ts'
import { fillMiddles } from '../server/receipts/blocks.ts'
import { openChain } from '../server/receipts/chain.ts'
import { logOrigin } from '../server/receipts/checkpoint.ts'
import { sha256 } from '../server/receipts/format.ts'
import { openSigner } from '../server/receipts/signer.ts'
import { openGenerator } from './generator.ts'
import { fill, type Sizes, STORED_ONE_IN } from './growth-fill.ts'
import { type House, OPERATIONS, type Operation, openHouse } from './growth-operations.ts'
import { type Lab, openClient, openLab } from './lab.ts'
import { NEEDS, numberOption, readCall, refuse } from './program.ts'
import { compete } from './rounds.ts'
import { figure, printHeading, printNote, printRows } from './table.ts'
import { openWatch } from './watch.ts'
import { openSource, openWorkerHarness, type Source } from './worker-harness.ts'

const AIM = 0.8
/**
 * As in a plan with 4 GB of memory, the smallest whose disk holds the large database (docs/capacity.md). Both databases
 * share it.
 */
const BUFFERS = '1GB'
const FULL: Sizes = { receipts: 10_000_000, requests: 1_000_000, accounts: 100_000 }
const QUICK: Sizes = { receipts: 500_000, requests: 100_000, accounts: 10_000 }
/** Results are stored apart from their rows, so the size of a request includes a tenth of a result. */
const SIZES = `select pg_size_pretty(pg_database_size(current_database())) size,
    (pg_total_relation_size('receipts') + pg_total_relation_size('tree_nodes') + pg_total_relation_size('tile_middles'))::float8 receipts,
    (select sum(pg_total_relation_size(t::regclass)) from unnest(array['verification_requests', 'payment_claims', 'payment_ledger', 'payers']) t)::float8 requests,
    (select octet_length(result) from verification_requests where result is not null limit 1)::float8 result`

const WORK = ['MB written to the log', 'whole pages among them', 'pages read that were not in the buffers'] as const
type Work = Record<(typeof WORK)[number], number>
const NO_WORK = mapWork(() => 0)
const ROUNDS = 3
/** It counts the accounts. */
const WITHOUT_AIM: readonly Operation[] = ['status']
/** So many rows are no small table. */
const LARGE_SCAN = 50_000
/** Not empty, because an empty database has nothing to read. */
const SMALL: Sizes = { receipts: 60_000, requests: 20_000, accounts: 100 }

const inFigures = (count: number) => count.toLocaleString('en')
const describeSizes = ({ receipts, requests, accounts }: Sizes) =>
  `${inFigures(receipts)} receipts, ${inFigures(requests)} finished requests and ${inFigures(accounts)} accounts`
const NAME = 'node bench/growth.ts'
const { options: values } = await readCall(NAME, {
  summary: 'measure what a full house costs: each operation on a full database and on a small one, in turns',
  operands: [],
  usage: '[--quick] [--receipts N] [--requests N] [--accounts N] [--only NAME,...] [--buffers SIZE] [--audit]',
  about:
    `The small database has ${describeSizes(SMALL)}. The full one has as many as the options say.\n\n` +
    `Operations:\n\n${Object.entries(OPERATIONS)
      .map(([name, about]) => `  ${name.padEnd(12)}${about}`)
      .join('\n')}\n\n${NEEDS}\nThe full house is filled first, which takes most of the time, and about 8 GB of disk.`,
  examples: ['node bench/growth.ts --quick', 'node bench/growth.ts --only receipt,page --receipts 2000000'],
  exitStatus: `0 good, 1 where an operation keeps less than ${AIM} of its rate or the audit finds a fault, 2 wrong usage.`,
  options: {
    quick: { type: 'boolean', default: false, help: `one round instead of ${ROUNDS}, and ${describeSizes(QUICK)}` },
    receipts: {
      type: 'string',
      value: 'N',
      help: `receipts of the full house, default ${inFigures(FULL.receipts)}, at least ${inFigures(SMALL.receipts)}`,
    },
    requests: {
      type: 'string',
      value: 'N',
      help: `finished requests, default ${inFigures(FULL.requests)}, at least ${inFigures(SMALL.requests)}`,
    },
    accounts: {
      type: 'string',
      value: 'N',
      help: `accounts, default ${inFigures(FULL.accounts)}, at least ${inFigures(SMALL.accounts)}`,
    },
    only: { type: 'string', value: 'NAME,...', help: 'these operations, default all' },
    buffers: {
      type: 'string',
      value: 'SIZE',
      default: BUFFERS,
      help: `shared_buffers of the embedded Postgres, default ${BUFFERS}; the server of DATABASE_URL has its own`,
    },
    audit: { type: 'boolean', default: false, help: 'audit the whole full chain at the end' },
  },
})
const large: Sizes = { ...(values.quick ? QUICK : FULL) }
for (const name of ['receipts', 'requests', 'accounts'] as const) {
  const given = values[name]
  if (given !== undefined) large[name] = numberOption(NAME, name, given, SMALL[name])
}
const names = (values.only?.split(',') ?? Object.keys(OPERATIONS)) as Operation[]
const unknown = names.find((name) => !Object.hasOwn(OPERATIONS, name))
if (unknown !== undefined)
  refuse(NAME, `No operation is called ${unknown}: there are ${Object.keys(OPERATIONS).join(', ')}.`)

const started = performance.now()
await using opened = new AsyncDisposableStack()
const lab = opened.use(
  await openLab({ quick: values.quick, profile: undefined, postgres: { shared_buffers: values.buffers } }),
)
const source = opened.use(await openSource(lab))
const generator = opened.use(await openGenerator(lab))
const tools = { lab, source, generator }
printHeading(
  'growth',
  `a large database and a small one, in one Postgres with ${values.buffers} of buffers; rows made in bulk inside it, one result in ${STORED_ONE_IN} stored`,
)
const houses = { full: await build(large, 'full'), small: await build(SMALL, 'small') }
printRows([['', 'full /s', 'small /s', 'ratio']])
const missed: Operation[] = []
for (const name of names) {
  const before = await scannedRows(houses.full)
  const work = { full: NO_WORK, small: NO_WORK }
  await using watch = await openWatch(houses.full.url, {})
  const counted = (house: keyof typeof houses, run: () => Promise<number>) => async () => {
    const from = await readWork(houses[house])
    const rate = await run()
    const to = await readWork(houses[house])
    work[house] = mapWork((what) => work[house][what] + to[what] - from[what])
    return rate
  }
  const [, standing] = await compete(ROUNDS, [
    { what: 'full', run: counted('full', () => watch.during(houses.full.operations[name])) },
    { what: 'small', run: counted('small', houses.small.operations[name]) },
  ])
  const { rate, ratio } = standing!
  const judged = WITHOUT_AIM.includes(name) ? 'no aim' : ratio < AIM ? 'MISSED' : 'met'
  if (judged === 'MISSED') missed.push(name)
  printRows([[OPERATIONS[name], figure(rate * ratio), figure(rate), `${figure(ratio)} ${judged}`]])
  if (judged === 'MISSED') {
    printNote(`  full: ${watch.heldBack()}`)
    for (const what of WORK) printNote(`  ${what}: large ${figure(work.full[what])}, small ${figure(work.small[what])}`)
  }
  for (const [table, rows] of await scannedRows(houses.full)) {
    const read = rows - (before.get(table) ?? 0)
    if (read >= LARGE_SCAN) printNote(`  read by sequential scans meanwhile: ${figure(read)} rows of ${table}`)
  }
}
if (values.audit) await auditAll(houses.full)
console.log(`\n${((performance.now() - started) / 1000).toFixed(0)} s`)
if (missed.length > 0) {
  console.log(`below ${AIM} of the rate on the small one: ${missed.join(', ')}`)
  process.exitCode = 1
}

async function build(sizes: Sizes, name: string): Promise<House> {
  const from = performance.now()
  const url = await lab.makeDatabase()
  await completeOne(lab, source, url)
  await fill(url, sizes)
  await signHead(url)
  await keepUp(url)
  const client = await openClient(url, opened)
  const { rows } = await client.query(SIZES)
  const counts = Object.entries(sizes).map(([what, count]) => `${count.toLocaleString('en')} ${what}`)
  printNote(
    `${name}: ${counts.join(', ')}; ${rows[0].size}, made in ${((performance.now() - from) / 1000).toFixed(0)} s`,
  )
  printNote(
    `  bytes with indexes: a receipt ${figure(rows[0].receipts / sizes.receipts)}, a finished request ${figure(rows[0].requests / sizes.requests)}; a result alone ${figure(rows[0].result)}`,
  )
  return openHouse(tools, url, sizes.receipts, opened)
}

async function completeOne(lab: Lab, source: Source, url: string) {
  await using harness = await openWorkerHarness(lab, source, url)
  await harness.measureRate('/', 1)
}

/** One receipt by the service itself, which signs the head over all before it. */
async function signHead(url: string) {
  await using closing = new AsyncDisposableStack()
  const db = await openDatabase(url, { maxConnections: 2 })
  closing.defer(() => db.end())
  const signer = await openSigner(db, Buffer.from(lab.env.SIGNING_SEED!, 'hex'))
  const chain = closing.use(openChain(db, signer, { origin: logOrigin(undefined) }))
  await chain.append({ subjectSha256: sha256('bench'), label: null, requestedBy: 'bench' })
}

/** The rows that processes write every minute: tile_middles, and figures of minutes. */
async function keepUp(url: string) {
  const db = await openDatabase(url, { maxConnections: 1 })
  const from = performance.now()
  const tiles = await fillMiddles(db, { maxRunMs: Number.POSITIVE_INFINITY })
  const seconds = (performance.now() - from) / 1000
  await db.query(sql.type(nothing)`
    insert into minute_figures (minute, well, queue_depth, oldest_seconds, counters, payments)
    select minute, true, 0, 0, ${JSON.stringify(countersOf([]))}::jsonb, ${paymentsOf(sql.fragment`minute`)}
    from generate_series(date_trunc('minute', now()) - interval '2 days', now() - interval '2 minutes', interval '1 minute') as minute
    on conflict do nothing`)
  await db.query(sql.type(nothing)`analyze minute_figures, tile_middles`)
  await db.end()
  printNote(`${tiles.toLocaleString('en')} tiles got their rows of tile_middles in ${figure(seconds)} s`)
}

async function auditAll({ url }: House) {
  const db = await openDatabase(url, { maxConnections: 2 })
  const from = performance.now()
  const { to, faults } = await auditChain(db, { signatures: 'ends' })
  await db.end()
  const seconds = (performance.now() - from) / 1000
  const found = [...faults].map(([name, text]) => `${name}: ${text}`).join('; ') || 'no fault'
  printNote(`audit of the whole chain: ${to.toLocaleString('en')} receipts in ${seconds.toFixed(0)} s, ${found}`)
  if (faults.size > 0) process.exitCode = 1
}

/** The work of Postgres so far: writes to its log for all databases, reads for this one. */
async function readWork({ url }: House): Promise<Work> {
  await using closing = new AsyncDisposableStack()
  const client = await openClient(url, closing)
  const { rows } = await client.query<Work>(`
    select (pg_current_wal_lsn() - '0/0')::float8 / 1e6 "MB written to the log",
           wal_fpi::float8 "whole pages among them",
           (select blks_read from pg_stat_database where datname = current_database())::float8 "pages read that were not in the buffers"
    from pg_stat_wal`)
  return rows[0]!
}

function mapWork(of: (what: (typeof WORK)[number]) => number): Work {
  return Object.fromEntries(WORK.map((what) => [what, of(what)])) as Work
}

/** Rows that sequential scans have read so far, by table. */
async function scannedRows({ url }: House): Promise<Map<string, number>> {
  await using closing = new AsyncDisposableStack()
  const client = await openClient(url, closing)
  const { rows } = await client.query<{ relname: string; read: number }>(
    'select relname, seq_tup_read::float8 read from pg_stat_user_tables',
  )
  return new Map(rows.map(({ relname, read }) => [relname, read]))
}
