// The page /accuracy: the results of the current assessment on labelled sets, from the last saved runs of the evaluation.
import { html } from '../../client/page/html.ts'
import { Badge, Code, Facts, Figures, inFigures, Notice, Table, VERDICT_TONES } from '../../client/page/parts.ts'
import type { AssessmentKind } from '../interface/assessment.ts'
import {
  type Accuracy,
  type AccuracyRun,
  CHECK_MEANINGS,
  type MarkedRun,
  percent,
  type Share,
  WAY_NAMES,
  WAYS,
} from './accuracy.ts'
import { renderPage, type Site } from './layout.ts'

export interface InForce {
  assessment: AssessmentKind
  /** The methodology versions of the configuration. */
  methodologies: readonly string[]
}

export function accuracyPage(site: Site, { runs, marked }: Accuracy, inForce: InForce): string {
  const isInForce = (procedure: string) => inForce.methodologies.some((version) => isPartOf(version, procedure))
  const measured = runs.filter(({ procedure }) => isInForce(procedure))
  const quoted = marked.filter(({ procedure }) => isInForce(procedure))
  const checked = marked.filter(({ checked }) => checked !== null && isInForce(checked))
  return renderPage(site, {
    title: 'Accuracy',
    path: '/accuracy',
    description: 'How well this service assesses claims: the last evaluation on a labelled set, with every failure.',
    body: html`<h1>Accuracy</h1>
      <p class="lead">${LEADS[inForce.assessment]}</p>
      ${measured.length === 0 && html`<${NoRun} inForce=${inForce} />`}
      ${measured.map((run) => html`<${RunView} key=${run.procedure + run.set.name} run=${run} />`)}
      ${quoted.length > 0 && html`<${Quoted} runs=${quoted} />`}
      ${checked.length > 0 && html`<${Checked} runs=${checked} />`}`,
  })
}

/** Checks were measured with scripts in place of a model, and hold for every model. */
function isPartOf(version: string, procedure: string): boolean {
  const words = procedure.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace('\\+scripted\\+', '\\+[^+]+\\+')
  return new RegExp(` ${words}\\+`).test(version)
}

const LEADS: Record<AssessmentKind, string> = {
  literal:
    'No model is asked here and no verdict is given. The figures show how often the first quote contains the passage about the claim.',
  semantic:
    'A model gives the verdict here. The figures show how often people gave the same verdict to the same page and claim.',
}

function NoRun({ inForce: { methodologies } }: { inForce: InForce }) {
  return html`<${Notice} tone="open" title="No evaluation was run on this configuration.">Its accuracy is not known.<//>
    <${Facts} facts=${methodologies.map((version) => ['Methodology', html`<code key=${version}>${version}</code>`])} />
    <p>An operator measures the configured assessor, and stores the results for this page, with:</p>
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
      ['Quotes', `${share(run.quotes)} are in the text exactly`],
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

/** By the name of a verdict. */
type Counts = Readonly<Partial<Record<string, number>>>

function figuresOf({ assessment, matrix, assessed, abstained, reversed, rash, first, firstOfAll }: AccuracyRun) {
  if (assessment === 'literal')
    return [
      ['first quote holds the passage, where words can find it', percent(first)],
      ['of all', percent(firstOfAll)],
    ]
  const right = Object.entries(matrix).reduce((sum, [label, counts]: [string, Counts]) => sum + (counts[label] ?? 0), 0)
  return [
    ['right', percent({ part: right, whole: assessed })],
    ['abstained where the page decides', percent(abstained)],
    ['opposite verdict', percent(reversed)],
    ['decided where the page does not', percent(rash)],
  ]
}

function Matrix({ matrix }: Pick<AccuracyRun, 'matrix'>) {
  const rows: [label: string, counts: Counts][] = Object.entries(matrix)
  const verdicts = [...new Set(rows.flatMap(([, counts]) => Object.keys(counts)))]
  return html`<h2>Labels and verdicts</h2>
    <p>A row for each label that people gave, a column for each verdict of the service.</p>
    <${Table} caption="Labels and verdicts" unseen columns=${[{ name: 'label' }, ...verdicts.map((name) => ({ name, number: true }))]}
      rows=${rows.map(([label, counts]) => [label, ...verdicts.map((verdict) => inFigures(counts[verdict] ?? 0))])} />`
}

function Quoted({ runs }: { runs: readonly MarkedRun[] }) {
  return html`<section aria-label="Data sets with annotated evidence">
    <h2>Data sets with annotated evidence</h2>
    <p>People annotated which sentences of these pages are evidence for a claim. A quote counts if it contains half of such a sentence.
    BM25, a standard method of search engines, ranks the sentences of the same pages. It quotes every page with one word of the claim, also
    pages without evidence.</p>
    <${Table} caption="Quotes of annotated evidence" unseen
      columns=${[{ name: 'set' }, { name: 'by' }, ...['first quote', 'first three', 'whole', 'no quote'].map((name) => ({ name, number: true }))]}
      rows=${runs.flatMap((run) =>
        WAYS.map((way) => {
          const { top1, top3, whole, abstained } = run.retrieval[way]
          return [run.set.name, WAY_NAMES[way], percent(top1), percent(top3), percent(whole), percent(abstained)]
        }),
      )} />
    <${Sets} runs=${runs} />
  </section>`
}

function Checked({ runs }: { runs: readonly MarkedRun[] }) {
  const scripts = Object.keys(CHECK_MEANINGS).filter((name) => runs.some(({ checks }) => checks[name]))
  return html`<section aria-label="Checks of the model's answers">
    <h2>Checks of the model's answers</h2>
    <p>A script replaces the model. It gives answers that are known to be correct or wrong. The table shows how often the checks removed its
    verdict. A lower share is better where the script was correct, and a higher share where it was wrong.</p>
    <${Table} caption="Verdicts that the checks removed" unseen
      columns=${[{ name: 'the page, and the model' }, ...runs.map(({ set }) => ({ name: set.name, number: true }))]}
      rows=${scripts.map((name) => [CHECK_MEANINGS[name], ...runs.map(({ checks }) => percent(checks[name] ?? null))])} />
    <${Sets} runs=${runs} />
  </section>`
}

function Sets({ runs }: { runs: readonly MarkedRun[] }) {
  return html`<${Facts} facts=${runs.map(({ set, part, marked, at }) => [
    set.name,
    html`${inFigures(set.items)} items${part && ` of the part ${part}`}, ${inFigures(marked)} with annotated evidence,
      ${' '}<time datetime=${at}>${at.slice(0, 10)}</time>`,
  ])} />
    <p><a href="/guide/accuracy">What each figure means, with intervals</a></p>`
}

const share = (one: Share) => `${inFigures(one.part)} of ${inFigures(one.whole)}`
