// `npm run bench`: measures the speed of the service, compared with peers and upper bounds in the same run. `--help` lists what it
// measures.
import type { Lab } from './lab.ts'
import { chooseParts, describeParts, NEEDS, numberOption, type Part, readCall, refuse } from './program.ts'

const NAME = 'npm run bench --'
// Loaded when they run, so that the help comes at once.
const PARTS: Record<string, Part<(lab: Lab) => Promise<void>>> = {
  admission: {
    about: 'requests stored durably, in groups and one by one',
    run: async (lab) => (await import('./parts/admission.ts')).benchAdmission(lab),
  },
  submission: {
    about: 'paid POSTs, beside the check of the signature alone',
    run: async (lab) => (await import('./parts/submission.ts')).benchSubmission(lab),
  },
  completion: {
    about: 'verifications that one worker completes, beside a bare job with a plain fetch',
    run: async (lab) => (await import('./parts/completion.ts')).benchCompletion(lab),
  },
  mcp: {
    about: 'calls over MCP, beside a server of the SDK for each request',
    run: async (lab) => (await import('./parts/mcp.ts')).benchMcp(lab),
  },
  watchdogs: {
    about: 'heartbeats, beside one update for each',
    run: async (lab) => (await import('./parts/watchdogs.ts')).benchWatchdogs(lab),
  },
  recovery: {
    about: 'results recovered, beside a static route',
    run: async (lab) => (await import('./parts/recovery.ts')).benchRecovery(lab),
  },
  start: {
    about: '`npm start` and `npm run demo`, from the command; no peer',
    run: async (lab) => (await import('./parts/start.ts')).benchStart(lab),
  },
  stages: {
    about: 'CPU of each part of a verification, and its flushes of the disk; no peer',
    run: async (lab) => (await import('./parts/stages.ts')).benchStages(lab),
  },
  claims: {
    about: 'ten claims on one page in one purchase, beside ten purchases',
    run: async (lab) => (await import('./parts/claims.ts')).benchClaims(lab),
  },
  capture: {
    about: 'CPU of purchases with evidence kept and without, and the storage of a thousand results; no peer',
    run: async (lab) => (await import('./parts/capture.ts')).benchCapture(lab),
  },
  batch: {
    about: '`countersign batch`, killed and resumed, beside a bare loop of the x402 client',
    run: async (lab) => (await import('./parts/batch.ts')).benchBatch(lab),
  },
  assess: {
    about: 'verdicts of the local verifier, beside native onnxruntime and BM25, and purchases with it',
    run: async (lab) => (await import('./parts/assess.ts')).benchAssess(lab),
  },
  workers: {
    about: 'verdicts by one, two and four worker processes',
    run: async (lab) => (await import('./parts/workers.ts')).benchWorkers(lab),
  },
  waiting: {
    about: 'what buyers and batches wait for, by stage, beside the verdict alone',
    run: async (lab) => (await import('./parts/waiting.ts')).benchWaiting(lab),
  },
  growth: {
    about: 'what operations cost as stored results grow',
    run: async (lab) => (await import('./parts/growth.ts')).benchGrowth(lab),
  },
  retrieval: {
    about: 'pages fetched and read, beside a bare GET',
    run: async (lab) => (await import('./parts/retrieval.ts')).benchRetrieval(lab),
  },
  text: {
    about: 'pages to text, beside parsers',
    // Beside all the others, its peers would take longer than the rest together.
    run: async (lab) => (await import('./text-rates.ts')).benchText({ quick: lab.quick || operands.length === 0 }),
  },
}

const { operands, options } = await readCall(NAME, {
  summary: 'measure how fast the service is, each figure beside a peer or a ceiling of the same run',
  operands: ['[PART...]'],
  usage: '[--quick] [--profile DIR] [--results N] | pictures FOLDER [--only TEXT]',
  about:
    `${describeParts(PARTS)}\n\n${NEEDS}\nbench/README.md says why the peers are fair.\n\n` +
    'pictures FOLDER measures nothing: it takes pictures of every page and every state of a page, for people to look at.',
  examples: ['npm run bench -- --quick', 'npm run bench -- completion recovery --profile /tmp/profiles'],
  exitStatus: '0 measured, 1 failed or stopped, 2 wrong usage. An aim that is missed is printed as MISSED.',
  options: {
    quick: { type: 'boolean', default: false, help: 'one round instead of three, and shorter ones: for a look' },
    profile: {
      type: 'string',
      value: 'DIR',
      help: 'a folder, in which each process of the service writes its CPU profile',
    },
    results: {
      type: 'string',
      value: 'N',
      help: 'of growth, the most stored results, default 1000000, with --quick 100000; a million takes 8 GB of disk',
    },
    only: { type: 'string', value: 'TEXT', help: 'of pictures, the states alone whose names contain this text' },
  },
})
if (operands[0] === 'pictures') {
  const [, folder, ...more] = operands
  if (folder === undefined || more.length > 0) refuse(NAME, 'pictures needs one folder.')
  process.exit((await (await import('./pictures.ts')).takePictures(folder, options.only)) ? 0 : 1)
}
const runs = chooseParts(NAME, PARTS, operands)
const results = numberOption(NAME, 'results', options.results ?? (options.quick ? '100000' : '1000000'), 20_000)

const started = performance.now()
const { openLab } = await import('./lab.ts')
await using lab = await openLab({ quick: options.quick, profile: options.profile, results })
await Promise.race([runParts(), interrupted()])
console.log(`\n${((performance.now() - started) / 1000).toFixed(0)} s`)

async function runParts() {
  for (const run of runs) await run(lab)
}

/** Closes everything that was opened, and ends the run. */
async function interrupted(): Promise<never> {
  const { promise, resolve } = Promise.withResolvers<string>()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, resolve)
  throw new Error(`stopped by ${await promise}`)
}
