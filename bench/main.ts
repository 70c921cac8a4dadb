// `npm run bench`: how fast the service is, each time beside a peer or a ceiling measured in the same run.
//
//   node bench/main.ts [part ...] [--quick] [--profile DIR]
//
// Needs nothing but Postgres: an embedded one in a temporary folder, or the server that DATABASE_URL names.
import { parseArgs } from 'node:util'
import { benchAdmission } from './admission.ts'
import { benchBatch } from './batch.ts'
import { benchCompletion } from './completion.ts'
import { type Lab, openLab } from './lab.ts'
import { benchMcp } from './mcp.ts'
import { benchReceipts } from './receipts.ts'
import { benchRecovery } from './recovery.ts'
import { benchRetrieval } from './retrieval.ts'
import { benchStages } from './stages.ts'
import { benchSubmission } from './submission.ts'
import { benchText } from './text.ts'
import { benchWatchdogs } from './watchdogs.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean', default: false }, profile: { type: 'string' } },
})
const PARTS: Record<string, (lab: Lab) => Promise<void>> = {
  admission: benchAdmission,
  submission: benchSubmission,
  completion: benchCompletion,
  receipts: benchReceipts,
  mcp: benchMcp,
  watchdogs: benchWatchdogs,
  recovery: benchRecovery,
  stages: benchStages,
  batch: benchBatch,
  retrieval: benchRetrieval,
  // Beside all the others, its peers would take longer than the rest together.
  text: (lab) => benchText({ quick: lab.quick || positionals.length === 0 }),
}

const unknown = positionals.find((name) => !(name in PARTS))
if (unknown) throw new Error(`No part is called ${unknown}. There are: ${Object.keys(PARTS).join(', ')}`)

const started = performance.now()
await using lab = await openLab({ quick: values.quick, profile: values.profile })
await Promise.race([runParts(positionals.length > 0 ? positionals : Object.keys(PARTS)), interrupted()])
console.log(`\n${((performance.now() - started) / 1000).toFixed(0)} s`)

async function runParts(names: string[]) {
  for (const name of names) await PARTS[name]!(lab)
}

/** Ends the run with what was opened put away. */
async function interrupted(): Promise<never> {
  const { promise, resolve } = Promise.withResolvers<string>()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, resolve)
  throw new Error(`stopped by ${await promise}`)
}
