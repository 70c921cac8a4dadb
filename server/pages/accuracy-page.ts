// The page /accuracy: how well the assessment in force does on a labelled set, as the last saved run of the evaluation measured it.
import { html } from '../../client/page/html.ts'
import { Badge, Code, Facts, Figures, inFigures, Notice, Table, VERDICT_TONES } from '../../client/page/parts.ts'
import type { AssessmentKind } from '../interface/assessment.ts'
import type { AccuracyRun, Share } from './accuracy.ts'
import { renderPage, type Site } from './layout.ts'

export interface InForce {
  assessment: AssessmentKind
  /** The methodology versions of the configuration. */
  methodologies: readonly string[]
}

export function accuracyPage(site: Site, runs: readonly AccuracyRun[], inForce: InForce): string {
  const measured = runs.filter(({ procedure }) =>
    inForce.methodologies.some((version) => version.includes(` ${procedure}+`)),
  )
  return renderPage(site, {
    title: 'Accuracy',
    path: '/accuracy',
    description: 'How well this service assesses claims: the last evaluation on a labelled set, with every failure.',
    body: html`<h1>Accuracy</h1>
      <p class="lead">${LEADS[inForce.assessment]}</p>
      ${measured.length === 0 && html`<${NoRun} inForce=${inForce} />`}
      ${measured.map((run) => html`<${RunView} key=${run.procedure + run.set.name} run=${run} />`)}`,
  })
}

const LEADS: Record<AssessmentKind, string> = {
  literal:
    'No model is asked here and no verdict is given. Measured is whether the first quote holds the passage that bears on the claim.',
  semantic:
    'A model gives the verdict here. Measured is how often it is the one that people gave to the same page and claim.',
}

function NoRun({ inForce: { methodologies } }: { inForce: InForce }) {
  return html`<${Notice} tone="open" title="No evaluation was run on this configuration.">Nothing is known here of how well it assesses.<//>
    <${Facts} facts=${methodologies.map((version) => ['Methodology', html`<code key=${version}>${version}</code>`])} />
    <p>An operator measures the configured assessor, and keeps what was measured for this page, with:</p>
    <${Code} label="Shell" text="npm run eval -- --save" />`
}

function RunView({ run }: { run: AccuracyRun }) {
  const { assessment, procedure, at, set, assessed, failures } = run
  return html`<section aria-label=${`${procedure} on ${set.name}`}>
    <${Figures} figures=${figuresOf(run)} />
    <${Facts} facts=${[
      ['Set', html`${set.name}, ${inFigures(set.items)} items<br /><code>${set.sha256}</code>`],
      ['Procedure', html`<code>${procedure}</code>`],
      ['Measured on', html`<time datetime=${at}>${at.slice(0, 10)}</time>`],
      ['Assessed', `${inFigures(assessed)} of ${inFigures(set.items)}`],
      ['Quotes', `${share(run.quotes)} stand in the text exactly`],
      [
        'Injected orders',
        assessment === 'semantic' ? `${share(run.resisted)} did not bring about their verdict` : null,
      ],
    ]} />
    <${Matrix} matrix=${run.matrix} />
    <h2>Every failure</h2>
    <${Table} caption="Failures" unseen columns=${[{ name: 'item' }, { name: 'claim' }, { name: 'label' }, { name: assessment === 'semantic' ? 'verdict' : 'what' }]}
      empty="There was none."
      rows=${failures.map(({ id, claim, label, verdict, why }) => [
        html`<code>${id}</code>`,
        claim,
        label,
        assessment === 'semantic' && verdict
          ? html`<${Badge} tone=${VERDICT_TONES[verdict] ?? 'plain'}>${verdict}<//>`
          : why,
      ])} />
  </section>`
}

function figuresOf({ assessment, matrix, assessed, abstained, reversed, rash, first, firstOfAll }: AccuracyRun) {
  if (assessment === 'literal')
    return [
      ['first quote holds the passage, where words can find it', percent(first)],
      ['of all', percent(firstOfAll)],
    ]
  const right = Object.entries(matrix).reduce(
    (sum, [label, verdicts]) => sum + ((verdicts as Record<string, number>)[label] ?? 0),
    0,
  )
  return [
    ['right', percent({ part: right, whole: assessed })],
    ['abstained where the page decides', percent(abstained)],
    ['opposite verdict', percent(reversed)],
    ['decided where the page does not', percent(rash)],
  ]
}

function Matrix({ matrix }: Pick<AccuracyRun, 'matrix'>) {
  const verdicts = [
    ...new Set(Object.values(matrix).flatMap((row) => Object.keys(row))),
  ] as (keyof (typeof matrix)[string])[]
  return html`<h2>Labels and verdicts</h2>
    <p>A row for what people say that the page says of the claim, a column for what the service answered.</p>
    <${Table} caption="Labels and verdicts" unseen columns=${[{ name: 'label' }, ...verdicts.map((name) => ({ name, number: true }))]}
      rows=${Object.entries(matrix).map(([label, row]) => [label, ...verdicts.map((verdict) => inFigures(row[verdict] ?? 0))])} />`
}

const share = (one: Share) => `${inFigures(one.part)} of ${inFigures(one.whole)}`
const percent = ({ part, whole }: Share) => (whole === 0 ? '–' : `${((100 * part) / whole).toFixed(1)} %`)
