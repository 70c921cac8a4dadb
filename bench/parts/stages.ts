// The CPU time of each part of a verification. The worker's own code runs here, one request at a time and no other work, so
// all CPU time belongs to the part that runs: "loop" is the time of this thread, "threads" that of all other threads of the
// process (piscina, garbage collection, compilation). The time of an inner part does not count for the outer part.
import { z } from 'zod'
import { readConfig } from '../../server/config.ts'
import { openCore } from '../../server/context.ts'
import { type Database, sql, transact } from '../../server/db/pool.ts'
import { openLog } from '../../server/telemetry.ts'
import { admitBatch } from '../../server/verification/admission/admission.ts'
import { verifyRequest } from '../../server/verification/stages/stages.ts'
import { openWork, type Work } from '../../workers/context.ts'
import type { Lab } from '../lab.ts'
import { bodyFor, buildAdmission } from '../orders.ts'
import { figure, printHeading, printNote, printRows } from '../table.ts'
import { openSource } from '../worker-harness.ts'

export async function benchStages(lab: Lab): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const url = await lab.makeDatabase()
  const source = opened.use(await openSource(lab))
  const config = readConfig({ ...lab.env, ...source.env })
  const core = opened.use(await openCore(config, url, { log: openLog('warn') }))
  const work = opened.use(await openWork(core, { slowMs: 60_000 }))
  const admitOne = async (path: string, metered: Work) => {
    const admission = buildAdmission(core.secrets.payload, bodyFor(source.nextUrl(path)))
    await transact(core.db, (tx) => admitBatch(tx, [admission], config.maxInFlightPerPayer))
    const run = () =>
      verifyRequest({ request_id: admission.id }, metered, { signal: new AbortController().signal, attemptsLeft: 4 })
    return run
  }
  const count = lab.quick ? 50 : 100

  printHeading('stages', `CPU and wall time of one verification, one at a time, means of ${count}`)
  for (const { path, name } of [
    { path: '/', name: 'short' },
    { path: '/long/', name: 'long' },
  ] as const) {
    for (let n = 0; n < WARM_UP; n++) await (await admitOne(path, work))()
    const meter = buildMeter()
    const metered = meterWork(work, meter)
    const before = await countFlushes(core.db, config.databaseConnections)
    for (let n = 0; n < count; n++) {
      const run = await admitOne(path, metered)
      await meter.inside('the rest: parsing, checking, composing', run)
    }
    printParts(`page of ${(source.bytes[name] / 1000).toFixed(1)} kB`, meter.parts(count))
    // The commit of each admission is one of them.
    const flushes = ((await countFlushes(core.db, config.databaseConnections)) - before) / count - 1
    printNote(`flushes of the disk for one: ${figure(flushes)}, aim ${AIM_FLUSHES} at most: ${judge(flushes)}`)
  }
  const left = await core.db.oneFirst(sql.type(z.object({ left: z.number() }))`
    select count(*) "left" from verification_requests where state <> 'completed'`)
  if (left > 0) throw new Error(`${left} verifications of the bench were not completed`)
}

const AIM_FLUSHES = 4

const judge = (flushes: number) => (Number.isNaN(flushes) ? 'not known' : flushes <= AIM_FLUSHES ? 'met' : 'MISSED')

/** Flushes of the write-ahead log that connections have waited for; NaN before Postgres 18, which does not count them. */
async function countFlushes(db: Database, connections: number): Promise<number> {
  // Each connection reports what it counted once a second, or when it is told to. The pause makes the pool use all of them.
  const report = sql.type(z.object({}))`select pg_stat_force_next_flush(), pg_sleep(0.05)`
  await Promise.all(Array.from({ length: connections }, () => db.query(report)))
  const flushes = await db.oneFirst(sql.type(z.object({ flushes: z.number().nullable() }))`
    select sum(fsyncs)::int flushes from pg_stat_io where object = 'wal' and backend_type = 'client backend'`)
  return flushes ?? Number.NaN
}

/** The worker's tools, each timed under the name of its part. */
function meterWork(work: Work, { inside }: Meter): Work {
  const { cache, origins, outbound, threads, assessor, claims, steps, chain, changeEvents, facilitator } = work
  return {
    ...work,
    claims: { ...claims, add: (claim) => inside('claim', () => claims.add(claim)) },
    cache: {
      ...cache,
      observe: (url, age, fetch, signal) =>
        inside('shared observations: SQL', () =>
          cache.observe(url, age, () => inside('fetch: request and response', fetch), signal),
        ),
    },
    origins: {
      ...origins,
      openHops(...visitor) {
        const hops = origins.openHops(...visitor)
        return {
          enter: (url) => inside('turns at origins: SQL', () => hops.enter(url)),
          postpone: (url, answer) => hops.postpone(url, answer),
          [Symbol.asyncDispose]: () => inside('turns at origins: SQL', async () => hops[Symbol.asyncDispose]()),
        }
      },
    },
    outbound: {
      ...outbound,
      connect: (to, options) => inside('fetch: TLS connection', () => outbound.connect(to, options)),
    },
    threads: {
      ...threads,
      run: (file, name, ...rest) => inside(`thread: ${name}`, () => threads.run(file, name, ...rest)),
    },
    assessor: { ...assessor, assess: (input) => inside('assessment', () => assessor.assess(input)) },
    steps: { ...steps, add: (step) => inside('state moves: SQL', () => steps.add(step)) },
    facilitator: {
      ...facilitator,
      settle: (...given) => inside('settlement', () => facilitator.settle(...given)),
    },
    chain: { ...chain, append: (entry) => inside('receipt and result: SQL', () => chain.append(entry)) },
    changeEvents: { ...changeEvents, add: (id) => inside('notification: SQL', () => changeEvents.add(id)) },
  }
}

interface Part {
  name: string
  loop: number
  threads: number
  wall: number
}

interface Meter {
  /** Counts the time until the work is done for `name`, without the time of other parts inside it. */
  inside<T>(name: string, work: () => Promise<T>): Promise<T>
  /** Milliseconds, divided by `count`. */
  parts(count: number): Part[]
}

function buildMeter(): Meter {
  const sums = new Map<string, Part & { readings: number }>()
  let last = readClocks()
  let current = OUTSIDE
  const charge = (next: string) => {
    const now = readClocks()
    const sum = sums.get(current) ?? { name: current, loop: 0, threads: 0, wall: 0, readings: 0 }
    sums.set(current, sum)
    const loop = now.loop - last.loop
    sum.loop += loop
    sum.threads += Math.max(0, now.process - last.process - loop)
    sum.wall += now.wall - last.wall
    sum.readings++
    last = now
    current = next
  }
  const inside: Meter['inside'] = async (name, work) => {
    const outer = current
    charge(name)
    try {
      return await work()
    } finally {
      charge(outer)
    }
  }
  const cost = costOfReading(() => charge(OUTSIDE))
  return {
    inside,
    parts: (count) =>
      [...sums.values()]
        .filter(({ name }) => name !== OUTSIDE)
        .map(({ name, loop, threads, wall, readings }) => ({
          name,
          loop: Math.max(0, loop - cost.loop * readings) / count,
          threads: threads / count,
          wall: Math.max(0, wall - cost.wall * readings) / count,
        })),
  }
}

const OUTSIDE = 'outside'

/** In milliseconds. The kernel updates a thread's CPU time when the thread yields its core, so this function yields. */
function readClocks() {
  Atomics.wait(NEVER_WOKEN, 0, 0, 0.001)
  const milliseconds = ({ user, system }: NodeJS.CpuUsage) => (user + system) / 1000
  return {
    loop: milliseconds(process.threadCpuUsage()),
    process: milliseconds(process.cpuUsage()),
    wall: performance.now(),
  }
}

const NEVER_WOKEN = new Int32Array(new SharedArrayBuffer(4))

/** Of one reading, in milliseconds: each part pays for those made in it. */
function costOfReading(read: () => void) {
  const times = 200
  const before = readClocks()
  for (let n = 0; n < times; n++) read()
  const after = readClocks()
  return { loop: (after.loop - before.loop) / times, wall: (after.wall - before.wall) / times }
}

function printParts(title: string, parts: Part[]) {
  const sum = (pick: (part: Part) => number) => parts.reduce((total, part) => total + pick(part), 0)
  const all = { name: 'all', loop: sum((p) => p.loop), threads: sum((p) => p.threads), wall: sum((p) => p.wall) }
  const cpu = ({ loop, threads }: Part) => loop + threads
  const sorted = parts.toSorted((a, b) => cpu(b) - cpu(a))
  printRows([
    [title, 'loop', 'threads', 'wall'],
    ...[...sorted, all].map(({ name, loop, threads, wall }): [string, ...string[]] => [
      `  ${name}`,
      ...[loop, threads, wall].map((ms) => `${figure(ms)} ms`),
    ]),
  ])
  const shares = sorted.slice(0, 3).map((part) => `${part.name} ${Math.round((100 * cpu(part)) / cpu(all))} %`)
  printNote(`held back by: ${shares.join(', ')} of ${figure(cpu(all))} ms of CPU`)
}

const WARM_UP = 50
