// `npm run eval`: how well claims are assessed. Without options the project's own set is run through the literal assessor,
// the local verifier and, where ANTHROPIC_API_KEY is set, the configured model; otherwise through a model that answers by the
// labels, which shows what the rules around a model do by themselves. `--help` has the options; the form of a set stands in
// eval/labels.ts.
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { readConfig } from '../server/config.ts'
import { openLog, openMetrics } from '../server/telemetry.ts'
import { openThreads, type Threads } from '../server/threads/pool.ts'
import type { Assessor } from '../workers/assessment/assessor.ts'
import { openConfiguredModel } from '../workers/assessment/choice.ts'
import { literalAssessor } from '../workers/assessment/literal/assessor.ts'
import { openLocalAssessor } from '../workers/assessment/local.ts'
import { semanticAssessor } from '../workers/assessment/semantic/assessor.ts'
import { type Item, readLabels } from './eval/labels.ts'
import { forMachines, measureMarked, partOfPage, printMarked } from './eval/marked.ts'
import { openOracle } from './eval/oracle.ts'
import { openPurchases } from './eval/purchases.ts'
import { saveMarked, saveRun } from './eval/record.ts'
import { flawsOf, type Outcome, printScore } from './eval/score.ts'
import { openSilentServer } from './eval/silent-server.ts'
import { measureStillness } from './eval/stillness.ts'
import { numberOption, readCall, refuse } from './program.ts'

const NAMES = ['literal', 'local', 'semantic', 'oracle'] as const
type Name = (typeof NAMES)[number]

const NAME = 'npm run eval --'
const ABOUT = `Without options the project's own set is run through the literal assessment, the local verifier and the configured
model; without ANTHROPIC_API_KEY, a model that answers by the labels (oracle), which shows what the rules around a
model do. The verifier takes one to two seconds a claim, on VERIFIER_THREADS threads; a model as long as it answers,
at its price.

With --data each SET is a file of marked evidence (.jsonl or .jsonl.gz), which is measured beside BM25. That takes seconds.

Needs no database and, but for the model, no network. bench/README.md says how is counted.`

async function run(): Promise<boolean> {
  const { options: values, operands } = await readCall(NAME, {
    summary: 'measure how well claims are assessed',
    operands: ['[SET...]'],
    usage:
      '[--assessor NAME]... [--limit N | --sample N] [--long] [--service] [--fresh] [--save] | --data [--part PART] [--limit N] [--json] [--save]',
    about: ABOUT,
    examples: [
      'npm run eval',
      'npm run eval -- --assessor local --sample 30 --set wice.jsonl.gz',
      'npm run --silent eval -- --data --part report wice.jsonl.gz',
    ],
    exitStatus:
      '0 good, 1 where a quotation is not in its text or an assessment breaks a rule of the interface, 2 wrong usage.',
    options: {
      assessor: {
        type: 'string',
        value: 'NAME',
        multiple: true,
        help: `${NAMES.join(', ')}; repeatable. Default: literal, local, and semantic where a\nmodel is configured or else oracle`,
      },
      set: { type: 'string', value: 'FILE', multiple: true, help: 'the same as an operand; repeatable' },
      limit: { type: 'string', value: 'N', help: 'the first N items only' },
      sample: { type: 'string', value: 'N', help: 'N items of each set, chosen by the digests of their ids' },
      fresh: {
        type: 'boolean',
        default: false,
        help: 'say in what is kept that nothing was tuned on the set; the own set is fresh for the local verifier',
      },
      long: { type: 'boolean', default: false, help: 'measure pages of 100,000 code points instead' },
      service: {
        type: 'boolean',
        default: false,
        help: 'with --assessor local: start the service, serve each page over HTTPS, and buy each\nverdict, so that retrieval and extraction are part of what is measured',
      },
      save: {
        type: 'boolean',
        default: false,
        help: 'keep what was measured in docs/accuracy.json, for the page /accuracy, and in\ndocs/accuracy.md: of whole sets or samples, never of the oracle',
      },
      data: {
        type: 'boolean',
        default: false,
        help: 'measure sets of marked evidence beside BM25',
      },
      part: {
        type: 'string',
        value: 'PART',
        help: 'with --data: tune or report, one half of the pages by their digest',
      },
      json: { type: 'boolean', default: false, help: 'with --data: one object a line and set' },
    },
  })
  const limit = values.limit === undefined ? undefined : numberOption(NAME, 'limit', values.limit, 1)
  const sample = values.sample === undefined ? undefined : numberOption(NAME, 'sample', values.sample, 1)
  await using opened = new AsyncDisposableStack()
  const threads = opened.use(openThreads())
  if (values.data) return await runMarked(operands, { ...values, limit }, threads)
  const config = readConfig()
  const names = values.assessor ?? ['literal', 'local', config.model ? 'semantic' : 'oracle']
  const named = [...operands, ...(values.set ?? [])]
  const sets = named.length > 0 ? named : [OWN_SET]
  if (values.save && (limit !== undefined || values.long))
    refuse(NAME, '--save keeps whole sets or samples: leave out --limit and --long.')
  if (values.service && (names.some((name) => name !== 'local') || values.long))
    refuse(NAME, '--service goes with --assessor local alone, and not with --long.')
  const unknown = names.find((name) => !NAMES.some((known) => known === name))
  if (unknown !== undefined) refuse(NAME, `--assessor ${unknown} is none of ${NAMES.join(', ')}.`)
  let isSound = true
  for (const set of sets) {
    const all = await readLabels([set], threads)
    const items = (sample === undefined ? all : sampleOf(all, sample)).slice(0, limit)
    console.log(`${items.length} of ${all.length} items of ${set}`)
    for (const name of names)
      isSound =
        (await runOne(name as Name, { set, items, of: all.length }, threads, {
          long: values.long,
          save: values.save,
          service: values.service,
          fresh: values.fresh || (set === OWN_SET && name === 'local'),
        })) && isSound
  }
  return isSound
}

/** The items whose ids have the smallest digests, in the order of the set: the same on every run, and not chosen by hand. */
function sampleOf(items: readonly Item[], size: number): Item[] {
  const digest = ({ id }: Item) => createHash('sha256').update(id).digest('hex')
  const chosen = new Set(items.toSorted((a, b) => (digest(a) < digest(b) ? -1 : 1)).slice(0, size))
  return items.filter((item) => chosen.has(item))
}

interface MarkedOptions {
  json: boolean
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
  const measured = measureMarked(items, (what) => process.stderr.write(`${what}\n`))
  if (options.save)
    await saveMarked(measured.map((one) => ({ measured: one, file: fileOf.get(one.set)!, part: part ?? null })))
  for (const one of measured) options.json ? console.log(JSON.stringify(forMachines(one))) : printMarked(one)
  return measured.every(({ quotes }) => quotes.valid === quotes.all)
}

interface SetOfItems {
  /** The file. */
  set: string
  items: readonly Item[]
  /** How many items the file has. */
  of: number
}

interface RunOptions {
  long: boolean
  save: boolean
  /** Whether a started service gives the verdicts. */
  service: boolean
  fresh: boolean
}

async function runOne(
  name: Name,
  { set, items, of }: SetOfItems,
  threads: Threads,
  { long, save, service, fresh }: RunOptions,
): Promise<boolean> {
  if (service) return await runPurchases({ set, items, of }, { save, fresh })
  await using opened = new AsyncDisposableStack()
  const openFake = () => (long ? openSilentServer() : openOracle(items))
  const oracle = name === 'oracle' ? opened.use(await openFake()) : null
  const config = readConfig(oracle ? { ...oracle.env } : process.env)
  const metrics = openMetrics()
  const assessor = await buildAssessor()
  await assessor.ready
  if (long) {
    await measureStillness(`${name}: ${assessor.procedure}`, assessor, 'The harbour was opened in 1874.')
    return true
  }
  const outcomes = await inParallel(items, (item) => assessOne(item, assessor), atOnce())
  const sum = async (metric: string) =>
    (await metrics.registry.getSingleMetric(metric)?.get())?.values.reduce((total, { value }) => total + value, 0)
  const isPriced = config.model?.prices != null
  const cost = {
    tokens: (await sum('countersign_model_tokens_total')) ?? 0,
    usd: isPriced ? ((await sum('countersign_model_usd_total')) ?? 0) : null,
  }
  printScore(`${name}: ${assessor.procedure}`, outcomes, cost)
  if (save && name !== 'oracle') {
    const { procedure } = assessor
    await saveRun({ assessment: name, procedure, set, of, fresh, isOwn: set === OWN_SET, through: 'text', outcomes })
  }
  return outcomes.every((outcome) => flawsOf(outcome).length === 0)

  async function buildAssessor(): Promise<Assessor> {
    if (name === 'literal') return literalAssessor(threads)
    if (name !== 'local') return await buildSemantic(config, threads, metrics)
    const log = openLog('error', process.stderr)
    return opened.use(openLocalAssessor({ threads: config.assessment.verifierThreads, metrics, log }))
  }

  function atOnce(): number {
    if (name === 'literal') return 2
    return name === 'local' ? config.assessment.verifierThreads : config.assessment.concurrency
  }
}

/** The verdicts of the local verifier, each bought from a started service. */
async function runPurchases(
  { set, items, of }: SetOfItems,
  { save, fresh }: Pick<RunOptions, 'save' | 'fresh'>,
): Promise<boolean> {
  await using purchases = await openPurchases(items)
  const outcomes = await inParallel(items, (item) => purchases.buy(item), purchases.atOnce + 1)
  const { procedure } = purchases
  printScore(`local, bought from a service: ${procedure}`, outcomes, { tokens: 0, usd: null })
  const others = outcomes.filter(
    ({ item }, i) => item.observation.source.text_sha256 !== items[i]?.observation.source.text_sha256,
  )
  console.log(`pages read with another text than the set's: ${others.length}`)
  if (save)
    await saveRun({
      assessment: 'local',
      procedure,
      set,
      of,
      fresh,
      isOwn: set === OWN_SET,
      through: 'service',
      outcomes,
    })
  return outcomes.every((outcome) => outcome.found !== null && flawsOf(outcome).length === 0)
}

async function buildSemantic(
  config: ReturnType<typeof readConfig>,
  threads: Threads,
  metrics: ReturnType<typeof openMetrics>,
): Promise<Assessor> {
  if (!config.model) throw new Error('neither ANTHROPIC_API_KEY nor OPENAI_MODEL is set: there is no model to ask')
  const log = openLog('error', process.stderr)
  const { windowTokens } = config.assessment
  return semanticAssessor({
    model: await openConfiguredModel(config.model, { config, metrics, log }),
    threads,
    secret: Buffer.alloc(32, 1),
    windowTokens,
    second: null,
    fallback: null,
    metrics,
    log,
  })
}

/** So many at once, in the order of the set. */
async function inParallel(
  items: readonly Item[],
  measure: (item: Item) => Promise<Outcome>,
  atOnce: number,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = new Array(items.length)
  let next = 0
  const work = async () => {
    while (next < items.length) {
      const at = next++
      outcomes[at] = await measure(items[at]!)
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
