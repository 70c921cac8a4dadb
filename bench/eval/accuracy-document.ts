// docs/accuracy.md: the last saved runs of the evaluation as a document, with what each figure means. A test holds it to docs/accuracy.json.
import {
  type Accuracy,
  type AccuracyRun,
  type Bounded,
  CHECK_MEANINGS,
  type MarkedRun,
  percent,
  type Share,
  WAY_NAMES,
  WAYS,
} from '../../server/pages/accuracy.ts'

/** The whole document, as Markdown. */
export function renderAccuracy({ runs, marked }: Accuracy): string {
  const checked = marked.filter(({ checked }) => checked !== null)
  return `${[
    INTRODUCTION,
    runs.length > 0 ? '## Sets with labels' : null,
    ...runs.map(renderRun),
    ...(marked.length > 0 ? [MARKED, ...renderSets(marked), renderRetrieval(marked)] : []),
    ...(checked.length > 0 ? [CHECKED, renderChecks(checked)] : []),
  ]
    .filter((part) => part !== null)
    .join('\n\n')}\n`
}

const INTRODUCTION = `# Accuracy

This document shows how well the service assesses claims, measured on labelled sets. \`npm run eval -- --save\` writes it. A running
service shows the results for its own configuration at \`/accuracy\`. [Methodology](methodology.md) explains how the service assesses a
page, and \`bench/README.md\` explains how each figure is counted. A figure is valid only for its set, its date and its procedure. The
procedure names the rules and the model.`

function renderRun(run: AccuracyRun): string {
  const { assessment, procedure, at, set, assessed, failures } = run
  return [
    `### ${set.name}, ${assessment}`,
    table(
      ['what', 'which'],
      [
        ['set', `\`${set.name}\`, ${count(set.items)} items, of which ${count(assessed)} were assessed`],
        ['digest of its file', `\`${set.sha256}\``],
        ['measured on', at.slice(0, 10)],
        ['model', assessment === 'literal' ? 'none' : `\`${procedure.split('+')[1]}\``],
        ['procedure', `\`${procedure}\``],
      ],
    ),
    table(['figure', 'share', 'of', 'meaning'], figuresOf(run)),
    MATRIX,
    renderMatrix(run),
    failures.length === 0 ? 'No item went wrong.' : `Every failure:`,
    ...(failures.length === 0
      ? []
      : [
          table(
            ['item', 'claim', 'label', 'verdict', 'what'],
            failures.map(({ id, claim, label, verdict, why }) => [`\`${id}\``, claim, label, verdict ?? '–', why]),
          ),
        ]),
  ].join('\n\n')
}

const MATRIX = `The next table compares labels and verdicts. A row is a label: what the page says about the claim, as people judged it. A column is
an answer of the assessment. \`not_assessed\` means that the assessment quoted passages and gave no verdict.`

function figuresOf(run: AccuracyRun): string[][] {
  const row = (figure: string, share: Share, meaning: string) => [figure, percent(share), count(share.whole), meaning]
  const quotes = row(
    'quotes in the text',
    run.quotes,
    'The quote is in the text exactly, at the given offsets. Less than 100 % is a fault of the service, whatever the model answered.',
  )
  if (run.assessment === 'literal')
    return [
      row(
        'first quote, where words can find it',
        run.first,
        'The first quote contains the passage about the claim. Items whose page uses other words or another language are not counted.',
      ),
      row(
        'first quote, of all',
        run.firstOfAll,
        'The same with those items. A search for words cannot reach 100 % here.',
      ),
      quotes,
    ]
  const right = Object.entries(run.matrix).reduce(
    (sum, [label, verdicts]) => sum + ((verdicts as Record<string, number>)[label] ?? 0),
    0,
  )
  return [
    row(
      'right',
      { part: right, whole: run.assessed },
      'The verdict is the label that people gave. The next three rows count the other verdicts, except mixed labels with a one-sided verdict.',
    ),
    row(
      'abstained',
      run.abstained,
      'The page decides the claim, and the assessment gave no verdict. The caller paid and learned too little, but nothing false.',
    ),
    row(
      'opposite verdict',
      run.reversed,
      'Supported in place of contradicted, or the reverse. This is the worst error, so the checks prefer to give no verdict.',
    ),
    row('rash', run.rash, 'A verdict on a page that does not decide the claim. The quotes show this to a reader.'),
    row(
      'resisted',
      run.resisted,
      'Pages with injected orders that did not get the verdict that they asked for. There are few items, so a single item changes the share much.',
    ),
    quotes,
  ]
}

function renderMatrix({ matrix }: AccuracyRun): string {
  const verdicts = [...new Set(Object.values(matrix).flatMap((row) => Object.keys(row)))]
  return table(
    ['label', ...verdicts.map((verdict) => `\`${verdict}\``)],
    Object.entries(matrix).map(([label, row]) => [
      `\`${label}\``,
      ...verdicts.map((verdict) => count((row as Record<string, number>)[verdict] ?? 0)),
    ]),
    verdicts.length,
  )
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

const CHECKED = `### Checks of the model's answers

A script replaces the model. It gives answers that are known to be correct or wrong, and the whole semantic assessment processes them.
The figure is the share of verdicts that the checks removed. "Lost" means that the script was correct, so a lower share is better.
"Caught" means that the script was wrong, so a higher share is better. The figures do not show how often a real model is wrong.`

function renderChecks(runs: readonly MarkedRun[]): string {
  const scripts = Object.keys(CHECK_MEANINGS).filter((name) => runs.some(({ checks }) => checks[name]))
  return [
    table(
      ['the page, and the model', ...runs.map(({ set }) => set.name)],
      scripts.map((name) => [CHECK_MEANINGS[name]!, ...runs.map(({ checks }) => bounded(checks[name] ?? null))]),
      runs.length,
    ),
    `Rules: ${[...new Set(runs.map(({ checked }) => `\`${checked}\``))].join(', ')}, where \`scripted\` stands for the model.`,
  ].join('\n\n')
}

/** `81.2 % [77.0, 85.1]` */
function bounded(share: Bounded | null): string {
  if (share === null) return '–'
  return `${percent(share)} [${(100 * share.low).toFixed(1)}, ${(100 * share.high).toFixed(1)}]`
}

const count = (number: number) => number.toLocaleString('en')

/** @param numbers columns at the end that are aligned to the right */
function table(headings: readonly string[], rows: readonly (readonly string[])[], numbers = 0): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  const rule = headings.map((_, column) => (column >= headings.length - numbers ? '---:' : '---'))
  return [line(headings), line(rule), ...rows.map(line)].join('\n')
}
