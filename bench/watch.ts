// Where the time of a measurement goes: which process used which part of a core, and what Postgres waited for. CPU times
// are read from /proc, so other systems than Linux get the waits only.
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import { openClient } from './lab.ts'

export interface Watch extends AsyncDisposable {
  /** Runs `work` and adds what happened meanwhile to what was seen before. */
  during<T>(work: () => Promise<T>): Promise<T>
  /** CPU of one watched process over all windows, in milliseconds; NaN where it cannot be read. */
  cpuMs(name: string): number
  /** One sentence. */
  heldBack(): string
  /** CPU of all windows in milliseconds: by process ("name loop", "name threads", "Postgres"), of the machine, and their length. */
  sums(): { used: ReadonlyMap<string, number>; busyMs: number; elapsedMs: number }
}

/** @param processes by the name they are reported under; Postgres is found by itself */
export async function openWatch(databaseUrl: string, processes: Record<string, number>): Promise<Watch> {
  const opened = new AsyncDisposableStack()
  const client = await openClient(databaseUrl, opened)
  const used = new Map<string, number>()
  const waits = new Map<string, number>()
  let elapsedMs = 0
  let busyMs = 0
  return {
    async during(work) {
      const before = readThreads(processes, await backends(client))
      const busyBefore = machineBusyMs()
      const started = performance.now()
      const sampling = new AbortController()
      const samples = sampleWaits(client, waits, sampling.signal)
      try {
        return await work()
      } finally {
        elapsedMs += performance.now() - started
        busyMs += machineBusyMs() - busyBefore
        sampling.abort()
        await samples
        for (const [id, { group, ms }] of readThreads(processes, await backends(client)))
          used.set(group, (used.get(group) ?? 0) + ms - (before.get(id)?.ms ?? 0))
      }
    },
    cpuMs: (name) => (used.get(`${name} loop`) ?? Number.NaN) + (used.get(`${name} threads`) ?? 0),
    heldBack: () => verdict(used, waits, elapsedMs, busyMs),
    sums: () => ({ used: new Map(used), busyMs, elapsedMs }),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

function verdict(used: Map<string, number>, waits: Map<string, number>, elapsedMs: number, busyMs: number): string {
  const cores = availableParallelism()
  const shares = [...used].map(([name, ms]) => ({ name, share: ms / elapsedMs })).filter(({ share }) => share >= 0.03)
  shares.sort((a, b) => b.share - a.share)
  const ours = shares.reduce((sum, { share }) => sum + share, 0)
  const split = shares.map(({ name, share }) => `${name} ${share.toFixed(2)}`).join(', ')
  const loop = shares.find(({ name, share }) => name.endsWith(' loop') && share > 0.85)
  const busy = busyMs / elapsedMs
  const cause =
    busy > 0.92 * cores
      ? `the ${cores} cores (${busy.toFixed(2)} busy, ${Math.max(0, busy - ours).toFixed(2)} of it others')`
      : loop
        ? `one event loop (${loop.name})`
        : `waiting (${busy.toFixed(2)} of ${cores} cores busy)`
  return `held back by: ${cause}; cores used: ${split || 'not known'}; ${describeWaits(waits)}`
}

function describeWaits(waits: Map<string, number>) {
  const total = [...waits.values()].reduce((sum, n) => sum + n, 0)
  const most = [...waits].toSorted((a, b) => b[1] - a[1]).slice(0, 4)
  return `Postgres seen in: ${most.map(([name, n]) => `${name} ${Math.round((100 * n) / total)} %`).join(', ') || 'nothing'}`
}

/** Backends that are at work and what they wait for, many times a second; one that waits for its client is idle. */
async function sampleWaits(client: pg.Client, waits: Map<string, number>, signal: AbortSignal) {
  while (!signal.aborted) {
    const { rows } = await client.query<{ wait: string }>({
      name: 'waits',
      text: `select coalesce(wait_event_type || ':' || wait_event, 'running') wait from pg_stat_activity
             where backend_type = 'client backend' and pid <> pg_backend_pid()
               and (state = 'active' or state = 'idle in transaction')`,
    })
    for (const { wait } of rows) waits.set(wait, (waits.get(wait) ?? 0) + 1)
    await pause(SAMPLE_MS)
  }
}

async function backends(client: pg.Client): Promise<number[]> {
  const { rows } = await client.query<{ pid: number }>('select pid from pg_stat_activity where pid <> pg_backend_pid()')
  return rows.map(({ pid }) => pid)
}

/** CPU of every thread so far, by thread id. One that has ended is not in it: its last moments are lost. */
function readThreads(processes: Record<string, number>, postgres: number[]) {
  const threads = new Map<number, { group: string; ms: number }>()
  const groups = [...Object.entries(processes), ...postgres.map((pid) => ['', pid] as const)]
  for (const [name, pid] of groups) {
    for (const id of threadsOf(pid)) {
      const group = name === '' ? 'Postgres' : id === pid ? `${name} loop` : `${name} threads`
      threads.set(id, { group, ms: readThread(`/proc/${pid}/task/${id}/stat`) })
    }
  }
  return threads
}

/** The first thread of a process has its id. None where there is no /proc, or when the process has ended. */
function threadsOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number)
  } catch {
    return []
  }
}

function readThread(path: string): number {
  try {
    // The name in parentheses may hold blanks; user and system time are the 12th and 13th field after it.
    const fields = readFileSync(path, 'latin1').split(') ').at(-1)!.split(' ')
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS
  } catch {
    return 0
  }
}

/** The largest memory that a process has held so far (VmHWM), in MB; NaN where the system does not say it. */
export function peakMb(pid: number): number {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) / 1024
  } catch {
    return Number.NaN
  }
}

function machineBusyMs(): number {
  return cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0)
}

const SAMPLE_MS = 15
/** Linux counts in hundredths of a second, on every kernel configuration. */
const TICK_MS = 10
