// The faults of the run, chosen by the seed: each kind about equally often, one after the other; longer faults continue in
// parallel.
import { writeFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { type Random, seeded } from '../eval/random.ts'
import type { Kind, Place, Processes } from './processes.ts'
import type { World } from './world.ts'

/** Milliseconds for which a process is frozen: until its beat is too old and other processes have its work. */
const FROZEN_MS = 20_000
const OUTAGE_MS = 4_000
const FULL_MS = 6_000
const STEPPED_MS = 15_000
/** Largest step of a clock, in either direction. The authorization of a payment is valid for five minutes. */
const STEP_SECONDS = 90
const CRASH_POLL_MS = 200
/** How often a process is stopped and examined, to freeze it in a transaction on the chain. */
const AIMS = 60

export interface Incident {
  at: number
  name: string
  detail: string
}

interface Scene {
  world: World
  processes: Processes
  random: Random
  /** Each resolves when its fault is repaired. */
  healing: Promise<void>[]
}

/**
 * Causes the fault, and answers a note for the table; null if it is not possible now, because no process is free for
 * it.
 */
type Fault = (scene: Scene) => Promise<string | null>

const FAULTS = {
  'worker killed': (scene) =>
    strike(scene, 'worker', async (place) => {
      place.child?.process.kill('SIGSTOP')
      await noteHeld(scene, place, 'killed')
      await scene.processes.kill(place)
    }),
  'web killed': (scene) => strike(scene, 'web', (place) => scene.processes.kill(place)),
  'worker told to end': (scene) => strike(scene, 'worker', (place) => scene.processes.end(place)),
  'web told to end': (scene) => strike(scene, 'web', (place) => scene.processes.end(place)),
  'worker frozen': (scene) => freeze(scene, 'worker'),
  'web frozen': (scene) => freeze(scene, 'web'),
  'Postgres restarted': async ({ world: { postgres } }) => {
    await postgres.stop()
    await pause(OUTAGE_MS / 2)
    await postgres.start()
    return ''
  },
  'Postgres crashed': async ({ world: { admin } }) => {
    const { rows } = await admin.query<{ pid: number }>(
      `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() limit 1`,
    )
    if (!rows[0]) return null
    // The server ends every session and recovers, as after kill -9 of any of its processes.
    process.kill(rows[0].pid, 'SIGKILL')
    return ''
  },
  'Postgres frozen': async ({ world: { postgres } }) => {
    await postgres.freeze()
    await pause(OUTAGE_MS)
    await postgres.thaw()
    return ''
  },
  'sessions ended': async ({ world: { admin } }) => {
    await admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
    )
    return ''
  },
  'connections cut': async ({ world: { postgres } }) => {
    postgres.drop()
    return ''
  },
  'Redis lost': async ({ world: { redis }, healing }) => {
    if (!redis) return null
    await redis.kill()
    healing.push(pause(OUTAGE_MS).then(redis.start))
    return ''
  },
  'PgBouncer replaced': async ({ world: { pooler } }) => {
    if (!pooler) return null
    await pooler.replace()
    return ''
  },
  'disk full': async (scene) => {
    const { disk, postgres } = scene.world
    if (!disk) return null
    await disk.fill()
    await pause(FULL_MS)
    await disk.free()
    if (await answers(scene)) return ''
    await postgres.stop()
    await postgres.start()
    return 'Postgres had ended, and was started'
  },
  'clock stepped': (scene) => {
    const seconds = (scene.random(2) === 0 ? -1 : 1) * (1 + scene.random(STEP_SECONDS))
    const kind = scene.random(2) === 0 ? 'web' : 'worker'
    return lasting(scene, kind, STEPPED_MS, async (place) => {
      await step(place, seconds * 1000)
      return async () => step(place, 0)
    })
  },
  'node of the chain away': async ({ world: { rpc }, healing }) => {
    rpc.shut = true
    healing.push(
      pause(OUTAGE_MS).then(() => {
        rpc.shut = false
      }),
    )
    return ''
  },
} satisfies Record<string, Fault>
export type FaultName = keyof typeof FAULTS
export const FAULT_NAMES = Object.keys(FAULTS) as FaultName[]

type Write = (line: Record<string, unknown>) => void

export interface FaultOptions {
  seed: number
  seconds: number
  everySeconds: number
  /** Default: all. */
  kinds?: readonly FaultName[]
  /** Gets each fault as it begins and when it is done. */
  write: Write
}

/** Resolves when every fault is repaired. */
export async function breakHouse(
  world: World,
  processes: Processes,
  { seed, seconds, everySeconds, kinds = FAULT_NAMES, write }: FaultOptions,
): Promise<Incident[]> {
  const scene: Scene = { world, processes, random: seeded(seed), healing: [] }
  const incidents: Incident[] = []
  const started = performance.now()
  const possible = kinds.filter((name) => isPossible(world, name))
  let deck: FaultName[] = []
  for (let n = 0; (n + 1) * everySeconds < seconds; n++) {
    await pause(Math.max(0, started + (n + 1) * everySeconds * 1000 - performance.now()))
    if (deck.length === 0) deck = shuffle(scene.random, possible)
    const name = deck.pop()!
    const at = (performance.now() - started) / 1000
    write({ fault: name, at, begins: true })
    const done = await FAULTS[name](scene).catch((error: unknown) => unreachable(error, write))
    // Its turn comes again when the place is free.
    if (done === null) deck.unshift(name)
    else incidents.push({ at, name, detail: done })
    write({ fault: name, at, done })
  }
  await Promise.all(scene.healing)
  await processes.whole()
  return incidents
}

function isPossible({ redis, pooler, disk }: World, name: FaultName): boolean {
  const needed: Partial<Record<FaultName, unknown>> = {
    'Redis lost': redis,
    'PgBouncer replaced': pooler,
    'disk full': disk,
  }
  return !(name in needed) || Boolean(needed[name])
}

/** A fault that asks the database cannot be done while another one has it. */
function unreachable(error: unknown, write: Write): null {
  write({ unreachable: String(error) })
  return null
}

function shuffle(random: Random, kinds: readonly FaultName[]): FaultName[] {
  const deck = [...kinds]
  for (let n = deck.length - 1; n > 0; n--) {
    const other = random(n + 1)
    ;[deck[n], deck[other]] = [deck[other]!, deck[n]!]
  }
  return deck
}

/** One place of that kind with a process to which nothing else is being done. */
function choose({ processes, random }: Scene, kind: Kind): Place | undefined {
  const free = processes.places.filter((place) => place.kind === kind && place.child && !place.isTaken)
  return free.length > 0 ? free[random(free.length)] : undefined
}

async function strike(scene: Scene, kind: Kind, blow: (place: Place) => Promise<void>): Promise<string | null> {
  const place = choose(scene, kind)
  if (!place) return null
  await blow(place)
  return place.name
}

/** @param begin answers what ends it */
async function lasting(
  scene: Scene,
  kind: Kind,
  milliseconds: number,
  begin: (place: Place) => Promise<() => Promise<void>>,
): Promise<string | null> {
  const place = choose(scene, kind)
  if (!place) return null
  place.isTaken = true
  try {
    const end = await begin(place)
    const healed = pause(milliseconds)
      .then(end)
      .finally(() => {
        place.isTaken = false
      })
    scene.healing.push(healed)
  } catch (error) {
    place.child?.process.kill('SIGCONT')
    place.isTaken = false
    throw error
  }
  return place.name
}

function freeze(scene: Scene, kind: Kind) {
  return lasting(scene, kind, FROZEN_MS, async (place) => {
    const child = place.child!.process
    await stopInTransaction(scene, place)
    if (kind === 'worker') await noteHeld(scene, place, 'frozen')
    return async () => void child.kill('SIGCONT')
  })
}

/** Stops the process at the worst place, while it holds the head of the chain; after many attempts, anywhere. */
async function stopInTransaction({ world: { admin } }: Scene, { child }: Place) {
  for (let aim = 1; ; aim++) {
    child!.process.kill('SIGSTOP')
    const { rowCount } = await admin.query(
      `select from pg_stat_activity a
       where a.state = 'idle in transaction' and a.application_name like $1
         and exists (select from pg_locks l where l.pid = a.pid and l.relation = 'chain_head'::regclass)`,
      [`%:${child!.pid}`],
    )
    if (rowCount || aim === AIMS) return
    child!.process.kill('SIGCONT')
    await pause(aim % 7)
  }
}

/** The requests that a worker holds when it dies, to measure the time until another worker has begun with them. */
async function noteHeld({ world: { admin } }: Scene, { pool }: Place, kind: 'killed' | 'frozen') {
  await admin.query(
    `insert into kills (at, worker, key, kind) select clock_timestamp(), locked_by, key, $2
     from graphile_worker._private_jobs where locked_by = $1 and key like 'verify:%'`,
    [pool, kind],
  )
}

async function step({ child, clockFile }: Place, milliseconds: number) {
  await writeFile(clockFile, String(milliseconds))
  child?.process.kill('SIGUSR2')
}

async function answers({ world: { admin } }: Scene): Promise<boolean> {
  for (let attempt = 0; attempt < FULL_MS / CRASH_POLL_MS; attempt++) {
    const isThere = await admin.query('select 1').then(
      () => true,
      () => false,
    )
    if (isThere) return true
    await pause(CRASH_POLL_MS)
  }
  return false
}
