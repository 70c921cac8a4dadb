// `npm run chaos`: tests the invariants of the service under load, while processes die and callers are hostile. `--help` lists the parts.
import { readRules } from './alarms/rules.ts'
import type { Lab } from './lab.ts'
import { chooseParts, describeParts, NEEDS, numberOption, type Part, readCall, refuse } from './program.ts'

interface Settings {
  /** For parts that choose at random. */
  seed: number
  /** For parts with a configurable duration. */
  minutes?: number
  /** The only alarms that are provoked; default: all. */
  alarms?: string[]
  /** A file for each fault and each line of the processes, of the part `house`. */
  log?: string
}

const NAME = 'npm run chaos --'
// Loaded when they run, so that the help comes at once.
const PARTS: Record<string, Part<(lab: Lab, settings: Settings) => Promise<void>>> = {
  receipts: {
    about: 'database backends are killed while 50,000 receipts are made',
    run: async (lab) => (await import('./chaos-receipts.ts')).chaosReceipts(lab),
  },
  watchdogs: {
    about: 'workers are killed while heartbeats stop and return, for 2 minutes',
    run: async (lab) => (await import('./chaos-watchdogs.ts')).chaosWatchdogs(lab),
  },
  crowd: {
    about: 'honest buyers alone and beside hostile ones, for 3 minutes with the pruning after',
    run: async (lab) => (await import('./chaos-crowd.ts')).chaosCrowd(lab),
  },
  kills: {
    about: 'buyers while processes are killed, frozen or cut off, for --minutes (3)',
    run: async (lab, settings) => (await import('./chaos-kills.ts')).chaosKills(lab, settings),
  },
  overload: {
    about: 'twice as many newcomers as the service can do, for --minutes (5)',
    run: async (lab, settings) => (await import('./chaos-overload.ts')).chaosOverload(lab, settings),
  },
  house: {
    about: 'webs, workers, Postgres, PgBouncer and Redis of their own, with every fault, for --minutes (3)',
    run: async (lab, settings) => (await import('./chaos-house.ts')).chaosHouse(lab, settings),
  },
  alarms: {
    about: 'each alarm is provoked once and ended by its cure, at most some minutes each',
    run: async (lab, settings) => (await import('./chaos-alarms.ts')).chaosAlarms(lab, settings),
  },
}

const { operands, options } = await readCall(NAME, {
  summary: 'try under load what must hold when processes die and callers are hostile, and count what was lost',
  operands: ['[PART...]'],
  usage: '[--quick] [--seed N] [--minutes N] [--alarm NAME]... [--log FILE]',
  about:
    `${describeParts(PARTS)}\n\n${NEEDS}\nThe user of DATABASE_URL must be allowed to terminate backends. house and alarms have a ` +
    'Postgres of their own.\nhouse does without PgBouncer, Redis or a full disk where they are not installed or this user may not mount one, and says so.',
  examples: [
    'npm run chaos -- --quick',
    'npm run chaos -- kills --seed 7 --minutes 10',
    'npm run chaos -- alarms --alarm CountersignUnseen',
  ],
  exitStatus: '0 nothing was lost, 1 something was, 2 wrong usage.',
  options: {
    quick: { type: 'boolean', default: false, help: 'smaller and shorter: about a third of the time' },
    seed: {
      type: 'string',
      value: 'N',
      default: '1',
      help: 'of kills and house, default 1: the same seed makes the same row of faults',
    },
    minutes: {
      type: 'string',
      value: 'N',
      help: 'of kills, overload and house, how long each goes on; fractions are allowed',
    },
    alarm: {
      type: 'string',
      value: 'NAME',
      multiple: true,
      help: 'of alarms, only this one and those of the same cause; repeatable',
    },
    log: {
      type: 'string',
      value: 'FILE',
      help: 'of house, gets each fault and each line of the processes, as JSON',
    },
  },
})
const runs = chooseParts(NAME, PARTS, operands)
const alarms = readRules().map(({ alarm }) => alarm)
const unknown = options.alarm?.find((name) => !alarms.includes(name))
if (unknown !== undefined) refuse(NAME, `No alarm is called ${unknown}: there are ${alarms.join(', ')}.`)
const settings = {
  seed: numberOption(NAME, 'seed', options.seed),
  ...(options.minutes && { minutes: numberOption(NAME, 'minutes', options.minutes) }),
  ...(options.alarm && { alarms: options.alarm }),
  ...(options.log && { log: options.log }),
}
// So that what was started and mounted ends with a run that is broken off.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
const { openLab } = await import('./lab.ts')
await using lab = await openLab({ quick: options.quick, profile: undefined })
for (const run of runs) await run(lab, settings)
