// The last week on the operator's dashboard, as plots of the roll-ups: throughput, verdicts, failures, latency, queue, revenue, alerts;
// and the hosts and limits that stand out.
import { networkInWords } from '../../../client/networks.ts'
import { type Html, html } from '../../../client/page/html.ts'
import { inFigures, Table } from '../../../client/page/parts.ts'
import type { Period } from '../../operate/roll-ups.ts'
import { costOf, type Spending, countOf as total } from '../../operate/spending.ts'
import type { FailingHost, RefusedCalls } from '../../operate/week.ts'
import { Plot, type PlotProps, type Series } from '../plot.ts'

export interface WeekProps {
  spending: Spending
  week: readonly Period[]
  failingHosts: readonly FailingHost[]
  refused: readonly RefusedCalls[]
}

export function Week({ week, spending, failingHosts, refused }: WeekProps): Html {
  return html`<${ModelUsed} spending=${spending} />
    <h2>The last week</h2>
    <${Plots} week=${week} spending=${spending} />
    <h2>Failures and refusals</h2>
    <div class="columns">
      <${Table} caption="Hosts at which requests failed in the last day" empty="No request failed in the last day."
        columns=${[{ name: 'Host' }, { name: 'Failed', number: true }, { name: 'Why' }]}
        rows=${failingHosts.map(({ host, count, codes }) => [
          html`<a href=${`/operator/requests?${new URLSearchParams({ q: host, state: 'failed' })}`}>${host}</a>`,
          inFigures(count),
          codes.join(', '),
        ])} />
      <${Table} caption="Calls that ran into a limit (429), since the counters began" empty="No call ran into a limit."
        columns=${[{ name: 'Operation' }, { name: 'Calls', number: true }]}
        rows=${refused.map(({ operation, count }) => [operation, inFigures(count)])} />
    </div>`
}

/** The plots that have something to show. What has nothing yet is named with what fills it, instead of empty frames. */
function Plots({ week, spending }: Pick<WeekProps, 'week' | 'spending'>): Html {
  const plots = plotsOf(week, spending)
  const shown = plots.filter(({ series }) => series.some(({ points }) => points.some(({ value }) => value !== null)))
  const titles = plots
    .filter((one) => !shown.includes(one))
    .map(({ title }) => `${title[0]?.toLowerCase()}${title.slice(1)}`)
  return html`${
    shown.length > 0 &&
    html`<p class="detail">In periods of three hours. A period in which no process recorded anything is a gap.</p>
      <div class="columns">${shown.map((one) => html`<${Counts} key=${one.id} ...${one} />`)}</div>`
  }
    ${
      titles.length > 0 &&
      html`<p class="empty">Plots of ${titles.join(', ')} will be here. Processes record themselves each minute; the first verification fills
        most of them: <code>npm run demo</code> buys some.</p>`
    }`
}

/** The verdicts, as countsOf names them, in the colours that they have on every card; of the two that are in doubt, one has its own. */
const TONES: Readonly<Record<string, Series['tone']>> = {
  supports: 'supports',
  contradicts: 'contradicts',
  'insufficient evidence': 'open',
  mixed: 'mixed',
  'not assessed': 'plain',
}

function plotsOf(week: readonly Period[], spending: Spending): PlotProps[] {
  const seconds = (value: number) => `${value < 10 ? value.toFixed(2) : Math.round(value)} s`
  const inRevenue = ({ revenue }: Period) =>
    Object.fromEntries(revenue.map(({ mode, network, usd }) => [`${networkInWords(network)} (${mode})`, usd]))
  return [
    {
      ...{ id: 'verdicts', title: 'Completed verifications', shape: 'bars' },
      description: 'Completed verifications of each period, by verdict.',
      series: countsOf(week, ({ completed }) => completed).map((one) => ({ ...one, tone: TONES[one.name] })),
    },
    {
      ...{ id: 'failures', title: 'Failed verifications', shape: 'bars' },
      description: 'Failed verifications of each period, by reason; the three most frequent and all others.',
      series: countsOf(week, ({ failed }) => failed),
    },
    {
      ...{ id: 'latency', title: 'Time to the result', shape: 'line', format: seconds },
      description: 'Half of the results came within the lower line, 95 of 100 within the upper one.',
      series: [
        lineOf('half', week, ({ result }) => (result.count > 0 ? result.p50 : null)),
        lineOf('95 of 100', week, ({ result }) => (result.count > 0 ? result.p95 : null)),
      ],
    },
    {
      ...{ id: 'stages', title: 'Time of each stage, 95 of 100', shape: 'line', format: seconds },
      description: 'The time within which 95 of 100 runs of a stage ended.',
      series: stagesOf(week),
    },
    {
      ...{ id: 'queue', title: 'Jobs that were due', shape: 'area' },
      description: 'The most due jobs at the end of any minute of a period.',
      series: [lineOf('Due jobs', week, ({ recorded, queue_depth }) => (recorded > 0 ? queue_depth : null))],
    },
    {
      ...{ id: 'age', title: 'Age of the oldest job', shape: 'line', format: seconds },
      description: 'The longest time that a job had been due.',
      series: [lineOf('Oldest', week, ({ recorded, oldest_seconds }) => (recorded > 0 ? oldest_seconds : null))],
    },
    {
      ...{ id: 'revenue', title: 'Revenue in USDC', shape: 'bars', format: (value: number) => value.toFixed(2) },
      description: 'USDC settled in each period, by network. Offline mode only simulates it.',
      series: countsOf(week, inRevenue),
    },
    ...modelPlots(week, spending),
    {
      ...{ id: 'alerts', title: 'Attempts to deliver alerts', shape: 'bars' },
      description: 'Attempts to deliver alerts in each period, by outcome.',
      series: countsOf(week, ({ alerts }) => alerts),
    },
  ]
}

/** None where no model is used. */
function modelPlots(week: readonly Period[], { week: used }: Spending): PlotProps[] {
  const tokens: PlotProps = {
    ...{ id: 'tokens', title: 'Tokens of the model', shape: 'bars' },
    description: 'Tokens of the assessing model in each period, by kind.',
    series: countsOf(week, ({ model }) => model.tokens),
  }
  const cost: PlotProps = {
    ...{ id: 'cost', title: 'Cost of the model in USD', shape: 'bars', format: (value: number) => value.toFixed(4) },
    description: 'What the assessing model cost in each period, by the prices in ANTHROPIC_PRICES.',
    series: [lineOf('USD', week, ({ recorded, model }) => (recorded > 0 ? model.usd : null))],
  }
  return [...(total(used.tokens) > 0 ? [tokens] : []), ...(used.usd > 0 ? [cost] : [])]
}

/** The calls to the assessor's model and their cost. */
function ModelUsed({ spending }: Pick<WeekProps, 'spending'>): Html {
  if (total(spending.week.calls) === 0)
    return html`<h2>The assessor's model</h2><p class="empty">No language model was asked in the last week.</p>`
  const uses = [
    ['Last hour', spending.hour],
    ['Last day', spending.day],
    ['Last week', spending.week],
  ] as const
  return html`<h2>The assessor's model</h2>
    <${Table} caption="Calls to the assessing model, their tokens and their cost" unseen
      columns=${[{ name: 'Until the last minute' }, ...['Calls', 'Not answered', 'Input tokens', 'Output tokens', 'Written to cache', 'Read from cache', 'Cost'].map((name) => ({ name, number: true }))]}
      rows=${uses.map(([name, use]) => [
        name,
        inFigures(total(use.calls)),
        inFigures(total(use.calls) - (use.calls.ok ?? 0)),
        ...['input', 'output', 'cache_write', 'cache_read'].map((kind) => inFigures(use.tokens[kind] ?? 0)),
        costOf(use) ?? 'no price is set',
      ])} />
    ${uses.some(([, use]) => costOf(use) === null) && html`<p class="detail">The cost is counted where <code>ANTHROPIC_PRICES</code> is set.</p>`}`
}

/** Bars without a legend say in their title what their one series is. */
function Counts(props: PlotProps): Html {
  const [only, ...others] = props.series
  const title = only && others.length === 0 && props.shape === 'bars' ? `${props.title}: ${only.name}` : props.title
  return html`<${Plot} ...${props} title=${title} />`
}

/** At most four series: the greatest of the week, and all others together. */
function countsOf(week: readonly Period[], of: (period: Period) => Record<string, number>): Series[] {
  const totals = new Map<string, number>()
  for (const period of week)
    for (const [name, count] of Object.entries(of(period))) totals.set(name, (totals.get(name) ?? 0) + count)
  const names = [...totals]
    .filter(([, total]) => total > 0)
    .sort((a, b) => b[1] - a[1])
    .map(([name]) => name)
  const kept = names.length > MOST ? names.slice(0, MOST - 1) : names
  const others = names.slice(kept.length)
  const value = (period: Period, wanted: readonly string[]) =>
    period.recorded === 0 ? null : wanted.reduce((sum, name) => sum + (of(period)[name] ?? 0), 0)
  return [
    ...kept.map((name) => lineOf(name.replaceAll('_', ' '), week, (period) => value(period, [name]))),
    ...(others.length > 0 ? [lineOf('others', week, (period) => value(period, others))] : []),
  ]
}

const MOST = 4

function lineOf(name: string, week: readonly Period[], of: (period: Period) => number | null): Series {
  return { name, points: week.map((period) => ({ at: period.at.getTime(), value: of(period) })) }
}

/** The stages that take longest, in the order of a verification. */
function stagesOf(week: readonly Period[]): Series[] {
  return STAGES.filter((stage) => week.some(({ stages }) => (stages[stage]?.count ?? 0) > 0)).map((stage) =>
    lineOf(stage, week, ({ stages }) => ((stages[stage]?.count ?? 0) > 0 ? (stages[stage]?.p95 ?? null) : null)),
  )
}

const STAGES = ['observe', 'assess', 'settle', 'complete']
