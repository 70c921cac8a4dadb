// Honest buyers beside hostile load: one payer asks for pages that never end, new payers ask for pages that are costly to
// read, free accounts have receivers that hang, heartbeats that alternate and quote checks of pages that never end, and many quotes are never paid. The buyers are measured alone first and then beside the
// hostile load; afterwards all rows are made older and pruned. The hostile load may cost buyers some time, but no purchase,
// and no table may stay larger.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type pg from 'pg'
import { type Child, openChild } from '../child.ts'
import {
  type Account,
  type Buyer,
  bought,
  buyAll,
  makeBuyers,
  openAccount,
  timeAlerts,
  type Victim,
} from '../crowd/buyers.ts'
import {
  type AttackOrder,
  type AttackReady,
  type AttackReport,
  CUT,
  GO,
  type HostsReady,
  STOP,
} from '../crowd/messages.ts'
import { type CrowdReport, printReport, type TableReport } from '../crowd/report.ts'
import { followPeak, pruneAll, type Rows } from '../crowd/tables.ts'
import { type Lab, openClient } from '../lab.ts'
import { printHeading } from '../table.ts'
import { openWatch } from '../watch.ts'

export interface CrowdOptions {
  buyers: number
  accounts: number
  /** Alerts whose delivery is timed, without and with hostile load. */
  victims: { empty: number; crowd: number }
  seconds: { warmUp: number; empty: number; crowd: number; pruning: number }
}

/** The limits of the live modes, for a service behind one proxy that sends its callers' addresses. */
const LIVE = { RATE_LIMIT_PER_MINUTE: '600', TRUST_PROXY: '1' }
/**
 * Rows that do not depend on calls. A tree gets a row for every few hundred leaves, later than the leaves; figures get a
 * row a minute and a row a day.
 */
const SLACK: Readonly<Record<string, number>> = { tree_nodes: 16, tile_middles: 16, minute_figures: 30, day_figures: 2 }

export async function runCrowd(lab: Lab, options: CrowdOptions): Promise<CrowdReport> {
  await using opened = new AsyncDisposableStack()
  const { seconds, victims } = options
  const house = await openHouse(lab, opened, options)
  const { origin, admin, hosts } = house
  const shop = (duration: number) => buyAll(origin, house.buyers, house.pages, duration)

  const [, emptyAlerts] = await Promise.all([
    shop(seconds.warmUp),
    timeAlerts(origin, house.victims.slice(0, victims.empty), hosts, seconds.warmUp),
  ])
  const start = await pruneAll(admin, seconds.pruning)
  const alone = opened.use(await openWatch(house.databaseUrl, house.processes))
  const empty = await alone.during(() => shop(seconds.empty))
  const before = await pruneAll(admin, seconds.pruning)

  const attacker = await openAttack(lab, opened, house)
  const over = new AbortController()
  const following = followPeak(await openClient(house.databaseUrl, opened), over.signal)
  const beside = opened.use(await openWatch(house.databaseUrl, { ...house.processes, attack: attacker.pid }))
  attacker.process.send!(GO)
  const stopping = endAttack(attacker, hosts, seconds.crowd)
  const [crowd, crowdAlerts, attack] = await beside.during(() =>
    Promise.all([
      shop(seconds.crowd),
      timeAlerts(origin, house.victims.slice(victims.empty), hosts, seconds.crowd),
      stopping,
    ]),
  )
  over.abort()
  const peak = await following
  const after = await pruneAll(admin, seconds.pruning)

  const receipts = options.accounts * sumOfDailyLimits(house.accounts[0]!) + victims.crowd
  const charged = {
    payer: sum(await countCharged(admin, [attacker.payer])),
    costly: await countCharged(admin, attack.costly.payers),
  }
  const counts = {
    empty: bought(empty),
    crowd: crowd.length + charged.payer + sum(charged.costly),
    receipts,
    payers: Math.sign(charged.payer) + charged.costly.length,
  }
  return {
    empty,
    crowd,
    attack,
    charged: { payer: charged.payer, costly: sum(charged.costly) },
    alerts: { empty: emptyAlerts, crowd: crowdAlerts },
    tables: compareTables({ start, before, peak, after }, counts),
    workerBytes: await readPeakMemory(house.processes.worker),
    heldBack: { empty: alone.heldBack(), crowd: beside.heldBack() },
  }
}

interface House {
  databaseUrl: string
  admin: pg.Client
  origin: string
  /** Process ids. */
  processes: { API: number; worker: number; hosts: number; buyers: number }
  hosts: Child
  pages: string[]
  drips: string[]
  costly: string[]
  buyers: Buyer[]
  accounts: Account[]
  victims: Victim[]
}

async function openHouse(lab: Lab, opened: AsyncDisposableStack, options: CrowdOptions): Promise<House> {
  const hosts = opened.use(
    await openChild(lab, 'bench/crowd/hosts.ts', { event: 'hosts_ready', args: [lab.folder], ipc: true }),
  )
  const { fixtures, caFile, pages, drips, costly, hanging, receiver } = hosts.ready as unknown as HostsReady
  const databaseUrl = await lab.makeDatabase()
  const env = { DATABASE_URL: databaseUrl, FIXTURE_HOSTS: fixtures, FIXTURE_CA_FILE: caFile, ...LIVE }
  const api = opened.use(await openChild(lab, 'server/main.ts', { event: 'listening', env }))
  const worker = opened.use(await openChild(lab, 'workers/main.ts', { event: 'worker_started', env }))
  const admin = await openClient(databaseUrl, opened)
  const origin = String(api.ready.address)
  const accounts: Account[] = []
  for (let n = 0; n < options.accounts; n++) {
    const webhook = `https://${hanging[n % hanging.length]}/`
    accounts.push(await openAccount(origin, `crowd-${n}`, `198.51.100.${n}`, webhook))
  }
  const victims: Victim[] = []
  for (let n = 0; n < options.victims.empty + options.victims.crowd; n++) {
    const [address, path] = [`192.0.2.${200 + n}`, `/${n}`]
    const { authorization } = await openAccount(origin, `victim-${n}`, address, `https://${receiver}${path}`)
    victims.push({ authorization, address, path })
  }
  const buyers = makeBuyers(options.buyers)
  const processes = { API: api.pid, worker: worker.pid, hosts: hosts.pid, buyers: process.pid }
  return { databaseUrl, admin, origin, processes, hosts, pages, drips, costly, buyers, accounts, victims }
}

type Attacker = Child & { payer: string }

/** Resolves when its payments are signed. */
async function openAttack(lab: Lab, opened: AsyncDisposableStack, house: House): Promise<Attacker> {
  const attacker = opened.use(await openChild(lab, 'bench/crowd/attack.ts', { event: 'attack_loaded', ipc: true }))
  const order: AttackOrder = {
    origin: house.origin,
    drips: house.drips,
    costly: house.costly,
    pages: house.pages,
    authorizations: house.accounts.map(({ authorization }) => authorization),
  }
  attacker.process.send!(order)
  const { payer } = await receive<AttackReady>(attacker.process, 'ready')
  return Object.assign(attacker, { payer })
}

/** Stops the attack after so many seconds; then the hosts break off the connections that it left hanging. */
async function endAttack(attacker: Attacker, hosts: Child, seconds: number): Promise<AttackReport> {
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  const report = receive<AttackReport>(attacker.process, 'report')
  attacker.process.send!(STOP)
  const answer = await report
  hosts.process.send!(CUT)
  return answer
}

async function receive<T extends { kind: string }>(child: ChildProcess, kind: T['kind']): Promise<T> {
  const ended = once(child, 'exit').then(([code]): never => {
    throw new Error(`the crowd's process ended with ${code} before it sent its ${kind}`)
  })
  const [message] = (await Promise.race([once(child, 'message'), ended])) as [T]
  if (message.kind !== kind) throw new Error(`${message.kind} came in place of ${kind}`)
  return message
}

/**
 * The receipts that one account can add to the chain in a day by its watchdog: the hostile accounts request no receipt
 * and no lease.
 */
function sumOfDailyLimits({ limits }: Account): number {
  const counted = Object.entries(limits).filter(
    ([name]) => name.endsWith('_per_day') && !/^(receipts|lease)/.test(name),
  )
  return counted.reduce((sum, [, limit]) => sum + limit, 0)
}

/**
 * The rows that a purchase leaves for ever are measured without hostile load and not assumed; a purchase whose buyer
 * gave up leaves them too, and so does each charged one of the hostile callers. All honest payers are known before, so
 * that only hostile ones that were charged are new.
 */
function compareTables(
  rows: { start: Rows; before: Rows; peak: Rows; after: Rows },
  counts: { empty: number; crowd: number; receipts: number; payers: number },
): TableReport[] {
  return [...rows.before].map(([name, before]) => {
    const perPurchase = Math.max(0, before - (rows.start.get(name) ?? 0)) / counts.empty
    const more = name === 'receipts' || name === 'payers' ? counts[name] : (SLACK[name] ?? 0)
    return {
      name,
      before,
      peak: rows.peak.get(name) ?? 0,
      after: rows.after.get(name) ?? 0,
      allowed: before + Math.ceil(perPurchase * counts.crowd) + more,
    }
  })
}

/** How many requests of each of these payers were settled; nothing for those that were not charged. */
async function countCharged(admin: pg.Client, payers: string[]): Promise<number[]> {
  const { rows } = await admin.query<{ charged: number }>(
    `select count(*)::float8 charged from payment_ledger where lower(payer) = any ($1) and outcome = 'settled' group by lower(payer)`,
    [payers],
  )
  return rows.map(({ charged }) => charged)
}

const sum = (numbers: number[]) => numbers.reduce((one, other) => one + other, 0)

/** From /proc: other systems than Linux have none. */
async function readPeakMemory(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'latin1').catch(() => '')
  return Number(status.match(/^VmHWM:\s+(\d+) kB/m)?.[1] ?? Number.NaN) * 1024
}

export async function chaosCrowd(lab: Lab): Promise<void> {
  const options: CrowdOptions = {
    buyers: 20,
    accounts: 50,
    victims: { empty: 2, crowd: 6 },
    seconds: lab.quick
      ? { warmUp: 4, empty: 8, crowd: 20, pruning: 30 }
      : { warmUp: 6, empty: 20, crowd: 45, pruning: 120 },
  }
  printHeading(
    'crowd',
    `${options.buyers} honest buyers, for ${options.seconds.empty} s alone and for ${options.seconds.crowd} s beside 500 paid ` +
      `requests for pages that never end, ${options.accounts} free accounts with receivers that hang, and 200 quotes a second`,
  )
  const report = await runCrowd(lab, options)
  const faults = printReport(report)
  if (faults.length > 0) throw new Error(`crowd: ${faults.join('; ')}`)
}
