// `npm run eval`: how well claims are assessed. Without options the project's own set is run through the literal assessor,
// the local verifier and, where ANTHROPIC_API_KEY is set, the configured model; otherwise through a model that answers by the
// labels, which shows what the rules around a model do by themselves. `--help` has the options; the form of a set stands in
// eval/labels.ts.
import type { Name } from './eval/run.ts'
import { numberOption, readCall, refuse } from './program.ts'

const NAMES: readonly Name[] = ['literal', 'local', 'semantic', 'oracle']

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
  const named = [...operands, ...(values.set ?? [])]
  if (values.data) {
    const { part } = values
    if (part !== undefined && !isPart(part)) refuse(NAME, '--part is tune or report.')
    if (operands.length === 0) refuse(NAME, '--data needs the files of the sets.')
    if (values.save && limit !== undefined) refuse(NAME, '--save keeps whole sets: leave out --limit.')
    const { runMarked } = await import('./eval/run.ts')
    return await runMarked(operands, { ...values, part, limit })
  }
  if (values.save && (limit !== undefined || values.long))
    refuse(NAME, '--save keeps whole sets or samples: leave out --limit and --long.')
  const assessor = values.assessor?.map((name) => {
    const known = NAMES.find((one) => one === name)
    return known ?? refuse(NAME, `--assessor ${name} is none of ${NAMES.join(', ')}.`)
  })
  // Without --assessor there is more than the local one.
  if (values.service && (assessor?.some((name) => name !== 'local') !== false || values.long))
    refuse(NAME, '--service goes with --assessor local alone, and not with --long.')
  // What it needs takes a second to load: only for a call that is in order.
  const { runSets } = await import('./eval/run.ts')
  return await runSets(named, { ...values, assessor, limit, sample })
}

function isPart(part: string): part is 'tune' | 'report' {
  return part === 'tune' || part === 'report'
}

process.exitCode = (await run()) ? 0 : 1
