// What `npm run eval` does once its call is in order: the sets are read, and assessed by each assessor that is named.
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { readConfig } from '../../server/config.ts'
import { openLog, openMetrics } from '../../server/telemetry.ts'
import { openThreads, type Threads } from '../../server/threads/pool.ts'
import type { Assessor } from '../../workers/assessment/assessor.ts'
import { openConfiguredModel } from '../../workers/assessment/choice.ts'
import { literalAssessor } from '../../workers/assessment/literal/assessor.ts'
import { openLocalAssessor } from '../../workers/assessment/local.ts'
import { semanticAssessor } from '../../workers/assessment/semantic/assessor.ts'
import { refuse } from '../program.ts'
import { type Item, readLabels } from './labels.ts'
import { forMachines, measureMarked, partOfPage, printMarked } from './marked.ts'
import { openOracle } from './oracle.ts'
import { openPurchases } from './purchases.ts'
import { saveMarked, saveRun } from './record.ts'
import { flawsOf, type Outcome, printScore } from './score.ts'
import { openSilentServer } from './silent-server.ts'
import { measureStillness } from './stillness.ts'

export type Name = 'literal' | 'local' | 'semantic' | 'oracle'

export interface SetOptions extends RunOptions {
  /** By default literal, local, and semantic where a model is configured or else oracle. */
  assessor?: readonly Name[] | undefined
  limit?: number | undefined
  sample?: number | undefined
}

/** The sets, or the project's own. False when an assessment breaks a rule. */
export async function runSets(named: readonly string[], options: SetOptions): Promise<boolean> {
  const { limit, sample, long, save, service, fresh } = options
  await using threads = openThreads()
  const names: readonly Name[] = options.assessor ?? ['literal', 'local', readConfig().model ? 'semantic' : 'oracle']
  let isSound = true
  for (const set of named.length > 0 ? named : [OWN_SET]) {
    const all = await readLabels([set], threads)
    const items = (sample === undefined ? all : sampleOf(all, sample)).slice(0, limit)
    console.log(`${items.length} of ${all.length} items of ${set}`)
    for (const name of names) {
      const isFresh = fresh || (set === OWN_SET && name === 'local')
      const one = { long, save, service, fresh: isFresh }
      isSound = (await runOne(name, { set, items, of: all.length }, threads, one)) && isSound
    }
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
  part?: 'tune' | 'report' | undefined
  limit: number | undefined
}

/** False when a quotation is not in its text. */
export async function runMarked(files: readonly string[], options: MarkedOptions): Promise<boolean> {
  const { part, limit } = options
  await using threads = openThreads()
  const fileOf = new Map<string, string>()
  const all: Item[] = []
  for (const file of files) {
    const read = await readLabels([file], threads)
    for (const { set } of read) {
      if (options.save && (fileOf.get(set) ?? file) !== file)
        refuse('npm run eval --', `--save: the set ${set} is in two files.`)
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

const OWN_SET = join(import.meta.dirname, 'countersign.jsonl')
