// `npm run chaos`: tests the invariants of the service under load, while processes die and callers are hostile. `--help` lists the parts.
import type { Lab } from './lab.ts'
import { chooseParts, describeParts, NEEDS, numberOption, type Part, readCall } from './program.ts'

interface Settings {
  /** For parts that choose at random. */
  seed: number
  /** For parts with a configurable duration. */
  minutes?: number
  /** A file for each fault and each line of the processes, of the part `house`. */
  log?: string
}

const NAME = 'npm run chaos --'
// Loaded when they run, so that the help comes at once.
const PARTS: Record<string, Part<(lab: Lab, settings: Settings) => Promise<void>>> = {
  watchdogs: {
    about: 'workers are killed while heartbeats stop and return, for 2 minutes',
    run: async (lab) => (await import('./chaos/watchdogs.ts')).chaosWatchdogs(lab),
  },
  crowd: {
    about: 'honest buyers alone and beside hostile ones, for 3 minutes with the pruning after',
    run: async (lab) => (await import('./chaos/crowd.ts')).chaosCrowd(lab),
  },
  overload: {
    about: 'twice as many newcomers as the service can do, for --minutes (5)',
    run: async (lab, settings) => (await import('./chaos/overload.ts')).chaosOverload(lab, settings),
  },
  house: {
    about: 'webs, workers, Postgres, PgBouncer and Redis of their own, with every fault, for --minutes (3)',
    run: async (lab, settings) => (await import('./chaos/house.ts')).chaosHouse(lab, settings),
  },
}

const { operands, options } = await readCall(NAME, {
  summary: 'try under load what must hold when processes die and callers are hostile, and count what was lost',
  operands: ['[PART...]'],
  usage: '[--quick] [--seed N] [--minutes N] [--log FILE]',
  about:
    `${describeParts(PARTS)}\n\n${NEEDS}\nThe user of DATABASE_URL must be allowed to terminate backends. house and alarms have a ` +
    'Postgres of their own.\nhouse does without PgBouncer, Redis or a full disk where they are not installed or this user may not mount one, and says so.',
  examples: ['npm run chaos -- --quick', 'npm run chaos -- house --seed 7 --minutes 10'],
  exitStatus: '0 nothing was lost, 1 something was, 2 wrong usage.',
  options: {
    quick: { type: 'boolean', default: false, help: 'smaller and shorter: about a third of the time' },
    seed: {
      type: 'string',
      value: 'N',
      default: '1',
      help: 'of house, default 1: the same seed makes the same row of faults',
    },
    minutes: {
      type: 'string',
      value: 'N',
      help: 'of overload and house, how long each goes on; fractions are allowed',
    },
    log: {
      type: 'string',
      value: 'FILE',
      help: 'of house, gets each fault and each line of the processes, as JSON',
    },
  },
})
const runs = chooseParts(NAME, PARTS, operands)
const settings = {
  seed: numberOption(NAME, 'seed', options.seed),
  ...(options.minutes && { minutes: numberOption(NAME, 'minutes', options.minutes) }),
  ...(options.log && { log: options.log }),
}
// So that what was started and mounted ends with a run that is broken off.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
const { openLab } = await import('./lab.ts')
await using lab = await openLab({ quick: options.quick, profile: undefined })
for (const run of runs) await run(lab, settings)
