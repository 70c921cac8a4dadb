// Plots in SVG, drawn on the server: values over time as lines, areas or bars. Each has a title, a
// description and a table of its numbers, for those who do not see it. They take the width of the page; colours come from plot.css.
import { scaleLinear, scaleUtc } from 'd3-scale'
import { area, line } from 'd3-shape'
import { type Html, html } from '../../client/page/html.ts'
import { inFigures, ShortTime, Table } from '../../client/page/parts.ts'

export interface Point {
  /** Milliseconds since the epoch. */
  at: number
  /** Null if nothing is known: a line then has a gap, and a bar is missing. */
  value: number | null
}

export interface Series {
  name: string
  /** The colour that its name has on every page; without it, the colour of its place in the order. */
  tone?: 'supports' | 'contradicts' | 'mixed' | 'open' | 'plain' | undefined
  points: readonly Point[]
}

export interface PlotProps {
  /** Unique on its page. */
  id: string
  title: string
  /** What the plot shows, in a sentence, for those who do not see it. */
  description: string
  /** At most four. Bars are stacked. */
  series: readonly Series[]
  shape: 'line' | 'area' | 'bars'
  /** The span that is drawn, in milliseconds since the epoch. By default that of the points. */
  from?: number
  to?: number
  /** How a value is written; by default in figures. */
  format?: (value: number) => string
}

/** Inner coordinates of a plot; it is stretched to its place. */
const WIDTH = 1000
const HEIGHT = 100
/** In pixels: the whole frame, what is above the plot, and the plot itself. The rest is for the times below it. */
const FRAME = { height: 180, above: 8, inner: 144 }
const Y_TICKS = 3
const DAY_MS = 86_400_000
const X_TICKS = 5

export function Plot(props: PlotProps): Html {
  const { id, title, description, series, format = inFigures } = props
  const points = series.flatMap((one) => one.points)
  if (points.every(({ value }) => value === null))
    return html`<figure class="plot"><figcaption>${title}</figcaption><p class="empty">Nothing has been measured yet.</p></figure>`
  const scales = scalesOf(props, points)
  return html`<figure class="plot">
    <figcaption>${title}${series.length > 1 && html`<${Legend} series=${series} />`}</figcaption>
    <div class="plot-frame">
      <${Heights} scales=${scales} format=${format} />
      <svg class="plot-area" height=${FRAME.height} role="img" aria-labelledby=${`${id}-title ${id}-description`}>
        <title id=${`${id}-title`}>${title}</title>
        <desc id=${`${id}-description`}>${description}</desc>
        <${Axes} scales=${scales} />
        <svg y=${FRAME.above} width="100%" height=${FRAME.inner} viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none"
          overflow="visible">
          <${Shapes} ...${props} scales=${scales} />
        </svg>
      </svg>
    </div>
    <${Numbers} title=${title} series=${series} format=${format} />
  </figure>`
}

function scalesOf({ shape, series, from, to }: PlotProps, points: readonly Point[]) {
  const times = points.map(({ at }) => at)
  const tops = shape === 'bars' ? [...sums(series).values()] : points.map(({ value }) => value ?? 0)
  const [first, last] = [from ?? Math.min(...times), to ?? Math.max(...times)]
  // The scale ends above the values, so that an axis without any value still has two ticks.
  const y = scaleLinear([0, Math.max(...tops, 1e-9)], [HEIGHT, 0]).nice(Y_TICKS)
  // Half a thing is never counted.
  const isWhole = tops.every(Number.isInteger) && y.domain().every(Number.isInteger)
  return {
    ticks: y.ticks(Y_TICKS).filter((value) => !isWhole || Number.isInteger(value)),
    x: scaleUtc([first, Math.max(last, first + 1)], [0, WIDTH]),
    y,
  }
}
type Scales = ReturnType<typeof scalesOf>

/** The heights of stacked bars, by time. */
function sums(series: readonly Series[]): Map<number, number> {
  const heights = new Map<number, number>()
  for (const { at, value } of series.flatMap(({ points }) => points))
    heights.set(at, (heights.get(at) ?? 0) + (value ?? 0))
  return heights
}

/** The numbers beside the plot, in a column of their own, so that they keep their width where the plot is narrow. */
function Heights({ scales: { y, ticks }, format }: { scales: Scales; format: (value: number) => string }): Html {
  return html`<svg class="plot-axes" width="52" height=${FRAME.height} aria-hidden="true">${ticks.map(
    (value) =>
      html`<text key=${value} x="44" y=${pixels(y(value))} dy="0.32em" text-anchor="end">${format(value)}</text>`,
  )}</svg>`
}

function Axes({ scales: { x, y, ticks } }: { scales: Scales }): Html {
  const format = x.tickFormat(X_TICKS)
  const [first, second] = x.ticks(X_TICKS)
  const isOfDays = first && second && Number(second) - Number(first) < 7 * DAY_MS
  const label = (at: Date) => {
    const written = format(at)
    // The scale writes a Sunday by its month, beside other days by their names.
    if (isOfDays && /^[A-Z][a-z]{2} \d\d$/.test(written) && at.getUTCDay() === 0) return `Sun ${written.slice(-2)}`
    // The first of a month would be its name alone, beside days that have a number.
    return written.replace(/^([A-Z][a-z]{2})[a-z]*$/, (_, month) => `${month} 01`)
  }
  return html`<g class="plot-axes" aria-hidden="true">
    ${ticks.map((value) => html`<line key=${value} x1="0" x2="100%" y1=${pixels(y(value))} y2=${pixels(y(value))} />`)}
    ${x.ticks(X_TICKS).map(
      (
        at,
        n,
      ) => html`<text key=${n} class=${n % 2 === 1 ? 'odd' : undefined} x=${`${(x(at) / WIDTH) * 100}%`} y=${FRAME.height - 8}
        text-anchor=${x(at) < 30 ? 'start' : x(at) > WIDTH - 30 ? 'end' : 'middle'}>${label(at)}</text>`,
    )}
  </g>`
}

/** The place of an inner height in the frame. */
const pixels = (height: number) => Math.round(FRAME.above + (height * FRAME.inner) / HEIGHT)

function Shapes({ shape, series, scales }: PlotProps & { scales: Scales }): Html {
  if (shape === 'bars') return html`<${Bars} series=${series} scales=${scales} />`
  const { x, y } = scales
  const isKnown = ({ value }: Point) => value !== null
  const curve = line<Point>(
    ({ at }) => x(at),
    ({ value }) => y(value ?? 0),
  )
    .defined(isKnown)
    .digits(1)
  const below = area<Point>(
    ({ at }) => x(at),
    HEIGHT,
    ({ value }) => y(value ?? 0),
  )
    .defined(isKnown)
    .digits(1)
  return series.map(
    ({ name, points, tone }, n) => html`<g key=${name} class=${`series-${tone ?? n + 1}`}>
      ${shape === 'area' && html`<path class="plot-fill" d=${below([...points])} />`}
      <path class="plot-line" d=${curve([...points])} vector-effect="non-scaling-stroke" />
      <path class="plot-dot" d=${curve(alone(points))} vector-effect="non-scaling-stroke" />
    </g>`,
  )
}

/** The points without a known neighbour, with gaps between, because a line through one point is not visible. */
function alone(points: readonly Point[]): Point[] {
  const isKnown = (at: number) => (points[at]?.value ?? null) !== null
  return points.map((point, at) => (isKnown(at - 1) || isKnown(at + 1) ? { ...point, value: null } : point))
}

function Bars({ series, scales: { x, y } }: { series: readonly Series[]; scales: Scales }): Html {
  const times = [...sums(series).keys()].sort((a, b) => a - b)
  const steps = times.slice(1).map((at, n) => x(at) - x(times[n] ?? at))
  const width = Math.min(...steps, WIDTH / Math.max(times.length, 12)) * 0.8
  const ground = new Map<number, number>()
  return series.map(({ name, points, tone }, n) => {
    const bars = points.flatMap(({ at, value }) => {
      if (!value) return []
      const from = ground.get(at) ?? 0
      ground.set(at, from + value)
      const [top, bottom] = [y(from + value), y(from)]
      // A bar begins at its time, and the last one stays within the plot.
      const left = Math.min(Math.max(x(at), 0), WIDTH - width)
      return [
        html`<rect key=${at} x=${left.toFixed(1)} y=${top.toFixed(2)} width=${width.toFixed(1)} height=${(bottom - top).toFixed(2)} />`,
      ]
    })
    return html`<g key=${name} class=${`plot-bars series-${tone ?? n + 1}`}>${bars}</g>`
  })
}

function Legend({ series }: Pick<PlotProps, 'series'>): Html {
  return html`<span class="legend">${series.map(
    ({ name, tone }, n) =>
      html`<span key=${name}><svg class=${`plot-key series-${tone ?? n + 1}`} width="10" height="10" aria-hidden="true"><rect width="10" height="10" /></svg> ${name}</span>`,
  )}</span>`
}

interface NumbersProps {
  title: string
  series: readonly Series[]
  format: (value: number) => string
}

/** The numbers of a plot, latest first, folded. */
function Numbers({ title, series, format }: NumbersProps): Html {
  const times = [...new Set(series.flatMap(({ points }) => points.map(({ at }) => at)))].sort((a, b) => b - a)
  const values = series.map(({ points }) => new Map(points.map(({ at, value }) => [at, value])))
  const written = (value: number | null | undefined) => (value === null || value === undefined ? '–' : format(value))
  return html`<details class="numbers"><summary>The numbers</summary><${Table} caption=${title} unseen
    columns=${[{ name: 'Time (UTC)' }, ...series.map(({ name }) => ({ name, number: true }))]}
    rows=${times.map((at) => [html`<${ShortTime} ms=${at} />`, ...values.map((one) => written(one.get(at)))])} /></details>`
}
