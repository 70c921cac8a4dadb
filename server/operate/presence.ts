// The presence of processes: each writes every few seconds that it lives, and with which settings, so that an operator sees what
// runs and not what a shell has. Settings are public; secrets are never written.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { z } from 'zod'
import type { Core } from '../context.ts'
import { every } from '../db/interval.ts'
import { type Database, nothing, sql } from '../db/pool.ts'

const BEAT_MS = 5000
/** Seconds after its last sign in which a process counts as alive. */
const ALIVE_SECONDS = 20
/** Seconds after which the row of a process that died is deleted. */
const KEEP_SECONDS = 600

/** `all`: API and worker in one process, as `npm start` runs them. */
export const processKinds = ['web', 'worker', 'all'] as const
export type ProcessKind = (typeof processKinds)[number]

/**
 * Writes the presence of this process until disposed; then deletes it.
 * @param settings public settings by the name of their variable
 */
export async function openPresence(
  { db, log }: Pick<Core, 'db' | 'log'>,
  kind: ProcessKind,
  settings: Readonly<Record<string, string>>,
): Promise<AsyncDisposable> {
  const id = randomUUID()
  const beat = () => writePresence(db, { id, kind, settings })
  const onError = (error: unknown) => log.warn({ event: 'presence_failed', err: error })
  await beat().catch(onError)
  const beating = every(BEAT_MS, beat, onError)
  return {
    async [Symbol.asyncDispose]() {
      await beating[Symbol.asyncDispose]()
      await db.query(sql.type(nothing)`delete from processes where id = ${id}`).catch(onError)
    },
  }
}

interface Presence {
  id: string
  kind: ProcessKind
  settings: Readonly<Record<string, string>>
}

async function writePresence(db: Database, { id, kind, settings }: Presence) {
  await db.query(sql.type(nothing)`
    with swept as (delete from processes where beat_at < now() - ${KEEP_SECONDS} * interval '1 second')
    insert into processes (id, kind, host, pid, settings)
    values (${id}, ${kind}, ${hostname()}, ${process.pid}, ${JSON.stringify(settings)}::json)
    on conflict (id) do update set beat_at = now()`)
}

const processRow = z.object({
  id: z.string(),
  kind: z.enum(processKinds),
  host: z.string(),
  pid: z.number(),
  started_at: z.date(),
  /** Seconds since its last sign. */
  silent_seconds: z.number(),
  alive: z.boolean(),
  settings: z.record(z.string(), z.string()),
})
export type RunningProcess = z.output<typeof processRow>

/** The processes of the last ten minutes, dead ones included, in order of their start. */
export function listProcesses(db: Database): Promise<readonly RunningProcess[]> {
  return db.any(sql.type(processRow)`
    select id, kind, host, pid, started_at, settings,
           round(extract(epoch from now() - beat_at))::float8 silent_seconds,
           beat_at > now() - ${ALIVE_SECONDS} * interval '1 second' alive
    from processes order by started_at, id`)
}

/** The settings that are not the same in all living processes, with the value of each process. */
export function differingSettings(processes: readonly RunningProcess[]) {
  const living = processes.filter(({ alive }) => alive)
  const names = new Set(living.flatMap(({ settings }) => Object.keys(settings)))
  return [...names].flatMap((name) => {
    const values = living.map(({ id, kind, settings }) => ({ id, kind, value: settings[name] ?? '' }))
    return new Set(values.map(({ value }) => value)).size > 1 ? [{ name, values }] : []
  })
}
