// Memory, open files and connections of processes, before the faults and after all work has ended. Read from /proc, so
// other systems than Linux get the connections only.
import { readdir, readFile } from 'node:fs/promises'
import type { Processes } from './processes.ts'
import type { World } from './world.ts'

export interface Held {
  /** Of one process. */
  megabytes?: number
  files?: number
  connections: number
}
export type Holdings = Record<string, Held>

/** Of a process that has worked: its caches are filled and its code is compiled, so it holds more than one that has just started. */
const MORE = { megabytes: 160, files: 48 }
/** By docs/operations.md, with the ones that are made anew while old ones end. */
const MAX_CONNECTIONS = 24

export async function measureHoldings(world: World, { places }: Processes): Promise<Holdings> {
  const { rows } = await world.admin.query<{ name: string; n: number }>(
    `select application_name name, count(*)::int n from pg_stat_activity where datname = current_database() group by 1`,
  )
  const held = places.map(async ({ name, child }): Promise<[string, Held]> => {
    const pid = child?.pid ?? 0
    // The sessions of the queue, of locks and of listeners do not say whose they are; they are counted together below.
    const connections = rows.find((row) => row.name.endsWith(`:${pid}`))?.n ?? 0
    return [name, { megabytes: await residentMegabytes(pid), files: await countFiles(pid), connections }]
  })
  const shared = rows.filter(({ name }) => name.startsWith('countersign')).reduce((sum, { n }) => sum + n, 0)
  return {
    ...Object.fromEntries(await Promise.all(held)),
    'queue, locks, listeners': { connections: shared },
  }
}

/** What is held after the run and was not held before, in words. */
export function findLeaks(before: Holdings, after: Holdings): string[] {
  return Object.entries(after).flatMap(([name, now]) => {
    const then = before[name]
    if (!then) return []
    const excess = (['megabytes', 'files'] as const).filter((what) => (now[what] ?? 0) > (then[what] ?? 0) + MORE[what])
    return [
      ...excess.map((what) => `${name} holds ${now[what]} ${what}, and ${then[what]} before`),
      ...(now.connections > Math.max(then.connections, MAX_CONNECTIONS)
        ? [`${name}: ${now.connections} connections to Postgres, and ${then.connections} before`]
        : []),
    ]
  })
}

/** Sessions of the service, once no process of it is left. PgBouncer keeps its own ones. */
export async function findOrphans({ admin }: World): Promise<string[]> {
  const { rows } = await admin.query<{ name: string; n: number }>(
    `select application_name name, count(*)::int n from pg_stat_activity
     where datname = current_database() and application_name <> 'bench' and client_port is not null
       and state <> 'idle' group by 1`,
  )
  return rows.map(({ name, n }) => `${n} sessions of ${name} are at work without a process`)
}

async function residentMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Math.round(Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) / 1024)
}

async function countFiles(pid: number): Promise<number> {
  return (await readdir(`/proc/${pid}/fd`).catch(() => [])).length
}
