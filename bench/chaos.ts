// `npm run chaos`: what must hold when processes die and when callers are hostile, tried under load.
//
//   node bench/chaos.ts [part ...] [--quick] [--seed N] [--minutes N] [--alarm NAME ...]
//
// Needs nothing but Postgres: an embedded one in a temporary folder, or the server that DATABASE_URL names (as a user who may
// terminate backends).
import { parseArgs } from 'node:util'
import { chaosAlarms } from './chaos-alarms.ts'
import { chaosCrowd } from './chaos-crowd.ts'
import { chaosHouse } from './chaos-house.ts'
import { chaosKills } from './chaos-kills.ts'
import { chaosOverload } from './chaos-overload.ts'
import { chaosReceipts } from './chaos-receipts.ts'
import { chaosWatchdogs } from './chaos-watchdogs.ts'
import { type Lab, openLab } from './lab.ts'

interface Settings {
  /** For parts that choose at random. */
  seed: number
  /** For parts that last as long as they are let. */
  minutes?: number
  /** The only alarms that are provoked; default: all. */
  alarms?: string[]
}

const PARTS: Record<string, (lab: Lab, settings: Settings) => Promise<void>> = {
  receipts: chaosReceipts,
  watchdogs: chaosWatchdogs,
  crowd: chaosCrowd,
  kills: chaosKills,
  overload: chaosOverload,
  house: chaosHouse,
  alarms: chaosAlarms,
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string' },
    alarm: { type: 'string', multiple: true },
  },
})
const unknown = positionals.find((name) => !(name in PARTS))
if (unknown) throw new Error(`No part is called ${unknown}. There are: ${Object.keys(PARTS).join(', ')}`)
const settings = {
  seed: readNumber(values.seed),
  ...(values.minutes && { minutes: readNumber(values.minutes) }),
  ...(values.alarm && { alarms: values.alarm }),
}
// So that what was started and mounted ends with a run that is broken off.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
await using lab = await openLab({ quick: values.quick, profile: undefined })
for (const name of positionals.length > 0 ? positionals : Object.keys(PARTS)) await PARTS[name]!(lab, settings)

function readNumber(text: string): number {
  const value = Number(text)
  if (!(value > 0)) throw new Error(`${text} is no number above 0.`)
  return value
}
