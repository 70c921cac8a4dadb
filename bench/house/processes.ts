// The processes of the run: web and worker processes, each at its place. When one is killed, another is started at its
// place, as platforms do.
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Child, findPort, openChild } from '../child.ts'
import type { Lab } from '../lab.ts'
import type { World } from './world.ts'

export type Kind = 'web' | 'worker'

export interface Place {
  name: string
  kind: Kind
  env: Record<string, string>
  /** The process at this place; null while one is being started. */
  child: Child | null
  /** Of a worker: by which the queue names it. */
  pool: string | null
  /** A fault is in progress there, and no other fault may begin. */
  isTaken: boolean
  /** The file from which the process reads the error of its clock. */
  clockFile: string
  starts: number
}

export interface Processes extends AsyncDisposable {
  places: Place[]
  /** Addresses of the webs. */
  origins: string[]
  /** Ends without a fault, and unclean ends after SIGTERM, in words. */
  misbehaved: string[]
  /** Lines of the log at the level of errors, by event. */
  errors: Record<string, number>
  /** Waits until each place has its process. */
  whole(): Promise<void>
  kill(place: Place): Promise<void>
  /** Asks it to end, and starts another one. */
  end(place: Place): Promise<void>
  /** Ends all, and starts none. */
  close(): Promise<void>
}

/** Milliseconds that a process has to end after SIGTERM. */
const DRAIN_MS = 35_000
const RESTART_MS = 500
const CLOCK = `--import=${join(import.meta.dirname, 'stepped-clock.ts')}`

/**
 * @param counts so many of each kind; the last of each goes through PgBouncer, where there is one
 * @param write gets every line that a process logs, with the name of its place
 */
export async function openProcesses(
  lab: Lab,
  world: World,
  counts: Record<Kind, number>,
  write: (line: Record<string, unknown>) => void,
): Promise<Processes> {
  const places: Place[] = []
  const misbehaved: string[] = []
  const errors: Record<string, number> = {}
  const pools = new Set<string>()
  let isClosing = false
  let hiring = Promise.resolve<unknown>(undefined)

  for (const kind of ['web', 'worker'] as const)
    for (let n = 1; n <= counts[kind]; n++) {
      const name = `${kind} ${n}`
      const clockFile = join(lab.folder, `clock-${kind}-${n}`)
      await writeFile(clockFile, '0')
      const pooled = world.pooler && n === counts[kind]
      const env = {
        ...world.env,
        ...(pooled && { DATABASE_URL: world.pooler!.url, DATABASE_DIRECT_URL: world.postgres.url }),
        ...(kind === 'web' && { PORT: String(await findPort()) }),
        NODE_OPTIONS: CLOCK,
        CLOCK_FILE: clockFile,
        WORKER_CONCURRENCY: '16',
      }
      places.push({ name, kind, env, child: null, pool: null, isTaken: false, clockFile, starts: 0 })
    }

  async function start(place: Place): Promise<void> {
    await writeFile(place.clockFile, '0')
    const isWeb = place.kind === 'web'
    const child = await openChild(lab, isWeb ? 'server/main.ts' : 'workers/main.ts', {
      event: isWeb ? 'listening' : 'worker_started',
      env: place.env,
      quiet: true,
      heard: (line) => note(place, line),
    })
    if (!isWeb) place.pool = await findPool()
    place.starts++
    place.child = child
    child.process.once('exit', (code, signal) => {
      // Code that ends a process removes it from its place first.
      if (place.child !== child || isClosing) return
      misbehaved.push(`${place.name} ended by itself with ${signal ?? code}`)
      place.child = null
      void refill(place)
    })
  }

  /** One after the other, so that a new pool is that of the worker that was started. */
  function refill(place: Place): Promise<void> {
    const filled = hiring.then(async () => {
      while (!isClosing && !place.child) {
        try {
          await start(place)
        } catch {
          // The database may not answer. Platforms try again, too.
          await pause(RESTART_MS)
        }
      }
    })
    hiring = filled
    return filled
  }

  async function findPool(): Promise<string | null> {
    const { rows } = await world.admin.query<{ pool_id: string }>('select pool_id from worker_beats order by booted_at')
    const own = rows.findLast(({ pool_id }) => !pools.has(pool_id))?.pool_id ?? null
    for (const { pool_id } of rows) pools.add(pool_id)
    return own
  }

  function note({ name }: Place, line: Record<string, unknown>) {
    write({ place: name, ...line })
    if (line.level !== 'error' && line.level !== 'fatal') return
    const error = line.err as { type?: string; message?: string } | undefined
    const label = `${String(line.event ?? line.msg)}${error?.message ? `: ${error.message.slice(0, 120)}` : ''}`
    errors[label] = (errors[label] ?? 0) + 1
  }

  async function terminate({ name, child }: { name: string; child: Child }) {
    if (child.process.exitCode !== null || child.process.signalCode !== null) return
    const gone = once(child.process, 'exit') as Promise<[number | null, string | null]>
    child.process.kill('SIGTERM')
    const late = new AbortController()
    const [code, signal] = await Promise.race([
      gone,
      pause(DRAIN_MS, undefined, { signal: late.signal }).then(() => [null, 'nothing in time'] as const),
    ])
    late.abort()
    if (code !== 0) misbehaved.push(`${name} answered SIGTERM with ${signal ?? code}`)
    if (signal === 'nothing in time') child.process.kill('SIGKILL')
  }

  /** Takes the process from its place. */
  function vacate(place: Place): Child | null {
    const { child } = place
    place.child = null
    return child
  }

  const whole = async () => {
    while (!places.every(({ child }) => child)) await pause(50)
  }
  for (const place of places) void refill(place)
  await whole()
  return {
    places,
    origins: places.filter(({ kind }) => kind === 'web').map(({ env }) => `http://127.0.0.1:${env.PORT}`),
    misbehaved,
    errors,
    whole,
    async kill(place) {
      const child = vacate(place)
      if (!child) return
      const gone = once(child.process, 'exit')
      child.process.kill('SIGKILL')
      await gone
      void refill(place)
    },
    async end(place) {
      const child = vacate(place)
      if (!child) return
      await terminate({ name: place.name, child })
      void refill(place)
    },
    async close() {
      isClosing = true
      await Promise.all(places.map(async ({ name, child }) => child && terminate({ name, child })))
    },
    async [Symbol.asyncDispose]() {
      isClosing = true
      for (const { child } of places) child?.process.kill('SIGKILL')
    },
  }
}
