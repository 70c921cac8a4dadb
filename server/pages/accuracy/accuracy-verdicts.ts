// The part of /accuracy about verdicts: figures with intervals for each set, beside BM25 with words, what was published, and what others
// publish of theirs.
import { type Html, html } from '../../../client/page/html.ts'
import { Facts, inFigures, Table } from '../../../client/page/parts.ts'
import type { AccuracyRun, Failure, OthersFigure, Published } from './accuracy.ts'
import { agreement, kindRows, matrixRows, publishedRows, READING, type Rows, summaryRows } from './accuracy-figures.ts'

/** @param runs with verdicts, of the configuration in force */
export function Verdicts({ runs }: { runs: readonly AccuracyRun[] }) {
  const [first] = runs
  if (!first) return null
  return html`<section class="accuracy" aria-label="Verdicts on labelled sets">
    <h2>Verdicts on labelled sets</h2>
    <p>People had judged the claims of each set. The first two figures of a row are the share of claims that got a definite verdict, for or
      against, and the share of those verdicts that was right. The true share is likely between the two figures in brackets.
      Nothing was trained or tuned on a set that is fresh. BM25 with words is a simple method without a model, to compare with.</p>
    <${RowsTable} caption="Verdicts by set" rows=${summaryRows(runs)} />
    <details><summary>How these figures are made</summary><p>${READING.replaceAll(/[*`]/g, '')}</p></details>
    <${Folded} title="Labels and verdicts">
      <p>A row for each label that people gave, a column for each verdict of the service.</p>
      <${RowsTable} caption="Labels and verdicts" rows=${matrixRows(runs)} /><//>
    ${runs.map(
      ({ set, kinds }) =>
        kinds &&
        html`<${Folded} title=${`Kinds of claims in ${set.name}`}><${RowsTable} caption="Kinds of claims" rows=${kindRows(kinds)} /><//>`,
    )}
    <${Folded} title="What was measured"><${Facts} facts=${[
      ['Procedure', html`<code>${first.procedure}</code>`],
      ['Weights', first.weights_sha256 && html`<code>${first.weights_sha256}</code>`],
      ...runs.map(({ set, at, commit, quotes }) => [
        set.name,
        html`<time datetime=${at}>${at.slice(0, 10)}</time>${commit && html`, commit <code>${commit}</code>`},
          ${' '}${inFigures(set.items)} of ${inFigures(set.of)} claims, ${inFigures(quotes.part)} of ${inFigures(quotes.whole)} quotes
          in the text exactly<br /><code>${set.sha256}</code>`,
      ]),
    ]} /><//>
    ${runs.map(({ set, failures }) => failures && html`<${Failures} name=${set.name} failures=${failures} />`)}
  </section>`
}

function Failures({ name, failures }: { name: string; failures: readonly Failure[] }) {
  return html`<${Folded} title=${`Wrong verdicts on ${name}`}>
    <${Table} caption=${`Wrong verdicts on ${name}`} unseen
      columns=${['item', 'claim', 'label', 'verdict'].map((column) => ({ name: column }))}
      empty="There was none."
      rows=${failures.map(({ id, claim, label, verdict, why }) => [
        html`<code>${id}</code>`,
        claim,
        label,
        verdict ? html`<code>${verdict}</code>` : why,
      ])} /><//>`
}

/** What is read after the main figures, folded in every window. */
function Folded({ title, children }: { title: string; children?: Html }) {
  return html`<details class="chapter"><summary><h2>${title}</h2></summary>${children}</details>`
}

/** The id of the section that the lead leads to. */
export const BEFORE_INTEGRATION = 'before-integration'

export function PublishedFigures({
  published,
  runs,
}: {
  published: readonly Published[]
  runs: readonly AccuracyRun[]
}) {
  return published.map(
    (
      one,
    ) => html`<section key=${one.procedure} class="accuracy" aria-label="Measured with the weights, before integration">
      <h2 id=${BEFORE_INTEGRATION}>Measured with the weights, before integration</h2>
      <p>From ${one.source.replaceAll('`', '')}, <time datetime=${one.at}>${one.at}</time>. These sets are not in the repository, and this service did not measure
      them. The native runtime gives other last digits than the product and is an estimate.</p>
      <${RowsTable} caption="Measured with the weights, before integration" rows=${publishedRows(one)} />
      <p>${agreement(runs, one)}</p>
    </section>`,
  )
}

/** @param runs with verdicts: without any there is nothing to compare with */
export function OthersFigures({ figures, runs }: { figures: readonly OthersFigure[]; runs: readonly AccuracyRun[] }) {
  if (runs.length === 0 || figures.length === 0) return null
  return html`<section class="accuracy" aria-label="What others publish on these sets">
    <${Folded} title="What others publish on these sets">
    <p>These figures cannot be compared directly with ours: they are of every claim of a larger part of a set, mostly with the evidence given,
    and count each answer as right or wrong, but ours are of samples, on which the verifier finds the evidence itself and gives a definite
    verdict only if it is sure, so that we count how often it gives one and how often that is right.</p>
    <${Table} caption="What others publish on these sets" unseen
      columns=${[{ name: 'verifier' }, { name: 'set' }, { name: 'measure as published' }, { name: 'value', number: true }, { name: 'source' }]}
      rows=${figures.map(({ verifier, set, part, measure, value, source }) => [
        verifier,
        `${set}, ${part}`,
        measure,
        value,
        html`<a href=${source.url}>${source.name}</a>`,
      ])} /><//>
  </section>`
}

function RowsTable({ caption, rows }: { caption: string; rows: Rows }) {
  const first = rows.headings.length - rows.figures
  const plain = (cell: string) => cell.replaceAll('`', '')
  return html`<${Table} caption=${caption} unseen stacks
    columns=${rows.headings.map((name, n) => ({ name: plain(name), number: n >= first }))}
    rows=${rows.rows.map((cells) => cells.map((cell) => figureOf(plain(cell))))} />`
}

/** The share on one line, and its interval on the next. */
function figureOf(cell: string): Html {
  const [, share, interval] = /^(\S+ %) (\[.*)$/.exec(cell) ?? []
  return share ? html`${share} <span class="interval">${interval}</span>` : cell
}
