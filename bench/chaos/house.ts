// The whole service under faults of every kind: web and worker processes with Postgres, PgBouncer and Redis, payments on a
// local blockchain, and buyers and accounts that log what they were promised. When everything has ended, logs, tables,
// audit and chain must agree, and no memory, file or connection may be leaked.
import { createWriteStream, type WriteStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { type AlertArrived, CUT } from '../crowd/messages.ts'
import { useToolkit } from '../house/accounts.ts'
import { type Buyer, openBuyers, shop } from '../house/buyers.ts'
import type { Closing } from '../house/errand.ts'
import { examine } from '../house/examination.ts'
import { breakHouse, type FaultName, type Incident } from '../house/faults.ts'
import { openProcesses } from '../house/processes.ts'
import { findLeaks, findOrphans, type Holdings, measureHoldings } from '../house/traces.ts'
import { openWorld, type World } from '../house/world.ts'
import type { Lab } from '../lab.ts'
import { describe, figure, printHeading, printNote, printRows } from '../table.ts'

export interface HouseOptions {
  seed: number
  seconds: number
  everySeconds: number
  webs: number
  workers: number
  buyers: number
  accounts: number
  /** Default: all. */
  kinds?: readonly FaultName[]
  /** Facilitator and model never fail. */
  isCalm?: boolean
  /** Memory, files and connections are compared, after half a minute without load. */
  leaks: boolean
  /** Gets each fault, and each line that a process logs. */
  write?: (line: Record<string, unknown>) => void
}

export interface HouseReport {
  incidents: Incident[]
  /** Faults that this machine does not allow, in words. */
  missing: string[]
  /** The counted actions of facilitator and model, by name. */
  deeds: Record<string, number>
  /** Seconds of each purchase. */
  purchases: number[]
  refused: Record<string, number>
  calls: number
  toolkit: Record<string, number>
  /** From a kill or a freeze of a worker until another has begun with what it held, for each of its requests. */
  rescues: Rescue[]
  /** Seconds from the end of the faults until no work was left. */
  quietSeconds: number
  before: Holdings
  after: Holdings
  /** Errors in logs, by their message. */
  errors: Record<string, number>
  violations: string[]
}

export interface Rescue {
  kind: 'killed' | 'frozen'
  /** When the worker was killed or frozen, ISO 8601. */
  at: string
  /** The job's key, which names the request. */
  key: string
  seconds: number
}

/** Seconds from a kill or a freeze to the new start, for 99 of 100 requests. */
const RESCUE_AIMS = { killed: 3, frozen: 15 } as const
const WARM_UP_MS = 6_000
/** Time to finish work that began before the faults ended: longer than an authorization is valid. */
const FINISH_TIMEOUT_MS = 330_000
const IDLE_MS = 12_000

export async function runHouse(lab: Lab, options: HouseOptions): Promise<HouseReport> {
  await using opened = new AsyncDisposableStack()
  const { seed, leaks, write = () => {} } = options
  const isFilled = !options.kinds || options.kinds.includes('disk full')
  const world = opened.use(await openWorld(lab, seed, { smallDisk: isFilled }))
  const arrivals = new Map<string, string[]>()
  world.hostsProcess.process.on('message', (message: AlertArrived) => {
    const ids = arrivals.get(message.path) ?? []
    if (!ids.includes(message.id)) arrivals.set(message.path, [...ids, message.id])
  })
  if (options.isCalm) world.calm()
  const processes = opened.use(await openProcesses(lab, world, { web: options.webs, worker: options.workers }, write))
  const buyers = await openBuyers(world, options.buyers)
  const over = new AbortController()
  const closing: Closing = { over: over.signal, lastOrders: Number.POSITIVE_INFINITY }
  const { origins } = processes
  const shopping = buyers.map((buyer, n) => shop(world, origins, buyer, { seed: seed * 1000 + n, closing }))
  const using = useToolkit(world, origins, { count: options.accounts, seed: seed * 1000 + 500, closing })
  const busy = Promise.all([...shopping, using])
  busy.catch(() => {})
  if (leaks) await pause(WARM_UP_MS)
  const before = leaks ? await measureHoldings(world, processes) : {}
  const files = await readdir(lab.folder)

  const incidents = await breakHouse(world, processes, { ...options, write })
  const faultsEnded = performance.now()
  over.abort()
  world.calm()
  closing.lastOrders = faultsEnded + FINISH_TIMEOUT_MS
  await busy
  const accounts = await using
  const loose = await waitUntilQuiet(world, closing.lastOrders)
  const quietSeconds = (performance.now() - faultsEnded) / 1000

  world.hostsProcess.process.send(CUT)
  if (leaks) await pause(IDLE_MS)
  const after = leaks ? await measureHoldings(world, processes) : {}
  await processes.close()
  const env = { ...lab.env, ...world.env }
  const left = (await readdir(lab.folder)).filter((name) => !files.includes(name) && !name.startsWith('clock-'))
  const violations = [
    ...loose,
    ...processes.misbehaved,
    ...(await examine({ world, env, buyers, accounts, arrivals })),
    ...findLeaks(before, after),
    ...(await findOrphans(world)),
    ...left.map((name) => `the file ${name} was left behind`),
  ]
  return {
    incidents,
    missing: world.missing,
    deeds: world.deeds,
    ...describePurchases(buyers),
    calls: accounts.calls,
    toolkit: {
      receipts: accounts.receipts.length,
      leases: accounts.leases.length,
      watchdogs: accounts.dogs.length,
      'alerts delivered': [...arrivals.values()].flat().length,
      ...accounts.refusals,
    },
    rescues: await readRescues(world),
    quietSeconds,
    before,
    after,
    errors: processes.errors,
    violations,
  }
}

function describePurchases(buyers: Buyer[]) {
  const entries = buyers.flatMap(({ journal }) => journal)
  const refused: Record<string, number> = {}
  for (const { bought, code } of entries) if (!bought && code) refused[code] = (refused[code] ?? 0) + 1
  return { purchases: entries.filter(({ bought }) => bought).map(({ seconds }) => seconds), refused }
}

async function readRescues({ admin }: World): Promise<Rescue[]> {
  const { rows } = await admin.query<Rescue>(
    `select k.kind, to_char(k.at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at, k.key,
            extract(epoch from min(s.at) - k.at)::float8 seconds
     from kills k join starts s on s.key = k.key and s.at > k.at and s.worker <> k.worker
     group by k.id, k.at, k.kind, k.key order by k.at`,
  )
  return rows
}

const POLL_MS = 500
const LOOSE = `
  select 'a request is ' || state what, count(*)::int n from verification_requests
  where state in ('accepted', 'observed', 'assessed', 'settling', 'settled') group by 1
  union all select 'an alert is pending', count(*)::int from alerts where state = 'pending' having count(*) > 0
  union all select 'a watchdog has an alert to raise', count(*)::int from watchdogs
  where (interval_s < 60 and down_since is null) or (failed_at is not null and revived_at is not null) having count(*) > 0`

/** Answers the work that is not finished when the time is over, in words. */
async function waitUntilQuiet({ admin }: World, deadline: number): Promise<string[]> {
  for (;;) {
    const { rows } = await admin.query<{ what: string; n: number }>(LOOSE)
    if (rows.length === 0) return []
    if (performance.now() > deadline) return rows.map(({ what, n }) => `${what}, ${n} times, when all should be done`)
    await pause(POLL_MS)
  }
}

/**
 * @param minutes how long the faults go on; default 3, or 1 with --quick
 * @param log a file that gets each fault and each line that a process logs, as JSON
 */
export async function chaosHouse(
  lab: Lab,
  { seed, minutes, log }: { seed: number; minutes?: number; log?: string },
): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const file = log === undefined ? undefined : opened.adopt(createWriteStream(log), endFile)
  const options: HouseOptions = {
    seed,
    seconds: 60 * (minutes ?? (lab.quick ? 1 : 3)),
    everySeconds: 5,
    webs: 2,
    workers: 3,
    buyers: 8,
    accounts: 4,
    leaks: true,
    write: (line) => file?.write(`${JSON.stringify({ written: new Date(), ...line })}\n`),
  }
  printHeading(
    'house',
    `${options.buyers} buyers and ${options.accounts} accounts, ${options.webs} webs and ${options.workers} workers, a fault every ` +
      `${options.everySeconds} s for ${options.seconds} s, seed ${seed}`,
  )
  const report = await runHouse(lab, options)
  print(report)
  if (report.violations.length > 0) process.exitCode = 1
}

function print(report: HouseReport) {
  for (const what of report.missing) printNote(`NOT TRIED: ${what}`)
  const counts = Map.groupBy(report.incidents, ({ name }) => name)
  printRows([['fault', 'times'], ...[...counts].map(([name, all]): [string, string] => [name, String(all.length)])])
  for (const { at, name, detail } of report.incidents.filter(({ detail }) => detail.includes('had ended')))
    printNote(`at ${figure(at)} s, ${name}: ${detail}`)
  printNote(`beside them: ${list(report.deeds)}`)
  printNote(`${report.purchases.length} purchases, in seconds: ${describe(report.purchases)}`)
  printNote(`refused: ${list(report.refused)}`)
  printNote(`${report.calls} calls of the toolkit: ${list(report.toolkit)}`)
  for (const kind of ['killed', 'frozen'] as const) {
    const seconds = report.rescues.filter((rescue) => rescue.kind === kind).map((rescue) => rescue.seconds)
    printNote(`${seconds.length} requests of ${kind} workers began again after: ${describe(seconds)}`)
  }
  for (const { kind, at, key, seconds } of report.rescues)
    if (seconds > RESCUE_AIMS[kind])
      printNote(`  late: ${key}, ${kind} at ${at}, began again after ${figure(seconds)} s`)
  printNote(`all was done ${figure(report.quietSeconds)} s after the last fault`)
  const holdings = Object.entries(report.after).map(([name, now]): [string, ...string[]] => {
    const then = report.before[name]
    const both = (what: 'megabytes' | 'files' | 'connections') =>
      now[what] === undefined ? '' : `${then?.[what] ?? '-'} → ${now[what]}`
    return [name, both('megabytes'), both('files'), both('connections')]
  })
  printRows([['held before and after', 'MB', 'files', 'sessions'], ...holdings])
  printNote(`errors in logs: ${list(report.errors)}`)
  printNote(`violations: ${report.violations.length === 0 ? 'none' : report.violations.length}`)
  for (const violation of report.violations) printNote(`  ${violation}`)
}

async function endFile(file: WriteStream) {
  await new Promise((ended) => file.end(ended))
}

function list(counts: Record<string, number>): string {
  const sorted = Object.entries(counts).toSorted(([, a], [, b]) => b - a)
  return sorted.map(([name, n]) => `${name} ${n}`).join(', ') || 'none'
}
