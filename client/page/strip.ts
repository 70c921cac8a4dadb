// A strip of states side by side, in SVG, for pages and for what runs in the browser.
import { type Html, html } from './html.ts'
import { Table } from './parts.ts'

/** `plain`: nothing is known. */
export type StripTone = 'good' | 'open' | 'bad' | 'plain'

export interface StripState {
  /** What the part stands for: a day, an hour, a beat. */
  name: string
  tone: StripTone
  /** The state in words. */
  state: string
}

export interface StripProps {
  id: string
  title: string
  description: string
  /** In order of time. */
  states: readonly StripState[]
  /** How many states there may be: fewer are drawn at the end, so that strips beside each other compare. */
  places?: number
  /** What each tone means, shown beside the title. */
  legend?: Readonly<Record<StripTone, string>>
  /** Below the ends of the strip. */
  from?: string
  to?: string
}

const HEIGHT = 32
/** Each tone has a height of its own, so that it is told by more than its colour. */
const HEIGHTS: Readonly<Record<StripTone, number>> = { good: HEIGHT, open: 20, bad: 10, plain: 4 }

/** States side by side, as of the days of a service or the beats of a watchdog. */
export function Strip(props: StripProps): Html {
  const { id, title, description, states, places = states.length, legend, from, to } = props
  const width = 100 / Math.max(places, 1)
  const first = places - states.length
  return html`<figure class="plot strip">
    <figcaption>${title}${legend && html`<${Legend} words=${legend} />`}</figcaption>
    <svg class="plot-area" height=${HEIGHT} role="img" aria-labelledby=${`${id}-title ${id}-description`}>
      <title id=${`${id}-title`}>${title}</title>
      <desc id=${`${id}-description`}>${description}</desc>
      ${states.map(
        (
          { name, tone, state },
          n,
        ) => html`<rect key=${n} class=${`state-${tone}`} x=${`${((first + n) * width).toFixed(3)}%`} y=${HEIGHT - HEIGHTS[tone]}
          width=${`${(width * 0.8).toFixed(3)}%`} height=${HEIGHTS[tone]}>
          <title>${name}: ${state}</title>
        </rect>`,
      )}
    </svg>
    ${(from || to) && html`<p class="strip-ends"><span>${from}</span><span>${to}</span></p>`}
    <details class="numbers"><summary>The states</summary><${Table} caption=${title} unseen
      columns=${[{ name: 'When' }, { name: 'State' }]}
      rows=${[...states].reverse().map(({ name, state }) => [name, state])} /></details>
  </figure>`
}

/** Half as high as the strip. */
function Legend({ words }: { words: Readonly<Record<StripTone, string>> }): Html {
  return html`<span class="legend">${(Object.keys(HEIGHTS) as StripTone[]).map((tone) => {
    const height = HEIGHTS[tone] / 2
    return html`<span key=${tone}><svg width="6" height=${HEIGHT / 2} aria-hidden="true"><rect class=${`state-${tone}`} y=${HEIGHT / 2 - height}
      width="6" height=${height} /></svg> ${words[tone]}</span>`
  })}</span>`
}
