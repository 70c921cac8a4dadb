// docs/accuracy.md: the last saved runs of the evaluation as a document, with what each figure means. A test holds it to docs/accuracy.json.
import {
  type Accuracy,
  type AccuracyRun,
  type Bounded,
  type MarkedRun,
  percent,
  type Share,
  WAY_NAMES,
  WAYS,
} from '../../server/pages/accuracy/accuracy.ts'
import { count, table } from './markdown.ts'
import { NO_MODEL, renderFailures, renderPublished, renderVerdicts } from './verdict-document.ts'

/** The whole document, as Markdown. */
export function renderAccuracy({ runs, marked, published }: Accuracy): string {
  const literal = runs.filter(({ assessment }) => assessment === 'literal')
  const procedures = new Set(
    runs.filter(({ assessment }) => assessment !== 'literal').map(({ procedure }) => procedure),
  )
  return `${[
    INTRODUCTION,
    ...[...procedures].map((procedure) => renderVerdicts(runs.filter((run) => run.procedure === procedure))),
    ...published.map((one) => renderPublished(one, runs)),
    ...(runs.some(({ assessment }) => assessment === 'semantic') ? [] : [NO_MODEL]),
    literal.length > 0 ? '## Quotes without a verdict' : null,
    ...literal.map(renderRun),
    ...(marked.length > 0 ? [MARKED, ...renderSets(marked), renderRetrieval(marked)] : []),
  ]
    .filter((part) => part !== null)
    .join('\n\n')}\n`
}

const INTRODUCTION = `# Accuracy

How well the service assesses claims, measured on labelled sets. \`npm run eval -- --save\` writes it. A running
service shows the results for its own configuration at \`/accuracy\`. [Methodology](methodology.md) explains how the service assesses a
page, and \`bench/README.md\` explains how each figure is counted. A figure is valid only for its set, its date and its procedure. The
procedure names the rules and the model. \`docs/accuracy-of-others.json\` has what others publish on the same sets, and \`/accuracy\` shows it.`

function renderRun({ assessment, procedure, at, set, assessed, failures, ...run }: AccuracyRun): string {
  return [
    `### ${set.name}, ${assessment}`,
    table(
      ['what', 'which'],
      [
        ['set', `\`${set.name}\`, ${count(set.items)} items, of which ${count(assessed)} were assessed`],
        ['digest of its file', `\`${set.sha256}\``],
        ['measured on', at.slice(0, 10)],
        ['procedure', `\`${procedure}\``],
      ],
    ),
    table(['figure', 'share', 'of', 'meaning'], figuresOf(run)),
    ...renderFailures(failures ?? []),
  ].join('\n\n')
}

function figuresOf({ first, firstOfAll, quotes }: Pick<AccuracyRun, 'first' | 'firstOfAll' | 'quotes'>): string[][] {
  const row = (figure: string, share: Share, meaning: string) => [figure, percent(share), count(share.whole), meaning]
  return [
    row(
      'first quote, where words can find it',
      first,
      'The first quote contains the passage about the claim. Items whose page uses other words or another language are not counted.',
    ),
    row('first quote, of all', firstOfAll, 'The same with those items. A search for words cannot reach 100 % here.'),
    row(
      'quotes in the text',
      quotes,
      'The quote is in the text exactly, at the given offsets. Less is a fault of the service.',
    ),
  ]
}

const MARKED = `## Data sets with annotated evidence

Other people annotated which sentences of a page are evidence for a claim. The sets are WiCE (claims of Wikipedia with the pages that
they cite), SciFact, Climate-FEVER, VitaminC and FEVER-symmetric. The rules are tuned on the part \`tune\` of the pages and reported on
the part \`report\`.`

function renderSets(runs: readonly MarkedRun[]): string[] {
  return [
    table(
      ['set', 'part', 'items', 'with annotated evidence', 'measured on', 'digest of its file'],
      runs.map(({ set, part, marked, at }) => [
        set.name,
        part ?? 'all',
        count(set.items),
        count(marked),
        at.slice(0, 10),
        `\`${set.sha256.slice(0, 16)}\`…`,
      ]),
    ),
    `Procedure: ${[...new Set(runs.map(({ procedure }) => `\`${procedure}\``))].join(', ')}.`,
  ]
}

const QUOTED = `### Quotes of the literal assessment and of BM25

Shares are of the items with annotated evidence. The brackets contain 95 % of 1000 resamples of whole pages.

- **First quote, first three**: the first quote, or one of the first three, contains at least half of an annotated sentence.
- **Whole set**: the quotes, at most six, contain all the evidence that the claim needs. This is hard if the evidence is in several
  places of the page.
- **No quote**: nothing was quoted. BM25 quotes every page with one word of the claim, also pages without evidence. So a quote of BM25
  alone is no sign that the page has evidence.

BM25 ranks the sentences of the same page, by stems and without stop words. "With neighbours" extends each of its sentences until its
quotes are as long as those of the literal assessment.`

function renderRetrieval(runs: readonly MarkedRun[]): string {
  const rows = runs.flatMap(({ set, retrieval }) =>
    WAYS.map((way) => {
      const { top1, top3, whole, abstained } = retrieval[way]
      return [set.name, WAY_NAMES[way], ...[top1, top3, whole, abstained].map(bounded)]
    }),
  )
  return `${QUOTED}\n\n${table(['set', 'by', 'first quote', 'first three', 'whole set', 'no quote'], rows, 4)}`
}

/** `81.2 % [77.0, 85.1]` */
function bounded(share: Bounded | null): string {
  if (share === null) return '–'
  return `${percent(share)} [${(100 * share.low).toFixed(1)}, ${(100 * share.high).toFixed(1)}]`
}
