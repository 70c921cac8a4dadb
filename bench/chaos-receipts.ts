// Receipts under faults: callers append through two processes while Postgres backends are killed at random, and a process
// now and then. Afterwards the whole chain is recomputed, and every receipt that a caller got must be in it, once.
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { openDatabase } from '../server/db/pool.ts'
import { auditChain } from '../server/receipts/audit.ts'
import type { Lab } from './lab.ts'
import { figure, printHeading, printNote } from './table.ts'

export interface AppenderOrder {
  databaseUrl: string
  seedHex: string
  callers: number
}

export interface AppenderReport {
  acknowledged: Acknowledged[]
  /** Calls that failed so far. */
  failed: number
}

export interface Acknowledged {
  serial: number
  receipt_hash: string
  subject: string
}

export interface ChaosReport {
  acknowledged: number
  /** Receipts in the chain. */
  receipts: number
  failedCalls: number
  killedBackends: number
  killedProcesses: number
  seconds: number
  /** Receipts that a caller got and that the chain lacks, or has in another form. */
  lost: number
  /** Serials that more than one caller got. */
  duplicates: number
  /** Subjects in the chain more than once: a batch was written twice. */
  repeated: number
  /** Findings of the audit of every link, hash, signature and tree node. */
  faults: string[]
}

export interface ChaosOptions {
  databaseUrl: string
  /** Acknowledged receipts after which it ends. */
  receipts: number
  processes: number
  /** Over all processes. */
  callers: number
  /** Longest time between two kills of a backend, in milliseconds. */
  killEveryMs: number
  /** How often a process is killed and replaced. */
  killedProcesses: number
}

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const started = performance.now()
  const harness = await openCrashHarness(options)
  const admin = new pg.Client({ connectionString: options.databaseUrl })
  await admin.connect()
  try {
    const killedBackends = await killUntil(admin, harness, options)
    await harness.stop()
    const seconds = (performance.now() - started) / 1000
    return {
      ...(await examine(admin, harness.acknowledged, options.databaseUrl)),
      ...harness.counts,
      killedBackends,
      seconds,
    }
  } finally {
    harness.end()
    await admin.end()
  }
}

type CrashHarness = Awaited<ReturnType<typeof openCrashHarness>>

async function openCrashHarness({ databaseUrl, processes, callers, killedProcesses }: ChaosOptions) {
  const order: AppenderOrder = {
    databaseUrl,
    seedHex: randomBytes(32).toString('hex'),
    callers: Math.ceil(callers / processes),
  }
  const acknowledged: Acknowledged[] = []
  const counts = { failedCalls: 0, killedProcesses: 0 }
  const failures = new Map<ChildProcess, number>()
  const children = await Promise.all(Array.from({ length: processes }, start))

  /** A process is killed only after it has reported that it runs, because the platform repeats a failed start. */
  async function start() {
    const child = fork(join(import.meta.dirname, 'chaos-appender.ts'))
    child.on('message', (report: AppenderReport) => {
      acknowledged.push(...report.acknowledged)
      failures.set(child, report.failed)
      counts.failedCalls = [...failures.values()].reduce((sum, n) => sum + n, 0)
    })
    child.send(order)
    await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(() => {
        throw new Error('a process did not start')
      }),
    ])
    return child
  }

  return {
    acknowledged,
    counts,
    /** Kills one process when it is due, and starts another in its place. */
    async replace(progress: number) {
      if (counts.killedProcesses >= killedProcesses * progress) return
      const place = counts.killedProcesses++ % processes
      children[place]!.kill('SIGKILL')
      children[place] = await start()
    },
    dead: () => children.some((child) => child.exitCode !== null),
    async stop() {
      const ends = children.map((child) => once(child, 'exit'))
      for (const child of children) child.send('stop')
      for (const [code, signal] of await Promise.all(ends))
        if (code !== 0) throw new Error(`a process ended with ${signal ?? code}`)
    },
    end() {
      for (const child of children) child.kill('SIGKILL')
    },
  }
}

async function killUntil(
  admin: pg.Client,
  harness: CrashHarness,
  { receipts, killEveryMs }: ChaosOptions,
): Promise<number> {
  let killed = 0
  while (harness.acknowledged.length < receipts) {
    if (harness.dead()) throw new Error('a process died by itself')
    const { rows } = await admin.query<{ killed: boolean }>(
      `select pg_terminate_backend(pid) killed from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() order by random() limit 1`,
    )
    killed += rows.length
    await harness.replace(harness.acknowledged.length / receipts)
    await pause(Math.random() * killEveryMs)
  }
  return killed
}

async function examine(admin: pg.Client, acknowledged: Acknowledged[], databaseUrl: string) {
  const { rows } = await admin.query<Acknowledged>(
    `select serial::float8, encode(receipt_hash, 'hex') receipt_hash, encode(subject_sha256, 'hex') subject from receipts`,
  )
  const chain = new Map(rows.map((row) => [row.serial, row]))
  const stands = ({ serial, receipt_hash, subject }: Acknowledged) => {
    const row = chain.get(serial)
    return row?.receipt_hash === receipt_hash && row.subject === subject
  }
  const db = await openDatabase(databaseUrl, { maxConnections: 1 })
  const audit = await auditChain(db, { signatures: 'every' })
  await db.end()
  return {
    acknowledged: acknowledged.length,
    receipts: rows.length,
    lost: acknowledged.filter((one) => !stands(one)).length,
    duplicates: acknowledged.length - new Set(acknowledged.map(({ serial }) => serial)).size,
    repeated: rows.length - new Set(rows.map(({ subject }) => subject)).size,
    faults: [...audit.faults].map(([name, text]) => `${name}: ${text}`),
  }
}

export async function chaosReceipts(lab: Lab): Promise<void> {
  const receipts = lab.quick ? 5000 : 50_000
  printHeading(
    'receipts',
    `64 callers through 2 processes, backends killed at random, until ${receipts} are acknowledged`,
  )
  const databaseUrl = await lab.makeDatabase()
  const options = { databaseUrl, receipts, processes: 2, callers: 64, killEveryMs: 100, killedProcesses: 3 }
  const report = await runChaos(options)
  const { lost, duplicates, repeated, faults, seconds, ...counts } = report
  printNote(
    `${Object.entries(counts)
      .map(([name, n]) => `${name} ${n}`)
      .join(', ')} in ${figure(seconds)} s`,
  )
  printNote(`lost ${lost}, duplicates ${duplicates}, repeated ${repeated}, faults: ${faults.join('; ') || 'none'}`)
  if (lost + duplicates + repeated + faults.length > 0) throw new Error('the chain did not hold')
}
