// The presence of processes: each process writes every few seconds that it is alive, its settings and its counts. So an
// operator sees the settings of the running processes and not those of a shell. Secrets are never written.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { z } from 'zod'
import { every } from '../db/interval.ts'
import { type Database, sql, transact } from '../db/pool.ts'
import type { Logger, Metrics } from '../telemetry.ts'
import {
  ALIVE_SECONDS,
  endProcesses,
  type Figures,
  packFigures,
  processLabel,
  subtractFigures,
  takeFigures,
} from './figures.ts'
import { closeMinute } from './minutes.ts'

const BEAT_MS = 5000
/** Seconds after which the row of a process that died is deleted. */
const KEEP_SECONDS = 600

/** `all`: API and worker in one process, as `npm start` runs them. */
export const processKinds = ['web', 'worker', 'all'] as const
export type ProcessKind = (typeof processKinds)[number]

export interface Presence extends AsyncDisposable {
  /** The id of its row in `processes`. It changes if the row was deleted while this process was silent. */
  id: string
  /** The value of the label `process` in this process's figures. */
  label: string
  /** Publishes what this process has counted until now. Rejects when the database cannot be written. */
  publish(): Promise<void>
  /**
   * Calls `obey` when an operator asks this process to drain (true) or to take jobs again (false), within a beat; once at a time.
   * If it rejects, it is called again at the next beat. Disposing waits for the call that is under way.
   */
  follow(obey: (drains: boolean) => Promise<void>): AsyncDisposable
}

export interface PresenceOptions {
  /** Whether this process could serve; called before each beat of a process that serves callers. */
  probe?: () => Promise<boolean>
}

/** The parts of the process from its context. */
interface Tools {
  db: Database
  log: Logger
  metrics: Metrics
}

/**
 * Writes the presence of this process until disposed; then deletes it, and keeps its counts. Open it before the parts that
 * count, so that it is closed after them.
 * @param settings public settings by the name of their variable
 */
export async function openPresence(
  tools: Tools,
  kind: ProcessKind,
  settings: Readonly<Record<string, string>>,
  { probe }: PresenceOptions = {},
): Promise<Presence> {
  const { db, log, metrics } = tools
  const sign = openSign(tools, kind, settings)
  const onError = (error: unknown) => log.warn({ event: 'presence_failed', err: error })
  let minute = await sign.write().catch(onError)
  let obey: ((drains: boolean) => Promise<void>) | undefined
  let obeying: Promise<void> | undefined
  const follow = () => {
    const wish = sign.drainAsked
    if (!obey || obeying || wish === sign.drained) return
    obeying = obey(wish)
      .then(() => {
        sign.drained = wish
      })
      .finally(() => {
        obeying = undefined
      })
      // So that an operator sees it at once, and not only with the next beat.
      .then(() => sign.write())
      .then(() => {}, onError)
  }
  const write = async () => {
    const now = await sign.write()
    follow()
    return now
  }
  const beating = every(
    BEAT_MS,
    async () => {
      if (probe) metrics.readinessProbes.inc({ outcome: (await probe()) ? 'ready' : 'not_ready' })
      const now = await write()
      // A process does not write the minute in which it started; processes that ran before it do.
      if (minute !== undefined && now !== minute) await transact(db, (tx) => closeMinute(tx, { dead: SWEPT }))
      minute = now
    },
    onError,
  )
  return {
    get id() {
      return sign.id
    },
    get label() {
      return processLabel(kind, sign.id)
    },
    publish: async () => void (await write()),
    follow(given) {
      obey = given
      return {
        async [Symbol.asyncDispose]() {
          obey = undefined
          await obeying
        },
      }
    },
    async [Symbol.asyncDispose]() {
      await beating[Symbol.asyncDispose]()
      await sign.write().catch(onError)
      await transact(db, (tx) => endProcesses(tx, sql.fragment`id = ${sign.id}`)).catch(onError)
    },
  }
}

/** Processes that died. */
const SWEPT = sql.fragment`beat_at < now() - ${KEEP_SECONDS} * interval '1 second'`

/** The row of a process. Writes follow each other, so that its counters never go back. */
function openSign({ db, metrics }: Tools, kind: ProcessKind, settings: Readonly<Record<string, string>>) {
  let id: string = randomUUID()
  let isNew = true
  /** Counted under an earlier id. */
  let before: Figures = []
  let written: Figures = []
  let last: Promise<unknown> = Promise.resolve()
  /** What an operator has asked for, by the last write, and what this process does. */
  let drainAsked = false
  let drained = false

  /** Answers the minute of the database's clock. */
  async function writeNext(): Promise<number> {
    const taken = await takeFigures(metrics)
    const minute = await store(taken)
    if (minute !== undefined) return minute
    // The row was deleted while this process was silent, with its published counts, so this process continues under a new
    // id.
    id = randomUUID()
    isNew = true
    before = written
    const again = await store(taken)
    if (again === undefined) throw new Error('a new process has no row')
    return again
  }

  async function store(taken: Figures): Promise<number | undefined> {
    const figures = before.length === 0 ? taken : await subtractFigures(taken, before)
    const packed = sql.binary(await packFigures(figures))
    const statement = isNew
      ? sql.fragment`
          insert into processes (id, kind, host, pid, settings, figures, drain_asked_at, drained_at)
          values (${id}, ${kind}, ${hostname()}, ${process.pid}, ${JSON.stringify(settings)}::json, ${packed},
            case when ${drainAsked} then now() end, case when ${drained} then now() end)
          on conflict (id) do update set beat_at = now(), figures = excluded.figures`
      : sql.fragment`
          update processes set beat_at = now(), figures = ${packed},
            drained_at = case when ${drained} then coalesce(drained_at, now()) end
          where id = ${id}`
    const row = await db.maybeOne(sql.type(z.object({ minute: z.number(), drain_asked: z.boolean() }))`
      ${statement} returning floor(extract(epoch from now()) / 60)::float8 as minute, drain_asked_at is not null as drain_asked`)
    if (row === null) return undefined
    isNew = false
    written = taken
    drainAsked = row.drain_asked
    return row.minute
  }

  return {
    get id() {
      return id
    },
    get drainAsked() {
      return drainAsked
    },
    get drained() {
      return drained
    },
    set drained(now: boolean) {
      drained = now
    },
    write(): Promise<number> {
      const next = last.then(writeNext)
      last = next.catch(() => {})
      return next
    },
  }
}

const processRow = z.object({
  id: z.string(),
  kind: z.enum(processKinds),
  host: z.string(),
  pid: z.number(),
  started_at: z.date(),
  /** Seconds since its last beat. */
  silent_seconds: z.number(),
  alive: z.boolean(),
  /** For a process that takes jobs: null while it takes them; else the progress of the operator's request. */
  drain: z.enum(['draining', 'drained', 'resuming']).nullable(),
  settings: z.record(z.string(), z.string()),
})
export type RunningProcess = z.output<typeof processRow>

/** The processes of the last ten minutes, dead ones included, in order of their start. */
export function listProcesses(db: Database): Promise<readonly RunningProcess[]> {
  return db.any(sql.type(processRow)`
    select id, kind, host, pid, started_at, settings,
           round(extract(epoch from now() - beat_at))::float8 silent_seconds,
           beat_at > now() - ${ALIVE_SECONDS} * interval '1 second' alive,
           case when kind = 'web' then null
                when drain_asked_at is not null then case when drained_at is null then 'draining' else 'drained' end
                when drained_at is not null then 'resuming' end as drain
    from processes where not ${SWEPT} order by started_at, id`)
}

/** In one word or two, for lists. */
export function processState({ alive, drain, silent_seconds }: Omit<RunningProcess, 'settings'>): string {
  return alive ? (drain ?? 'alive') : `silent for ${silent_seconds} s`
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
