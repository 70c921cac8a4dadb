// The page /accuracy: the results of the current assessment on labelled sets, from the last saved runs of the evaluation.
import { html } from '../../../client/page/html.ts'
import { Code, Facts, Figures, inFigures, Notice, Table } from '../../../client/page/parts.ts'
import { FRESH_RIGHT_OF_100 } from '../../../client/verdict-words.ts'
import { RIGHT_OF_100 } from '../../../workers/assessment/local/explanation.ts'
import type { AssessmentKind } from '../../interface/assessment.ts'
import { renderPage, type Site } from '../layout.ts'
import {
  type Accuracy,
  type AccuracyRun,
  type MarkedRun,
  type OthersFigure,
  percent,
  type Share,
  WAY_NAMES,
  WAYS,
} from './accuracy.ts'
import { BEFORE_INTEGRATION, OthersFigures, PublishedFigures, Verdicts } from './accuracy-verdicts.ts'

export interface InForce {
  assessment: AssessmentKind
  /** The methodology versions of the configuration. */
  methodologies: readonly string[]
}

/** @param others what others publish on the same sets */
export function accuracyPage(
  site: Site,
  { runs, marked, published }: Accuracy,
  inForce: InForce,
  others: readonly OthersFigure[] = [],
): string {
  const isInForce = (procedure: string) => inForce.methodologies.some((version) => isPartOf(version, procedure))
  const measured = runs.filter(({ procedure }) => isInForce(procedure))
  const literal = measured.filter(({ assessment }) => assessment === 'literal')
  const judged = measured.filter(({ assessment }) => assessment !== 'literal')
  const card = published.filter(({ procedure }) => isInForce(procedure))
  const quoted = marked.filter(({ procedure }) => isInForce(procedure))
  return renderPage(site, {
    title: 'Accuracy',
    path: '/accuracy',
    description: 'How well this service assesses claims: the last evaluation on a labelled set, with every failure.',
    body: html`<h1>Accuracy</h1>
      <p class="lead">${LEADS[inForce.assessment]}</p>
      ${ADVICE[inForce.assessment] && html`<p>${ADVICE[inForce.assessment]}</p>`}
      ${inForce.assessment === 'local' && card.length > 0 && html`<p>${WHENCE}</p>`}
      ${measured.length === 0 && html`<${NoRun} inForce=${inForce} />`}
      <${Verdicts} runs=${judged} />
      <${OthersFigures} figures=${others} runs=${judged} />
      <${PublishedFigures} published=${card} runs=${judged} />
      ${literal.map((run) => html`<${RunView} key=${run.procedure + run.set.name} run=${run} />`)}
      ${quoted.length > 0 && html`<${Quoted} runs=${quoted} />`}
      <p><a href="/guide/accuracy">Every figure as a document</a>, and <a href="/guide/notice">licences and sources</a> of the verifier and
      of what it learnt from.</p>
      <p class="aside">The <a href="/model/">weights</a> of the verifier that comes with every service are public. Anyone can recompute its
        verdicts by${' '}<code>countersign verify FILE --recompute</code>.</p>`,
  })
}

function isPartOf(version: string, procedure: string): boolean {
  const words = procedure.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(` ${words}\\+`).test(version)
}

const LEADS: Record<AssessmentKind, string> = {
  literal:
    'No model is asked here and no verdict is given. The figures show how often the first quote contains the passage about the claim.',
  local: `The verifier that comes with this service gives the verdict here. On pages that it was not trained on, ${RIGHT_OF_100.supports} of 100 of its verdicts for a claim and ${RIGHT_OF_100.contradicts} of 100 against one were right; on fresh public sets ${FRESH_RIGHT_OF_100.supports} and ${FRESH_RIGHT_OF_100.contradicts}. It gave such a verdict on a third of the first claims and on a sixth of the others, and else says that the page does not say enough.`,
  semantic:
    'A model gives the verdict here. The figures show how often people gave the same verdict to the same page and claim.',
}

/** The figure to take for a page of one's own, from those that the page shows. */
const ADVICE: Readonly<Partial<Record<AssessmentKind, string>>> = {
  literal:
    'For a page that was never tried here, rely on the lowest figures below, those of the public sets: the other set was made for this service.',
  local: `For a page that the verifier has never seen, rely on the lower pair, ${FRESH_RIGHT_OF_100.supports} and ${FRESH_RIGHT_OF_100.contradicts} of 100: on the fresh sets nothing was trained or chosen.`,
}

/** Where the figures of the lead are from. */
const WHENCE = html`The higher pair is of 440 claims about 62 web pages from which the model learnt nothing: the first row of
  ${' '}<a href=${`#${BEFORE_INTEGRATION}`}>Measured with the weights</a>. Half of these claims decided how sure it must be before it gives a
  verdict.`

function NoRun({ inForce: { methodologies } }: { inForce: InForce }) {
  return html`<${Notice} title="No evaluation was run on this configuration.">Its accuracy is not known.<//>
    <${Facts} facts=${methodologies.map((version) => ['Methodology', html`<code key=${version}>${version}</code>`])} />
    <p>An operator measures the configured assessor, and stores the results for this page, with:</p>
    <${Code} label="Shell" text="npm run eval -- --save" />`
}

function RunView({ run }: { run: AccuracyRun }) {
  const { procedure, at, set, assessed, quotes, first, firstOfAll, failures } = run
  return html`<section aria-label=${`${procedure} on ${set.name}`}>
    <${Figures} figures=${[
      ['first quote holds the passage, where words can find it', percent(first)],
      ['of all', percent(firstOfAll)],
    ]} />
    <${Facts} facts=${[
      ['Set', html`${set.name}, ${inFigures(set.items)} items<br /><code>${set.sha256}</code>`],
      ['Procedure', html`<code>${procedure}</code>`],
      ['Measured on', html`<time datetime=${at}>${at.slice(0, 10)}</time>`],
      ['Assessed', `${inFigures(assessed)} of ${inFigures(set.items)}`],
      ['Quotes', `${share(quotes)} are in the text exactly`],
    ]} />
    <h2>Claims of ${set.name} whose passage is not the first quote</h2>
    <${Table} caption="Failures" unseen columns=${['item', 'claim', 'label', 'what'].map((name) => ({ name }))}
      empty="There was none."
      rows=${(failures ?? []).map(({ id, claim, label, why }) => [html`<code>${id}</code>`, claim, label, why])} />
  </section>`
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

function Sets({ runs }: { runs: readonly MarkedRun[] }) {
  return html`<${Facts} facts=${runs.map(({ set, part, marked, at }) => [
    set.name,
    html`${inFigures(set.items)} items${part && ` of the part ${part}`}, ${inFigures(marked)} with annotated evidence,
      ${' '}<time datetime=${at}>${at.slice(0, 10)}</time>`,
  ])} />
    <p><a href="/guide/accuracy">What each figure means, with intervals</a></p>`
}

const share = (one: Share) => `${inFigures(one.part)} of ${inFigures(one.whole)}`
