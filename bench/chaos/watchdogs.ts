// Watchdogs under faults: clients send heartbeats while workers are killed, and while the API is down for longer than an
// interval and its grace. The heartbeats of some watchdogs stop, and some of them return. The alerts must match the events:
// each silence once, each return once, and nothing else.
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { Pool } from 'undici'
import type { BenchAccount } from '../accounts.ts'
import { countOf, openReceiver } from '../alert-receiver.ts'
import { findPort } from '../child.ts'
import { killWorkers, openCrashHarness, outageOf } from '../crash-harness.ts'
import type { Lab } from '../lab.ts'
import { openPack } from '../parts/watchdogs.ts'
import { figure, printHeading, printNote, quantile } from '../table.ts'

export interface WatchdogChaosOptions {
  watchdogs: number
  clients: number
  /** The heartbeats of one in so many watchdogs stop; every second one of these returns. */
  oneMortalOf: number
  seconds: number
  killEverySeconds: number
  /** The API is away once, for so long; 0: never. */
  outageSeconds: number
  /** Silences are made older than they are, so that an alert is due a second after. */
  hasten: boolean
}

export interface WatchdogChaosReport {
  heartbeats: number
  failedHeartbeats: number
  killedWorkers: number
  silences: number
  returns: number
  alerts: number
  delivered: number
  /** Silences or returns without an alert. */
  missing: string[]
  /** Outages with two alerts, or alerts without an outage: a heartbeat was answered in the time that the alert calls silent. */
  wrong: string[]
  /** Receivers that got other alerts than those in the outbox, or in another order. */
  misdelivered: string[]
  /** From the deadline to the alert in the outbox, in seconds. */
  delay: { p50: number; p99: number; max: number }
}

const INTERVAL_SECONDS = 20
const GRACE_SECONDS = 5
/** Milliseconds between two heartbeats of a living watchdog, if the machine is fast enough. */
const PACE_MS = { usual: 6000, hastened: 300 }

interface Dog {
  /** As in its name; identifies its client (see openPack). */
  number: number
  name: string
  /** When it falls silent, and when it comes back; milliseconds from the start. */
  silentAt: number
  backAt: number
  fellSilent: boolean
  cameBack: boolean
  /** The times at which answered heartbeats were accepted, by the clock of the database. */
  heard: string[]
}

export async function runWatchdogChaos(lab: Lab, options: WatchdogChaosOptions): Promise<WatchdogChaosReport> {
  await using opened = new AsyncDisposableStack()
  const receiver = opened.use(await openReceiver(lab))
  const DATABASE_URL = await lab.makeDatabase()
  const env = { DATABASE_URL, ...receiver.env, LOG_LEVEL: 'info', PORT: String(await findPort()) }
  const harness = opened.use(await openCrashHarness(lab, env))
  // A pool, because watchdogs are moved and alerts are read at the same time.
  const admin = new pg.Pool({ connectionString: DATABASE_URL, max: 2 })
  admin.on('error', () => {})
  opened.defer(() => admin.end())
  const dogs = makeDogs(options)
  const terms = { url: receiver.url, interval: INTERVAL_SECONDS, grace: GRACE_SECONDS }
  const accounts = await openPack(admin, 'chaos', options.watchdogs, terms)
  const pack = {
    dogs,
    admin,
    reported: new Set<string>(),
    seen: receiver.seen,
    accounts,
    origin: harness.origin,
    ...options,
  }
  const over = new AbortController()
  const started = performance.now()
  const beating = Promise.all([beatAll(pack, started, over.signal), followAlerts(pack, over.signal)])
  const killing = killWorkers(harness, options, started)
  const outage = options.outageSeconds > 0 ? outageOf(harness, options, started) : undefined
  await Promise.all([killing, outage])
  await settled(pack)
  over.abort()
  const [counts] = await beating
  const report = await examine(pack)
  return { ...counts, killedWorkers: await killing, ...report }
}

/** Heartbeats stop and return in the first two thirds of the time, so that every alert can arrive within the time. */
function makeDogs({ watchdogs, oneMortalOf, seconds, hasten }: WatchdogChaosOptions): Dog[] {
  const span = seconds * 1000
  const silence = (hasten ? 3 : INTERVAL_SECONDS + GRACE_SECONDS + 5) * 1000
  return Array.from({ length: watchdogs }, (_, n) => {
    const mortal = n % oneMortalOf === 0
    const silentAt = mortal ? (0.1 + 0.35 * Math.random()) * span : Number.POSITIVE_INFINITY
    const returns = mortal && (n / oneMortalOf) % 2 === 0
    return {
      number: n,
      name: `w${n}`,
      silentAt,
      backAt: returns ? silentAt + silence : Number.POSITIVE_INFINITY,
      fellSilent: false,
      cameBack: false,
      heard: [],
    }
  })
}

interface Pack extends WatchdogChaosOptions {
  dogs: Dog[]
  admin: pg.Pool
  /** Watchdogs with an outage alert: a silence ends when its time has come, but not before its alert. */
  reported: Set<string>
  /** Ids of alerts that the receiver got for each, in order. */
  seen: ReadonlyMap<string, string[]>
  accounts: BenchAccount[]
  origin: string
}

/** Each client sends heartbeats for its own watchdogs in turn. */
async function beatAll(pack: Pack, started: number, over: AbortSignal) {
  const pool = new Pool(pack.origin, { connections: pack.clients, pipelining: 1 })
  const counts = { heartbeats: 0, failedHeartbeats: 0 }
  const pace = pack.hasten ? PACE_MS.hastened : PACE_MS.usual
  const client = async (own: Dog[]) => {
    while (!over.aborted) {
      const round = performance.now()
      for (const dog of own) await turnOf(pack, dog, performance.now() - started, pool, counts)
      await pause(Math.max(pace - (performance.now() - round), 10), undefined, { signal: over }).catch(() => {})
    }
  }
  const shares = Array.from({ length: pack.clients }, (_, k) => pack.dogs.filter((_, n) => n % pack.clients === k))
  await Promise.all(shares.map(client))
  await pool.close()
  return counts
}

async function turnOf(
  pack: Pack,
  dog: Dog,
  at: number,
  pool: Pool,
  counts: { heartbeats: number; failedHeartbeats: number },
) {
  const back = dog.cameBack || (at >= dog.backAt && pack.reported.has(dog.name))
  if (at >= dog.silentAt && !back) {
    if (!dog.fellSilent && pack.hasten) await hasten(pack, dog)
    dog.fellSilent = true
    return
  }
  try {
    const { headers } = pack.accounts[dog.number % pack.accounts.length]!
    const { statusCode, body } = await pool.request({ path: `/v1/heartbeat/${dog.name}`, method: 'POST', headers })
    const text = await body.text()
    if (statusCode !== 200) throw new Error(`${statusCode}`)
    dog.heard.push((JSON.parse(text) as { server_now: string }).server_now)
    counts.heartbeats++
    if (back) dog.cameBack = true
  } catch {
    counts.failedHeartbeats++
  }
}

function hasten({ admin }: Pack, { name }: Dog) {
  return admin.query(
    `update watchdogs set started_at = started_at - $2 * interval '1 second', check_at = check_at - $2 * interval '1 second'
     where name = $1`,
    [name, INTERVAL_SECONDS + GRACE_SECONDS - 1],
  )
}

interface Alert {
  id: string
  name: string
  type: string
  last: string | null
  since: string
  delay: number
}

async function findAlerts(admin: pg.Pool): Promise<Alert[]> {
  const { rows } = await admin.query<Alert>(
    `select id, name, type, data ->> 'last_heartbeat_at' last, data ->> 'down_since' since,
       extract(epoch from created_at - (data ->> 'down_since')::timestamptz)::float8 delay
     from (select a.id, w.name, a.type, a.created_at, a.event_seq, a.body::json -> 'data' data
           from alerts a join watchdogs w on w.webhook_id = a.webhook_id) alert
     order by event_seq`,
  )
  return rows
}

async function followAlerts({ admin, reported }: Pack, over: AbortSignal) {
  while (!over.aborted) {
    const { rows } = await admin.query<{ name: string }>(
      `select distinct w.name from alerts a join watchdogs w on w.webhook_id = a.webhook_id`,
    )
    for (const { name } of rows) reported.add(name)
    await pause(500, undefined, { signal: over }).catch(() => {})
  }
}

const expectedOf = ({ fellSilent, cameBack }: Dog) => (fellSilent ? (cameBack ? 2 : 1) : 0)

/** Waits until every expected alert was raised and delivered, for two minutes at most. */
async function settled({ dogs, admin, seen }: Pack) {
  const deadline = performance.now() + 120_000
  while (performance.now() < deadline) {
    const alerts = await findAlerts(admin)
    const byName = Map.groupBy(alerts, ({ name }) => name)
    const isRaised = dogs.every((dog) => (byName.get(dog.name)?.length ?? 0) >= expectedOf(dog))
    const back = dogs.every((dog) => dog.backAt === Number.POSITIVE_INFINITY || dog.cameBack)
    if (isRaised && back && countOf(seen) >= alerts.length) return
    await pause(500)
  }
}

async function examine({ dogs, admin, seen }: Pack) {
  const alerts = await findAlerts(admin)
  const byName = Map.groupBy(alerts, ({ name }) => name)
  const faults = { missing: [] as string[], wrong: [] as string[], misdelivered: [] as string[] }
  for (const dog of dogs) {
    const raised = byName.get(dog.name) ?? []
    const types = raised.map(({ type }) => type)
    const isUnreported = dog.fellSilent && !dog.cameBack && types.at(-1) !== 'watchdog.missed'
    if (types.length < expectedOf(dog) || isUnreported) faults.missing.push(`${dog.name}: ${types}`)
    const alternate = types.every((type, n) => type === (n % 2 ? 'watchdog.recovered' : 'watchdog.missed'))
    if (!alternate || raised.some((alert) => isFalse(alert, dog))) faults.wrong.push(`${dog.name}: ${types}`)
    const got = seen.get(dog.name) ?? []
    if (got.some((id, n) => id !== raised[n]?.id)) faults.misdelivered.push(dog.name)
  }
  const delays = alerts.filter(({ type }) => type === 'watchdog.missed').map(({ delay }) => delay)
  delays.sort((a, b) => a - b)
  return {
    silences: dogs.filter(({ fellSilent }) => fellSilent).length,
    returns: dogs.filter(({ cameBack }) => cameBack).length,
    alerts: alerts.length,
    delivered: countOf(seen),
    ...faults,
    delay: { p50: quantile(delays, 0.5), p99: quantile(delays, 0.99), max: quantile(delays, 1) },
  }
}

/** Times in one text format sort by time. */
function isFalse({ type, last, since }: Alert, { heard }: Dog): boolean {
  return type === 'watchdog.missed' && heard.some((at) => at > (last ?? '') && at <= since)
}

export async function chaosWatchdogs(lab: Lab): Promise<void> {
  const options: WatchdogChaosOptions = {
    watchdogs: lab.quick ? 2000 : 10_000,
    clients: 16,
    oneMortalOf: 10,
    seconds: lab.quick ? 60 : 120,
    killEverySeconds: 3,
    outageSeconds: INTERVAL_SECONDS + GRACE_SECONDS + 3,
    hasten: false,
  }
  printHeading(
    'watchdogs',
    `${options.watchdogs} with ${options.clients} clients for ${options.seconds} s, two workers of which one is killed every ` +
      `${options.killEverySeconds} s, the API away for ${options.outageSeconds} s`,
  )
  const report = await runWatchdogChaos(lab, options)
  const { missing, wrong, misdelivered, delay, ...counts } = report
  printNote(
    Object.entries(counts)
      .map(([name, n]) => `${name} ${n}`)
      .join(', '),
  )
  printNote(
    `from deadline to alert: p50 ${figure(delay.p50)} s, p99 ${figure(delay.p99)} s, longest ${figure(delay.max)} s`,
  )
  printNote(`missing ${missing.length}, wrong ${wrong.length}, misdelivered ${misdelivered.length}`)
  const faults = [...missing, ...wrong, ...misdelivered]
  if (faults.length > 0) throw new Error(`watchdogs: ${faults.slice(0, 10).join('; ')}`)
}
