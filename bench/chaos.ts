// `npm run chaos`: what must hold when processes die and when callers are hostile, tried under load.
//
//   node bench/chaos.ts [part ...] [--quick]
//
// Needs nothing but Postgres: an embedded one in a temporary folder, or the server that DATABASE_URL names (as a user who may
// terminate backends).
import { parseArgs } from 'node:util'
import { chaosCrowd } from './chaos-crowd.ts'
import { chaosReceipts } from './chaos-receipts.ts'
import { chaosWatchdogs } from './chaos-watchdogs.ts'
import { type Lab, openLab } from './lab.ts'

const PARTS: Record<string, (lab: Lab) => Promise<void>> = {
  receipts: chaosReceipts,
  watchdogs: chaosWatchdogs,
  crowd: chaosCrowd,
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean', default: false } },
})
const unknown = positionals.find((name) => !(name in PARTS))
if (unknown) throw new Error(`No part is called ${unknown}. There are: ${Object.keys(PARTS).join(', ')}`)
await using lab = await openLab({ quick: values.quick, profile: undefined })
for (const name of positionals.length > 0 ? positionals : Object.keys(PARTS)) await PARTS[name]!(lab)
