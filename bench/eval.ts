// `npm run eval`: how well claims are assessed. Without options the project's own set is run through the literal assessor
// and, where ANTHROPIC_API_KEY is set, through the configured model; otherwise through a model that answers by the labels,
// which shows what the checks around a model do by themselves. `--help` has the options; the form of a set stands in
// eval/labels.ts.
import { join } from 'node:path'
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
import { saveMarked, saveRun } from './eval/record.ts'
import { flawsOf, type Outcome, printScore } from './eval/score.ts'
import { openSilentServer } from './eval/silent-server.ts'
import { measureStillness } from './eval/stillness.ts'
import { numberOption, readCall, refuse } from './program.ts'

const NAMES = ['literal', 'semantic', 'oracle'] as const
type Name = (typeof NAMES)[number]

const NAME = 'npm run eval --'
const ABOUT = `Without options the project's own set is run through the literal assessment and through the configured model; without
ANTHROPIC_API_KEY, through a model that answers by the labels (oracle), which shows what the checks around a model do.
That takes some seconds, and with a model as long as it answers, at its price.

With --data each SET is a file of marked evidence (.jsonl or .jsonl.gz), which is measured beside BM25 and with models
by script. That takes minutes; --literal leaves the models out, which is most of it.

Needs no database and, but for the model, no network. bench/README.md says how is counted.`

async function run(): Promise<boolean> {
  const { options: values, operands } = await readCall(NAME, {
    summary: 'measure how well claims are assessed',
    operands: ['[SET...]'],
    usage:
      '[--assessor NAME]... [--limit N] [--long] [--save] | --data [--part PART] [--literal] [--limit N] [--json] [--save]',
    about: ABOUT,
    examples: [
      'npm run eval',
      'npm run eval -- --save',
      'npm run --silent eval -- --data --part report --literal wice.jsonl.gz',
    ],
    exitStatus:
      '0 good, 1 where a quotation is not in its text or an assessment breaks a rule of the interface, 2 wrong usage.',
    options: {
      assessor: {
        type: 'string',
        value: 'NAME',
        multiple: true,
        help: `${NAMES.join(', ')}; repeatable. Default: literal, and semantic where a model\nis configured or else oracle`,
      },
      limit: { type: 'string', value: 'N', help: 'the first N items only' },
      long: { type: 'boolean', default: false, help: 'measure pages of 100,000 code points instead' },
      save: {
        type: 'boolean',
        default: false,
        help: 'keep what was measured in docs/accuracy.json, for the page /accuracy, and in\ndocs/accuracy.md: of one whole set, or with --data of all, never of the oracle',
      },
      data: {
        type: 'boolean',
        default: false,
        help: 'measure sets of marked evidence beside BM25 and with models by script',
      },
      part: {
        type: 'string',
        value: 'PART',
        help: 'with --data: tune or report, one half of the pages by their digest',
      },
      literal: { type: 'boolean', default: false, help: 'with --data: leave the models by script out' },
      json: { type: 'boolean', default: false, help: 'with --data: one object a line and set' },
    },
  })
  const limit = values.limit === undefined ? undefined : numberOption(NAME, 'limit', values.limit, 1)
  await using opened = new AsyncDisposableStack()
  const threads = opened.use(openThreads())
  if (values.data) return await runMarked(operands, { ...values, limit }, threads)
  const config = readConfig()
  const names = values.assessor ?? ['literal', config.model ? 'semantic' : 'oracle']
  const sets = operands.length > 0 ? operands : [OWN_SET]
  if (values.save && (sets.length !== 1 || limit !== undefined || values.long))
    refuse(NAME, '--save keeps a run of one whole set: leave out --limit and --long, and name at most one set.')
  const unknown = names.find((name) => !NAMES.some((known) => known === name))
  if (unknown !== undefined) refuse(NAME, `--assessor ${unknown} is none of ${NAMES.join(', ')}.`)
  const items = (await readLabels(sets, threads)).slice(0, limit)
  console.log(`${items.length} items of ${sets.join(', ')}`)
  let isSound = true
  for (const name of names) {
    const save = values.save ? sets[0] : undefined
    isSound = (await runOne(name as Name, items, threads, { long: values.long, save })) && isSound
  }
  return isSound
}

interface MarkedOptions {
  json: boolean
  literal: boolean
  save: boolean
  part?: string | undefined
  limit: number | undefined
}

/** False when a quotation is not in its text. */
async function runMarked(files: readonly string[], options: MarkedOptions, threads: Threads): Promise<boolean> {
  const { part, limit } = options
  if (part !== undefined && part !== 'tune' && part !== 'report') refuse(NAME, '--part is tune or report.')
  if (files.length === 0) refuse(NAME, '--data needs the files of the sets.')
  if (options.save && limit !== undefined) refuse(NAME, '--save keeps whole sets: leave out --limit.')
  const fileOf = new Map<string, string>()
  const all: Item[] = []
  for (const file of files) {
    const read = await readLabels([file], threads)
    for (const { set } of read) {
      if (options.save && (fileOf.get(set) ?? file) !== file) refuse(NAME, `--save: the set ${set} is in two files.`)
      fileOf.set(set, file)
    }
    all.push(...read)
  }
  const items = all.filter((item) => part === undefined || partOfPage(item) === part).slice(0, limit)
  const measured = await measureMarked(items, !options.literal, (what) => process.stderr.write(`${what}\n`))
  if (options.save)
    await saveMarked(measured.map((one) => ({ measured: one, file: fileOf.get(one.set)!, part: part ?? null })))
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
