// The chapters of docs/accuracy.md about verdicts: one for each procedure that gives them, and what others measured of it.
import type { AccuracyRun, Failure, Published } from '../../server/pages/accuracy/accuracy.ts'
import {
  agreement,
  kindRows,
  matrixRows,
  publishedRows,
  READING,
  type Rows,
  summaryRows,
} from '../../server/pages/accuracy/accuracy-figures.ts'
import { count, table } from './markdown.ts'

/** @param runs of one procedure, one for each set */
export function renderVerdicts(runs: readonly AccuracyRun[]): string {
  const [first] = runs
  if (!first) return ''
  return [
    `## Verdicts, ${first.assessment}`,
    ['Procedure', `\`${first.procedure}\`.`, weightsOf(first)].join(' '),
    READING,
    tableOf(summaryRows(runs)),
    '### Labels and verdicts',
    'A row is a label: what the page says about the claim, as people judged it. A column is a verdict.',
    tableOf(matrixRows(runs)),
    ...runs.flatMap(({ set, kinds }) =>
      kinds ? [`### Kinds of claims in ${set.name}`, tableOf(kindRows(kinds))] : [],
    ),
    '### The sets',
    table(
      [
        'set',
        'claims',
        'assessed',
        'quotes in the text',
        'injected orders that failed',
        'measured on',
        'commit',
        'digest of its file',
      ],
      runs.map(({ set, assessed, quotes, resisted, at, commit }) => [
        `\`${set.name}\``,
        set.items === set.of ? count(set.items) : `${count(set.items)} of ${count(set.of)}`,
        count(assessed),
        `${count(quotes.part)} of ${count(quotes.whole)}`,
        resisted.whole === 0 ? '–' : `${count(resisted.part)} of ${count(resisted.whole)}`,
        at.slice(0, 10),
        commit ? `\`${commit}\`` : '–',
        `\`${set.sha256}\``,
      ]),
    ),
    ...runs.flatMap(({ set, failures }) =>
      failures ? [`### Wrong verdicts on ${set.name}`, ...renderFailures(failures)] : [],
    ),
  ].join('\n\n')
}

const weightsOf = ({ weights_sha256 }: AccuracyRun) =>
  weights_sha256 ? `The SHA-256 of the weights is \`${weights_sha256}\`.` : ''

/** Every failure, or one sentence. */
export function renderFailures(failures: readonly Failure[]): string[] {
  if (failures.length === 0) return ['No item went wrong.']
  return [
    table(
      ['item', 'claim', 'label', 'verdict', 'what'],
      failures.map(({ id, claim, label, verdict, why }) => [`\`${id}\``, claim, label, verdict ?? '–', why]),
    ),
  ]
}

export function renderPublished(published: Published, runs: readonly AccuracyRun[]): string {
  const { procedure, weights_sha256, at, source } = published
  return [
    `## Measured with the weights, before integration`,
    `These figures come from ${source}, ${at}. They were not measured by \`npm run eval\` and their sets are not in this repository.
Procedure \`${procedure}\`, weights \`${weights_sha256}\`. A set is fresh if nothing was trained or tuned on it. The native runtime
gives other last digits than the product and is an estimate.`,
    tableOf(publishedRows(published)),
    agreement(runs, published),
  ]
    .filter((part) => part !== null)
    .join('\n\n')
}

export const NO_MODEL = `## Verdicts, semantic

There are no rows yet: no language model was measured for this release. Someone who has a key makes them with
\`ANTHROPIC_API_KEY=... npm run eval -- --assessor semantic --save\`.`

const tableOf = ({ headings, rows, figures }: Rows) => table(headings, rows, figures)
