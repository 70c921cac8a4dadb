// `node bench/slow-origins.ts`: a worker holds 256 verifications of origins that take 20 seconds each, and pages of quick
// origins go through meanwhile. Their rate is compared with that of the same worker when it holds none, in the same run. Exits 1
// below 0.8 of it, or where the worker's memory goes beyond 512 MB.
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { openDatabase, transact } from '../server/db/pool.ts'
import { deriveSecret } from '../server/receipts/keys.ts'
import { admitBatch } from '../server/verification/admission/admission.ts'
import { openChild } from './child.ts'
import { openClient, openLab } from './lab.ts'
import { bodyFor, buildAdmission } from './orders.ts'
import { NEEDS, readCall } from './program.ts'
import { median } from './rounds.ts'
import { figure, printHeading, printNote, printRows } from './table.ts'
import { openWatch, peakMb } from './watch.ts'
import { openSource } from './worker-harness.ts'

const HELD = 256
const AIM = 0.8
const MOST_MB = 512
const POLL_MS = 10
const ADMITTED_AT_ONCE = 50
const WORKING = "state in ('accepted', 'observed', 'assessed', 'settling', 'settled')"
const IDLE = `select not exists (select from verification_requests where ${WORKING}) holds`
const NO_QUICK_LEFT = `select not exists (
  select from verification_requests where ${WORKING} and body ->> 'source_url' not like '%/slow/%') holds`
/** Each visit of an origin has a row. */
const HOLDS_ALL = `select count(*) >= ${HELD} holds from origin_visits where until > now()`

const { options: values } = await readCall('node bench/slow-origins.ts', {
  summary: 'compare the rate of quick pages while a worker holds slow ones with that while it holds none',
  operands: [],
  usage: '[--quick]',
  about: `One worker holds ${HELD} verifications of origins that take 20 seconds each, which sets the time of a round.\n\n${NEEDS}`,
  examples: ['node bench/slow-origins.ts --quick'],
  exitStatus: `0 good, 1 below ${AIM} of the rate or above ${MOST_MB} MB of memory, 2 wrong usage.`,
  options: { quick: { type: 'boolean', default: false, help: 'one round instead of three' } },
})
const ROUNDS = values.quick ? 1 : 3
const COUNT = 200

await using opened = new AsyncDisposableStack()
const lab = opened.use(await openLab({ quick: values.quick, profile: undefined }))
const source = opened.use(await openSource(lab))
const url = await lab.makeDatabase()
const worker = opened.use(
  await openChild(lab, 'workers/main.ts', { event: 'worker_started', env: { DATABASE_URL: url, ...source.env } }),
)
const db = await openDatabase(url, { maxConnections: 2 })
opened.defer(() => db.end())
const client = await openClient(url, opened)
const secret = deriveSecret(Buffer.from(lab.env.SIGNING_SEED!, 'hex'), 'payment payload')
const emptyWatch = opened.use(await openWatch(url, { worker: worker.pid, page: source.page.pid }))
const heldWatch = opened.use(await openWatch(url, { worker: worker.pid, page: source.page.pid }))
/** An origin of its own for each slow page, and others for the quick ones. */
const slowHosts = source.hosts.slice(0, HELD)
const quickHosts = source.hosts.slice(HELD)

printHeading(
  'slow origins',
  `one worker, ${worker.ready.concurrency} under way, ${HELD} pages of 20 seconds each beside ${COUNT} of ${figure(source.bytes.short / 1000)} kB`,
)
await sell('/', quickHosts, COUNT)
await until(IDLE)
const rates: { empty: number; held: number; filling: number }[] = []
for (let round = 0; round < ROUNDS; round++) {
  const empty = await emptyWatch.during(rateOfQuick)
  await sell('/slow/', slowHosts, HELD)
  // The worker finds out that they are slow, and gives their places to others, while these wait.
  const filling = await rateOfQuick()
  await until(HOLDS_ALL)
  const before = await completed()
  const held = await heldWatch.during(rateOfQuick)
  if ((await completed()) - before > COUNT)
    printNote('some slow pages ended before the quick ones: the ratio is of fewer')
  rates.push({ empty, held, filling })
  await until(IDLE)
}
const { rows } = await client.query<{ n: number }>(
  "select count(*)::int n from verification_requests where state <> 'completed'",
)
if (rows[0]!.n > 0) throw new Error(`${rows[0]!.n} verifications were not completed`)
const of = (pick: (one: (typeof rates)[number]) => number) => median(rates.map(pick))
const ratio = of(({ empty, held }) => held / empty)
const mostMb = peakMb(worker.pid)
printRows([
  ['quick pages, none held', `${figure(of(({ empty }) => empty))}/s`],
  [
    `quick pages, ${HELD} held`,
    `${figure(of(({ held }) => held))}/s`,
    `${figure(ratio)} of it`,
    ratio >= AIM ? 'met' : 'MISSED',
  ],
  ['quick pages behind slow ones that were just bought', `${figure(of(({ filling }) => filling))}/s`],
  ['largest memory of the worker (VmHWM)', `${figure(mostMb)} MB`, '', mostMb <= MOST_MB ? 'met' : 'MISSED'],
])
printNote(`none held: ${emptyWatch.heldBack()}`)
printNote(`${HELD} held: ${heldWatch.heldBack()}`)
if (!(ratio >= AIM && mostMb <= MOST_MB)) process.exitCode = 1

async function sell(path: string, hosts: readonly string[], count: number) {
  const orders = Array.from({ length: count }, (_, n) =>
    buildAdmission(secret, bodyFor(`https://${hosts[n % hosts.length]}${path}${randomUUID()}`)),
  )
  for (let from = 0; from < count; from += ADMITTED_AT_ONCE)
    await transact(db, (tx) => admitBatch(tx, orders.slice(from, from + ADMITTED_AT_ONCE), 0))
}

/** Quick pages per second, from their sale to the last result. */
async function rateOfQuick(): Promise<number> {
  const started = performance.now()
  await sell('/', quickHosts, COUNT)
  await until(NO_QUICK_LEFT)
  return (COUNT * 1000) / (performance.now() - started)
}

async function until(query: string) {
  while (!(await client.query(query)).rows[0].holds) await pause(POLL_MS)
}

async function completed(): Promise<number> {
  const { rows } = await client.query<{ n: number }>(
    "select count(*)::int n from verification_requests where state = 'completed'",
  )
  return rows[0]!.n
}
