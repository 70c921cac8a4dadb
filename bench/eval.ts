// `npm run eval`: how well claims are assessed. Without options the project's own set is run through the literal assessor
// and, where ANTHROPIC_API_KEY is set, through the configured model; otherwise through a model that answers by the labels,
// which shows what the checks around a model do by themselves.
//
//   npm run eval -- [--assessor literal|semantic|oracle]... [--limit N] [--long] [--save] [set.jsonl]
//   npm run eval -- --data [--json] [--part tune|report] [--literal] set.jsonl.gz ...
//
// --data measures sets of marked evidence beside BM25 and with models by script (eval/marked.ts); --json prints one
// object a line and set; --part takes half of the pages, by their digest; --literal leaves the scripts out.
// --save keeps what was measured for the page /accuracy, in docs/accuracy.json: of one whole set, and never of the oracle.
// --limit takes the first N items; --long measures pages of 100,000 code points instead. The form of a set stands in
// eval/labels.ts. Exits with 1 when a quotation is not in its text or an assessment breaks a rule of the interface.
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { readConfig } from '../server/config.ts'
import { openLog, openMetrics } from '../server/telemetry.ts'
import { openThreads, type Threads } from '../server/threads/pool.ts'
import { anthropicModel } from '../workers/assessment/anthropic.ts'
import type { Assessor } from '../workers/assessment/assessor.ts'
import { buildCircuit } from '../workers/assessment/circuit.ts'
import { literalAssessor } from '../workers/assessment/literal.ts'
import { semanticAssessor } from '../workers/assessment/semantic.ts'
import { type Item, readLabels } from './eval/labels.ts'
import { forMachines, measureMarked, partOfPage, printMarked } from './eval/marked.ts'
import { openOracle } from './eval/oracle.ts'
import { saveRun } from './eval/record.ts'
import { flawsOf, type Outcome, printScore } from './eval/score.ts'
import { openSilentServer } from './eval/silent-server.ts'
import { measureStillness } from './eval/stillness.ts'

const NAMES = ['literal', 'semantic', 'oracle'] as const
type Name = (typeof NAMES)[number]

async function run(): Promise<boolean> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      assessor: { type: 'string', multiple: true },
      data: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      literal: { type: 'boolean', default: false },
      part: { type: 'string' },
      limit: { type: 'string' },
      long: { type: 'boolean', default: false },
      save: { type: 'boolean', default: false },
    },
  })
  await using opened = new AsyncDisposableStack()
  const threads = opened.use(openThreads())
  if (values.data) return await runMarked(positionals, values, threads)
  const config = readConfig()
  const names = values.assessor ?? ['literal', config.model ? 'semantic' : 'oracle']
  const sets = positionals.length > 0 ? positionals : [OWN_SET]
  if (values.save && (sets.length !== 1 || values.limit !== undefined || values.long))
    throw new Error('--save keeps a run of one whole set: leave out --limit and --long, and name at most one set')
  const items = (await readLabels(sets, threads)).slice(
    0,
    values.limit === undefined ? undefined : Number(values.limit),
  )
  console.log(`${items.length} items of ${sets.join(', ')}`)
  let isSound = true
  for (const name of names) {
    if (!NAMES.some((known) => known === name)) throw new Error(`--assessor is one of ${NAMES.join(', ')}`)
    const save = values.save ? sets[0] : undefined
    isSound = (await runOne(name as Name, items, threads, { long: values.long, save })) && isSound
  }
  return isSound
}

interface MarkedOptions {
  json: boolean
  literal: boolean
  part?: string
  limit?: string
}

/** False when a quotation is not in its text. */
async function runMarked(files: readonly string[], options: MarkedOptions, threads: Threads): Promise<boolean> {
  const { part, limit } = options
  if (part !== undefined && part !== 'tune' && part !== 'report') throw new Error('--part is tune or report')
  if (files.length === 0) throw new Error('--data needs the files of the sets')
  const items = (await readLabels(files, threads))
    .filter((item) => part === undefined || partOfPage(item) === part)
    .slice(0, limit === undefined ? undefined : Number(limit))
  const measured = await measureMarked(items, !options.literal)
  for (const one of measured) options.json ? console.log(JSON.stringify(forMachines(one))) : printMarked(one)
  return measured.every(({ quotes }) => quotes.valid === quotes.all)
}

interface RunOptions {
  long: boolean
  /** The file of the set, where what is measured is kept. */
  save: string | undefined
}

async function runOne(
  name: Name,
  items: readonly Item[],
  threads: Threads,
  { long, save }: RunOptions,
): Promise<boolean> {
  await using opened = new AsyncDisposableStack()
  const openFake = () => (long ? openSilentServer() : openOracle(items))
  const oracle = name === 'oracle' ? opened.use(await openFake()) : null
  const config = readConfig(oracle ? { ...oracle.env } : process.env)
  const metrics = openMetrics()
  const assessor = name === 'literal' ? literalAssessor(threads) : buildSemantic(config, threads, metrics)
  if (long) {
    await measureStillness(`${name}: ${assessor.procedure}`, assessor, 'The harbour was opened in 1874.')
    return true
  }
  const outcomes = await assessAll(items, assessor, name === 'literal' ? 2 : config.assessment.concurrency)
  const sum = async (metric: string) =>
    (await metrics.registry.getSingleMetric(metric)?.get())?.values.reduce((total, { value }) => total + value, 0)
  const isPriced = config.model?.prices != null
  const cost = {
    tokens: (await sum('countersign_model_tokens_total')) ?? 0,
    usd: isPriced ? ((await sum('countersign_model_usd_total')) ?? 0) : null,
  }
  printScore(`${name}: ${assessor.procedure}`, outcomes, cost)
  if (save !== undefined && name !== 'oracle')
    await saveRun({ assessment: name, procedure: assessor.procedure, set: save, outcomes })
  return outcomes.every((outcome) => flawsOf(outcome).length === 0)
}

function buildSemantic(
  config: ReturnType<typeof readConfig>,
  threads: Threads,
  metrics: ReturnType<typeof openMetrics>,
): Assessor {
  if (!config.model) throw new Error('ANTHROPIC_API_KEY is not set: there is no model to ask')
  const log = openLog('error', process.stderr)
  const circuit = buildCircuit()
  const { concurrency, timeoutMs, windowTokens } = config.assessment
  return semanticAssessor({
    model: anthropicModel({ ...config.model, concurrency, timeoutMs, circuit, metrics, log }),
    circuit,
    threads,
    secret: Buffer.alloc(32, 1),
    windowTokens,
    fallback: null,
    metrics,
    log,
  })
}

/** So many at once, in the order of the set. */
async function assessAll(items: readonly Item[], assessor: Assessor, atOnce: number): Promise<Outcome[]> {
  const outcomes: Outcome[] = new Array(items.length)
  let next = 0
  const work = async () => {
    while (next < items.length) {
      const at = next++
      outcomes[at] = await assessOne(items[at]!, assessor)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return outcomes
}

async function assessOne(item: Item, assessor: Assessor): Promise<Outcome> {
  const begun = performance.now()
  try {
    const found = await assessor.assess({ claim: item.claim, observation: item.observation })
    return { item, found, ms: performance.now() - begun }
  } catch (error) {
    const { name, message } = error as Error
    return { item, found: null, failure: `${name}: ${message}`, ms: performance.now() - begun }
  }
}

const OWN_SET = join(import.meta.dirname, 'eval/countersign.jsonl')

process.exitCode = (await run()) ? 0 : 1
