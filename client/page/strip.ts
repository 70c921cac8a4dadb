// A strip of states side by side, in SVG, for pages and for what runs in the browser.
import { type Html, html } from './html.ts'
import { Table, type Tone } from './parts.ts'

export interface StripState {
  /** What the part stands for: a day, an hour, a beat. */
  name: string
  tone: Tone
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
  /** Below the ends of the strip. */
  from?: string
  to?: string
}

/** States side by side, as of the days of a service or the beats of a watchdog. `plain` is drawn as unknown. */
export function Strip({ id, title, description, states, places = states.length, from, to }: StripProps): Html {
  const width = 100 / Math.max(places, 1)
  const first = places - states.length
  return html`<figure class="plot strip">
    <figcaption>${title}</figcaption>
    <svg class="plot-area" height="32" role="img" aria-labelledby=${`${id}-title ${id}-description`}>
      <title id=${`${id}-title`}>${title}</title>
      <desc id=${`${id}-description`}>${description}</desc>
      ${states.map(
        (
          { name, tone, state },
          n,
        ) => html`<rect key=${n} class=${`state-${tone}`} x=${`${((first + n) * width).toFixed(3)}%`} width=${`${(width * 0.8).toFixed(3)}%`} height="32">
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
